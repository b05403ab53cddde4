//! The newest key frame of a running stream, for snapshots. Reading it opens no stream, and keeps none running.

use super::Streams;
use crate::Format;
use bytes::Bytes;
use millpond_package::{
    MediaKind,
    live::{Segment, Window},
};
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
        let Some(fork) = self.fork(path) else {
            // Another server has the stream, and this one a copy of its window.
            return self.windows.copy_of(path)?.look(of_window);
        };
        let frame = fork.key_frame()?;
        let epochs = fork.splicer()?.epochs();
        let known = epochs.borrow();
        let epoch = known.iter().find(|epoch| epoch.number == frame.epoch)?;
        let format = epoch.formats.get(usize::from(frame.track))?.clone()?;
        let wall = epoch.wall + frame.due.saturating_sub(epoch.from);
        Some(NewestKeyFrame { format, data: frame.data, wall })
    }
}

/// Returns the newest key frame in the parts of a window.
fn of_window(window: &Window) -> Option<NewestKeyFrame> {
    let index = window.tracks().iter().position(|track| track.kind == MediaKind::Video)?;
    let newest = |segment: &Segment| {
        let parts = segment.track(index)?.parts().iter().rev();
        let key = parts.flat_map(|part| part.rows.iter().zip(part.bytes.iter().skip(1)).rev());
        let data = key.into_iter().find(|(row, _)| row.is_sync)?.1.clone();
        Some((segment.epoch, segment.wall, data))
    };
    let (epoch, wall, data) = window.segments().rev().find_map(newest)?;
    let format = window.epoch(epoch)?.formats.get(index)?.as_ref()?;
    let format = Format {
        name: window.tracks().get(index)?.name.clone(),
        kind: MediaKind::Video,
        language: format.language.clone(),
        is_default: format.is_default,
        is_alternative: false,
        bandwidth: 0,
        is_encrypted: false,
        track: (*format.track).clone(),
    };
    Some(NewestKeyFrame { format, data, wall })
}
