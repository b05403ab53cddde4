//! The newest key frame of a running stream, for snapshots. Reading it opens no stream, and keeps none running.

use super::Streams;
use crate::Format;
use bytes::Bytes;
use std::time::Duration;

/// A key frame, and the format of its track.
#[derive(Clone, Debug)]
pub struct NewestKeyFrame {
    /// Format of the leading track when the frame arrived.
    pub format: Format,
    /// Bytes of the frame, as stored.
    pub data: Bytes,
    /// Its time of day, since the Unix epoch.
    pub wall: Duration,
}

impl Streams {
    /// Returns the newest key frame of the stream of a path. `None` while the stream does not run, and if the frames since its last
    /// key frame are too many to be kept.
    pub(crate) fn key_frame(&self, path: &str) -> Option<NewestKeyFrame> {
        let fork = self.fork(path)?;
        let frame = fork.key_frame()?;
        let epochs = fork.splicer()?.epochs();
        let known = epochs.borrow();
        let epoch = known.iter().find(|epoch| epoch.number == frame.epoch)?;
        let format = epoch.formats.get(usize::from(frame.track))?.clone()?;
        let wall = epoch.wall + frame.due.saturating_sub(epoch.from);
        Some(NewestKeyFrame { format, data: frame.data, wall })
    }
}
