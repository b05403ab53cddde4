//! Values of PCM and G.711 as integers.

use millpond_media::codec::{ByteOrder, PcmCoding};

/// Bits of the [values] of a coding.
#[must_use]
pub const fn bits(coding: PcmCoding) -> u8 {
    match coding {
        PcmCoding::Unsigned8 | PcmCoding::Signed8 => 8,
        PcmCoding::Signed16(_) | PcmCoding::MuLaw | PcmCoding::ALaw => 16,
        PcmCoding::Signed24(_) | PcmCoding::Signed32(_) | PcmCoding::Float32(_) | PcmCoding::Float64(_) => 24,
    }
}

/// Appends the values of `bytes` to `out`. Values of G.711 have 16 bits then. Integers of 32 bits and floating point are rounded to 24 bits.
pub fn values(coding: PcmCoding, bytes: &[u8], out: &mut Vec<i32>) {
    match coding {
        PcmCoding::Unsigned8 => out.extend(bytes.iter().map(|byte| i32::from(*byte) - 128)),
        PcmCoding::Signed8 => out.extend(bytes.iter().map(|byte| i32::from(*byte as i8))),
        PcmCoding::Signed16(ByteOrder::Big) => {
            out.extend(bytes.as_chunks().0.iter().map(|two| i32::from(i16::from_be_bytes(*two))));
        }
        PcmCoding::Signed16(ByteOrder::Little) => {
            out.extend(bytes.as_chunks().0.iter().map(|two| i32::from(i16::from_le_bytes(*two))));
        }
        PcmCoding::Signed24(ByteOrder::Big) => {
            out.extend(bytes.as_chunks().0.iter().map(|&[high, middle, low]| signed_24(high, middle, low)));
        }
        PcmCoding::Signed24(ByteOrder::Little) => {
            out.extend(bytes.as_chunks().0.iter().map(|&[low, middle, high]| signed_24(high, middle, low)));
        }
        PcmCoding::MuLaw => out.extend(bytes.iter().map(|byte| mu_law(*byte))),
        PcmCoding::ALaw => out.extend(bytes.iter().map(|byte| a_law(*byte))),
        PcmCoding::Signed32(ByteOrder::Big) => {
            out.extend(bytes.as_chunks().0.iter().map(|four| rounded(i32::from_be_bytes(*four))));
        }
        PcmCoding::Signed32(ByteOrder::Little) => {
            out.extend(bytes.as_chunks().0.iter().map(|four| rounded(i32::from_le_bytes(*four))));
        }
        PcmCoding::Float32(ByteOrder::Big) => {
            out.extend(bytes.as_chunks().0.iter().map(|four| fixed(f32::from_be_bytes(*four).into())));
        }
        PcmCoding::Float32(ByteOrder::Little) => {
            out.extend(bytes.as_chunks().0.iter().map(|four| fixed(f32::from_le_bytes(*four).into())));
        }
        PcmCoding::Float64(ByteOrder::Big) => {
            out.extend(bytes.as_chunks().0.iter().map(|eight| fixed(f64::from_be_bytes(*eight))));
        }
        PcmCoding::Float64(ByteOrder::Little) => {
            out.extend(bytes.as_chunks().0.iter().map(|eight| fixed(f64::from_le_bytes(*eight))));
        }
    }
}

/// Whether [`values`] have fewer bits than the stored values of the coding.
pub(crate) fn is_rounded(coding: PcmCoding) -> bool {
    matches!(coding, PcmCoding::Signed32(_) | PcmCoding::Float32(_) | PcmCoding::Float64(_))
}

/// Returns the 24 bits that are nearest to an integer of 32 bits. The greatest ones are rounded down.
fn rounded(value: i32) -> i32 {
    value.saturating_add(128) >> 8
}

/// Returns the 24 bits that are nearest to a value of floating point, of which 1.0 is full scale. Louder values are clipped, as a converter
/// clips them. NaN is silence.
fn fixed(value: f64) -> i32 {
    const SCALE: f64 = 8_388_608.0;
    (value * SCALE).round().clamp(-SCALE, SCALE - 1.0) as i32
}

fn signed_24(high: u8, middle: u8, low: u8) -> i32 {
    i32::from_be_bytes([high, middle, low, 0]) >> 8
}

/// Returns the value of a byte of μ-law (ITU-T G.711 table 2a), 14 bits with two zero bits below.
fn mu_law(byte: u8) -> i32 {
    const BIAS: i32 = 0x84;
    let code = !byte;
    let magnitude = (i32::from(code & 0x0f) << 3 | BIAS) << (code >> 4 & 7);
    if code & 0x80 == 0 { magnitude - BIAS } else { BIAS - magnitude }
}

/// Returns the value of a byte of A-law (ITU-T G.711 table 1a), 13 bits with three zero bits below.
fn a_law(byte: u8) -> i32 {
    let code = byte ^ 0x55;
    let step = i32::from(code & 0x0f) << 4;
    let magnitude = match code >> 4 & 7 {
        0 => step + 8,
        segment => (step + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}
