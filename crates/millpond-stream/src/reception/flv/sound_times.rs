//! Times of frames of sound, whose timestamps have milliseconds only.

use millpond_media::Timescale;

/// Milliseconds per second.
const SECOND: i64 = 1000;

/// Gives frames of sound the times that their lengths tell.
///
/// Timestamps of whole milliseconds differ from the times of the samples by up to a millisecond. So a frame follows the one
/// before it without a gap, unless its timestamp says something else by more than that.
#[derive(Debug)]
pub(super) struct SoundTimes {
    rate: Timescale,
    /// Samples of a frame; `None` where unknown.
    frame: Option<i64>,
    /// Last timestamp in milliseconds, without wraps.
    last: Option<i64>,
    /// End of the last frame, in samples.
    end: Option<i64>,
}

impl SoundTimes {
    /// Creates it for frames of `frame` samples.
    pub(super) fn new(sample_rate: u32, frame: Option<u32>) -> Self {
        let rate = Timescale::new(sample_rate).unwrap_or(Timescale::MPEG);
        Self { rate, frame: frame.map(i64::from), last: None, end: None }
    }

    /// Samples per second.
    pub(super) fn rate(&self) -> Timescale {
        self.rate
    }

    /// Time of the next frame in samples, given its timestamp in milliseconds, and its length where the frame tells it.
    pub(super) fn next(&mut self, timestamp: u32, samples: Option<u32>) -> i64 {
        let ahead = |last: i64| i64::from(timestamp.wrapping_sub(last as u32).cast_signed());
        let milliseconds = self.last.map_or(i64::from(timestamp), |last| last.saturating_add(ahead(last)));
        self.last = Some(milliseconds);
        let rate = i64::from(self.rate.get());
        let stated = milliseconds.saturating_mul(rate) / SECOND;
        // A millisecond, and what division loses.
        let is_near = |end: &i64| (end - stated).abs() <= rate / SECOND + 1;
        let time = self.end.filter(is_near).unwrap_or(stated);
        let frame = samples.map(i64::from).or(self.frame);
        self.end = frame.map(|frame| time.saturating_add(frame));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_where_timestamps_are_rounded() {
        let round = |place: i64| (place * 1024 * 1000 + 22_050) / 44_100;
        let cut = |place: i64| place * 1024 * 1000 / 44_100;
        for timestamp in [round as fn(i64) -> i64, cut] {
            let mut times = SoundTimes::new(44_100, Some(1024));
            for place in 0..100_000 {
                assert_eq!(times.next(timestamp(place) as u32, None), place * 1024);
            }
        }
    }

    #[test]
    fn gaps_and_drift_stay() {
        let mut times = SoundTimes::new(48_000, Some(1024));
        assert_eq!([0, 21, 143].map(|timestamp| times.next(timestamp, None)), [0, 1024, 143 * 48]);
        // A clock that is fast by one per cent.
        let mut times = SoundTimes::new(48_000, Some(1024));
        for place in 0..10_000_i64 {
            let stated = place * 1024 * 1000 / 48_480;
            assert!((times.next(stated as u32, None) - stated * 48).abs() <= 49);
        }
        // Frames that tell their lengths: 20 ms and 60 ms of Opus.
        let mut times = SoundTimes::new(48_000, None);
        let frames = [(0, 960), (21, 2880), (80, 960)];
        assert_eq!(frames.map(|(timestamp, samples)| times.next(timestamp, Some(samples))), [0, 960, 3840]);
        let mut times = SoundTimes::new(8000, None);
        assert_eq!([u32::MAX, 9].map(|timestamp| times.next(timestamp, None)), [34_359_738_360, 34_359_738_440]);
    }
}
