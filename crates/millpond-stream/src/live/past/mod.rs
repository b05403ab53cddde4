//! The past of live streams as frames, for viewers that take them one by one.
//!
//! A [`PastReader`] reads the segments of a window, from memory and from the disk. It gives their frames on one timeline without
//! holes, the one of a [`PastFeed`]. Lost segments and discontinuities begin epochs of that feed. At the newest segment it waits
//! for the next part.

mod feed;
mod lane;
mod look;
mod point;
mod reader;

pub(crate) use feed::PastFeed;
pub(crate) use point::live_point;
pub use point::{PastPoint, PastStart};
pub(crate) use reader::{Begun, PastReader};

use millpond_media::units::Timescale;
use std::time::Duration;

/// Converts ticks to the nearest nanosecond.
fn nanos(ticks: i64, scale: Timescale) -> i64 {
    Timescale::new(1_000_000_000).map_or(0, |nanos| scale.convert(ticks, nanos))
}

/// Converts nanoseconds to the nearest tick.
fn ticks(nanos: i64, scale: Timescale) -> i64 {
    Timescale::new(1_000_000_000).map_or(0, |of| of.convert(nanos, scale))
}

/// Nanoseconds from one time to another.
fn between(from: Duration, to: Duration) -> i64 {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    nanos(to).saturating_sub(nanos(from))
}

/// Moves a time by nanoseconds; to 0 at least.
fn moved(time: Duration, by: i64) -> Duration {
    let step = Duration::from_nanos(by.unsigned_abs());
    if by < 0 { time.saturating_sub(step) } else { time.saturating_add(step) }
}
