//! What can be wrong with a file: where, what was found and what was expected.

use crate::work::WorkError;

/// Why an object gives no index, or a track of it none.
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
        /// What the file says.
        found: String,
        /// What the format wants there.
        expected: String,
    },
    /// Allowed by the format, but not something that Millpond plays.
    #[error("{path} at byte {offset}: {found} is not supported")]
    Unsupported {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// What the file has.
        found: String,
    },
    /// The bytes end before the structure does.
    #[error("{path} at byte {offset}: found {found} bytes, expected {expected}: the file is cut short")]
    Truncated {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        expected: u64,
    },
    /// More of something than the limits allow to hold or to walk over.
    #[error("{path} at byte {offset}: found {found} {what}, expected at most {expected}")]
    TooLarge {
        /// Box path.
        path: String,
        /// Offset in the object.
        offset: u64,
        /// How many the file asks for.
        found: u64,
        /// The limit.
        expected: u64,
        /// Counted thing, such as `bytes of metadata`.
        what: &'static str,
    },
    /// The job ended before the index was complete: cancelled, or more steps than its [`Work`](crate::Work) had.
    #[error("{path} at byte {offset}: {error}")]
    Work {
        /// Box path that was read then.
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
    /// The boxes of the file are none of them the movie.
    #[error("the file at byte {offset}: found its end and no moov box, expected one")]
    NoMovieBox {
        /// Length of the object.
        offset: u64,
    },
}

impl MediaError {
    /// [`MediaError::Invalid`].
    pub fn invalid(
        path: impl Into<String>,
        offset: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Invalid { path: path.into(), offset, found: found.into(), expected: expected.into() }
    }

    /// [`MediaError::Unsupported`].
    pub fn unsupported(path: impl Into<String>, offset: u64, found: impl Into<String>) -> Self {
        Self::Unsupported { path: path.into(), offset, found: found.into() }
    }

    /// [`MediaError::Truncated`]: `found` bytes where `expected` are needed.
    pub fn truncated(path: impl Into<String>, offset: u64, found: u64, expected: u64) -> Self {
        Self::Truncated { path: path.into(), offset, found, expected }
    }

    /// [`MediaError::TooLarge`]: `found` of `what` where at most `expected` are allowed.
    pub fn too_large(path: impl Into<String>, offset: u64, found: u64, expected: u64, what: &'static str) -> Self {
        Self::TooLarge { path: path.into(), offset, found, expected, what }
    }

    /// [`MediaError::Work`]: `error` ended the job while the box at `path` was read.
    pub fn work(path: impl Into<String>, offset: u64, error: WorkError) -> Self {
        Self::Work { path: path.into(), offset, error }
    }

    /// Box path of the place that is wrong.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Invalid { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Truncated { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Work { path, .. }
            | Self::NoPlayableTrack { path, .. } => path,
            Self::NoMovieBox { .. } => "the file",
        }
    }

    /// Offset in the object of the place that is wrong.
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
        }
    }

    /// Whether more bytes behind an object of `object_len` bytes could cure it: a copy that goes on will have them.
    #[must_use]
    pub const fn is_cut_short(&self, object_len: u64) -> bool {
        match self {
            Self::Truncated { offset, expected, .. } => offset.saturating_add(*expected) > object_len,
            Self::NoPlayableTrack { cut_short, .. } => *cut_short,
            Self::NoMovieBox { .. } => true,
            Self::Invalid { .. } | Self::Unsupported { .. } | Self::TooLarge { .. } | Self::Work { .. } => false,
        }
    }
}

fn list(reasons: &[String]) -> String {
    if reasons.is_empty() { "the movie has no track at all".to_owned() } else { reasons.join("; ") }
}
