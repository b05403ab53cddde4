//! MPEG audio layer III: `mp4a` with `esds` (ISO/IEC 14496-14 6.7.2).

use super::{Made, entry};
use crate::{
    codec::mp3::{self, Mp3Config},
    error::MediaError,
};

/// Makes an `mp4a` entry from the first bytes of a frame.
///
/// # Errors
/// The bytes are no header of a layer III frame.
pub fn mp3(frame: &[u8]) -> Result<Made, MediaError> {
    let Some(config) = Mp3Config::of_frame(frame) else {
        let found = format!("{:02x?}", &frame[..frame.len().min(4)]);
        return Err(MediaError::invalid("MPEG audio frame", 0, found, "a header of layer III"));
    };
    let esds = mp3::descriptor(&config);
    Made::parsed(entry::audio(b"mp4a", config.channels, 16, config.sample_rate, Some((b"esds", &esds))), b"soun")
}
