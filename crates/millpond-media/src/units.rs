//! Units shared by every crate: byte ranges and timescales.

use serde::{Deserialize, Serialize};
use std::{fmt, num::NonZeroU32};

/// A half-open range of bytes of one object, `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte; never below `start`.
    pub end: u64,
}

impl ByteRange {
    /// Creates the range `start..end`. An `end` below `start` gives an empty range at `start`.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// Creates the range of `len` bytes from `start`, cut at `u64::MAX`.
    #[must_use]
    pub const fn at(start: u64, len: u64) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// Number of bytes in the range.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether the range has no bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// Ticks per second of a media clock (ISO/IEC 14496-12 8.4.2); never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Timescale(NonZeroU32);

impl Timescale {
    /// The 90 kHz clock of MPEG-2 systems and of RTP video.
    pub const MPEG: Self = Self(NonZeroU32::new(90_000).unwrap());
    /// A clock of milliseconds.
    pub const MILLIS: Self = Self(NonZeroU32::new(1_000).unwrap());

    /// A clock of nanoseconds.
    pub const NANOS: Self = Self(NonZeroU32::new(1_000_000_000).unwrap());

    /// Creates a timescale; `None` for zero.
    #[must_use]
    pub fn new(ticks_per_second: u32) -> Option<Self> {
        NonZeroU32::new(ticks_per_second).map(Self)
    }

    /// Ticks per second.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Converts `ticks` of this clock to ticks of `to`, rounded to the nearest (halves away from zero).
    #[must_use]
    pub fn convert(self, ticks: i64, to: Self) -> i64 {
        if self == to {
            return ticks;
        }
        let (from, half) = (i64::from(self.get()), i64::from(self.get() / 2));
        // Times of real media fit 64 bits.
        if let Some(scaled) = ticks.checked_mul(i64::from(to.get()))
            && let Some(sum) = scaled.checked_add(if scaled >= 0 { half } else { -half })
        {
            return sum / from;
        }
        let scaled = i128::from(ticks) * i128::from(to.get());
        let half = i128::from(half);
        let rounded = if scaled >= 0 { scaled + half } else { scaled - half } / i128::from(self.get());
        i64::try_from(rounded).unwrap_or(if rounded > 0 { i64::MAX } else { i64::MIN })
    }

    /// Converts `ticks` of this clock to seconds.
    #[must_use]
    pub fn seconds(self, ticks: i64) -> f64 {
        ticks as f64 / f64::from(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn conversions_are_exact_and_rounded(ticks: i64, from in 1_u32.., to in 1_u32..) {
            let (from, to) = (Timescale::new(from).unwrap(), Timescale::new(to).unwrap());
            for ticks in [ticks, ticks >> 32, ticks >> 40] {
                let scaled = i128::from(ticks) * i128::from(to.get());
                let (double, whole) = (scaled.abs() * 2, i128::from(from.get()));
                let exact = ((double + whole) / (2 * whole)) * scaled.signum();
                let expected = i64::try_from(exact).unwrap_or(if exact > 0 { i64::MAX } else { i64::MIN });
                prop_assert_eq!(from.convert(ticks, to), expected);
            }
        }
    }
}
