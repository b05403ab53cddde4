//! MPEG audio: `mp4a` with `esds` (ISO/IEC 14496-14 6.7.2).

use super::{Made, entry};
use crate::{
    codec::{
        Codec,
        audio::mpeg_audio::{self, MpegAudioConfig},
    },
    error::MediaError,
};

/// Makes an `mp4a` entry from the first bytes of a frame of any layer.
///
/// # Errors
/// The bytes are no header of a frame.
pub fn mpeg_audio(frame: &[u8]) -> Result<Made, MediaError> {
    let Some(config) = MpegAudioConfig::of_frame(frame) else {
        let found = format!("{:02x?}", &frame[..frame.len().min(4)]);
        return Err(MediaError::invalid("MPEG audio frame", 0, found, "a header of a layer"));
    };
    let esds = mpeg_audio::descriptor(&config);
    let entry = entry::audio(b"mp4a", config.channels, 16, config.sample_rate, Some((b"esds", &esds)));
    // The entry does not state the layer.
    Ok(Made { codec: Codec::MpegAudio(config), ..Made::parsed(entry, b"soun")? })
}
