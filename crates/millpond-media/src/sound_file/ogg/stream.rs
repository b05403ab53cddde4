//! One logical stream of Ogg: Opus (RFC 7845), FLAC (RFC 9639 10.1), or one that is only named.

use super::{
    headers::{HeaderSearch, OPUS_TAGS},
    page::{Page, Piece},
};
use crate::{
    codec::{
        Codec,
        audio::opus,
        make::{self, Made},
    },
    error::MediaError,
    movie::{
        Edit, Track,
        artwork::Artwork,
        sample_table::{SampleTable, SampleTableBuilder},
        tags::Tags,
    },
    sound_file::flac_frame::{FrameHeader, StreamInfo},
    units::Timescale,
};

/// Path of errors.
pub(super) const PATH: &str = "Ogg";
/// First bytes of streams that are read.
const OPUS_HEAD: &[u8] = b"OpusHead";
const FLAC_HEAD: &[u8] = b"\x7fFLAC";
/// Bytes of the first packet of FLAC before the signature of a FLAC file: the mapping's, its version, a number of packets.
const FLAC_MAPPING: usize = 9;
/// Bytes of the signature and of a block's header.
const FLAC_BLOCK: usize = 8;
/// Rate of Opus.
const OPUS_RATE: u32 = 48_000;

/// First bytes of streams of other codecs, with their names.
const NAMED: [(&[u8], &str); 9] = [
    (b"\x01vorbis", "Vorbis"),
    (b"\x80theora", "Theora"),
    (b"Speex   ", "Speex"),
    (b"BBCD\0", "Dirac"),
    (b"\x80kate", "Kate"),
    (b"OVP80", "VP8 in Ogg"),
    (b"PCM     ", "PCM in Ogg"),
    (b"CELT    ", "CELT"),
    (b"\x80daala", "Daala"),
];
/// First bytes of a stream that describes others.
const SKELETON: &[u8] = b"fishead\0";

/// A logical stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) serial: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Read(Box<Parts>),
    /// A stream that describes others.
    Silent,
    /// The stream can't be played.
    Left(MediaError),
}

/// A stream whose packets become samples.
#[derive(Debug)]
struct Parts {
    made: Made,
    rate: Timescale,
    /// Properties of FLAC; `None` for Opus.
    flac: Option<StreamInfo>,
    headers: HeaderSearch,
    /// Samples that are not heard at the beginning.
    pre_skip: i64,
    /// The packet with which the last page ended.
    open: Packet,
    /// Granule position at the beginning of the first frame.
    base: Option<i64>,
    /// End of what is heard, where the last page states it.
    end: Option<i64>,
    table: SampleTableBuilder,
    /// Frames of a page, with their lengths in samples.
    frames: Vec<(Piece, u32)>,
}

/// The packet that continues on the next page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    None,
    Header,
    Frame,
}

impl Stream {
    /// Creates a stream from its first packet, at `offset`.
    pub(super) fn new(serial: u32, packet: &[u8], offset: u64) -> Self {
        let state = match Parts::new(packet, offset) {
            _ if packet.starts_with(SKELETON) => State::Silent,
            Ok(parts) => State::Read(Box::new(parts)),
            Err(error) => State::Left(error),
        };
        Self { serial, state }
    }

    /// Whether it can be played, as far as is known.
    pub(super) fn plays(&self) -> bool {
        matches!(self.state, State::Read(_))
    }

    /// Whether frames of it were read, or are not wanted.
    pub(super) fn has_frames(&self) -> bool {
        !matches!(&self.state, State::Read(parts) if parts.table.is_empty())
    }

    /// Its clock; `None` where it can't be played.
    pub(super) fn rate(&self) -> Option<Timescale> {
        match &self.state {
            State::Read(parts) => Some(parts.rate),
            State::Silent | State::Left(_) => None,
        }
    }

    /// Returns the cover in the header packets of a stream that can be played.
    pub(super) fn take_artwork(&mut self) -> Option<Artwork> {
        match &mut self.state {
            State::Read(parts) => parts.headers.take_artwork(),
            State::Silent | State::Left(_) => None,
        }
    }

    /// Bytes of heap that its samples, tags and cover hold.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Read(parts) => parts.table.heap_bytes() + parts.headers.heap_bytes(),
            State::Silent | State::Left(_) => 0,
        }
    }

    /// Takes the texts of its comments.
    pub(super) fn take_tags(&mut self) -> Tags {
        match &mut self.state {
            State::Read(parts) => parts.headers.take_tags(),
            State::Silent | State::Left(_) => Tags::default(),
        }
    }

    /// Takes a page of the stream at `offset`, whose bytes are `bytes`.
    pub(super) fn push(&mut self, page: &Page, bytes: &[u8], offset: u64) {
        let State::Read(parts) = &mut self.state else { return };
        if let Err(error) = parts.push(page, bytes, offset) {
            self.state = State::Left(error);
        }
    }

    /// Returns the track with this `id`; `None` where the stream only describes others.
    ///
    /// # Errors
    /// The stream can't be played, or has no frames.
    pub(super) fn finish(self, id: u32, movie: Timescale) -> Option<Result<Track, MediaError>> {
        match self.state {
            State::Silent => None,
            State::Left(error) => Some(Err(error)),
            State::Read(parts) => Some(parts.finish(id, movie)),
        }
    }
}

impl Parts {
    fn new(packet: &[u8], offset: u64) -> Result<Self, MediaError> {
        let (made, flac) = if packet.starts_with(OPUS_HEAD) {
            (make::opus_head(packet)?, None)
        } else if packet.starts_with(FLAC_HEAD) {
            let file = packet.get(FLAC_MAPPING..).unwrap_or_default();
            let info = StreamInfo::read(file.get(FLAC_BLOCK..).unwrap_or_default());
            let missing =
                || MediaError::invalid(PATH, offset, "no STREAMINFO with a rate", "one in the first packet of FLAC");
            (make::flac_head(file)?, Some(info.ok_or_else(missing)?))
        } else {
            let known = NAMED.iter().find(|(first, _)| packet.starts_with(first)).map(|(_, name)| (*name).to_owned());
            let first = packet.get(..8.min(packet.len())).unwrap_or_default();
            let name = known.unwrap_or_else(|| format!("a stream that begins with \"{}\"", first.escape_ascii()));
            return Err(MediaError::unsupported(PATH, offset, name));
        };
        let pre_skip = match &made.codec {
            Codec::Opus(config) => config.pre_skip.into(),
            _ => 0,
        };
        let rate = Timescale::new(flac.map_or(OPUS_RATE, |info| info.sample_rate));
        Ok(Self {
            made,
            rate: rate.ok_or_else(|| MediaError::invalid(PATH, offset, "a rate of 0", "a sampling rate"))?,
            flac,
            headers: HeaderSearch::new(flac.is_some()),
            pre_skip,
            open: Packet::None,
            base: None,
            end: None,
            table: SampleTable::builder(),
            frames: Vec::new(),
        })
    }

    /// Takes a page. A frame must lie within one page: otherwise its bytes are no range of the file.
    fn push(&mut self, page: &Page, bytes: &[u8], offset: u64) -> Result<(), MediaError> {
        self.frames.clear();
        if !page.is_continued {
            self.open = Packet::None;
        }
        for piece in &page.pieces {
            let packet = bytes.get(piece.start..piece.start + piece.length).unwrap_or_default();
            let kind = match (piece.begins, self.open) {
                (true, _) if self.is_header(packet) => Packet::Header,
                (true, _) => Packet::Frame,
                (false, open) => open,
            };
            self.open = if piece.ends { Packet::None } else { kind };
            match kind {
                Packet::Frame if piece.begins && piece.ends => {
                    if let Some(samples) = self.samples(packet) {
                        self.frames.push((*piece, samples));
                    }
                }
                Packet::Frame => {
                    let what = format!("{} in packets that continue over pages", self.made.codec.name());
                    return Err(MediaError::unsupported(PATH, offset + piece.start as u64, what));
                }
                Packet::Header => self.headers.push(packet, offset + piece.start as u64, piece.begins),
                Packet::None => {}
            }
        }
        self.add(page, offset);
        Ok(())
    }

    /// Whether a packet has no sound.
    fn is_header(&self, packet: &[u8]) -> bool {
        match self.flac {
            // Frames begin with a sync code, which no metadata block does.
            Some(_) => packet.first().is_some_and(|first| *first != 0xff),
            None => packet.starts_with(OPUS_HEAD) || packet.starts_with(OPUS_TAGS),
        }
    }

    /// Samples of a packet; `None` where it is no frame of the stream.
    fn samples(&self, packet: &[u8]) -> Option<u32> {
        match &self.flac {
            Some(info) => FrameHeader::read(packet).filter(|header| info.has(header)).map(|header| header.block),
            None => opus::samples(packet),
        }
    }

    /// Adds the frames of a page, which end at its granule position.
    fn add(&mut self, page: &Page, offset: u64) {
        let whole: i64 = self.frames.iter().map(|(_, samples)| i64::from(*samples)).sum();
        if let Some(granule) = page.granule.filter(|_| whole > 0) {
            // Samples beyond the granule position of the last page are cut off (RFC 7845 4.4).
            let first = if page.is_last { 0 } else { granule.saturating_sub(whole).max(0) };
            let base = *self.base.get_or_insert(first);
            let start = granule.saturating_sub(base).saturating_sub(whole);
            if !page.is_last && start > self.table.next_dts() {
                self.table.set_start_dts(start);
            }
            self.end = Some(granule.saturating_sub(base)).filter(|_| page.is_last);
        }
        for (piece, samples) in &self.frames {
            let size = u32::try_from(piece.length).unwrap_or(u32::MAX);
            self.table.push(offset + piece.start as u64, size, *samples, 0, true);
        }
    }

    fn finish(self, id: u32, movie: Timescale) -> Result<Track, MediaError> {
        let samples = self.table.finish();
        if samples.is_empty() {
            return Err(MediaError::invalid(PATH, 0, format!("no frames of {}", self.made.codec.name()), "one"));
        }
        let end = self.end.unwrap_or(i64::MAX).min(samples.end_dts());
        let is_trimmed = self.pre_skip > 0 || end < samples.end_dts();
        let duration = u64::try_from(self.rate.convert(end.saturating_sub(self.pre_skip), movie)).unwrap_or(0);
        let edit = Edit { duration, media_time: Some(self.pre_skip) };
        let edits = Some(edit).filter(|_| is_trimmed && duration > 0).into_iter().collect();
        Ok(Track { samples, edits, ..Track::live(id, self.made, self.rate, "und") })
    }
}
