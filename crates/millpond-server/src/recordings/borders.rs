//! The times at which a recording goes on in another file.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// Whether a file ends before a key frame. The file began at the wall time `began`, and holds `lasts` of media. The key frame has the wall
/// time `at`.
///
/// Files end at multiples of `length` since the Unix epoch, so that those of an hour begin at full hours. A clock that is set back does not
/// make a file longer than twice the length, and one that is set forward ends the file at once.
pub(super) fn ends(length: Duration, began: Duration, at: Duration, lasts: Duration) -> bool {
    let slot = |wall: Duration| wall.as_nanos() / length.as_nanos().max(1);
    if at < began {
        return lasts >= length;
    }
    slot(at) != slot(began) || lasts >= length.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hour: u64, minute: u64, second: u64) -> Duration {
        // 2026-11-22.
        Duration::from_secs(20_779 * 86_400 + hour * 3600 + minute * 60 + second)
    }

    #[test]
    fn files_end_at_borders_of_the_wall_clock() {
        let lasts = |from: Duration, to: Duration| ends(HOUR, from, to, to.saturating_sub(from));
        assert!(!lasts(at(9, 20, 0), at(9, 59, 59)));
        assert!(lasts(at(9, 20, 0), at(10, 0, 0)));
        assert!(!lasts(at(10, 0, 0), at(10, 59, 59)));
        assert!(lasts(at(10, 0, 1), at(11, 0, 1)));
        // Lengths that divide no day have borders too.
        assert!(ends(Duration::from_secs(7), Duration::from_secs(13), Duration::from_secs(14), Duration::from_secs(1)));
    }

    #[test]
    fn a_clock_that_jumps_bounds_the_file() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        // Set back: the file ends after its length of media, whatever the clock says.
        assert!(!ends(HOUR, at(10, 0, 0), at(8, 30, 0), minutes(30)));
        assert!(ends(HOUR, at(10, 0, 0), at(9, 0, 0), minutes(60)));
        // Set back within the slot.
        assert!(!ends(HOUR, at(10, 0, 0), at(10, 10, 0), minutes(119)));
        assert!(ends(HOUR, at(10, 0, 0), at(10, 10, 0), minutes(120)));
        // Set forward.
        assert!(ends(HOUR, at(10, 0, 0), at(17, 0, 0), minutes(1)));
        assert!(ends(Duration::ZERO, at(10, 0, 0), at(10, 0, 1), minutes(1)));
    }
}
