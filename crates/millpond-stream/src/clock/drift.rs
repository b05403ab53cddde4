//! The drift of a source's clock against this machine's.

use super::SECOND;
use std::collections::VecDeque;

/// Time over which the least delay is taken, in nanoseconds.
pub(super) const WINDOW: i64 = 5 * SECOND;
/// Greatest correction, in parts per million.
const MOST: f64 = 500.0;
/// Greatest change of the correction in a second, in parts per million.
const CHANGE: f64 = 20.0;
/// Correction for each millisecond of error, in parts per million. With [`INTEGRAL`], errors fade with a time constant of 100 s.
const PROPORTIONAL: f64 = 20.0;
/// Growth of the correction in a second for each millisecond of error, in parts per million.
const INTEGRAL: f64 = 0.1;
/// Errors up to this many milliseconds are noise: clocks that agree are left alone.
const NOISE: f64 = 2.0;
/// Pieces of the correction that are kept: frames that arrive late find the one of their time.
const PIECES: usize = 32;

/// Speed of the correction, by a controller with a proportional and an integral part.
#[derive(Clone, Copy, Debug, Default)]
struct Controller {
    integral: f64,
    /// In parts per million.
    target: f64,
}

impl Controller {
    /// Takes the error at the end of a window, in nanoseconds.
    fn take(&mut self, error: i64) {
        let error = error as f64 / 1e6;
        let error = error.signum() * (error.abs() - NOISE).max(0.0);
        let integral = (self.integral + INTEGRAL * error * (WINDOW / SECOND) as f64).clamp(-MOST, MOST);
        let wanted = PROPORTIONAL * error + integral;
        self.target = wanted.clamp(-MOST, MOST);
        // At its limit the controller would sum up errors that it can't influence.
        if wanted == self.target || integral.abs() < self.integral.abs() {
            self.integral = integral;
        }
    }
}

/// A stretch of time with one speed.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    from: i64,
    /// Correction at `from`, in nanoseconds.
    offset: i64,
    /// In parts per million.
    speed: f64,
}

impl Piece {
    fn at(&self, time: i64) -> i64 {
        self.offset.saturating_add((time.saturating_sub(self.from) as f64 * self.speed / 1e6) as i64)
    }
}

/// The correction of a drifting clock: a continuous function of its time. With it, times never fall.
#[derive(Debug)]
pub(super) struct Correction {
    controller: Controller,
    /// By rising times; never empty.
    pieces: VecDeque<Piece>,
}

impl Correction {
    /// No correction so far.
    pub(super) fn new() -> Self {
        Self { controller: Controller::default(), pieces: VecDeque::from([Piece::default()]) }
    }

    /// Restarts at a time, without an offset. What is known of the drift stays.
    pub(super) fn restart(&mut self, from: i64) {
        let speed = self.speed();
        self.pieces.clear();
        self.pieces.push_back(Piece { from, offset: 0, speed });
    }

    /// The correction at a time, in nanoseconds.
    pub(super) fn at(&self, time: i64) -> i64 {
        let piece = self.pieces.iter().rev().find(|piece| piece.from <= time);
        piece.or(self.pieces.front()).map_or(0, |piece| piece.at(time))
    }

    /// Takes the error at the end of a window: by how much frames arrive later than their times tell, in nanoseconds.
    pub(super) fn take(&mut self, error: i64) {
        self.controller.take(error);
    }

    /// Approaches the speed that is wanted, once a second. `time` is the greatest one so far.
    pub(super) fn advance(&mut self, time: i64) {
        let Some(last) = self.pieces.back().copied() else { return };
        let passed = time.saturating_sub(last.from);
        if passed < SECOND || last.speed == self.controller.target {
            return;
        }
        let speed = last.speed + (self.controller.target - last.speed).clamp(-CHANGE, CHANGE);
        if self.pieces.len() == PIECES {
            self.pieces.pop_front();
        }
        self.pieces.push_back(Piece { from: time, offset: last.at(time), speed });
    }

    /// Its speed in parts per million.
    pub(super) fn speed(&self) -> f64 {
        self.pieces.back().map_or(0.0, |piece| piece.speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_left_alone() {
        let mut correction = Correction::new();
        for turn in 0..100 {
            correction.take(if turn % 2 == 0 { 1_900_000 } else { -1_900_000 });
            correction.advance(turn * SECOND);
        }
        assert_eq!((correction.at(100 * SECOND), correction.speed()), (0, 0.0));
    }

    #[test]
    fn the_speed_changes_slowly_and_stays_within_bounds() {
        let mut correction = Correction::new();
        let (mut speed, mut offset) = (0.0, 0);
        for turn in 1..1000 {
            correction.take(if turn < 500 { SECOND } else { -SECOND });
            correction.advance(turn * SECOND);
            let (next, after) = (correction.speed(), correction.at(turn * SECOND));
            assert!((next - speed).abs() <= 20.0 && next.abs() <= 500.0, "{turn}: {speed} to {next}");
            assert!((after - offset).abs() <= 500_001, "{turn}: continuous");
            (speed, offset) = (next, after);
        }
        assert_eq!(speed, -500.0);
        // The controller has not summed up what it could not influence.
        for turn in 1000..1060 {
            correction.take(0);
            correction.advance(turn * SECOND);
        }
        assert!(correction.speed().abs() < 100.0, "{}", correction.speed());
    }

    #[test]
    fn late_frames_find_the_correction_of_their_time() {
        let mut correction = Correction::new();
        correction.take(-50_000_000);
        let before: Vec<i64> = (0..10)
            .map(|turn| {
                correction.advance(turn * SECOND);
                correction.at(turn * SECOND)
            })
            .collect();
        let again: Vec<i64> = (0..10).map(|turn| correction.at(turn * SECOND)).collect();
        assert_eq!(before, again);
        assert!(again.is_sorted_by(|a, b| a >= b) && again[9] < -500_000, "{again:?}");
    }
}
