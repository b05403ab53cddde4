//! Coefficients by CAVLC (9.2).

use crate::{
    DecodeError,
    bits::BitReader,
    tables::{CHROMA_ZEROS, COEFFICIENTS, Code, RUNS, ZEROS},
};

const BROKEN: DecodeError = DecodeError::Invalid("code of coefficients");

/// Reads a block into `out`, whose length is the most that it can have. `context` is `nC`; `None` for the DC of chroma. Returns the
/// number of coefficients.
pub(crate) fn coefficients(bits: &mut BitReader<'_>, context: Option<u8>, out: &mut [i32]) -> Result<u8, DecodeError> {
    let (total, ones) = token(bits, context)?;
    if total > out.len() {
        return Err(BROKEN);
    }
    let mut levels = [0; 16];
    let mut suffix_length = usize::from(total > 10 && ones < 3);
    for (n, level) in levels.iter_mut().take(total).enumerate() {
        *level = if n < ones {
            1 - 2 * bits.bits(1)? as i32
        } else {
            let value = level_code(bits, suffix_length)? + if n == ones && ones < 3 { 2 } else { 0 };
            if value % 2 == 0 { (value + 2) >> 1 } else { (-value - 1) >> 1 }
        };
        if n >= ones {
            suffix_length = suffix_length.max(1);
            if level.abs() > 3 << (suffix_length - 1) && suffix_length < 6 {
                suffix_length += 1;
            }
        }
    }
    let mut zeros = if total == 0 || total == out.len() { 0 } else { zeros(bits, total, out.len())? };
    let mut place = total + zeros;
    for (n, level) in levels.into_iter().take(total).enumerate() {
        place = place.checked_sub(1).ok_or(BROKEN)?;
        *out.get_mut(place).ok_or(BROKEN)? = level;
        if zeros > 0 && n + 1 < total {
            let run = find(bits, RUNS[zeros.min(7)].iter())?;
            zeros = zeros.checked_sub(run).ok_or(BROKEN)?;
            place -= run;
        }
    }
    u8::try_from(total).map_err(|_| BROKEN)
}

/// Reads `coeff_token`: the number of coefficients, and of trailing ones.
fn token(bits: &mut BitReader<'_>, context: Option<u8>) -> Result<(usize, usize), DecodeError> {
    let table = match context {
        None => 4,
        Some(0..=1) => 0,
        Some(2..=3) => 1,
        Some(4..=7) => 2,
        Some(_) => 3,
    };
    let place = find(bits, COEFFICIENTS[table].iter().flatten())?;
    Ok((place / 4, place % 4))
}

/// Reads `levelCode` but for what the first level adds (9.2.2.1).
fn level_code(bits: &mut BitReader<'_>, suffix_length: usize) -> Result<i32, DecodeError> {
    let mut prefix = 0;
    while !bits.flag()? {
        prefix += 1;
        if prefix > 15 + 13 {
            return Err(BROKEN);
        }
    }
    let size = match prefix {
        14 if suffix_length == 0 => 4,
        0..15 => suffix_length,
        _ => prefix - 3,
    };
    let mut value = (prefix.min(15) << suffix_length) as i32 + bits.bits(size)? as i32;
    if prefix >= 15 && suffix_length == 0 {
        value += 15;
    }
    if prefix >= 16 {
        value += (1 << (prefix - 3)) - 4096;
    }
    Ok(value)
}

/// Reads `total_zeros`.
fn zeros(bits: &mut BitReader<'_>, total: usize, most: usize) -> Result<usize, DecodeError> {
    let zeros = if most == 4 { find(bits, CHROMA_ZEROS[total].iter())? } else { find(bits, ZEROS[total].iter())? };
    if total + zeros > most { Err(BROKEN) } else { Ok(zeros) }
}

/// Reads the code that comes next, and returns its place among `codes`.
fn find<'c>(bits: &mut BitReader<'_>, codes: impl Iterator<Item = &'c Code>) -> Result<usize, DecodeError> {
    let next = bits.peek();
    for (place, (code, length)) in codes.enumerate() {
        if *length > 0 && next >> (16 - length) == u32::from(*code) {
            bits.skip(usize::from(*length))?;
            return Ok(place);
        }
    }
    Err(BROKEN)
}
