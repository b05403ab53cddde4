//! How long the blocks of some tracks are.

use std::{num::NonZeroU32, time::Duration};

/// What blocks are multiples of, and what late frames are put off by.
pub(super) const PERIOD: Duration = Duration::from_millis(200);
/// Thin tracks have blocks of so many bytes, on average, up to [`LONGEST`].
const BYTES: u64 = 12_000;
/// The most periods of a block: one second.
const LONGEST: u64 = 5;

/// Where tracks are cut into blocks: at multiples of so many periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut(NonZeroU32);

impl Cut {
    /// For so many bits a second: a block costs a session about the same, whatever is in it.
    pub(super) fn of(rate: u64) -> Self {
        let bytes = u128::from(rate) * PERIOD.as_millis() / 8000;
        let periods = u128::from(BYTES).checked_div(bytes).unwrap_or(u128::MAX);
        let periods = periods.clamp(1, u128::from(LONGEST)) as u32;
        Self(NonZeroU32::new(periods).unwrap_or(NonZeroU32::MIN))
    }

    fn length(self) -> Duration {
        PERIOD * self.0.get()
    }

    /// The block in which a time lies.
    pub(super) fn block_of(self, time: Duration) -> u64 {
        (time.as_nanos() / self.length().as_nanos()) as u64
    }

    /// When a block begins.
    pub(super) fn begin_of(self, block: u64) -> Duration {
        self.length().checked_mul(u32::try_from(block).unwrap_or(u32::MAX)).unwrap_or(Duration::MAX)
    }

    /// Blocks that a time reaches over, begun ones included.
    pub(super) fn blocks(self, time: Duration) -> u64 {
        time.as_nanos().div_ceil(self.length().as_nanos()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_tracks_have_longer_blocks() {
        let lengths = [0, 10_000, 100_000, 200_000, 300_000, 1_054_000, u64::MAX].map(|rate| Cut::of(rate).length());
        assert_eq!(lengths, [1000, 1000, 800, 400, 200, 200, 200].map(Duration::from_millis));
    }

    #[test]
    fn times_fall_in_blocks() {
        let cut = Cut::of(200_000);
        let length = cut.length();
        assert_eq!(cut.block_of(Duration::ZERO), 0);
        assert_eq!(cut.block_of(length - Duration::from_nanos(1)), 0);
        assert_eq!(cut.block_of(length), 1);
        assert_eq!(cut.begin_of(3), length * 3);
        assert_eq!(cut.begin_of(u64::MAX), cut.begin_of(u64::from(u32::MAX)), "bounded");
        assert_eq!([0, 1, 400, 401].map(|ms| cut.blocks(Duration::from_millis(ms))), [0, 1, 1, 2]);
    }
}
