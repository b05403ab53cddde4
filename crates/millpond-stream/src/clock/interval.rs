//! The usual distance between frames.

use super::SECOND;

/// Frames of a block.
const BLOCK: u32 = 32;

/// The usual distance between frames: the least one of the last 32 to 64 frames.
#[derive(Debug, Default)]
pub(super) struct Interval {
    least: Option<i64>,
    before: Option<i64>,
    frames: u32,
}

impl Interval {
    /// The distance in nanoseconds, at most a second; 0 before the second frame.
    pub(super) fn get(&self) -> i64 {
        [self.least, self.before].into_iter().flatten().min().unwrap_or(0)
    }

    /// Takes the distance of a frame from the one before, in nanoseconds. Parts of one frame have none.
    pub(super) fn take(&mut self, distance: i64) {
        if distance <= 0 {
            return;
        }
        let distance = distance.min(SECOND);
        self.least = Some(self.least.map_or(distance, |least| least.min(distance)));
        self.frames += 1;
        if self.frames == BLOCK {
            self.before = self.least.take();
            self.frames = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_distance_of_late_counts() {
        let mut interval = Interval::default();
        assert_eq!(interval.get(), 0);
        (0..40).for_each(|turn| interval.take(if turn == 3 { 10 } else { 40 }));
        assert_eq!(interval.get(), 10, "of the block before");
        (0..60).for_each(|_| interval.take(40));
        interval.take(0);
        assert_eq!(interval.get(), 40);
    }
}
