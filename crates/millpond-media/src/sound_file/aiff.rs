//! AIFF 1.3 and AIFF-C: PCM from chunks in any order.

use super::{
    chunks::{self, CHUNK_HEADER, Chunks, FILE_HEADER},
    pcm::Pcm,
};
use crate::{
    boxes::{FourCc, show},
    codec::{ByteOrder, PcmCoding, make},
    error::MediaError,
    movie::tags::{TagName, Tags, unmarked},
    scan::{FileReader, Progress},
    units::{ByteRange, Timescale},
    window::Window,
    work::Work,
};

/// Path of errors.
const PATH: &str = "AIFF";
/// Bytes of `SSND` before its frames.
const SOUND_HEADER: u64 = 8;
/// Bytes of `COMM`, and of the compression type of AIFF-C behind them.
const COMMON: u64 = 18;
const COMPRESSION: u64 = 4;
/// Most bytes of a text that are read.
const MOST_TEXT: u64 = 1024;
/// Exponent of 1 in a number of 80 bits (IEEE 754), and the bits of its fraction.
const BIAS: u16 = 16_383;
const FRACTION: u16 = 63;

/// Reads an AIFF file.
#[derive(Debug, Default)]
pub(super) struct Aiff {
    chunks: Chunks,
    common: Option<Common>,
    /// Bytes of the frames.
    sound: Option<ByteRange>,
    /// Texts before the frames. Those behind them would take another request.
    tags: Tags,
}

/// `COMM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    offset: u64,
    channels: u16,
    bits: u16,
    rate: Option<u32>,
    compression: FourCc,
}

impl FileReader for Aiff {
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError> {
        if !self.chunks.open(window) {
            return Ok(Progress::Needs(FILE_HEADER));
        }
        loop {
            let at = window.at();
            work.spend(1).map_err(|error| MediaError::work(PATH, at, error))?;
            if let (Some(common), Some(range)) = (self.common, self.sound) {
                let mut progress = common.pcm(range)?.finish(window.end(), work)?;
                if let Progress::Done(movie) = &mut progress {
                    movie.tags = std::mem::take(&mut self.tags);
                }
                return Ok(progress);
            }
            if window.left() < CHUNK_HEADER {
                return Err(MediaError::invalid(PATH, at, "the end of the file", "COMM and SSND chunks"));
            }
            let Some((kind, size)) = chunks::header(window, u32::from_be_bytes) else {
                return Ok(Progress::Needs(CHUNK_HEADER));
            };
            let wanted = match &kind {
                b"COMM" => CHUNK_HEADER + size.min(COMMON + COMPRESSION),
                b"SSND" => CHUNK_HEADER + SOUND_HEADER,
                b"NAME" | b"AUTH" => CHUNK_HEADER + size.min(MOST_TEXT),
                _ => CHUNK_HEADER,
            };
            if wanted > window.left() {
                return Err(MediaError::truncated(show(kind), at, window.left(), wanted));
            }
            let Some(bytes) = window.bytes(wanted) else { return Ok(Progress::Needs(wanted)) };
            let body = bytes.get(CHUNK_HEADER as usize..).unwrap_or_default();
            match &kind {
                b"COMM" => self.common = Some(Common::read(body, at)?),
                b"SSND" => {
                    let skipped = body.first_chunk().map_or(0, |offset| u64::from(u32::from_be_bytes(*offset)));
                    let (start, end) = (at + wanted + skipped, at + CHUNK_HEADER + size);
                    self.sound = Some(ByteRange::new(start, end));
                }
                b"NAME" => self.tags.add(TagName::Title, &unmarked(body)),
                b"AUTH" => self.tags.add(TagName::Artist, &unmarked(body)),
                _ => {}
            }
            self.chunks.count(PATH, at)?;
            window.advance(CHUNK_HEADER + size + size % 2);
        }
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Common {
    fn read(body: &[u8], offset: u64) -> Result<Self, MediaError> {
        let short = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
        let read = || {
            // AIFF has no compression type, and no compression.
            let compression = body.get(COMMON as usize..).and_then(|rest| rest.first_chunk()).copied();
            let mantissa = u64::from_be_bytes(*body.get(10..)?.first_chunk()?);
            let rate = rate(short(8)?, mantissa);
            let compression = compression.unwrap_or(*b"NONE");
            Some(Self { offset, channels: short(0)?, bits: short(6)?, rate, compression })
        };
        let found = || format!("{} bytes", body.len());
        read().ok_or_else(|| MediaError::invalid("COMM", offset, found(), "at least 18"))
    }

    fn pcm(&self, range: ByteRange) -> Result<Pcm, MediaError> {
        let order = match &self.compression {
            b"sowt" => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let coding = match (&self.compression, self.bits.div_ceil(8)) {
            (b"raw ", 1) => PcmCoding::Unsigned8,
            (b"NONE" | b"twos" | b"sowt", 1) => PcmCoding::Signed8,
            (b"NONE" | b"twos" | b"sowt", 2) => PcmCoding::Signed16(order),
            (b"NONE" | b"twos" | b"sowt" | b"in24", 3) => PcmCoding::Signed24(order),
            (b"NONE" | b"twos" | b"sowt" | b"in32", 4) => PcmCoding::Signed32(order),
            (b"fl32" | b"FL32", _) => PcmCoding::Float32(order),
            (b"fl64" | b"FL64", _) => PcmCoding::Float64(order),
            (b"alaw" | b"ALAW", _) => PcmCoding::ALaw,
            (b"ulaw" | b"ULAW", _) => PcmCoding::MuLaw,
            (kind, _) => {
                let what = format!("compression '{}' of {} bits", show(*kind), self.bits);
                return Err(MediaError::unsupported("COMM", self.offset, what));
            }
        };
        let missing = || MediaError::invalid("COMM", self.offset, "no sampling rate", "a whole number of 1 or more");
        let rate = self.rate.and_then(Timescale::new).ok_or_else(missing)?;
        Ok(Pcm { path: PATH, made: make::pcm(coding, self.channels, rate)?, rate, range })
    }
}

/// Returns a positive number of 80 bits without its fraction; `None` where that exceeds 32 bits.
fn rate(exponent: u16, mantissa: u64) -> Option<u32> {
    let power = exponent.checked_sub(BIAS).filter(|power| *power <= FRACTION)?;
    u32::try_from(mantissa >> (FRACTION - power)).ok()
}
