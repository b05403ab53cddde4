//! One access unit, and runs of them.

use bytes::Bytes;
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
    /// Whether decoding can begin with it.
    pub is_sync: bool,
    /// Its bytes, shared by all that hold the frame.
    pub data: Bytes,
}

/// Frames in the order of their due times, shared by all that hold them.
pub type Run = Arc<[Frame]>;
