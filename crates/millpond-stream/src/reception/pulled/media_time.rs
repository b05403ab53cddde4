//! Times of frames on the clock of their source.

use crate::{clock::Wrapped, reception::assembly::Arrived};
use millpond_media::Timescale;

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// A decoding time on the clock of a source, which may wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MediaTime {
    /// Nanoseconds from the zero of the clock.
    nanos: i64,
    /// Nanoseconds after which the clock begins again; `None` for one that does not wrap.
    period: Option<i64>,
}

impl MediaTime {
    /// Decoding time of a frame of an MPEG transport stream.
    pub(super) fn mpeg(arrived: &Arrived) -> Self {
        let decoded = arrived.timestamp.value().wrapping_sub(arrived.reordered.unwrap_or(0).into());
        // 33 bits.
        let ticks = Wrapped::mpeg(decoded).value().cast_signed();
        Self { nanos: scale(ticks, Timescale::MPEG), period: Some(scale(1 << 33, Timescale::MPEG)) }
    }

    /// Decoding time of a sample.
    pub(super) fn whole(ticks: i64, timescale: Timescale) -> Self {
        Self { nanos: scale(ticks, timescale), period: None }
    }

    /// Returns it in nanoseconds, as the time that is nearest to another one.
    pub(super) fn near(self, other: Option<i64>) -> i64 {
        let (Some(other), Some(period)) = (other, self.period) else { return self.nanos };
        let turns = other.saturating_sub(self.nanos).saturating_add(period / 2).div_euclid(period);
        self.nanos.saturating_add(turns.saturating_mul(period))
    }
}

/// Converts ticks to nanoseconds; at most 73 years, so that differences of times do not overflow.
fn scale(ticks: i64, timescale: Timescale) -> i64 {
    let nanos = i128::from(ticks) * SECOND / i128::from(timescale.get());
    let most = i128::from(i64::MAX / 4);
    i64::try_from(nanos.clamp(-most, most)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_near_to_others() {
        let period = scale(1 << 33, Timescale::MPEG);
        let time = |nanos| MediaTime { nanos, period: Some(period) };
        assert_eq!(time(5).near(None), 5);
        assert_eq!(time(5).near(Some(period - 7)), period + 5);
        assert_eq!(time(period - 7).near(Some(3)), -7);
        assert_eq!(time(5).near(Some(3 * period)), 3 * period + 5);
        assert_eq!(MediaTime::whole(90_000, Timescale::MPEG).near(Some(7)), 1_000_000_000);
    }
}
