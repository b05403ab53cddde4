//! AC-3 and E-AC-3: `ac-3` with `dac3` and `ec-3` with `dec3` (ETSI TS 102 366 F.3 to F.6).

use super::{Made, entry};
use crate::{
    codec::{audio::ac3_frame::Ac3Frame, fields::FieldReader},
    error::MediaError,
};

/// Path of errors.
const PATH: &str = "AC-3 frame";
/// Bits of the synchronization word and of `crc1` in AC-3; of the synchronization word in E-AC-3.
const BEFORE_BASIC: usize = 32;
const BEFORE_ENHANCED: usize = 16;
/// Greatest `bsid` of AC-3 (4.4.2.1).
const MOST_AC3: u32 = 8;
/// Most dependent substreams of a program (E.1.3.1.2).
const MOST_DEPENDENTS: usize = 8;
/// Bytes of `dec3` with the data rate and the number of substreams.
const DATA_RATE: usize = 2;

/// The box that configures a decoder, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ac3Specific {
    /// Body of `dac3` or `dec3`.
    pub(crate) body: Vec<u8>,
    /// Channels of the first independent substream, including the low frequency channel.
    pub(crate) channels: u16,
    /// Samples per second.
    pub(crate) sample_rate: u32,
}

impl Ac3Specific {
    /// The body without the data rate of E-AC-3, which varies.
    pub(crate) fn fixed(&self, is_enhanced: bool) -> &[u8] {
        self.body.get(if is_enhanced { DATA_RATE } else { 0 }..).unwrap_or_default()
    }
}

/// Makes an `ac-3` entry from the first frame of an access unit.
///
/// # Errors
/// The bytes begin with no frame of AC-3.
pub fn ac3(unit: &[u8]) -> Result<Made, MediaError> {
    let Ac3Specific { body, sample_rate, .. } = dac3(unit)?;
    Made::parsed(entry::audio(b"ac-3", 2, 16, sample_rate, Some((b"dac3", &body))), b"soun")
}

/// Makes an `ec-3` entry from an access unit. Its first program counts, with its dependent substreams. Object audio is not
/// flagged.
///
/// # Errors
/// The bytes begin with no frame of E-AC-3.
pub fn eac3(unit: &[u8]) -> Result<Made, MediaError> {
    let Ac3Specific { body, sample_rate, .. } = dec3(unit)?;
    Made::parsed(entry::audio(b"ec-3", 2, 16, sample_rate, Some((b"dec3", &body))), b"soun")
}

/// Returns `dac3` (F.4) of the first frame of an access unit.
pub(crate) fn dac3(unit: &[u8]) -> Result<Ac3Specific, MediaError> {
    let mut fields = FieldReader::new(unit, 0, PATH);
    let (_, sample_rate) = header(unit, false, &fields)?;
    fields.skip(BEFORE_BASIC)?;
    let (rate, size) = (fields.bits(2)?, fields.bits(6)?);
    let (version, service) = (fields.bits(5)?, fields.bits(3)?);
    if version > MOST_AC3 {
        return Err(fields.invalid(format!("version {version}"), "a frame of AC-3"));
    }
    let mode = fields.bits(3)?;
    // Mix levels of centre and surround channels, or Dolby Surround mode (4.3.2).
    let is_stereo = mode == 2;
    let has_centre = mode & 1 != 0 && mode != 1;
    let has_surround = mode & 4 != 0;
    fields.skip(2 * (usize::from(has_centre) + usize::from(has_surround) + usize::from(is_stereo)))?;
    let low = fields.bits(1)?;
    let word = rate << 22 | version << 17 | service << 14 | mode << 11 | low << 10 | (size >> 1) << 5;
    let [_, body @ ..] = word.to_be_bytes();
    Ok(Ac3Specific { body: body.to_vec(), channels: channels(mode, low), sample_rate })
}

/// Returns `dec3` (F.6) of an access unit: of its first independent substream, and the dependent ones of that.
pub(crate) fn dec3(unit: &[u8]) -> Result<Ac3Specific, MediaError> {
    let (first, sample_rate) = header(unit, true, &FieldReader::new(unit, 0, PATH))?;
    let lead = Substream::read(unit)?;
    let (mut rest, mut dependents, mut locations) = (unit.get(first.length..).unwrap_or_default(), 0, 0);
    let (mut blocks, mut bytes) = (first.blocks, first.length);
    while let Some(frame) = Ac3Frame::read(rest) {
        if frame.is_dependent && dependents < MOST_DEPENDENTS && blocks == first.blocks {
            dependents += 1;
            locations |= Substream::read(rest)?.channel_map.map_or(0, channel_locations);
        } else if frame.leads {
            blocks += frame.blocks;
        } else if !frame.is_dependent {
            // Other independent substreams are other programmes.
            break;
        }
        bytes = bytes.saturating_add(frame.length);
        rest = rest.get(frame.length..).unwrap_or_default();
    }
    // Kilobits per second, in 13 bits.
    let samples = u64::from(blocks) * u64::from(Ac3Frame::SAMPLES);
    let data_rate = bytes as u64 * 8 * u64::from(sample_rate) / (samples * 1000);
    let mut body = Vec::new();
    // One independent substream.
    body.extend(((data_rate.min(0x1fff) as u16) << 3).to_be_bytes());
    let rate = u32::from(first.rate_code);
    let substream = rate << 22 | lead.version << 17 | lead.mode << 9 | lead.low << 8 | (dependents as u32) << 1;
    if dependents == 0 {
        body.extend(&substream.to_be_bytes()[1..]);
    } else {
        body.extend(&(substream | locations >> 8).to_be_bytes()[1..]);
        body.push(locations as u8);
    }
    Ok(Ac3Specific { body, channels: channels(lead.mode, lead.low), sample_rate })
}

/// Returns the header of the first frame, and its sample rate.
fn header(unit: &[u8], is_enhanced: bool, fields: &FieldReader<'_, '_>) -> Result<(Ac3Frame, u32), MediaError> {
    let name = if is_enhanced { "a frame of E-AC-3" } else { "a frame of AC-3" };
    let found = || fields.invalid(format!("{:02x?}", &unit[..unit.len().min(Ac3Frame::HEADER)]), name);
    let frame = Ac3Frame::read(unit).filter(|frame| frame.is_enhanced == is_enhanced).ok_or_else(found)?;
    Ok((frame, frame.sample_rate.ok_or_else(found)?))
}

/// Fields of a frame of E-AC-3 (E.1.2) behind its header.
struct Substream {
    version: u32,
    mode: u32,
    low: u32,
    /// `chanmap` of a dependent substream.
    channel_map: Option<u32>,
}

impl Substream {
    fn read(bytes: &[u8]) -> Result<Self, MediaError> {
        let mut fields = FieldReader::new(bytes, 0, PATH);
        fields.skip(BEFORE_ENHANCED)?;
        let is_dependent = fields.bits(2)? == 1;
        // Number and length of the substream, rates or blocks.
        fields.skip(3 + 11 + 4)?;
        let (mode, low, version) = (fields.bits(3)?, fields.bits(1)?, fields.bits(5)?);
        // dialnorm and compr, twice for two mono programs (E.1.2.2).
        for _ in 0..if mode == 0 { 2 } else { 1 } {
            fields.skip(5)?;
            if fields.flag()? {
                fields.skip(8)?;
            }
        }
        let channel_map = if is_dependent && fields.flag()? { Some(fields.bits(16)?) } else { None };
        Ok(Self { version, mode, low, channel_map })
    }
}

/// Returns the channels of `acmod` and `lfeon` (4.4.2.3, 4.4.2.7).
fn channels(mode: u32, low: u32) -> u16 {
    [2, 1, 2, 3, 3, 4, 4, 5][(mode & 7) as usize] + low as u16
}

/// Converts `chanmap` (table E.1.4) to `chan_loc` (table F.6.1).
fn channel_locations(map: u32) -> u32 {
    // Pairs of bits, counted from the most significant one of 16 in `chanmap`, and from the least one in `chan_loc`.
    const PLACES: [(u32, u32); 9] = [(5, 0), (6, 1), (7, 2), (8, 3), (9, 4), (10, 5), (11, 6), (12, 7), (14, 8)];
    PLACES.iter().filter(|(from, _)| map >> (15 - from) & 1 == 1).fold(0, |all, (_, to)| all | 1 << to)
}
