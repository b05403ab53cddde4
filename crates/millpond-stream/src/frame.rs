//! One access unit, and runs of them.

use bytes::Bytes;
use millpond_media::Importance;
use std::{sync::Arc, time::Duration};

/// One access unit of one track, as stored; PCM as it is in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index of its track in the [formats](crate::Format) of its feed.
    pub track: u16,
    /// Number among the track's frames, from 0. It wraps.
    pub number: u32,
    /// Decode time from the start of the feed: the time at which it is sent.
    pub due: Duration,
    /// Presentation time in ticks of its track.
    pub pts: i64,
    /// Number of the [epoch](crate::Epoch) that it belongs to. Frames of stored titles have 0.
    pub epoch: u32,
    /// Whether decoding can begin with it.
    pub is_sync: bool,
    /// How far later frames depend on it. Frames of stored titles have [`Importance::BASE`].
    pub importance: Importance,
    /// Its bytes, shared by all that hold the frame.
    pub data: Bytes,
}

impl Frame {
    /// Its decode time in the nearest tick of `timescale`.
    pub(crate) fn decoded(&self, timescale: u32) -> i64 {
        ticks(self.due, timescale)
    }
}

/// Converts a time to the nearest tick.
pub(crate) fn ticks(time: Duration, timescale: u32) -> i64 {
    let nanos = u128::from(timescale) * time.as_nanos();
    i64::try_from((nanos + 500_000_000) / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Frames in the order of their due times, shared by all that hold them.
pub type Run = Arc<[Frame]>;
