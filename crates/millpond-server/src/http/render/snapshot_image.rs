//! Snapshots as images.

use bytes::Bytes;
use std::time::Duration;

/// A key frame as an image.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotImage {
    /// The image, in the form of JPEG.
    pub(crate) jpeg: Bytes,
    /// Time of day of the key frame, since the Unix epoch.
    pub(crate) wall: Duration,
}
