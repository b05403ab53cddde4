//! AC-3 and E-AC-3 in `ac-3` and `ec-3` sample entries: ETSI TS 102 366 Annex F.

use crate::{
    codec::{Codec, SampleEntry, audio::sound::Sound, fields::FieldReader},
    error::MediaError,
};
use serde::{Deserialize, Serialize};

/// Samples per channel in a sync frame of six blocks.
pub(in crate::codec) const FRAME: u32 = 1536;

/// AC-3 (`dac3`, F.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ac3Config {
    /// Channels, including the low frequency channel.
    pub channels: u16,
    /// Samples per second.
    pub sample_rate: u32,
    /// `bsmod`: the kind of service; 0 is the main service.
    pub service: u8,
}

/// E-AC-3 (`dec3`, F.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eac3Config {
    /// Channels of the first program, including its dependent substreams and low frequency channels.
    pub channels: u16,
    /// Samples per second.
    pub sample_rate: u32,
    /// `bsmod`: the kind of service; 0 is the main service.
    pub service: u8,
    /// `data_rate` in kbit/s.
    pub data_rate: u16,
    /// `complexity_index_type_a` of object audio (Atmos), where flagged (ETSI TS 103 420 8.3). The HLS attribute
    /// `CHANNELS="16/JOC"` states it as the number of objects.
    pub joc_complexity: Option<u8>,
}

/// Reads an `ac-3` sample entry.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dac3 = sound.need(b"dac3")?;
    let mut fields = FieldReader::of(&dac3);
    let sample_rate = sample_rate(fields.small(2)?, sound);
    fields.skip(5)?;
    let service = fields.small(3)?;
    let channels = channels(&mut fields)?;
    let config = Ac3Config { channels, sample_rate, service };
    Ok(sound.entry(Codec::Ac3(config), channels, sample_rate))
}

/// Reads an `ec-3` sample entry.
pub(in crate::codec) fn parse_enhanced(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let dec3 = sound.need(b"dec3")?;
    let mut fields = FieldReader::of(&dec3);
    let data_rate = fields.bits(13)? as u16;
    let more_programs = fields.bits(3)?;
    let (rate, service, channels) = substream(&mut fields)?;
    for _ in 0..more_programs {
        substream(&mut fields)?;
    }
    let sample_rate = sample_rate(rate, sound);
    let joc_complexity = complexity(&mut fields);
    let config = Eac3Config { channels, sample_rate, service, data_rate, joc_complexity };
    Ok(sound.entry(Codec::Eac3(config), channels, sample_rate))
}

/// Reads one independent substream and the locations of its dependent substreams; returns `fscod`, `bsmod` and the
/// number of channels of all.
fn substream(fields: &mut FieldReader<'_, '_>) -> Result<(u8, u8, u16), MediaError> {
    let rate = fields.small(2)?;
    fields.skip(5 + 1 + 1)?; // bsid, reserved, asvc
    let service = fields.small(3)?;
    let mut channels = channels(fields)?;
    fields.skip(3)?;
    if fields.bits(4)? == 0 {
        fields.skip(1)?;
        return Ok((rate, service, channels));
    }
    // chan_loc (table F.6.1) from its most significant bit: LFE2, Cvh, Lvh/Rvh, Lw/Rw, Lsd/Rsd, Ts, Cs, Lrs/Rrs, Lc/Rc.
    for width in [1, 1, 2, 2, 2, 1, 1, 2, 2] {
        channels += if fields.flag()? { width } else { 0 };
    }
    Ok((rate, service, channels))
}

/// Reads the extension for object audio, which older files lack.
fn complexity(fields: &mut FieldReader<'_, '_>) -> Option<u8> {
    fields.skip(7).ok()?;
    let flagged = fields.flag().ok()?;
    let index = fields.u8().ok()?;
    flagged.then_some(index)
}

/// Returns the channels of `acmod` and `lfeon` (4.4.2.3, 4.4.2.7).
fn channels(fields: &mut FieldReader<'_, '_>) -> Result<u16, MediaError> {
    let full = match fields.bits(3)? {
        1 => 1,
        0 | 2 => 2,
        3 | 4 => 3,
        5 | 6 => 4,
        _ => 5,
    };
    Ok(full + u16::from(fields.flag()?))
}

/// Returns the rate of `fscod` (4.4.1.3). A value of 3 is a reduced rate, which only the sample entry states.
fn sample_rate(code: u8, sound: &Sound<'_, '_>) -> u32 {
    [48_000, 44_100, 32_000].get(usize::from(code)).copied().unwrap_or(sound.sample_rate)
}
