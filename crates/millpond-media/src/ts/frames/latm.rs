//! AAC in LATM with LOAS sync (ISO/IEC 14496-3 1.7).

use super::{
    FrameFault, TsConfiguration,
    adts::{RATES, SAMPLES},
    bits::BitReader,
    sound::{Look, SoundCode, SoundFrame},
};
use bytes::Bytes;

/// Bytes of `AudioSyncStream` before the element: 11 bits of sync word, 13 of length.
const HEADER: usize = 3;
/// Object types (table 1.17).
const SBR: u32 = 5;
const PS: u32 = 29;

#[derive(Debug, Default)]
pub(super) struct Latm {
    mux: Option<StreamMux>,
    configuration: Option<TsConfiguration>,
}

/// `StreamMuxConfig` (1.7.3) of a single layer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StreamMux {
    audio_specific_config: Vec<u8>,
    sample_rate: u32,
    samples: u32,
    sub_frames: u32,
}

impl SoundCode for Latm {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        let begins_well = bytes[0] == 0x56 && bytes.get(1).is_none_or(|byte| byte & 0xe0 == 0xe0);
        match *bytes {
            [_, second, third, ..] if begins_well => {
                Look::Frame { length: HEADER + (usize::from(second & 0x1f) << 8 | usize::from(third)), fixed: 0 }
            }
            _ if begins_well => Look::Short,
            _ => Look::Garbage,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        let mut bits = BitReader::new(frame.get(HEADER..).unwrap_or_default());
        if !bits.flag().ok_or(FrameFault::Garbage)? {
            let mux = StreamMux::read(&mut bits)?;
            if self.mux.as_ref() != Some(&mux) {
                let audio_specific_config = mux.audio_specific_config.clone();
                self.configuration = Some(TsConfiguration::Aac { audio_specific_config });
                self.mux = Some(mux);
            }
        }
        // Frames before the first configuration can't be told.
        let mux = self.mux.as_ref().ok_or(FrameFault::Untimed)?;
        for _ in 0..mux.sub_frames {
            let data = payload(&mut bits).ok_or(FrameFault::Garbage)?;
            out.push(SoundFrame { data: Bytes::from(data), samples: mux.samples, rate: mux.sample_rate });
        }
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}

/// Reads `PayloadLengthInfo` and `PayloadMux` of one frame whose length varies.
fn payload(bits: &mut BitReader<'_>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let part = bits.bits(8)? as usize;
        length += part;
        if part != 255 {
            return bits.bytes(length).filter(|data| !data.is_empty());
        }
    }
}

impl StreamMux {
    fn read(bits: &mut BitReader<'_>) -> Result<Self, FrameFault> {
        let version = flag(bits)?;
        if version && flag(bits)? {
            return Err(FrameFault::Unsupported("LATM of a later version"));
        }
        if version {
            value(bits)?; // taraBufferFullness
        }
        let has_one_framing = flag(bits)?;
        let (sub_frames, programmes, layers) = (field(bits, 6)?, field(bits, 4)?, field(bits, 3)?);
        if !has_one_framing || programmes != 0 || layers != 0 {
            return Err(FrameFault::Unsupported("LATM of several programmes or layers"));
        }
        let stated = if version { Some(value(bits)? as usize) } else { None };
        let before = bits.clone();
        let (sample_rate, samples) = audio_specific_config(bits)?;
        let read = bits.position() - before.position();
        let length = stated.unwrap_or(read);
        bits.skip(length.checked_sub(read).ok_or(FrameFault::Garbage)?).ok_or(FrameFault::Garbage)?;
        let audio_specific_config = aligned(before, length).ok_or(FrameFault::Garbage)?;
        if field(bits, 3)? != 0 {
            return Err(FrameFault::Unsupported("LATM with frames of a fixed length"));
        }
        field(bits, 8)?; // latmBufferFullness
        if flag(bits)? {
            other_data_length(bits, version)?;
        }
        if flag(bits)? {
            field(bits, 8)?; // crcCheckSum
        }
        Ok(Self { audio_specific_config, sample_rate, samples, sub_frames: sub_frames + 1 })
    }
}

/// Skips the length of other data, which follow the payloads.
fn other_data_length(bits: &mut BitReader<'_>, version: bool) -> Result<(), FrameFault> {
    if version {
        return value(bits).map(|_| ());
    }
    while flag(bits)? {
        field(bits, 8)?;
    }
    field(bits, 8).map(|_| ())
}

/// Returns the next `length` bits, and zeros up to a whole byte.
fn aligned(mut bits: BitReader<'_>, length: usize) -> Option<Vec<u8>> {
    let mut bytes = bits.bytes(length / 8)?;
    let rest = length % 8;
    if rest > 0 {
        bytes.push((bits.bits(rest)? << (8 - rest)) as u8);
    }
    Some(bytes)
}

/// Reads an `AudioSpecificConfig` (1.6.2.1) of AAC without the extension for which only a stated length has space;
/// returns the rate of the core coder and the samples of a frame.
fn audio_specific_config(bits: &mut BitReader<'_>) -> Result<(u32, u32), FrameFault> {
    let mut object_type = object_type(bits)?;
    let rate = sampling_frequency(bits)?;
    let channels = field(bits, 4)?;
    if matches!(object_type, SBR | PS) {
        sampling_frequency(bits)?;
        object_type = self::object_type(bits)?;
    }
    if !(1..=4).contains(&object_type) || channels == 0 {
        return Err(FrameFault::Unsupported("this kind of AAC in LATM"));
    }
    let is_short = flag(bits)?;
    if flag(bits)? {
        field(bits, 14)?; // coreCoderDelay
    }
    if flag(bits)? {
        return Err(FrameFault::Unsupported("this kind of AAC in LATM"));
    }
    Ok((rate, if is_short { 960 } else { SAMPLES }))
}

fn object_type(bits: &mut BitReader<'_>) -> Result<u32, FrameFault> {
    match field(bits, 5)? {
        31 => Ok(32 + field(bits, 6)?),
        object_type => Ok(object_type),
    }
}

fn sampling_frequency(bits: &mut BitReader<'_>) -> Result<u32, FrameFault> {
    let rate = match field(bits, 4)? {
        15 => field(bits, 24)?,
        index => RATES.get(index as usize).copied().unwrap_or(0),
    };
    if rate == 0 { Err(FrameFault::Garbage) } else { Ok(rate) }
}

/// Reads `LatmGetValue`: one to four bytes.
fn value(bits: &mut BitReader<'_>) -> Result<u32, FrameFault> {
    let bytes = field(bits, 2)? + 1;
    field(bits, bytes as usize * 8)
}

fn field(bits: &mut BitReader<'_>, width: usize) -> Result<u32, FrameFault> {
    bits.bits(width).ok_or(FrameFault::Garbage)
}

fn flag(bits: &mut BitReader<'_>) -> Result<bool, FrameFault> {
    bits.flag().ok_or(FrameFault::Garbage)
}
