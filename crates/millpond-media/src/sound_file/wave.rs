//! WAVE (Multimedia Programming Interface and Data Specifications 1.0), RF64 and BW64 (ITU-R BS.2088): PCM from the header alone, MPEG
//! audio by its frames.

use super::{
    chunks::{self, CHUNK_HEADER, Chunks, FILE_HEADER},
    frames::FrameReader,
    mpeg_audio::MpegAudio,
    pcm::Pcm,
};
use crate::{
    boxes::show,
    codec::{ByteOrder, PcmCoding, make},
    error::MediaError,
    movie::tags::{TagName, Tags, unmarked},
    scan::{FileReader, Progress},
    units::{ByteRange, Timescale},
    window::Window,
    work::Work,
};

/// Path of errors.
const PATH: &str = "WAVE";
/// Most bytes of a format that are read.
const MOST_FORMAT: u64 = 64;
/// Most bytes of a list of texts that are read.
const MOST_INFO: u64 = 4096;
/// A size that another chunk states, or that the writer never learned.
const UNKNOWN: u64 = u32::MAX as u64;
/// Tags of formats (RFC 2361).
const PCM: u16 = 1;
const FLOAT: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const MPEG: u16 = 0x50;
const MP3: u16 = 0x55;
/// Tag of a format whose GUID begins with another tag.
const EXTENSIBLE: u16 = 0xfffe;
/// Place of this GUID.
const GUID: usize = 24;

/// Names of formats that are not supported.
const NAMED: [(u16, &str); 13] = [
    (0x02, "Microsoft ADPCM"),
    (0x08, "DTS"),
    (0x11, "IMA ADPCM"),
    (0x31, "GSM 6.10"),
    (0x40, "G.721 ADPCM"),
    (0x45, "G.726 ADPCM"),
    (0x92, "AC-3"),
    (0xff, "AAC"),
    (0x160, "Windows Media Audio"),
    (0x161, "Windows Media Audio"),
    (0x1600, "AAC in ADTS"),
    (0x2000, "AC-3"),
    (0x2001, "DTS"),
];

/// Reads a WAVE file.
#[derive(Debug, Default)]
pub(super) struct Wave {
    chunks: Chunks,
    format: Option<Format>,
    /// Size of the data in files of more than 4 GiB (`ds64`).
    long_size: Option<u64>,
    /// Texts before the data. Those behind it would take another request.
    tags: Tags,
    /// Reader of MPEG audio in the data.
    frames: Option<Box<FrameReader<MpegAudio>>>,
}

/// `WAVEFORMATEX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    tag: u16,
    channels: u16,
    rate: u32,
    /// Bits of a value with its padding.
    bits: u16,
}

impl FileReader for Wave {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        let mut progress = self.walk(window, work)?;
        if let Progress::Done(movie) = &mut progress {
            movie.tags = std::mem::take(&mut self.tags).or(std::mem::take(&mut movie.tags));
        }
        Ok(progress)
    }

    fn heap_bytes(&self) -> usize {
        self.frames.as_ref().map_or(0, |frames| frames.heap_bytes())
    }
}

impl Wave {
    /// Reads chunks as far as the bytes allow.
    fn walk(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        if !self.chunks.open(window) {
            return Ok(Progress::Needs(FILE_HEADER));
        }
        loop {
            if let Some(frames) = &mut self.frames {
                return frames.read(window, work);
            }
            let at = window.at();
            work.spend(1).map_err(|error| MediaError::work(PATH, at, error))?;
            if window.left() < CHUNK_HEADER {
                return Err(MediaError::invalid(PATH, at, "the end of the file", "a data chunk"));
            }
            let Some((kind, size)) = chunks::header(window, u32::from_le_bytes) else {
                return Ok(Progress::Needs(CHUNK_HEADER));
            };
            if &kind == b"data" {
                if let Some(done) = self.data(size, window, work)? {
                    return Ok(done);
                }
                continue;
            }
            let whole = CHUNK_HEADER + size + size % 2;
            if matches!(&kind, b"fmt " | b"ds64" | b"LIST") {
                let wanted = CHUNK_HEADER + size.min(if &kind == b"LIST" { MOST_INFO } else { MOST_FORMAT });
                if wanted > window.left() {
                    return Err(MediaError::truncated(show(kind), at, window.left(), wanted));
                }
                let Some(bytes) = window.bytes(wanted) else { return Ok(Progress::Needs(wanted)) };
                let body = bytes.get(CHUNK_HEADER as usize..).unwrap_or_default();
                match &kind {
                    b"ds64" => self.long_size = field(body, 8),
                    b"LIST" => info(&mut self.tags, body),
                    _ => self.format = Some(Format::read(body, at)?),
                }
            }
            self.chunks.count(PATH, at)?;
            if whole > window.left() {
                return Err(MediaError::truncated(show(kind), at, window.left(), whole));
            }
            window.advance(whole);
        }
    }

    /// Reads the data chunk of stated `size`. `None` where its frames are read next.
    fn data(&mut self, size: u64, window: &mut Window, work: &Work) -> Result<Option<Progress>, MediaError> {
        let at = window.at();
        let Some(format) = self.format else {
            return Err(MediaError::invalid(PATH, at, "a data chunk before the format", "a fmt chunk first"));
        };
        let start = at + CHUNK_HEADER;
        let end = match (size, self.long_size) {
            (UNKNOWN, Some(size)) => start.saturating_add(size),
            // Writers that never went back to the header.
            (0 | UNKNOWN, _) => window.end(),
            _ => start + size,
        };
        let range = ByteRange::new(start, end);
        if matches!(format.tag, MPEG | MP3) {
            window.advance(CHUNK_HEADER);
            window.set_end(range.end.min(window.end()));
            self.frames = Some(Box::default());
            return Ok(None);
        }
        let coding = format.coding().ok_or_else(|| MediaError::unsupported("fmt ", at, format.name()))?;
        let rate = Timescale::new(format.rate);
        let rate = rate.ok_or_else(|| MediaError::invalid("fmt ", at, "a rate of 0", "a sampling rate"))?;
        let made = make::pcm(coding, format.channels, rate)?;
        Pcm { path: PATH, made, rate, range }.finish(window.end(), work).map(Some)
    }
}

impl Format {
    fn read(body: &[u8], offset: u64) -> Result<Self, MediaError> {
        let short = |at: usize| Some(u16::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let read = || {
            let tag = match short(0)? {
                EXTENSIBLE => short(GUID)?,
                tag => tag,
            };
            let (channels, frame) = (short(2)?, short(12)?);
            let rate = u32::from_le_bytes(*body.get(4..)?.first_chunk()?);
            // Values may have fewer bits than their bytes.
            let bits = frame.checked_div(channels).map_or(0, |bytes| bytes.saturating_mul(8));
            Some(Self { tag, channels, rate, bits })
        };
        let missing =
            || MediaError::invalid("fmt ", offset, format!("{} bytes", body.len()), "16, or 40 if extensible");
        read().ok_or_else(missing)
    }

    fn coding(&self) -> Option<PcmCoding> {
        match (self.tag, self.bits) {
            (PCM, 8) => Some(PcmCoding::Unsigned8),
            (PCM, 16) => Some(PcmCoding::Signed16(ByteOrder::Little)),
            (PCM, 24) => Some(PcmCoding::Signed24(ByteOrder::Little)),
            (PCM, 32) => Some(PcmCoding::Signed32(ByteOrder::Little)),
            (FLOAT, 32) => Some(PcmCoding::Float32(ByteOrder::Little)),
            (FLOAT, 64) => Some(PcmCoding::Float64(ByteOrder::Little)),
            (A_LAW, 8) => Some(PcmCoding::ALaw),
            (MU_LAW, 8) => Some(PcmCoding::MuLaw),
            _ => None,
        }
    }

    fn name(&self) -> String {
        match NAMED.iter().find(|(tag, _)| *tag == self.tag) {
            Some((_, name)) => format!("{name} (format {:#x})", self.tag),
            None => format!("format {:#x} with {} bits per value", self.tag, self.bits),
        }
    }
}

/// Adds the texts of a list of type `INFO`: each has a type, a size, and an even length.
fn info(tags: &mut Tags, list: &[u8]) {
    let mut rest = list.strip_prefix(b"INFO").unwrap_or_default();
    while let Some((kind, (size, body))) = rest.split_first_chunk::<4>().and_then(|(kind, rest)| {
        let (size, body) = rest.split_first_chunk()?;
        Some((kind, (u32::from_le_bytes(*size) as usize, body)))
    }) {
        let Some(text) = body.get(..size) else { return };
        let name = match kind {
            b"INAM" => Some(TagName::Title),
            b"IART" => Some(TagName::Artist),
            b"IPRD" => Some(TagName::Album),
            _ => None,
        };
        if let Some(name) = name {
            tags.add(name, &unmarked(text));
        }
        rest = body.get(size + size % 2..).unwrap_or_default();
    }
}

/// Reads a number of eight bytes.
fn field(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
