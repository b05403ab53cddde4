//! Times at which all tracks of a stream are cut.

use super::part::SegmentNumber;
use millpond_media::units::Timescale;
use std::time::Duration;

/// Beginning of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundary {
    pub(super) segment: SegmentNumber,
    /// Whether the leading track begins it with a key frame.
    pub(super) is_independent: bool,
    /// Presentation time in ticks of the track that opened the segment.
    at: i64,
    /// Clock of `at`.
    scale: Timescale,
}

impl Boundary {
    pub(super) const fn new(segment: SegmentNumber, at: i64, scale: Timescale, is_independent: bool) -> Self {
        Self { segment, is_independent, at, scale }
    }

    /// Whether it lies behind a time of another clock.
    pub(super) fn is_behind(&self, ticks: i64, scale: Timescale) -> bool {
        i128::from(ticks) * i128::from(self.scale.get()) < i128::from(self.at) * i128::from(scale.get())
    }

    /// Whether it lies before a time of another clock.
    pub(super) fn is_before(&self, ticks: i64, scale: Timescale) -> bool {
        i128::from(ticks) * i128::from(self.scale.get()) > i128::from(self.at) * i128::from(scale.get())
    }

    /// Returns the ticks of a clock at this time.
    pub(super) fn ticks(&self, scale: Timescale) -> i64 {
        self.scale.convert(self.at, scale)
    }

    /// Returns the stream time.
    pub(super) fn time(&self) -> Duration {
        time(self.at, self.scale)
    }
}

/// Converts ticks to the nearest nanosecond of stream time; negative ones to 0.
pub(crate) fn time(ticks: i64, scale: Timescale) -> Duration {
    let (ticks, scale) = (u128::try_from(ticks).unwrap_or(0), u128::from(scale.get()));
    let nanos = (ticks * 1_000_000_000 + scale / 2) / scale;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Converts a stream time to ticks, rounded down.
pub(crate) fn ticks(time: Duration, scale: Timescale) -> i64 {
    let ticks = time.as_nanos().saturating_mul(u128::from(scale.get())) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}
