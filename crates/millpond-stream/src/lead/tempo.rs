//! Frame intervals and reordering of a running stream, for viewers that join it.

use crate::{Format, Frame, frame::ticks};
use millpond_media::{PictureSequence, codec::Codec};
use std::{collections::VecDeque, ops::RangeInclusive, time::Duration};

/// Number of newest intervals that count.
const INTERVALS: usize = 32;
/// Key frames that must have passed: the first group of pictures is complete then.
const KEYS: u32 = 2;
/// Stated intervals outside of this range count as none.
const CREDIBLE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(1);
/// Longest time that a stated interval lets a picture last. A picture that lasts too short is right: the next one makes up for it.
const LONGEST: Duration = Duration::from_millis(100);

/// Frame interval and reordering of the leading track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tempo {
    /// Index of the track.
    pub track: u16,
    /// Least interval of late between the decode times of neighbouring frames; more than 0. `None` where neither frames nor the
    /// format tell it.
    pub interval: Option<Duration>,
    /// Greatest time in ticks of the track by which a frame is decoded after its presentation; 0 where none is. A greater value
    /// than the frames' does no harm.
    pub reorder: i64,
}

impl Tempo {
    /// What the format of a track states before any frame has arrived. `None` where its pictures may have any order.
    ///
    /// It is a claim of the source. The interval is at most [`LONGEST`], and the reordering at most 16 s.
    pub(crate) fn stated(track: u16, format: &Format) -> Option<Self> {
        let codec = &format.track.codec;
        let (depth, interval) = match codec {
            Codec::Avc(_) | Codec::Hevc(_) => {
                let sequence = PictureSequence::of(codec)?;
                (sequence.reorder_depth?, sequence.frame_rate.and_then(interval_of))
            }
            // Temporal units of AV1 and superframes of VP9 have the order of presentation.
            Codec::Av1(_) | Codec::Vp9(_) => (0, None),
            _ if format.is_video() => return None,
            _ => (0, codec.samples_per_frame().and_then(|samples| interval_of((format.timescale(), samples)))),
        };
        let reorder = ticks(interval.unwrap_or(LONGEST) * u32::from(depth), format.timescale());
        Some(Self { track, interval: interval.map(|interval| interval.min(LONGEST)), reorder })
    }
}

/// Converts a stated rate, a fraction of frames per second, to an interval; `None` where it is hardly true.
fn interval_of((frames, seconds): (u32, u32)) -> Option<Duration> {
    let nanos = (u64::from(seconds) * 1_000_000_000).checked_div(frames.into())?;
    Some(Duration::from_nanos(nanos)).filter(|interval| CREDIBLE.contains(interval))
}

/// Measures the [`Tempo`] of a stream.
#[derive(Debug, Default)]
pub(crate) struct TempoMeter {
    track: u16,
    epoch: u32,
    keys: u32,
    reorder: i64,
    /// Decode time of the last frame.
    last: Option<Duration>,
    /// The newest intervals that are more than 0, at most [`INTERVALS`].
    intervals: VecDeque<Duration>,
}

impl TempoMeter {
    /// Takes a frame of the leading track, which has `timescale` ticks a second.
    pub(crate) fn take(&mut self, frame: &Frame, timescale: u32) {
        if (self.track, self.epoch) != (frame.track, frame.epoch) {
            *self = Self { track: frame.track, epoch: frame.epoch, ..Self::default() };
        }
        self.keys = self.keys.saturating_add(frame.is_sync.into());
        self.reorder = frame.decoded(timescale).saturating_sub(frame.pts).max(self.reorder);
        let last = self.last.replace(frame.due);
        let interval = last.map_or(Duration::ZERO, |last| frame.due.saturating_sub(last));
        if !interval.is_zero() {
            if self.intervals.len() == INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(interval);
        }
    }

    /// The measured tempo; `None` before a group of pictures is complete.
    pub(crate) fn measured(&self) -> Option<Tempo> {
        self.least().filter(|_| self.keys >= KEYS).map(|interval| self.with(Some(interval)))
    }

    /// The measured tempo, or the `expected` tempo unless frames contradict it.
    pub(crate) fn tempo(&self, expected: Option<Tempo>) -> Option<Tempo> {
        self.measured().or_else(|| {
            let expected = expected.filter(|expected| expected.track == self.track)?;
            let interval = self.least().into_iter().chain(expected.interval).min();
            Some(Tempo { reorder: self.reorder.max(expected.reorder), ..self.with(interval) })
        })
    }

    /// The least interval so far.
    fn least(&self) -> Option<Duration> {
        self.intervals.iter().min().copied()
    }

    fn with(&self, interval: Option<Duration>) -> Tempo {
        Tempo { track: self.track, interval, reorder: self.reorder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use millpond_media::Importance;

    const TIMESCALE: u32 = 1000;

    /// A frame with its decode and presentation times in milliseconds.
    fn frame(number: u32, due: u64, pts: i64, is_sync: bool) -> Frame {
        let due = Duration::from_millis(due);
        Frame { track: 0, number, due, pts, epoch: 0, is_sync, importance: Importance::BASE, data: Bytes::new() }
    }

    fn measured(frames: impl IntoIterator<Item = Frame>) -> Option<Tempo> {
        let mut meter = TempoMeter::default();
        frames.into_iter().for_each(|frame| meter.take(&frame, TIMESCALE));
        meter.measured()
    }

    #[test]
    fn nothing_is_known_before_a_group_is_complete() {
        let picture =
            |number: u32| frame(number, u64::from(number) * 40, i64::from(number) * 40, number.is_multiple_of(10));
        assert_eq!(measured((0..10).map(picture)), None);
        let known = Tempo { track: 0, interval: Some(Duration::from_millis(40)), reorder: 0 };
        assert_eq!(measured((0..11).map(picture)), Some(known));
    }

    #[test]
    fn reordering_is_the_greatest_one() {
        let times = [(0, 0), (40, 120), (80, 40), (120, 80), (160, 160)];
        let frames = (0..).zip(times).map(|(number, (due, pts))| frame(number, due, pts, number.is_multiple_of(4)));
        assert_eq!(measured(frames).unwrap().reorder, 40);
    }

    #[test]
    fn the_least_interval_counts() {
        let at = |times: &[u64]| {
            let all = (0..).zip(times);
            measured(all.map(|(number, ms)| frame(number, *ms, *ms as i64, number.is_multiple_of(2))))
                .and_then(|tempo| tempo.interval)
        };
        assert_eq!(at(&[0, 1000, 2000]), Some(Duration::from_secs(1)));
        assert_eq!(at(&[0, 40, 70, 120]), Some(Duration::from_millis(30)));
        assert_eq!(at(&[0, 5000, 5040, 9000]), Some(Duration::from_millis(40)));
        assert_eq!(at(&[0, 0, 0]), None, "times that stand still");
    }

    #[test]
    fn old_intervals_do_not_count() {
        let times = [0, 5].into_iter().chain((1..=INTERVALS as u64).map(|number| 5 + number * 40));
        let frames = (0..).zip(times).map(|(number, ms)| frame(number, ms, ms as i64, true));
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
