//! The byte-to-time map of a viewer.

use super::Seconds;
use std::ops::Range;

/// Consecutive bytes of a course.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoursePart {
    /// Number of bytes.
    pub(crate) len: u64,
    /// Time at which the first byte is needed.
    pub(crate) first: Seconds,
    /// Time at which the last byte is needed.
    pub(crate) last: Seconds,
}

/// The times at which a viewer will read the bytes of an object: linear between its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Offsets in bytes and times in seconds, both rising.
    points: Vec<(u64, Seconds)>,
    /// Whether all bytes between two points are needed at the time of the first.
    whole: bool,
}

impl Course {
    /// Creates a course of offsets in an object and the times at which they are read. Points that don't rise are left out.
    pub fn new(points: impl IntoIterator<Item = (u64, Seconds)>) -> Self {
        let mut course = Self::default();
        for (offset, time) in points {
            if course.points.last().is_none_or(|last| offset > last.0 && time >= last.1) {
                course.points.push((offset, time));
            }
        }
        course
    }

    /// Creates a course at a constant rate, in bytes a second, from time 0 on.
    pub fn constant(from: u64, to: u64, rate: f64) -> Self {
        Self::new([(from, 0.0), (to, to.saturating_sub(from) as f64 / rate.max(1e-9))])
    }

    /// Marks all bytes between two points as needed at the time of the first, as by a viewer that requests whole
    /// segments.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Returns whether all bytes between two points are needed at the time of the first.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns how many segments the segment of `later` comes after the one of `byte`; `None` for a viewer that doesn't request
    /// whole segments.
    pub(crate) fn segments_between(&self, byte: u64, later: u64) -> Option<usize> {
        let segment = |byte| self.points.partition_point(|point| point.0 <= byte);
        self.whole.then(|| segment(later).saturating_sub(segment(byte)))
    }

    /// Splits a range where its bytes are needed at different times.
    pub(crate) fn parts(&self, range: Range<u64>) -> impl Iterator<Item = CoursePart> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let start = std::mem::replace(&mut at, range.end);
            if !self.whole {
                let (first, last) = (self.time_at(start), self.time_at(range.end));
                return Some(CoursePart { len: range.end - start, first, last });
            }
            let next = self.points.partition_point(|point| point.0 <= start);
            at = self.points.get(next).map_or(range.end, |point| point.0.min(range.end));
            let needed = next.checked_sub(1).map_or(0.0, |last| self.points[last].1);
            Some(CoursePart { len: at - start, first: needed, last: needed })
        })
    }

    /// Returns the first byte.
    pub(crate) fn start(&self) -> u64 {
        self.points.first().map_or(0, |first| first.0)
    }

    /// Returns the byte behind the last.
    pub(crate) fn end(&self) -> u64 {
        self.points.last().map_or(0, |last| last.0)
    }

    /// Returns the byte that is read at a time: the first one from it on. Outside of the course it is that of the nearer end.
    pub(crate) fn byte_at(&self, time: Seconds) -> u64 {
        let next = self.points.partition_point(|point| point.1 < time);
        match (next.checked_sub(1).and_then(|last| self.points.get(last)), self.points.get(next)) {
            (Some(a), Some(b)) => a.0 + ((b.0 - a.0) as f64 * (time - a.1) / (b.1 - a.1)) as u64,
            (Some(end), None) | (None, Some(end)) => end.0,
            (None, None) => 0,
        }
    }

    /// Returns the time at which a byte is read. Bytes outside of the course have the time of its nearer end.
    pub(crate) fn time_at(&self, byte: u64) -> Seconds {
        let next = self.points.partition_point(|point| point.0 <= byte);
        match (next.checked_sub(1).and_then(|last| self.points.get(last)), self.points.get(next)) {
            (Some(a), Some(b)) => a.1 + (byte - a.0) as f64 / (b.0 - a.0) as f64 * (b.1 - a.1),
            (Some(end), None) | (None, Some(end)) => end.1,
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_linear_between_points_and_constant_outside() {
        let course = Course::new([(100, 2.0), (200, 3.0), (150, 9.0), (300, 2.5), (600, 5.0)]);
        assert_eq!((course.start(), course.end()), (100, 600));
        for (byte, time) in [(0, 2.0), (100, 2.0), (150, 2.5), (200, 3.0), (400, 4.0), (600, 5.0), (900, 5.0)] {
            assert_eq!(course.time_at(byte), time, "{byte}");
        }
        for (time, byte) in [(1.0, 100), (2.0, 100), (2.5, 150), (3.0, 200), (4.0, 400), (5.0, 600), (9.0, 600)] {
            assert_eq!(course.byte_at(time), byte, "{time}");
        }
        assert_eq!(Course::constant(50, 250, 100.0).time_at(100), 0.5);
        assert_eq!(Course::default().byte_at(7.0), 0);
        assert_eq!(Course::default().time_at(7), 0.0);
        let part = |(len, first, last)| CoursePart { len, first, last };
        assert_eq!(course.parts(150..400).collect::<Vec<_>>(), [part((250, 2.5, 4.0))]);
        let parts: Vec<_> = course.whole().parts(150..700).collect();
        assert_eq!(parts, [(50, 2.0, 2.0), (400, 3.0, 3.0), (100, 5.0, 5.0)].map(part));
    }
}
