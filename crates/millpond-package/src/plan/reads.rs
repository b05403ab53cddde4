//! Merges neighbouring reads.

use crate::{ObjectRange, PackageError};
use millpond_media::units::ByteRange;

/// Most bytes of a read that covers several units.
const MOST: u64 = 64 * 1024;

/// Returns how many of the first ranges one read can cover, and that read. The ranges must be consecutive in one
/// object, and at most 64 KiB together. `None` without ranges.
pub(crate) fn merge(mut ranges: impl Iterator<Item = ObjectRange>) -> Option<(usize, ObjectRange)> {
    let mut read = ranges.next()?;
    let mut count = 1;
    for next in ranges {
        let whole = ByteRange::new(read.range.start, next.range.end);
        if next.object != read.object || next.range.start != read.range.end || whole.len() > MOST {
            break;
        }
        read.range = whole;
        count += 1;
    }
    Some((count, read))
}

/// Takes the pending read that `bytes` answer, and returns the number of units it covers.
pub(crate) fn claim(pending: &mut Option<(usize, ObjectRange)>, bytes: &[u8]) -> Result<usize, PackageError> {
    let found = || format!("{} bytes", bytes.len());
    let Some((count, read)) = pending.take() else {
        return Err(PackageError::Call { found: found(), expected: "no bytes before the next read".to_owned() });
    };
    if read.range.len() == bytes.len() as u64 {
        return Ok(count);
    }
    let expected = format!("{} bytes: {} of object {}", read.range.len(), read.range, read.object.0);
    Err(PackageError::Call { found: found(), expected })
}

/// Returns an error where units remain to be read.
pub(crate) fn check_finished(left: usize) -> Result<(), PackageError> {
    if left == 0 {
        return Ok(());
    }
    Err(PackageError::Call { found: "the end".to_owned(), expected: format!("{left} more units") })
}

/// Returns, for each range, the lowest offset at which it or a later one begins.
pub(crate) fn floors(ranges: impl DoubleEndedIterator<Item = ByteRange>) -> Vec<u64> {
    let mut least = u64::MAX;
    let mut floors: Vec<u64> = ranges
        .rev()
        .map(|range| {
            if !range.is_empty() {
                least = least.min(range.start);
            }
            least
        })
        .collect();
    floors.reverse();
    floors
}

/// Returns, for each object, the range that covers all of its ranges, in order of first appearance.
pub(crate) fn cover(ranges: impl Iterator<Item = ObjectRange>) -> Vec<ObjectRange> {
    let mut covers: Vec<ObjectRange> = Vec::new();
    for next in ranges.filter(|r| !r.range.is_empty()) {
        match covers.iter_mut().find(|c| c.object == next.object) {
            Some(cover) => {
                let ByteRange { start, end } = cover.range;
                cover.range = ByteRange::new(start.min(next.range.start), end.max(next.range.end));
            }
            None => covers.push(next),
        }
    }
    covers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectIndex;

    fn range(object: u16, start: u64, end: u64) -> ObjectRange {
        ObjectRange { object: ObjectIndex(object), range: ByteRange::new(start, end) }
    }

    #[test]
    fn neighbours_are_read_together() {
        let ranges = [range(0, 10, 20), range(0, 20, 25), range(0, 26, 30)];
        assert_eq!(merge(ranges.into_iter()), Some((2, range(0, 10, 25))));
        assert_eq!(merge([range(0, 10, 20), range(1, 20, 25)].into_iter()), Some((1, range(0, 10, 20))));
        assert_eq!(merge([range(0, 0, MOST), range(0, MOST, MOST + 1)].into_iter()), Some((1, range(0, 0, MOST))));
        assert_eq!(merge([range(0, 0, MOST * 2)].into_iter()), Some((1, range(0, 0, MOST * 2))));
        assert_eq!(merge(std::iter::empty()), None);
    }

    #[test]
    fn a_floor_is_the_lowest_offset_to_come() {
        let ranges = [(40, 50), (10, 20), (0, 0), (30, 35), (60, 61), (5, 5)].map(|(a, b)| ByteRange::new(a, b));
        assert_eq!(floors(ranges.into_iter()), [10, 10, 30, 30, 60, u64::MAX]);
        assert!(floors(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_cover_is_one_range_an_object() {
        let ranges = [range(1, 50, 60), range(0, 5, 5), range(1, 10, 20), range(0, 7, 9)];
        assert_eq!(cover(ranges.into_iter()), [range(1, 10, 60), range(0, 7, 9)]);
    }
}
