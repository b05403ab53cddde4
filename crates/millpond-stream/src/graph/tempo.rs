//! Frame intervals and reordering of a running stream, for viewers who join it.

use crate::Frame;
use std::{collections::VecDeque, time::Duration};

/// Number of newest intervals that count.
const INTERVALS: usize = 32;
/// Key frames that must have passed: the first group of pictures is complete then.
const KEYS: u32 = 2;
/// A steady stream has no interval that exceeds the least one by this factor.
const UNSTEADY: u32 = 4;

/// Frame interval and reordering of the leading track, as the frames of the running epoch show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// Index of the track.
    pub track: u16,
    /// Least interval between the decode times of neighbouring frames; `None` where intervals vary widely.
    pub interval: Option<Duration>,
    /// Greatest time in ticks of the track by which a frame is decoded after its presentation; 0 where none is.
    pub reorder: i64,
}

/// Measures the [`Tempo`] of a stream.
#[derive(Debug, Default)]
pub(super) struct TempoMeter {
    track: u16,
    epoch: u32,
    keys: u32,
    reorder: i64,
    /// Number and decode time of the last frame.
    last: Option<(u32, Duration)>,
    /// The newest intervals, at most [`INTERVALS`].
    intervals: VecDeque<Duration>,
}

impl TempoMeter {
    /// Takes a frame of the leading track, which has `timescale` ticks a second.
    pub(super) fn take(&mut self, frame: &Frame, timescale: u32) {
        if (self.track, self.epoch) != (frame.track, frame.epoch) {
            *self = Self { track: frame.track, epoch: frame.epoch, ..Self::default() };
        }
        self.keys = self.keys.saturating_add(frame.is_sync.into());
        self.reorder = frame.decoded(timescale).saturating_sub(frame.pts).max(self.reorder);
        // The interval across a missing frame is none.
        if let Some((number, due)) = self.last
            && frame.number == number.wrapping_add(1)
        {
            if self.intervals.len() == INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(frame.due.saturating_sub(due));
        }
        self.last = Some((frame.number, frame.due));
    }

    /// What has been measured; `None` before a group of pictures is complete.
    pub(super) fn tempo(&self) -> Option<Tempo> {
        let least = self.intervals.iter().min().copied().filter(|least| !least.is_zero());
        let longest = self.intervals.iter().max().copied().unwrap_or_default();
        let interval = least.filter(|least| longest <= least.saturating_mul(UNSTEADY));
        (self.keys >= KEYS).then_some(Tempo { track: self.track, interval, reorder: self.reorder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const TIMESCALE: u32 = 1000;

    /// A frame with its decode and presentation times in milliseconds.
    fn frame(number: u32, due: u64, pts: i64, is_sync: bool) -> Frame {
        let due = Duration::from_millis(due);
        Frame { track: 0, number, due, pts, epoch: 0, is_sync, is_disposable: false, data: Bytes::new() }
    }

    fn measured(frames: impl IntoIterator<Item = Frame>) -> Option<Tempo> {
        let mut meter = TempoMeter::default();
        frames.into_iter().for_each(|frame| meter.take(&frame, TIMESCALE));
        meter.tempo()
    }

    #[test]
    fn nothing_is_known_before_a_group_is_complete() {
        let picture = |number: u32| frame(number, u64::from(number) * 40, i64::from(number) * 40, number % 10 == 0);
        assert_eq!(measured((0..10).map(picture)), None);
        let known = Tempo { track: 0, interval: Some(Duration::from_millis(40)), reorder: 0 };
        assert_eq!(measured((0..11).map(picture)), Some(known));
    }

    #[test]
    fn reordering_is_the_greatest_one() {
        let times = [(0, 0), (40, 120), (80, 40), (120, 80), (160, 160)];
        let frames = (0..).zip(times).map(|(number, (due, pts))| frame(number, due, pts, number % 4 == 0));
        assert_eq!(measured(frames).unwrap().reorder, 40);
    }

    #[test]
    fn slow_streams_are_steady_and_those_that_pause_are_not() {
        let at = |times: &[u64]| {
            let all = (0..).zip(times);
            measured(all.map(|(number, ms)| frame(number, *ms, *ms as i64, number % 2 == 0))).unwrap().interval
        };
        assert_eq!(at(&[0, 1000, 2000]), Some(Duration::from_secs(1)));
        assert_eq!(at(&[0, 40, 70, 120]), Some(Duration::from_millis(30)));
        assert_eq!(at(&[0, 40, 80, 2000]), None);
        assert_eq!(at(&[0, 0, 0]), None, "times that stand still");
    }

    #[test]
    fn old_intervals_and_missing_frames_do_not_count() {
        let times = [0, 5000].into_iter().chain((1..=INTERVALS as u64).map(|number| 5000 + number * 40));
        let frames = (0..).zip(times).map(|(number, ms)| frame(number, ms, ms as i64, true));
        assert_eq!(measured(frames).unwrap().interval, Some(Duration::from_millis(40)));
        let frames = [(0, 0), (1, 40), (9, 360), (10, 400)];
        let frames = frames.map(|(number, ms)| frame(number, ms, ms as i64, true));
        assert_eq!(measured(frames).unwrap().interval, Some(Duration::from_millis(40)));
    }

    #[test]
    fn an_epoch_begins_anew() {
        let picture = |number: u32| frame(number, u64::from(number) * 40, 0, true);
        let other = Frame { epoch: 1, ..picture(5) };
        assert_eq!(measured((0..5).map(picture).chain([other.clone()])), None);
        let following = Frame { epoch: 1, pts: 240, ..picture(6) };
        assert_eq!(measured((0..5).map(picture).chain([other, following])).unwrap().reorder, 200);
    }
}
