//! How long the blocks of some tracks are.

use std::{num::NonZeroU32, time::Duration};

/// Unit of block lengths, and of the delay that late frames cause.
pub(crate) const PERIOD: Duration = Duration::from_millis(200);
/// Bytes of a block on average, for tracks of low rates, up to [`LONGEST`].
const BYTES: u64 = 12_000;
/// Most periods of a block: one second.
const LONGEST: u64 = 5;

/// The length of blocks, in periods. Blocks begin at multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockLength(NonZeroU32);

impl BlockLength {
    /// The length for `rate` bits a second: a block costs a session about the same at any rate.
    pub(crate) fn of(rate: u64) -> Self {
        let bytes = u128::from(rate) * PERIOD.as_millis() / 8000;
        let periods = u128::from(BYTES).checked_div(bytes).unwrap_or(u128::MAX);
        let periods = periods.clamp(1, u128::from(LONGEST)) as u32;
        Self(NonZeroU32::new(periods).unwrap_or(NonZeroU32::MIN))
    }

    /// The number of [periods](PERIOD) that a block covers.
    pub(crate) fn periods(self) -> u32 {
        self.0.get()
    }

    /// The time that a block covers.
    pub(crate) fn duration(self) -> Duration {
        PERIOD * self.0.get()
    }

    /// The number of the block that a time lies in.
    pub(crate) fn block_of(self, time: Duration) -> u64 {
        (time.as_nanos() / self.duration().as_nanos()) as u64
    }

    /// The time at which a block begins.
    pub(crate) fn begin_of(self, block: u64) -> Duration {
        self.duration().checked_mul(u32::try_from(block).unwrap_or(u32::MAX)).unwrap_or(Duration::MAX)
    }

    /// The number of blocks that cover a time, partial ones included.
    pub(crate) fn count(self, time: Duration) -> u64 {
        time.as_nanos().div_ceil(self.duration().as_nanos()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_tracks_have_longer_blocks() {
        let lengths =
            [0, 10_000, 100_000, 200_000, 300_000, 1_054_000, u64::MAX].map(|rate| BlockLength::of(rate).duration());
        assert_eq!(lengths, [1000, 1000, 800, 400, 200, 200, 200].map(Duration::from_millis));
    }

    #[test]
    fn times_fall_in_blocks() {
        let blocks = BlockLength::of(200_000);
        let length = blocks.duration();
        assert_eq!(blocks.block_of(Duration::ZERO), 0);
        assert_eq!(blocks.block_of(length - Duration::from_nanos(1)), 0);
        assert_eq!(blocks.block_of(length), 1);
        assert_eq!(blocks.begin_of(3), length * 3);
        assert_eq!(blocks.begin_of(u64::MAX), blocks.begin_of(u64::from(u32::MAX)), "bounded");
        assert_eq!([0, 1, 400, 401].map(|ms| blocks.count(Duration::from_millis(ms))), [0, 1, 1, 2]);
    }
}
