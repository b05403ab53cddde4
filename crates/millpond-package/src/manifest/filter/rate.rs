//! Bit rates as filters write them.

use std::fmt;

/// Greatest bit rate: a terabit per second.
const MOST: u64 = 1_000_000_000_000;
/// Units with the number of bits that each stands for, the largest first.
const UNITS: &[(char, u64)] = &[('G', 1_000_000_000), ('M', 1_000_000), ('k', 1_000)];

/// A bit rate, at least a bit per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BitRate(u64);

impl BitRate {
    /// Parses `3000000`, `3000k`, `3M` or `2.5m`: decimal units, in upper or lower case.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with([*unit, swapped(*unit)]));
        // Units are ASCII.
        let (number, scale) = match unit {
            Some((_, scale)) => (text.get(..text.len() - 1)?, *scale),
            None => (text, 1),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        let bits = (number.parse::<f64>().ok()? * scale as f64).round();
        (1.0..=MOST as f64).contains(&bits).then_some(Self(bits as u64))
    }

    /// Bits per second.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

/// Returns a unit in the other case.
const fn swapped(unit: char) -> char {
    if unit.is_ascii_uppercase() { unit.to_ascii_lowercase() } else { unit.to_ascii_uppercase() }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, scale)| self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}
