//! Timestamps without wraps.

/// A timestamp as its source sends it: `bits` wide, so that it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped {
    value: u64,
    bits: u32,
}

impl Wrapped {
    /// RTP timestamp (RFC 3550 5.1): 32 bits.
    #[must_use]
    pub fn rtp(timestamp: u32) -> Self {
        Self { value: timestamp.into(), bits: 32 }
    }

    /// PTS, DTS or base of a PCR (ISO/IEC 13818-1 2.4.3.4, 2.4.3.6): the lower 33 bits of `timestamp`.
    #[must_use]
    pub fn mpeg(timestamp: u64) -> Self {
        Self { value: timestamp & ((1 << 33) - 1), bits: 33 }
    }

    /// Timestamp of 64 bits, such as the decode time of a fragment (ISO/IEC 14496-12 8.8.12).
    #[must_use]
    pub fn whole(timestamp: u64) -> Self {
        Self { value: timestamp, bits: 64 }
    }

    /// The timestamp as it was sent.
    #[must_use]
    pub fn value(self) -> u64 {
        self.value
    }
}

/// Unwraps the timestamps of one clock: each becomes the value that is nearest to the previous timestamp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unwrap {
    last: Option<i64>,
}

impl Unwrap {
    /// Ticks without wraps. The first timestamp keeps its value.
    pub(super) fn unwrap(&mut self, ticks: Wrapped) -> i64 {
        let unwrapped = self.near(ticks);
        self.last = Some(unwrapped);
        unwrapped
    }

    /// As [`unwrap`](Self::unwrap), for a timestamp beside the sequence of frames.
    pub(super) fn near(&self, ticks: Wrapped) -> i64 {
        let Some(last) = self.last else { return ticks.value as i64 };
        let unused = u64::BITS - ticks.bits;
        // The difference modulo 2^bits, with its sign extended.
        let ahead = ((ticks.value.wrapping_sub(last as u64) << unused) as i64) >> unused;
        last.wrapping_add(ahead)
    }

    /// The last ticks.
    pub(super) fn last(&self) -> Option<i64> {
        self.last
    }

    /// Unwraps the next timestamp as the nearest one to `ticks`, unless there was one before.
    pub(super) fn begin_near(&mut self, ticks: i64) {
        self.last.get_or_insert(ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timestamp_is_the_nearest_one_to_the_last() {
        let mut clock = Unwrap::default();
        let rtp = |clock: &mut Unwrap, value: u32| clock.unwrap(Wrapped::rtp(value));
        assert_eq!(rtp(&mut clock, u32::MAX - 1), 0xffff_fffe);
        assert_eq!(rtp(&mut clock, 2), 0x1_0000_0002, "over the wrap");
        assert_eq!(clock.near(Wrapped::rtp(u32::MAX)), 0xffff_ffff, "beside the sequence");
        assert_eq!(rtp(&mut clock, u32::MAX), 0xffff_ffff, "back over the wrap");
        let mut clock = Unwrap::default();
        assert_eq!(rtp(&mut clock, 0), 0);
        assert_eq!(rtp(&mut clock, u32::MAX), -1);
        assert_eq!(rtp(&mut clock, (1 << 31) - 2), (1 << 31) - 2, "just under half");
        assert_eq!(rtp(&mut clock, u32::MAX), -1);
        assert_eq!(rtp(&mut clock, (1 << 31) - 1), -(1 << 31) - 1, "half is behind");
    }

    #[test]
    fn days_are_counted_over_all_wraps() {
        for (step, wrapped) in [(90_000_u64 * 600, Wrapped::rtp as fn(u32) -> Wrapped), (48_000 * 3600, Wrapped::rtp)] {
            let mut clock = Unwrap::default();
            for turn in 0..1000 {
                assert_eq!(clock.unwrap(wrapped((turn * step) as u32)), (turn * step) as i64);
            }
        }
        let mut clock = Unwrap::default();
        for turn in 0..1000_u64 {
            let ticks = turn * 90_000 * 3600;
            assert_eq!(clock.unwrap(Wrapped::mpeg(ticks)), ticks as i64);
        }
        let mut clock = Unwrap::default();
        clock.unwrap(Wrapped::whole(u64::MAX));
        assert_eq!(clock.unwrap(Wrapped::whole(1)), 1);
    }
}
