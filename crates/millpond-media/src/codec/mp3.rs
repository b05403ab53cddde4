//! MPEG-1 and MPEG-2 audio layer III: `mp4a` with object type 0x69 or 0x6b, QuickTime's `.mp3`.

use super::{Codec, SampleEntry, sound::Sound};
use serde::{Deserialize, Serialize};

/// MP3; what a decoder needs is in every frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mp3Config {
    /// Channels as the sample entry says.
    pub channels: u16,
    /// Samples a second as the sample entry says.
    pub sample_rate: u32,
}

impl Mp3Config {
    /// Samples of each channel in a frame: 1152 of MPEG-1 (ISO/IEC 11172-3 2.4.2.1), 576 of the lower sampling
    /// frequencies of MPEG-2 (ISO/IEC 13818-3 2.4.2.1).
    #[must_use]
    pub fn samples_per_frame(&self) -> u32 {
        if self.sample_rate >= 32_000 { 1152 } else { 576 }
    }
}

/// The sample entry with these fields.
pub(super) fn entry(sound: &Sound<'_, '_>) -> SampleEntry {
    let (channels, sample_rate) = (sound.channels, sound.sample_rate);
    sound.entry(Codec::Mp3(Mp3Config { channels, sample_rate }), channels, sample_rate)
}
