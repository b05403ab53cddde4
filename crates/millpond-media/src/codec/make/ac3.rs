//! AC-3 and E-AC-3: `ac-3` with `dac3` and `ec-3` with `dec3` (ETSI TS 102 366 F.3 to F.6).

use super::{Made, entry};
use crate::{codec::bits::FieldReader, error::MediaError};

/// Path of errors.
const PATH: &str = "AC-3 frame";
/// Synchronization word of a frame (4.3.1.1).
const SYNC: u32 = 0x0b77;
/// Sample rates by `fscod` (4.4.1.3).
const SAMPLE_RATES: [u32; 3] = [48_000, 44_100, 32_000];
/// Greatest `bsid` of AC-3 (4.4.2.1); E-AC-3 has up to 16 (E.1.3.1.6).
const MOST_AC3: u32 = 8;
const MOST_EAC3: u32 = 16;
/// Most dependent substreams of a program (E.1.3.1.2).
const MOST_DEPENDENTS: usize = 8;

/// Makes an `ac-3` entry from the first frame of an access unit.
///
/// # Errors
/// The bytes begin with no frame of AC-3.
pub fn ac3(unit: &[u8]) -> Result<Made, MediaError> {
    let mut fields = FieldReader::new(unit, 0, PATH);
    synchronize(&mut fields)?;
    fields.skip(16)?; // crc1
    let (rate, size) = (fields.bits(2)?, fields.bits(6)?);
    let (version, service) = (fields.bits(5)?, fields.bits(3)?);
    if version > MOST_AC3 || rate == 3 {
        return Err(fields.invalid(format!("version {version} with rate {rate}"), "a frame of AC-3 with a listed rate"));
    }
    let mode = fields.bits(3)?;
    // Mix levels of centre and surround channels, or Dolby Surround mode (4.3.2).
    let is_stereo = mode == 2;
    let has_centre = mode & 1 != 0 && mode != 1;
    let has_surround = mode & 4 != 0;
    fields.skip(2 * (usize::from(has_centre) + usize::from(has_surround) + usize::from(is_stereo)))?;
    let low = fields.bits(1)?;
    let dac3 = rate << 22 | version << 17 | service << 14 | mode << 11 | low << 10 | (size >> 1) << 5;
    let [_, dac3 @ ..] = dac3.to_be_bytes();
    let rate = SAMPLE_RATES[rate as usize];
    Made::parsed(entry::audio(b"ac-3", 2, 16, rate, Some((b"dac3", &dac3))), b"soun")
}

/// Properties of a frame of E-AC-3 (E.1.2).
struct Enhanced {
    /// `strmtyp`: 1 is a dependent substream.
    kind: u32,
    /// Length of the frame in bytes.
    length: usize,
    rate: u32,
    /// Number of blocks: 1, 2, 3 or 6.
    blocks: u32,
    version: u32,
    mode: u32,
    low: u32,
    /// `chanmap` of a dependent substream.
    channel_map: Option<u32>,
}

/// Makes an `ec-3` entry from an access unit. Its first program counts, with its dependent substreams. Object audio is not
/// flagged.
///
/// # Errors
/// The bytes begin with no frame of E-AC-3.
pub fn eac3(unit: &[u8]) -> Result<Made, MediaError> {
    let first = Enhanced::read(unit)?;
    let (mut at, mut dependents, mut locations, mut bytes) = (first.length, 0, 0, first.length);
    for _ in 0..MOST_DEPENDENTS {
        let Some(Ok(frame)) = unit.get(at..).map(Enhanced::read) else { break };
        at = at.saturating_add(frame.length);
        if frame.kind != 1 {
            break;
        }
        dependents += 1;
        locations |= frame.channel_map.map_or(0, channel_locations);
        bytes = bytes.saturating_add(frame.length);
    }
    let rate = SAMPLE_RATES.get(first.rate as usize).copied().unwrap_or(0);
    // Kilobits per second, in 13 bits; a block has 256 samples.
    let data_rate = bytes as u64 * 8 * u64::from(rate) / (u64::from(first.blocks) * 256 * 1000);
    let mut dec3 = Vec::new();
    // One independent substream.
    dec3.extend(((data_rate.min(0x1fff) as u16) << 3).to_be_bytes());
    let substream = first.rate << 22 | first.version << 17 | first.mode << 9 | first.low << 8 | dependents << 1;
    if dependents == 0 {
        dec3.extend(&substream.to_be_bytes()[1..]);
    } else {
        dec3.extend(&(substream | locations >> 8).to_be_bytes()[1..]);
        dec3.push(locations as u8);
    }
    Made::parsed(entry::audio(b"ec-3", 2, 16, rate, Some((b"dec3", &dec3))), b"soun")
}

impl Enhanced {
    fn read(bytes: &[u8]) -> Result<Self, MediaError> {
        let mut fields = FieldReader::new(bytes, 0, PATH);
        synchronize(&mut fields)?;
        let kind = fields.bits(2)?;
        fields.skip(3)?; // substreamid
        let size = fields.bits(11)?;
        let rate = fields.bits(2)?;
        let blocks = fields.bits(2)?;
        let (mode, low, version) = (fields.bits(3)?, fields.bits(1)?, fields.bits(5)?);
        // A rate of 3 means half of the listed rates, which the entry states by itself (E.1.3.1.3).
        if version <= 10 || version > MOST_EAC3 || rate == 3 {
            let found = format!("version {version} with rate {rate}");
            return Err(fields.invalid(found, "a frame of E-AC-3 with a listed rate"));
        }
        // dialnorm and compr, twice for two mono programs (E.1.2.2).
        for _ in 0..if mode == 0 { 2 } else { 1 } {
            fields.skip(5)?;
            if fields.flag()? {
                fields.skip(8)?;
            }
        }
        let channel_map = if kind == 1 && fields.flag()? { Some(fields.bits(16)?) } else { None };
        let blocks = [1, 2, 3, 6][blocks as usize & 3];
        let length = 2 * (size as usize + 1);
        Ok(Self { kind, length, rate, blocks, version, mode, low, channel_map })
    }
}

/// Converts `chanmap` (table E.1.4) to `chan_loc` (table F.6.1).
fn channel_locations(map: u32) -> u32 {
    // Pairs of bits, counted from the most significant one of 16 in `chanmap`, and from the least one in `chan_loc`.
    const PLACES: [(u32, u32); 9] = [(5, 0), (6, 1), (7, 2), (8, 3), (9, 4), (10, 5), (11, 6), (12, 7), (14, 8)];
    PLACES.iter().filter(|(from, _)| map >> (15 - from) & 1 == 1).fold(0, |all, (_, to)| all | 1 << to)
}

fn synchronize(fields: &mut FieldReader<'_, '_>) -> Result<(), MediaError> {
    match fields.bits(16)? {
        SYNC => Ok(()),
        found => Err(fields.invalid(format!("{found:#06x}"), "the synchronization word 0x0b77")),
    }
}
