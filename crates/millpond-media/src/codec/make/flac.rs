//! FLAC: `fLaC` with `dfLa` (Encapsulation of FLAC in ISO Base Media File Format 3.3).

use super::{Made, flac_head};
use crate::error::MediaError;

/// Header of a metadata block of type STREAMINFO, which is the last one (RFC 9639 8.1).
const HEADER: [u8; 4] = [0x80, 0, 0, 34];

/// Makes an entry from the body of a STREAMINFO block (RFC 9639 8.2).
///
/// # Errors
/// The block is invalid.
pub fn flac(stream_info: &[u8; 34]) -> Result<Made, MediaError> {
    flac_head(&[&HEADER[..], stream_info].concat())
}
