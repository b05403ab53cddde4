//! The segments of a title, known before its media is.

use std::time::Duration;

/// Longest nominal segment.
const LONGEST: Duration = Duration::from_secs(20);
/// Nominal segment of titles whose groups of pictures differ: encoders begin a group at least every 250 pictures by default.
const IRREGULAR: Duration = Duration::from_secs(10);
/// Difference between two groups of pictures that count as equal.
const EQUAL: Duration = Duration::from_millis(20);
/// Time by which a key frame may precede the nominal beginning of its segment: servers round times.
pub(super) const EARLY: Duration = Duration::from_millis(25);

/// Nominal segments of a title: number `k`, from 0, lasts from `k` times [`segment`](Self::segment) to the next one.
///
/// It holds the groups of pictures whose key frames lie in that time, whatever the order in which segments are fetched. The last
/// segment is the nearest to the end that lasts at least half as long as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Nominal duration of a segment.
    pub(super) segment: Duration,
    /// Length of the title.
    pub(super) length: Duration,
}

impl Grid {
    /// Returns the nominal duration of segments: at least `least`. `groups` are the durations of the first groups of pictures.
    pub(super) fn segment_of(least: Duration, groups: &[Duration]) -> Duration {
        let group = match groups {
            [first, second, ..] if first.abs_diff(*second) <= EQUAL && !first.is_zero() => *first,
            _ => return least.max(IRREGULAR),
        };
        let count = least.as_nanos().div_ceil(group.as_nanos()).max(1);
        let whole = group.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        if whole <= LONGEST { whole } else { group.min(LONGEST) }
    }

    /// Returns the number of segments.
    pub(super) fn count(self) -> u64 {
        let (length, segment) = (self.length.as_nanos(), self.segment.as_nanos().max(1));
        u64::try_from((length + segment / 2) / segment).unwrap_or(u64::MAX).max(1)
    }

    /// Returns the nominal beginning of a segment.
    pub(super) fn start(self, number: u64) -> Duration {
        let nanos = self.segment.as_nanos().saturating_mul(number.into());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the nominal duration of a segment.
    pub(super) fn duration(self, number: u64) -> Duration {
        let is_last = number + 1 >= self.count();
        if is_last { self.length.saturating_sub(self.start(number)) } else { self.segment }
    }

    /// Returns the number of whole segments in a time.
    pub(super) fn within(self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos() / self.segment.as_nanos().max(1)).unwrap_or(u64::MAX)
    }

    /// Returns the segment of a key frame at a time.
    pub(super) fn of(self, time: Duration) -> u64 {
        let number = time.saturating_add(EARLY).as_nanos() / self.segment.as_nanos().max(1);
        u64::try_from(number).unwrap_or(u64::MAX).min(self.count() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn segments_are_whole_groups_where_groups_are_equal() {
        for (groups, expected) in [
            (&[1.0, 1.0][..], 4.0),
            (&[2.002, 2.002], 4.004),
            (&[3.0, 3.01], 6.0),
            (&[12.0, 12.0], 12.0),
            (&[30.0, 30.0], 20.0),
            (&[0.4, 8.0], 10.0),
            (&[2.0], 10.0),
            (&[0.0, 0.0], 10.0),
        ] {
            let groups: Vec<_> = groups.iter().copied().map(seconds).collect();
            assert_eq!(Grid::segment_of(seconds(4.0), &groups), seconds(expected), "{groups:?}");
        }
    }

    #[test]
    fn the_last_segment_takes_a_short_rest() {
        let grid = |length| Grid { segment: seconds(4.0), length: seconds(length) };
        for (length, count, last) in [(120.192, 30, 4.192), (122.0, 31, 2.0), (121.9, 30, 5.9), (0.5, 1, 0.5)] {
            let grid = grid(length);
            assert_eq!((grid.count(), grid.duration(count - 1)), (count, seconds(last)), "{length}");
        }
        let film = grid(120.192);
        assert_eq!([film.within(seconds(60.0)), film.within(seconds(3.9))], [15, 0]);
        assert_eq!([film.of(seconds(3.9)), film.of(seconds(3.98)), film.of(seconds(500.0))], [0, 1, 29]);
    }
}
