//! Delays of frames: how much later they arrive than their stream time tells.

use super::{SECOND, drift::WINDOW};

/// Windows in which a lower delay is the usual one: sources begin with what they have buffered.
const SETTLING: u32 = 6;
/// No clock drifts that far in a window.
const STEP: i64 = SECOND / 50;
/// Errors that slow corrections would take too long for.
const TOO_MUCH: i64 = SECOND;
/// Windows after which frames that arrive late are not late but slow.
const PATIENCE: u32 = 6;

/// Least delay of a window without frames.
const UNKNOWN: i64 = i64::MAX;

/// The findings of a window of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Frames arrive later than usual by this time, in nanoseconds: corrected slowly.
    Error(i64),
    /// The error is too great for that.
    Lost,
}

/// Delays of one epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    ends: i64,
    /// The least one of the window: what remains when queues are empty.
    least: i64,
    /// The usual one.
    usual: i64,
    /// Error of the last window.
    error: i64,
    windows: u32,
    /// Number of last windows that were too late.
    late: u32,
}

impl Delays {
    /// Begins with the first frame of an epoch.
    pub(super) fn new(arrival: i64, delay: i64) -> Self {
        let ends = arrival.saturating_add(WINDOW);
        Self { ends, least: delay, usual: delay, error: 0, windows: 0, late: 0 }
    }

    /// Takes the delay of a frame. Returns what the window tells that ended before it.
    pub(super) fn take(&mut self, arrival: i64, delay: i64) -> Option<Verdict> {
        if arrival < self.ends {
            self.least = self.least.min(delay);
            return None;
        }
        let least = std::mem::replace(&mut self.least, delay);
        self.ends = arrival.saturating_add(WINDOW);
        (least != UNKNOWN).then(|| self.window(least))
    }

    /// The usual delay.
    pub(super) fn usual(&self) -> i64 {
        self.usual
    }

    /// Accepts the error of the last window where it was too great. Returns by how much stream time must be moved ahead for
    /// that; times never fall, so a source that is ahead stays ahead.
    pub(super) fn accept(&mut self) -> i64 {
        if !self.is_lost() {
            return 0;
        }
        let ahead = self.error.max(0);
        self.usual = self.usual.saturating_add(self.error.min(0));
        // Delays known so far are those before the move.
        self.least = UNKNOWN;
        (self.error, self.late) = (0, 0);
        ahead
    }

    fn window(&mut self, least: i64) -> Verdict {
        self.windows = self.windows.saturating_add(1);
        let error = least.saturating_sub(self.usual);
        if self.windows == 1 || (self.windows <= SETTLING && error < -STEP) {
            (self.usual, self.error) = (least, 0);
            return Verdict::Error(0);
        }
        self.error = error;
        self.late = if error > TOO_MUCH { self.late + 1 } else { 0 };
        if self.is_lost() { Verdict::Lost } else { Verdict::Error(error) }
    }

    fn is_lost(&self) -> bool {
        self.error < -TOO_MUCH || self.late >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives windows of one frame each; a frame's delay is told by the window that the next one ends.
    fn verdicts(delays: &[i64]) -> Vec<Verdict> {
        let mut all = Delays::new(0, delays[0]);
        let later = delays[1..].iter().chain([&0]);
        (1..).zip(later).map(|(turn, delay)| all.take(turn * WINDOW, *delay).unwrap()).collect()
    }

    #[test]
    fn the_least_delay_of_a_window_counts() {
        let mut delays = Delays::new(0, 0);
        assert_eq!(delays.take(WINDOW, 9), Some(Verdict::Error(0)));
        assert_eq!(delays.take(WINDOW + 1, 5), None);
        assert_eq!(delays.take(WINDOW + 2, 7), None);
        assert_eq!(delays.take(2 * WINDOW, 1), Some(Verdict::Error(5)));
    }

    #[test]
    fn sources_begin_with_what_they_have() {
        let ms = SECOND / 1000;
        let mut delays = Delays::new(0, 0);
        for (turn, delay) in [(1, -2000), (2, -3000), (3, -3010), (4, -2990)] {
            delays.take(turn * WINDOW, delay * ms);
        }
        assert_eq!(delays.take(5 * WINDOW, 0), Some(Verdict::Error(10 * ms)), "the usual one is -3000");
        assert_eq!(delays.usual(), -3000 * ms);
    }

    #[test]
    fn a_stall_is_waited_for_but_a_slow_source_is_not() {
        let late = 2 * SECOND;
        let stall = verdicts(&[0, 0, late, late, late, late, late, 0, 0]);
        assert!(stall.iter().all(|verdict| matches!(verdict, Verdict::Error(_))));
        assert_eq!(verdicts(&[0, late, late, late, late, late, late])[6], Verdict::Lost);
        let mut early = vec![0; 8];
        early.push(-late);
        assert_eq!(verdicts(&early)[8], Verdict::Lost);
    }

    #[test]
    fn what_is_accepted_is_usual() {
        let mut delays = Delays::new(0, 0);
        for turn in 1..9 {
            delays.take(turn * WINDOW, if turn < 8 { 0 } else { -2 * SECOND });
        }
        assert_eq!(delays.take(9 * WINDOW, -2 * SECOND), Some(Verdict::Lost));
        assert_eq!((delays.accept(), delays.usual()), (0, -2 * SECOND));
        for turn in 10..17 {
            delays.take(turn * WINDOW, 0);
        }
        assert_eq!((delays.accept(), delays.usual()), (2 * SECOND, -2 * SECOND), "late ones move the time");
    }
}
