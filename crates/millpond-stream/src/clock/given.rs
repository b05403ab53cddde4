//! Times given to the last frames of a track.

use std::collections::VecDeque;

/// Frames that are kept: more than frames are reordered by.
const KEPT: usize = 32;

/// Source times of the last frames of a track, each with the stream time that it was given.
///
/// Corrections of clocks keep a bounded past. A frame that arrives out of order after long finds another correction than its
/// neighbours had; their times bound its time.
#[derive(Debug, Default)]
pub(super) struct Given(VecDeque<(i64, i64)>);

impl Given {
    /// Returns the stream time of a frame: `time`, unless a frame of a lower source time has a greater stream time, or a frame of
    /// a greater source time has a lower one.
    pub(super) fn bound(&self, source: i64, time: i64) -> i64 {
        let of = |is_bound: fn(i64, i64) -> bool| {
            self.0.iter().filter(move |(known, _)| is_bound(*known, source)).map(|(_, time)| *time)
        };
        let most = of(|known, source| known >= source).min();
        let time = most.map_or(time, |most| time.min(most));
        of(|known, source| known <= source).max().map_or(time, |least| time.max(least))
    }

    /// Takes the stream time that a frame was given.
    pub(super) fn push(&mut self, source: i64, time: i64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((source, time));
    }

    /// Moves all frames in both times.
    pub(super) fn shift(&mut self, by: i64) {
        for (source, time) in &mut self.0 {
            *source = source.saturating_add(by);
            *time = time.saturating_add(by);
        }
    }

    /// Forgets all frames: others have nothing to do with them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_bound_a_time() {
        let mut given = Given::default();
        assert_eq!(given.bound(7, -3), -3);
        given.push(10, 110);
        given.push(40, 140);
        given.push(20, 120);
        let bound = |source, time| given.bound(source, time);
        assert_eq!([bound(30, 100), bound(30, 130), bound(30, 150)], [120, 130, 140]);
        assert_eq!([bound(5, 200), bound(50, 0), bound(20, 0), bound(20, 200)], [110, 140, 120, 120]);
        given.shift(5);
        assert_eq!((given.bound(45, 0), given.bound(45, 200)), (145, 145));
        (0..KEPT as i64).for_each(|turn| given.push(1000 + turn, 1000 + turn));
        assert_eq!(given.bound(45, 0), 0, "those of long ago are forgotten");
        given.clear();
        assert_eq!(given.bound(2000, 0), 0);
    }
}
