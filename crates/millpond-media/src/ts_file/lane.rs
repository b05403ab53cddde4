//! A stream of the programme that is being read: its frames become the samples of a track.

use super::{
    entries::{Chosen, Entries},
    parts::{self, Part, Parts},
    timeline::{Cursor, Timeline},
};
use crate::{
    codec::{
        Codec, StreamForm, TrackKind,
        audio::opus,
        captions::{CaptionChannels, CaptionSearch},
        nal::NalSyntax,
    },
    error::MediaError,
    movie::{
        Edit, Track,
        extraction::{ExtractedStream, ExtractedStreamBuilder, FramePlace, PacketForm, UnitPlace},
        purpose::Purposes,
    },
    ts::{Framed, Framer, PesUnit, TsFrame, TsStream},
    units::{ByteRange, Timescale},
};

/// `alternate_group` of tracks of pictures, and of sound.
const GROUPS: [u16; 2] = [1, 2];
/// Samples of a frame of sound that tells no number.
const USUAL: u32 = 1024;
/// Steps of work that a configuration takes: its parameter sets are copied, compared and read.
const CONFIGURATION: u64 = 1024;
/// Language of streams that state none.
const UNKNOWN: &str = "und";

/// A stream whose frames are read.
#[derive(Debug)]
pub(super) struct Lane {
    stream: TsStream,
    form: StreamForm,
    framer: Framer,
    framed: Vec<Framed>,
    packets: PacketForm,
    /// Bytes of the elementary stream so far.
    position: u64,
    entries: Entries,
    cursor: Cursor,
    /// The samples, once the codec is known.
    parts: Option<Parts>,
    source: ExtractedStreamBuilder,
    captions: CaptionSearch,
    /// Configurations that the stream stated.
    configurations: u64,
    /// Whether the stream had any frame.
    has_frames: bool,
    /// Whether frames are scrambled.
    pub(super) is_scrambled: bool,
    /// Reason why no further frames are read.
    ended: Option<MediaError>,
}

/// A track before the times of its bases are joined.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) track: Track,
    pub(super) parts: Vec<Part>,
    pub(super) source: ExtractedStream,
    /// Reason for the lack of some frames.
    pub(super) reason: Option<MediaError>,
}

/// The extracted object while it grows.
#[derive(Debug, Default)]
pub(super) struct Extracted {
    /// Its length so far.
    pub(super) len: u64,
    /// Its bytes, for comparison with extracted ones.
    #[cfg(test)]
    pub(super) bytes: Vec<u8>,
}

impl Extracted {
    /// Appends a frame; returns its place.
    fn append(&mut self, frame: &[u8]) -> ByteRange {
        #[cfg(test)]
        self.bytes.extend_from_slice(frame);
        let place = ByteRange::at(self.len, frame.len() as u64);
        self.len = place.end;
        place
    }
}

impl Lane {
    /// Creates the lane of a stream; `None` if its frames can't be read.
    pub(super) fn new(stream: TsStream, packets: PacketForm) -> Option<Self> {
        let (form, framer) = (stream.coding.form()?, Framer::new(stream.coding)?.patient());
        Some(Self {
            stream,
            form,
            framer,
            framed: Vec::new(),
            packets,
            position: 0,
            entries: Entries::default(),
            cursor: Cursor::default(),
            parts: None,
            source: ExtractedStreamBuilder::default(),
            captions: CaptionSearch::default(),
            configurations: 0,
            has_frames: false,
            is_scrambled: false,
            ended: None,
        })
    }

    pub(super) fn pid(&self) -> u16 {
        self.stream.pid
    }

    /// Takes the description of its PID in a later map, which came before `at`.
    pub(super) fn describe(&mut self, stream: &TsStream, at: u64) {
        if stream.coding != self.stream.coding && self.ended.is_none() {
            let (found, expected) = (stream.coding.name(), self.stream.coding.name());
            let expected = format!("{expected} as before: the rest is left out");
            self.ended = Some(MediaError::invalid("the stream", at, found, expected));
        }
        if self.stream.language.is_none() {
            self.stream.language.clone_from(&stream.language);
        }
    }

    /// Takes the next PES packet.
    pub(super) fn push(&mut self, unit: &PesUnit, timeline: &mut Timeline, extracted: &mut Extracted) {
        if self.ended.is_some() {
            return;
        }
        if !unit.data.is_empty() {
            let packets = ByteRange::new(unit.first_packet, unit.last_packet.saturating_add(self.packets.stride()));
            let payload = ByteRange::at(self.position, unit.data.len() as u64);
            self.source.push_unit(UnitPlace { packets, payload });
            self.position = payload.end;
        }
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.push(unit, &mut framed);
        self.take(&mut framed, unit.first_packet, timeline, extracted);
        self.framed = framed;
    }

    /// Ends the stream.
    pub(super) fn end(&mut self, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.finish(&mut framed);
        self.take(&mut framed, at, timeline, extracted);
    }

    /// Steps of work so far.
    pub(super) fn steps(&self) -> u64 {
        u64::from(self.frames()) + self.configurations.saturating_mul(CONFIGURATION)
    }

    /// Number of samples so far.
    fn frames(&self) -> u32 {
        self.parts.as_ref().map_or(0, Parts::len)
    }

    /// Bytes of heap that its tables and the frame that is being assembled hold.
    pub(super) fn heap_bytes(&self) -> usize {
        self.framer.held() + self.source.heap_bytes() + self.parts.as_ref().map_or(0, Parts::heap_bytes)
    }

    fn take(&mut self, framed: &mut Vec<Framed>, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        for framed in framed.drain(..) {
            match framed {
                Framed::Configuration(configuration) => {
                    self.configurations += 1;
                    self.entries.configure(configuration);
                }
                Framed::Frame(frame) => self.frame(&frame, at, timeline, extracted),
                Framed::Fault(_) => {}
            }
        }
    }

    fn frame(&mut self, frame: &TsFrame, at: u64, timeline: &mut Timeline, extracted: &mut Extracted) {
        self.has_frames = true;
        let count = self.frames();
        // Decoding begins with a key frame.
        if count == 0 && !frame.is_sync || !self.entries.accept(frame, count, at) {
            return;
        }
        let Some((codec, kind)) = self.entries.first() else { return };
        let length = match (codec, kind) {
            (_, TrackKind::Video { .. }) => None,
            (Codec::Opus(_), _) => Some(opus::samples(&frame.data).unwrap_or(USUAL)),
            (codec, _) => Some(codec.samples_per_frame().unwrap_or(USUAL)),
        };
        let clock = clock(kind);
        let parts = self.parts.get_or_insert_with(|| Parts::new(clock));
        let time = timeline.place(&mut self.cursor, frame.pts, frame.dts);
        let place = match length {
            None => {
                let place = extracted.append(&frame.data);
                parts.picture(time, place, frame.is_sync);
                if let Some(form) = NalSyntax::of(codec) {
                    self.captions.picture(form, &frame.data);
                }
                place
            }
            Some(length) => {
                let Some(start) = parts.sound_time(time, length) else { return };
                let place = extracted.append(&frame.data);
                parts.sound(start, length, place);
                place
            }
        };
        self.source.push_frame(FramePlace { extracted: place, source: frame.source });
    }

    /// Returns the track, without samples and edits.
    ///
    /// # Errors
    /// No frame of it can be played.
    pub(super) fn finish(self) -> Result<Read, MediaError> {
        let why = |found: &str| MediaError::invalid("the stream", 0, found, "frames that can be played");
        let Some(parts) = self.parts else {
            return Err(match self.ended {
                Some(error) => error,
                None if self.is_scrambled => why("scrambled packets"),
                None if !self.has_frames => why("no frames"),
                None => self.entries.finish().err().flatten().unwrap_or_else(|| why("no key frame")),
            });
        };
        let chosen = self.entries.finish().map_err(|error| error.unwrap_or_else(|| why("no configuration")))?;
        let (track, reason) = described(&self.stream, chosen, self.captions.finish());
        let source = self.source.finish(self.stream.pid, self.form);
        Ok(Read { track, parts: parts.finish(), source, reason: self.ended.or(reason) })
    }

    /// Returns the track of the frames so far in the first time base; `None` if it begins in another one.
    pub(super) fn so_far(&self) -> Option<Read> {
        let part = self.parts.as_ref()?.in_first_base()?;
        let chosen = self.entries.clone().finish().ok()?;
        // Captions may follow.
        let captions = self.captions.clone().finish().filter(|found| !found.is_empty());
        let (track, _) = described(&self.stream, chosen, captions);
        let source = self.source.clone().finish(self.stream.pid, self.form);
        Some(Read { track, parts: vec![part], source, reason: None })
    }

    /// Whether the stream has pictures.
    pub(super) fn is_video(&self) -> bool {
        self.stream.coding.is_video()
    }

    /// Whether the stream has a frame that can be played.
    pub(super) fn has_track(&self) -> bool {
        self.parts.is_some()
    }

    /// Whether the stream may still become a track, of which there is no frame yet.
    pub(super) fn is_awaited(&self) -> bool {
        !self.has_track() && self.ended.is_none() && !self.is_scrambled
    }
}

/// Returns a track without samples and edits, and the reason for the lack of some frames.
fn described(stream: &TsStream, chosen: Chosen, captions: Option<CaptionChannels>) -> (Track, Option<MediaError>) {
    let clock = clock(&chosen.entry.kind);
    let (entry, descriptions) = chosen.entries.finish();
    let entry = entry.unwrap_or(chosen.entry);
    let [pictures, sound] = GROUPS;
    let is_video = matches!(entry.kind, TrackKind::Video { .. });
    let track = Track {
        id: u32::from(stream.pid),
        alternate_group: if is_video { pictures } else { sound },
        kind: entry.kind,
        timescale: clock,
        language: stream.language.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        name: None,
        enabled: true,
        purposes: Purposes::default(),
        captions: if is_video { captions } else { None },
        codec: entry.codec,
        sample_entry: entry.sample_entry,
        edits: Vec::new(),
        samples: Default::default(),
        descriptions: descriptions.map(Box::new),
        protection: None,
    };
    (track, chosen.reason)
}

impl Read {
    /// Returns the track with its samples, whose time bases are presented later by `shifts`; and its frames in the file.
    pub(super) fn placed(self, shifts: &[i64]) -> (Track, ExtractedStream) {
        let parts::Joined { samples, first, media_time } = parts::join(&self.parts, shifts, self.track.timescale);
        let empty = u64::try_from(first).ok().filter(|duration| *duration > 0);
        let empty = empty.map(|duration| Edit { duration, media_time: None });
        let shown = Edit { duration: 0, media_time: Some(media_time) };
        let edits = empty.into_iter().chain([shown]).collect();
        (Track { samples, edits, ..self.track }, self.source)
    }
}

/// Returns the clock of a track: the 90 kHz of the stream for pictures, the sampling rate for sound.
fn clock(kind: &TrackKind) -> Timescale {
    match kind {
        TrackKind::Audio { sample_rate, .. } => Timescale::new(*sample_rate).unwrap_or(Timescale::MPEG),
        _ => Timescale::MPEG,
    }
}
