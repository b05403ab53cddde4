//! Numbers in Exp-Golomb code (H.264 and H.265, 9.1 and 9.2).

use crate::{codec::fields::FieldReader, error::MediaError};

/// Reads an unsigned number: `ue(v)`.
pub(super) fn ue(fields: &mut FieldReader<'_, '_>) -> Result<u32, MediaError> {
    let mut zeros = 0;
    while !fields.flag()? {
        zeros += 1;
        if zeros > 31 {
            return Err(fields.invalid("a number of more than 32 bits", "one of at most 32"));
        }
    }
    Ok((1 << zeros) - 1 + fields.bits(zeros)?)
}

/// Reads a signed number: `se(v)`.
pub(super) fn se(fields: &mut FieldReader<'_, '_>) -> Result<i32, MediaError> {
    let code = ue(fields)?;
    let size = (code.div_ceil(2)) as i32;
    Ok(if code % 2 == 1 { size } else { -size })
}

/// Reads an unsigned number of at most `most`.
pub(super) fn ue_at_most(fields: &mut FieldReader<'_, '_>, most: u32, what: &str) -> Result<u32, MediaError> {
    match ue(fields)? {
        value if value > most => Err(fields.invalid(format!("{value} {what}"), format!("at most {most}"))),
        value => Ok(value),
    }
}
