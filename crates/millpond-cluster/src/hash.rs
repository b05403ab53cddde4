//! Rendezvous hashing with weights (Thaler and Ravishankar 1998; Schindelhauer and Schomaker 2005).
//!
//! All nodes of a cluster must get the same numbers: hashes are XXH3, and logarithms are made of sums, products and quotients,
//! which IEEE 754 rounds the same everywhere. The system's own logarithm differs between C libraries.

use xxhash_rust::xxh3::xxh3_64;

/// Hash of bytes.
pub(crate) fn bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Hash of two hashes (the finalizer of SplitMix64).
pub(crate) fn pair(one: u64, two: u64) -> u64 {
    let mut mixed = one.wrapping_add(two.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The score of a node of `weight` for an object whose hash with the node is `hash`. The largest score wins: each node wins a share
/// of all objects in proportion to its weight.
pub(crate) fn score(hash: u64, weight: f64) -> f64 {
    weight / -logarithm(uniform(hash))
}

/// The hash as a number in 0 to 1, neither of them.
fn uniform(hash: u64) -> f64 {
    ((hash >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Whether [`score`] may be above `least`. Cheaper than the score, and wrong for few: -ln u is at least 1 - u.
pub(crate) fn may_exceed(hash: u64, weight: f64, least: f64) -> bool {
    const MARGIN: f64 = 1.0 + 1e-9;
    weight * MARGIN > least * (1.0 - uniform(hash))
}

/// The natural logarithm of a number in 0 to 1, neither of them.
fn logarithm(number: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = number.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), as a series; the argument is below 0.172.
    let part = (mantissa - 1.0) / (mantissa + 1.0);
    let square = part * part;
    let series = (0..10).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * part * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_system() {
        for step in 1..10_000_u32 {
            let number = f64::from(step) / 10_000.0;
            let difference = logarithm(number) - number.ln();
            assert!(difference.abs() < 1e-14 * number.ln().abs().max(1e-3), "{number}: {difference:e}");
        }
        assert!(score(0, 1.0) > 0.0 && score(u64::MAX, 1.0).is_finite());
    }

    #[test]
    fn hashes_stay_what_they_are() {
        // Another value would move every object of every cluster at an upgrade.
        assert_eq!(bytes(b"films\0ducks.mp4"), 11_115_856_921_826_496_099);
        assert_eq!(pair(1, 2), 5_964_141_978_005_197_109);
    }
}
