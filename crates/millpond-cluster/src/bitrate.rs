//! Bandwidth.

use serde::{Deserialize, Serialize};
use std::{fmt, iter::Sum};

/// A bandwidth in bits per second. Sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bitrate(u64);

impl Bitrate {
    /// No bandwidth.
    pub const ZERO: Self = Self(0);

    /// A bandwidth of `bits` per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// A bandwidth of `megabits` (10⁶ bits) per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// The sum, at most the largest bandwidth.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least [`ZERO`](Self::ZERO).
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bitrate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Self::plus)
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits @ 0..1_000 => write!(f, "{bits} bit/s"),
            bits @ 1_000..1_000_000 => write!(f, "{:.1} kbit/s", bits as f64 / 1e3),
            bits => write!(f, "{:.1} Mbit/s", bits as f64 / 1e6),
        }
    }
}
