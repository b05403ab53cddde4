//! Errors of stitching: the item, the value found and the value expected.

use super::StitchClip;
use crate::{MediaError, WorkError};

/// The reason why items make no title. Numbers of items count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StitchError {
    /// No item has video or sound.
    #[error("found no item with video or sound, expected at least one")]
    Empty,
    /// The range of an item is not inside its file.
    #[error("item {item} ({label}): found the range {clip}, expected one between 0s and {end}s, where the file ends")]
    Range {
        /// Number of the item.
        item: usize,
        /// Name of its file.
        label: String,
        /// The range.
        clip: StitchClip,
        /// End of the file in seconds, as text.
        end: String,
    },
    /// The file of an item can't be stitched.
    #[error("item {item} ({label}): found {found}, expected {expected}")]
    Unfit {
        /// Number of the item.
        item: usize,
        /// Name of its file.
        label: String,
        /// Property of the file.
        found: String,
        /// Property that stitching needs.
        expected: String,
    },
    /// The job ended before the movie was complete.
    #[error("stitching: {0}")]
    Work(#[from] WorkError),
    /// The clock of a track could not be refined.
    #[error("stitching: {0}")]
    Clock(#[from] MediaError),
}
