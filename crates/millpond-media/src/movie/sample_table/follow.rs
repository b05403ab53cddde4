//! Frames of sound that follow one another, though their container states rounded times.

use super::SampleTableBuilder;
use crate::units::Timescale;

/// Longest overlap of a frame with those before, as a part of a second, by which it is only moved.
const OVERLAP: i64 = 10;

/// Differences between a stated time and the end of the frame before that move the frame to that end, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slack {
    late: i64,
    overlap: i64,
}

impl Slack {
    /// The slack of a track of sound whose times are rounded to `rounded` of its ticks.
    pub(crate) fn of_sound(timescale: Timescale, rounded: i64) -> Self {
        Self { late: rounded.saturating_add(1), overlap: i64::from(timescale.get()) / OVERLAP }
    }

    /// Moves frames however much they overlap.
    pub(crate) fn with_any_overlap(self) -> Self {
        Self { overlap: i64::MAX, ..self }
    }
}

impl SampleTableBuilder {
    /// Returns when a frame of sound is decoded that is stated at `start`: at the end of the frame before, if rounding explains
    /// the difference, or if the frames overlap by little.
    pub(crate) fn follow(&self, start: i64, slack: Slack) -> i64 {
        let late = start.saturating_sub(self.next_dts());
        let follows = late <= slack.late && late.saturating_neg() <= slack.overlap;
        if !self.is_empty() && follows { self.next_dts() } else { start }
    }
}
