//! Codecs that are not read, as the reason why a track is left out.

use serde::{Deserialize, Serialize};

/// A codec that is not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadCodec {
    /// Medium of the track.
    pub medium: Medium,
    /// Usual name of the codec, such as `DTS`; the identifier in the file where no name is known.
    pub name: String,
}

/// Medium of a track whose codec is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Medium {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Timed text.
    Text,
}

impl Medium {
    /// Returns the medium of a track by its handler (ISO/IEC 14496-12 8.4.3); `None` for other tracks.
    pub(crate) fn of_handler(handler: [u8; 4]) -> Option<Self> {
        match &handler {
            b"vide" => Some(Self::Video),
            b"soun" => Some(Self::Audio),
            b"text" | b"subt" | b"sbtl" => Some(Self::Text),
            _ => None,
        }
    }

    /// Name of the medium.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Text => "text",
        }
    }
}
