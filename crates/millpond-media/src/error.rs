//! Errors of media files, with the place, the found value and the expected value.

use crate::{
    programme::{self, FileProgramme},
    unread::{Medium, UnreadCodec},
    work::WorkError,
};
use std::sync::Arc;

/// The reason why an object has no index, or a track is missing from it.
///
/// Every variant leads to the byte: the box path (such as `moov/trak[2]/mdia/minf/stbl/stsz`) and the offset in the
/// object. Only [`MediaError::Work`] is worth a retry with the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// A field or a box has a value that the format does not allow.
    #[error("{path} at byte {offset}: found {found}, expected {expected}")]
    Invalid {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Value in the file.
        found: String,
        /// Value that the format requires.
        expected: String,
    },
    /// A property that the format allows but Millpond does not play.
    #[error("{path} at byte {offset}: {found} is not supported")]
    Unsupported {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Property of the file.
        found: String,
        /// The codec of the track, if this is the property.
        codec: Option<UnreadCodec>,
    },
    /// The object ends before the structure does.
    #[error("{path} at byte {offset}: found {found} bytes, expected {expected}: the file is cut short")]
    Truncated {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Number of bytes found.
        found: u64,
        /// Number of bytes expected.
        expected: u64,
    },
    /// A count beyond the limits of memory or work.
    #[error("{path} at byte {offset}: found {found} {what}, expected at most {expected}")]
    TooLarge {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Count in the file.
        found: u64,
        /// The limit.
        expected: u64,
        /// Unit of the count, such as `bytes of metadata`.
        what: &'static str,
    },
    /// The job ended before the index was complete: it was cancelled, or ran out of steps of its [`Work`](crate::Work).
    #[error("{path} at byte {offset}: {error}")]
    Work {
        /// Path of the box that was being read.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Cancellation or exhaustion.
        error: WorkError,
    },
    /// The file is readable, but no track of it can be played.
    #[error("{path} at byte {offset}: found no playable track, expected at least one ({})", list(found))]
    NoPlayableTrack {
        /// Box path (`moov`).
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Each track's reason, in file order.
        found: Vec<String>,
        /// Whether the object ends before the first sample of some track.
        cut_short: bool,
    },
    /// The file is a transport stream without the chosen programme.
    #[error("the transport stream at byte 0: found no programme {wanted}, expected {}", programme::choices(programmes))]
    NoProgramme {
        /// Number of the programme.
        wanted: u16,
        /// Programmes of the file.
        programmes: Arc<[FileProgramme]>,
    },
    /// No box of the file is a movie box, or the file is empty.
    #[error("{}", no_movie_box(*offset))]
    NoMovieBox {
        /// Length of the object.
        offset: u64,
    },
}

impl MediaError {
    /// Creates [`MediaError::Invalid`].
    pub fn invalid(
        path: impl Into<String>,
        offset: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Invalid { path: path.into(), offset, found: found.into(), expected: expected.into() }
    }

    /// Creates [`MediaError::Unsupported`].
    pub fn unsupported(path: impl Into<String>, offset: u64, found: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), offset, found: found.into(), codec: None }
    }

    /// Returns the same error with a codec as its reason. Errors that name one, and other errors than
    /// [`MediaError::Unsupported`], stay as they are.
    pub(crate) fn of_codec(mut self, medium: Medium, name: impl Into<String>) -> Self {
        if let Self::Unsupported { codec: codec @ None, .. } = &mut self {
            *codec = Some(UnreadCodec { medium, name: name.into() });
        }
        self
    }

    /// Returns the codec that is not read, if this is the reason.
    #[must_use]
    pub const fn unread_codec(&self) -> Option<&UnreadCodec> {
        match self {
            Self::Unsupported { codec, .. } => codec.as_ref(),
            _ => None,
        }
    }

    /// Creates [`MediaError::Truncated`]: `found` bytes where `expected` are needed.
    pub fn truncated(path: impl Into<String>, offset: u64, found: u64, expected: u64) -> Self {
        Self::Truncated { path: path.into(), offset, found, expected }
    }

    /// Creates [`MediaError::TooLarge`]: `found` of `what` where at most `expected` are allowed.
    pub fn too_large(path: impl Into<String>, offset: u64, found: u64, expected: u64, what: &'static str) -> Self {
        Self::TooLarge { path: path.into(), offset, found, expected, what }
    }

    /// Creates [`MediaError::Work`]: `error` ended the job while the box at `path` was read.
    pub fn work(path: impl Into<String>, offset: u64, error: WorkError) -> Self {
        Self::Work { path: path.into(), offset, error }
    }

    /// Path of the box in error.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Invalid { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Truncated { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Work { path, .. }
            | Self::NoPlayableTrack { path, .. } => path,
            Self::NoProgramme { .. } => "the transport stream",
            Self::NoMovieBox { .. } => "the file",
        }
    }

    /// Offset of the error in the object.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self {
            Self::Invalid { offset, .. }
            | Self::Unsupported { offset, .. }
            | Self::Truncated { offset, .. }
            | Self::TooLarge { offset, .. }
            | Self::Work { offset, .. }
            | Self::NoPlayableTrack { offset, .. }
            | Self::NoMovieBox { offset } => *offset,
            Self::NoProgramme { .. } => 0,
        }
    }

    /// Whether an object of `object_len` bytes is perhaps incomplete, so that a copy still in progress may cure the
    /// error.
    #[must_use]
    pub const fn is_cut_short(&self, object_len: u64) -> bool {
        match self {
            Self::Truncated { offset, expected, .. } => offset.saturating_add(*expected) > object_len,
            Self::NoPlayableTrack { cut_short, .. } => *cut_short,
            Self::NoMovieBox { .. } => true,
            Self::Invalid { .. }
            | Self::Unsupported { .. }
            | Self::TooLarge { .. }
            | Self::Work { .. }
            | Self::NoProgramme { .. } => false,
        }
    }
}

fn no_movie_box(len: u64) -> String {
    if len == 0 {
        return "the file is empty: found 0 bytes, expected media".to_owned();
    }
    format!("the file at byte {len}: found its end and no moov box, expected one")
}

fn list(reasons: &[String]) -> String {
    if reasons.is_empty() { "the movie has no track at all".to_owned() } else { reasons.join("; ") }
}
