//! One access unit.

use bytes::Bytes;
use std::time::Duration;

/// One access unit of one track, as it lies in its file; PCM as it is in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which of the presentation's tracks, from 0.
    pub track: u16,
    /// Its place among the track's frames, from 0.
    pub number: u32,
    /// When it is sent, from the start of the presentation: its decode time.
    pub due: Duration,
    /// When it is shown, in ticks of its track.
    pub pts: i64,
    /// Whether decoding can begin with it.
    pub is_sync: bool,
    /// Its bytes, shared by all who have it.
    pub data: Bytes,
}
