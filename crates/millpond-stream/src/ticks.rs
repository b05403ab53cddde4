//! Times in the clocks of tracks.

use millpond_media::units::Timescale;
use std::time::Duration;

/// Converts a time to the nearest tick.
pub(crate) fn ticks(time: Duration, scale: Timescale) -> i64 {
    let nanos = u128::from(scale.get()) * time.as_nanos();
    i64::try_from((nanos + 500_000_000) / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Converts ticks to a time; `None` for negative ones.
pub(crate) fn time(ticks: i64, scale: Timescale) -> Option<Duration> {
    let nanos = u128::try_from(ticks).ok()? * 1_000_000_000 / u128::from(scale.get());
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}
