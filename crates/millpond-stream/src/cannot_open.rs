//! Refusals to open a graph.

use crate::admission::Full;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotOpen {
    /// The part begins behind the end, or is empty.
    #[error("the part lies outside of the asset")]
    OutOfRange,
    /// Admission refuses it.
    #[error(transparent)]
    Full(#[from] Full),
    /// The stream has ended, or has no key frame for long.
    #[error("the stream has ended, or has no key frame: try again in some seconds")]
    Ended,
    /// There are too many live streams.
    #[error("too many live streams")]
    Streams,
    /// Live segments can carry none of the tracks.
    #[error("live segments can carry none of the tracks")]
    NoTracks,
}
