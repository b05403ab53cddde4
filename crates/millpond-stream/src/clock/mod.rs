//! Clocks of a live source: gives the frames of all tracks one timeline.
//!
//! A [`Timeline`] maps the timestamps of each track to stream time, and [`DecodeTimes`] gives the frames of one track decode
//! times. Both are pure: the time of the call is an argument.

#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod align;
mod decode_times;
mod delays;
mod drift;
mod given;
mod interval;
mod reports;
mod slew;
mod timeline;
mod track;
mod unwrap;

pub use decode_times::DecodeTimes;
pub use timeline::{Stamp, Timeline, TimelineFigures};
pub use track::TrackClock;
pub use unwrap::Wrapped;

use std::time::Duration;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
/// Stream time of the first frame: decode times before it, and frames of other tracks, stay above zero.
const ORIGIN: i64 = 10 * SECOND;

/// Nanoseconds of a time; at most 73 years, so that sums of times do not overflow.
fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// The time of nanoseconds; zero for negative ones.
fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
