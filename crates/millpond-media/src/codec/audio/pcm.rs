//! Linear PCM and G.711: QuickTime's `raw `, `NONE`, `twos`, `sowt`, `in24`, `in32`, `fl32`, `fl64`, `lpcm`, `ulaw` and
//! `alaw` (QuickTime File Format, "Sound Sample Descriptions"), and `ipcm` and `fpcm` (ISO/IEC 23003-5 5.1).

use crate::{
    boxes::show,
    codec::{Codec, SampleEntry, TrackKind, audio::sound::Sound, fields::FieldReader},
    error::MediaError,
    units::Timescale,
};
use serde::{Deserialize, Serialize};

/// Properties of PCM. A sample of a [`SampleTable`](crate::SampleTable) is an access unit of several frames. A frame
/// has one value per channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcmConfig {
    /// Type of the sample entry in the file, such as `sowt`.
    pub fourcc: [u8; 4],
    /// Coding of a value.
    pub coding: PcmCoding,
    /// Channels; never 0.
    pub channels: u16,
    /// Frames per second.
    pub sample_rate: u32,
}

/// Coding of a PCM value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PcmCoding {
    /// 8 bits, where 128 is silence.
    Unsigned8,
    /// 8 bits, two's complement.
    Signed8,
    /// 16 bits, two's complement.
    Signed16(ByteOrder),
    /// 24 bits, two's complement.
    Signed24(ByteOrder),
    /// 32 bits, two's complement.
    Signed32(ByteOrder),
    /// 32 bits, floating point (IEEE 754).
    Float32(ByteOrder),
    /// 64 bits, floating point (IEEE 754).
    Float64(ByteOrder),
    /// ITU-T G.711 μ-law.
    MuLaw,
    /// ITU-T G.711 A-law.
    ALaw,
}

/// Order of the bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

/// Bits of `formatSpecificFlags` in an `lpcm` sample description.
mod flag {
    pub(in crate::codec) const FLOAT: u32 = 1;
    pub(in crate::codec) const BIG_ENDIAN: u32 = 2;
    pub(in crate::codec) const SIGNED: u32 = 4;
    pub(in crate::codec) const NON_INTERLEAVED: u32 = 32;
}

impl PcmConfig {
    /// Most bytes of an access unit, which therefore fits into one packet of any network.
    pub const MOST_UNIT_BYTES: u32 = 1200;
    /// Least number of access units per second: a unit lasts at most 20 ms (RFC 3551 4.2).
    const UNITS_A_SECOND: u32 = 50;

    /// Length of a frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> u32 {
        u32::from(self.value_bits() / 8) * u32::from(self.channels)
    }

    /// Bits per value.
    #[must_use]
    pub fn value_bits(&self) -> u16 {
        match self.coding {
            PcmCoding::Unsigned8 | PcmCoding::Signed8 | PcmCoding::MuLaw | PcmCoding::ALaw => 8,
            PcmCoding::Signed16(_) => 16,
            PcmCoding::Signed24(_) => 24,
            PcmCoding::Signed32(_) | PcmCoding::Float32(_) => 32,
            PcmCoding::Float64(_) => 64,
        }
    }

    /// Type of the sample entry in ISO base media files (ISO/IEC 23003-5 5.1); `None` for G.711 and for values of 8
    /// bits, which have none.
    #[must_use]
    pub fn iso_type(&self) -> Option<[u8; 4]> {
        match self.coding {
            PcmCoding::Signed16(_) | PcmCoding::Signed24(_) | PcmCoding::Signed32(_) => Some(*b"ipcm"),
            PcmCoding::Float32(_) | PcmCoding::Float64(_) => Some(*b"fpcm"),
            PcmCoding::Unsigned8 | PcmCoding::Signed8 | PcmCoding::MuLaw | PcmCoding::ALaw => None,
        }
    }

    /// Most frames in an access unit.
    #[must_use]
    pub fn frames_per_unit(&self) -> u32 {
        let fit = Self::MOST_UNIT_BYTES / self.frame_bytes().max(1);
        fit.min(self.sample_rate / Self::UNITS_A_SECOND).max(1)
    }

    /// Returns the type of the sample entry (RFC 6381 3.3): the ISO type, as in init segments, else the file's type.
    pub(in crate::codec) fn parameter(&self) -> String {
        let fourcc = self.iso_type().unwrap_or(self.fourcc);
        String::from_utf8_lossy(&fourcc).trim_end().to_owned()
    }

    pub(in crate::codec) fn name(&self) -> &'static str {
        match self.coding {
            PcmCoding::MuLaw => "G.711 μ-law",
            PcmCoding::ALaw => "G.711 A-law",
            _ => "PCM",
        }
    }
}

impl SampleEntry {
    /// Takes the track's clock as the rate where the rate exceeds its field, which is then 0 in files.
    pub(crate) fn with_clock(mut self, clock: Timescale) -> Self {
        if let (Codec::Pcm(config), TrackKind::Audio { sample_rate: sample_rate @ 0, .. }) =
            (&mut self.codec, &mut self.kind)
        {
            config.sample_rate = clock.get();
            *sample_rate = clock.get();
        }
        self
    }
}

/// Reads a sample entry.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let fourcc = sound.node.kind;
    let bits = u32::from(sound.bits);
    let coding = match &fourcc {
        b"ulaw" => PcmCoding::MuLaw,
        b"alaw" => PcmCoding::ALaw,
        b"in24" => PcmCoding::Signed24(byte_order(sound)?),
        b"in32" => PcmCoding::Signed32(byte_order(sound)?),
        b"fl32" => PcmCoding::Float32(byte_order(sound)?),
        b"fl64" => PcmCoding::Float64(byte_order(sound)?),
        b"lpcm" => return lpcm(sound),
        b"ipcm" | b"fpcm" => return of_configuration(sound),
        // Longer values are signed ("Uncompressed 16-bit sound").
        b"raw " | b"NONE" if bits == 8 => PcmCoding::Unsigned8,
        b"sowt" => signed(sound, bits, ByteOrder::Little)?,
        _ => signed(sound, bits, ByteOrder::Big)?,
    };
    entry(sound, coding)
}

/// Reads `lpcm` with `formatSpecificFlags` ("Sound Sample Description (Version 2)").
fn lpcm(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let Some(format) = &sound.format else {
        return Err(sound.node.invalid("'lpcm' without a description of version 2", "one"));
    };
    let has = |flag| format.flags & flag != 0;
    let packed = u64::from(format.bits) * u64::from(sound.channels) == u64::from(format.packet_bytes) * 8;
    if has(flag::NON_INTERLEAVED) || !packed {
        let (bits, flags) = (format.bits, format.flags);
        return Err(sound.node.unsupported(format!("'lpcm' (PCM of {bits} bits, format {flags:#x})")));
    }
    let order = if has(flag::BIG_ENDIAN) { ByteOrder::Big } else { ByteOrder::Little };
    let coding = match (format.bits, has(flag::SIGNED)) {
        (bits, _) if has(flag::FLOAT) => float(sound, bits, order)?,
        (8, false) => PcmCoding::Unsigned8,
        (bits, true) => signed(sound, bits, order)?,
        (bits, false) => return Err(sound.node.unsupported(format!("'lpcm' (unsigned PCM of {bits} bits)"))),
    };
    entry(sound, coding)
}

/// Reads `ipcm` and `fpcm` with `PCMConfig` (ISO/IEC 23003-5 5.2).
fn of_configuration(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let config = sound.need(b"pcmC")?;
    let (_, mut fields) = FieldReader::of_full(&config)?;
    fields.skip(7)?;
    let order = if fields.flag()? { ByteOrder::Little } else { ByteOrder::Big };
    let bits = u32::from(fields.u8()?);
    let is_float = &sound.node.kind == b"fpcm";
    entry(sound, if is_float { float(sound, bits, order)? } else { signed(sound, bits, order)? })
}

/// Returns the body of `pcmC` (ISO/IEC 23003-5 5.2): version and flags, byte order, and bits per value.
pub(in crate::codec) fn configuration(config: &PcmConfig) -> [u8; 6] {
    let little = matches!(
        config.coding,
        PcmCoding::Signed16(ByteOrder::Little)
            | PcmCoding::Signed24(ByteOrder::Little)
            | PcmCoding::Signed32(ByteOrder::Little)
            | PcmCoding::Float32(ByteOrder::Little)
            | PcmCoding::Float64(ByteOrder::Little)
    );
    [0, 0, 0, 0, u8::from(little), config.value_bits() as u8]
}

/// Reads the byte order from `enda` where the type doesn't state it; 1 is little-endian.
fn byte_order(sound: &Sound<'_, '_>) -> Result<ByteOrder, MediaError> {
    let Some(enda) = sound.child(b"enda") else { return Ok(ByteOrder::Big) };
    Ok(if enda.fields().u16()? == 1 { ByteOrder::Little } else { ByteOrder::Big })
}

fn signed(sound: &Sound<'_, '_>, bits: u32, order: ByteOrder) -> Result<PcmCoding, MediaError> {
    match bits {
        8 => Ok(PcmCoding::Signed8),
        16 => Ok(PcmCoding::Signed16(order)),
        24 => Ok(PcmCoding::Signed24(order)),
        32 => Ok(PcmCoding::Signed32(order)),
        bits => Err(sound.node.unsupported(format!("'{}' (PCM of {bits} bits)", show(sound.node.kind)))),
    }
}

fn float(sound: &Sound<'_, '_>, bits: u32, order: ByteOrder) -> Result<PcmCoding, MediaError> {
    match bits {
        32 => Ok(PcmCoding::Float32(order)),
        64 => Ok(PcmCoding::Float64(order)),
        bits => {
            let kind = show(sound.node.kind);
            Err(sound.node.unsupported(format!("'{kind}' (PCM in floating point of {bits} bits)")))
        }
    }
}

fn entry(sound: &Sound<'_, '_>, coding: PcmCoding) -> Result<SampleEntry, MediaError> {
    let (fourcc, channels, sample_rate) = (sound.node.kind, sound.channels, sound.sample_rate);
    if channels == 0 {
        return Err(sound.node.invalid("no channels", "at least one"));
    }
    let config = PcmConfig { fourcc, coding, channels, sample_rate };
    if config.frame_bytes() > PcmConfig::MOST_UNIT_BYTES {
        return Err(sound.node.unsupported(format!("'{}' (PCM of {channels} channels)", show(fourcc))));
    }
    Ok(sound.entry(Codec::Pcm(config), channels, sample_rate))
}
