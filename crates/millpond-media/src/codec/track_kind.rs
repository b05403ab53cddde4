//! Kinds of tracks.

use crate::codec::orientation::Orientation;
use serde::{Deserialize, Serialize};

/// Kind of a track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TrackKind {
    /// Pictures.
    Video {
        /// Coded width in pixels.
        width: u16,
        /// Coded height in pixels.
        height: u16,
        /// Orientation for display (from the `tkhd` matrix).
        orientation: Orientation,
        /// Pixel aspect ratio (`pasp`), horizontal and vertical spacing.
        pixel_aspect: (u32, u32),
    },
    /// Sound.
    Audio {
        /// Channels as stated by the codec configuration, else by the sample entry.
        channels: u16,
        /// Samples per second as stated by the codec configuration, else by the sample entry.
        sample_rate: u32,
    },
    /// Timed text.
    Text,
}
