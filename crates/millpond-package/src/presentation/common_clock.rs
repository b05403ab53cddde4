//! One clock for the renditions of an HLS multivariant playlist, whose timestamps agree (RFC 8216 6.2.4).
//!
//! The index of a transport stream begins at its first frame. Streams of one title begin some frames apart: sound before pictures, and
//! pictures by as many frames as they are reordered. Played together, each would be early by another time.

use crate::presentation::{SourceObject, selection::origin};
use std::sync::Arc;

/// Ticks of 90 kHz after which a timestamp wraps (ISO/IEC 13818-1 2.4.3.7).
const WRAP: u64 = 1 << 33;
/// Ticks of 90 kHz of a millisecond.
const MILLI: u64 = 90;

/// Presents sources of transport streams at their times on the clock that they share, and gives the sound of each source the name at its
/// place, if there is one. Fragmented MP4 has times on that clock already.
///
/// Returns the timestamp of the time 0 of their presentation, in ticks of 90 kHz.
pub fn align(sources: &mut [SourceObject], names: &[Option<String>]) -> u64 {
    let zero = |source: &SourceObject| Some(source.movie.extraction.as_ref()?.zero());
    let first = sources.iter().find_map(zero);
    let begins = first.map(|first| {
        let earliest = sources.iter().filter_map(zero).map(|zero| distance(first, zero)).min().unwrap_or(0);
        first.wrapping_add_signed(earliest) % WRAP
    });
    let unshared = || origin(sources).map_or(0, |millis| millis.unsigned_abs().saturating_mul(MILLI) % WRAP);
    let result = begins.unwrap_or_else(unshared);
    for (place, source) in sources.iter_mut().enumerate() {
        let later = zero(source).zip(begins).map_or(0, |(zero, begins)| distance(begins, zero).unsigned_abs());
        let name = names.get(place).and_then(|name| name.as_deref());
        if later > 0 || name.is_some() {
            source.movie = Arc::new(source.movie.later(later, name));
        }
    }
    result
}

/// Returns the ticks from one timestamp to another, at most half a wrap either way.
fn distance(from: u64, to: u64) -> i64 {
    let forth = (to.wrapping_sub(from) % WRAP).cast_signed();
    if forth.unsigned_abs() >= WRAP / 2 { forth - WRAP.cast_signed() } else { forth }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_wrap() {
        assert_eq!((distance(5, 9), distance(9, 5)), (4, -4));
        assert_eq!((distance(WRAP - 5, 9), distance(9, WRAP - 5)), (14, -14));
        assert_eq!(distance(u64::MAX, 0), 1);
    }
}
