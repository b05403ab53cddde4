//! When a viewer reads which byte.

use super::Seconds;

/// The byte-to-time map of what a viewer reads next: straight between its points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Offsets and seconds, both rising.
    points: Vec<(u64, Seconds)>,
}

impl Course {
    /// From the index: offsets in an object and the seconds at which they are read. What doesn't rise is left out.
    pub fn new(points: impl IntoIterator<Item = (u64, Seconds)>) -> Self {
        let mut course = Self::default();
        for (offset, time) in points {
            if course.points.last().is_none_or(|last| offset > last.0 && time >= last.1) {
                course.points.push((offset, time));
            }
        }
        course
    }

    /// At one rate, in bytes a second, from time 0 on.
    pub fn constant(from: u64, to: u64, rate: f64) -> Self {
        Self::new([(from, 0.0), (to, to.saturating_sub(from) as f64 / rate.max(1e-9))])
    }

    /// The first byte.
    pub fn start(&self) -> u64 {
        self.points.first().map_or(0, |first| first.0)
    }

    /// The byte behind the last.
    pub fn end(&self) -> u64 {
        self.points.last().map_or(0, |last| last.0)
    }

    /// When a byte is read; those outside as the first or the last.
    pub fn time_at(&self, byte: u64) -> Seconds {
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
    fn times_are_straight_between_points_and_stay_at_the_ends() {
        let course = Course::new([(100, 2.0), (200, 3.0), (150, 9.0), (300, 2.5), (600, 5.0)]);
        assert_eq!((course.start(), course.end()), (100, 600));
        for (byte, time) in [(0, 2.0), (100, 2.0), (150, 2.5), (200, 3.0), (400, 4.0), (600, 5.0), (900, 5.0)] {
            assert_eq!(course.time_at(byte), time, "{byte}");
        }
        assert_eq!(Course::constant(50, 250, 100.0).time_at(100), 0.5);
        assert_eq!(Course::default().time_at(7), 0.0);
    }
}
