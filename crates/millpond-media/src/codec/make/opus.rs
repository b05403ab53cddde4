//! Opus: `Opus` with `dOps` (Encapsulation of Opus in ISO Base Media File Format 4.3).

use super::{Made, entry};
use crate::error::MediaError;

/// Rate of every Opus decoder's output, in samples per second.
const SAMPLE_RATE: u32 = 48_000;

/// Makes an `Opus` entry for one or two channels. A live stream has no start, so players drop no samples there.
///
/// # Errors
/// Another number of channels: their mapping would be unknown.
pub fn opus(channels: u8) -> Result<Made, MediaError> {
    if !matches!(channels, 1 | 2) {
        return Err(MediaError::unsupported("Opus", 0, format!("a stream of {channels} channels")));
    }
    let [a, b, c, d] = SAMPLE_RATE.to_be_bytes();
    // Version 0, no pre-skip, no gain, mapping family 0.
    let dops = [0, channels, 0, 0, a, b, c, d, 0, 0, 0];
    Made::parsed(entry::audio(b"Opus", u16::from(channels), 16, SAMPLE_RATE, Some((b"dOps", &dops))), b"soun")
}
