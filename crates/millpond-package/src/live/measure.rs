//! Target durations, measured before the first part is published. Players take changed ones as errors.

use super::{
    boundary::{self, time},
    cutter::{CutRules, CutTrack},
    part::LiveSample,
};
use std::{collections::VecDeque, time::Duration};

/// Longest measurement in stream time.
const PATIENCE: Duration = Duration::from_secs(4);
/// Target duration where no second key frame was seen in that time.
const UNKNOWN: u32 = 10;
/// Allowance for longer groups than the first one.
const SLACK: Duration = Duration::from_millis(900);
/// Time by which a segment may be shorter than the least duration, and still end at a key frame.
pub(super) const EARLY: Duration = Duration::from_millis(50);
/// Most samples that wait for the end of the measurement.
const MOST_SAMPLES: usize = 8192;
/// Most bytes of these.
const MOST_BYTES: usize = 16 << 20;

/// Upper bound of a segment's duration in whole seconds (`EXT-X-TARGETDURATION`, RFC 8216 4.3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetDuration(u32);

impl TargetDuration {
    /// Creates one of 1 to 60 seconds; others become the nearest.
    #[must_use]
    pub const fn new(seconds: u32) -> Self {
        match seconds {
            0 => Self(1),
            61.. => Self(60),
            seconds => Self(seconds),
        }
    }

    /// Seconds.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// The same as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }

    /// Returns the target of segments that last at least `least` and end with groups of pictures of duration `group`.
    fn of(least: Duration, group: Option<Duration>, slack: Duration) -> Self {
        let seconds = |duration: Duration| u32::try_from(duration.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        let Some(group) = group else { return Self::new(seconds(least.saturating_add(SLACK)).max(UNKNOWN)) };
        let groups = least.saturating_sub(EARLY).as_nanos().div_ceil(group.as_nanos().max(1)).max(1);
        let expected = group.saturating_mul(u32::try_from(groups).unwrap_or(u32::MAX));
        Self::new(seconds(expected.saturating_add(slack)))
    }
}

/// Target durations of a stream, fixed for its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Target duration of segments.
    pub segment: TargetDuration,
    /// Part target duration of each track, in whole milliseconds (`PART-TARGET`, rfc8216bis 4.4.3.7); `None` where a
    /// part is a whole segment.
    pub parts: Option<Box<[Duration]>>,
}

/// Returns the part target of a track whose frames usually last `frame`. This is about the longest multiple of `frame` within
/// `most`, with room for frames of uneven durations.
fn part_target(frame: Duration, most: Duration) -> Duration {
    let frame = frame.max(Duration::from_micros(1));
    let frames = u32::try_from(most.as_nanos() / frame.as_nanos()).unwrap_or(u32::MAX);
    let wide = frame.saturating_mul(frames.max(1)).mul_f64(1.1);
    let target = if frames == 0 { wide } else { wide.min(most) };
    Duration::from_millis(u64::try_from(target.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Samples that wait until the target durations are known.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    held: VecDeque<(usize, LiveSample)>,
    bytes: usize,
    /// Decode times of the first key frame of the leading track, and of its last sample.
    lead: Option<(i64, i64)>,
    /// Ticks of the first group of the leading track.
    group: Option<i64>,
}

impl Measurement {
    /// Takes a sample. Returns whether the measurement is complete.
    pub(super) fn push(
        &mut self,
        track: usize,
        sample: LiveSample,
        lead: (usize, &CutTrack),
        rules: &CutRules,
    ) -> bool {
        let (lead, clock) = lead;
        let mut is_complete = false;
        if track == lead {
            match &mut self.lead {
                None if sample.is_sync || !clock.is_video => self.lead = Some((sample.dts, sample.dts)),
                None => return false,
                Some((first, last)) => {
                    *last = sample.dts.max(*last);
                    let passed = last.saturating_sub(*first);
                    if sample.is_sync && passed > 0 {
                        self.group = Some(passed);
                    }
                    let is_long = time(passed, clock.timescale) >= PATIENCE;
                    is_complete = self.group.is_some() || is_long || rules.target.is_some();
                }
            }
        }
        self.bytes += sample.data.len();
        self.held.push_back((track, sample));
        let is_over = self.held.len() >= MOST_SAMPLES || self.bytes >= MOST_BYTES;
        if is_over && self.lead.is_none() {
            // Samples before the first key frame of the leading track have no segment.
            self.held.clear();
            self.bytes = 0;
        }
        is_complete || (is_over && self.lead.is_some())
    }

    /// Whether the leading track has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.lead.is_some()
    }

    /// Returns the targets, according to the frames so far. `tracks` get the measured durations of their frames.
    pub(super) fn targets(&self, tracks: &mut [CutTrack], lead: usize, rules: &CutRules) -> Targets {
        for (index, track) in tracks.iter_mut().enumerate() {
            if let Some(frame) = self.frame(index) {
                track.frame = frame;
            }
        }
        let clock = tracks.get(lead);
        let group = self.group.zip(clock).map(|(group, clock)| time(group, clock.timescale));
        let slack = if clock.is_some_and(|clock| clock.is_video) { SLACK } else { Duration::ZERO };
        let segment = rules.target.unwrap_or_else(|| TargetDuration::of(rules.segment, group, slack));
        let part = |most| tracks.iter().map(|t| part_target(time(t.frame.into(), t.timescale), most)).collect();
        Targets { segment, parts: rules.part.map(part) }
    }

    /// Returns the average distance between the samples of a track, where there are several.
    fn frame(&self, track: usize) -> Option<u32> {
        let mut times = self.held.iter().filter(|(of, _)| *of == track).map(|(_, sample)| sample.dts);
        let first = times.next()?;
        let (last, count) = times.fold((first, 0), |(last, count), dts| (dts.max(last), count + 1));
        let frame = last.saturating_sub(first) / std::num::NonZeroI64::new(count)?.get();
        u32::try_from(frame).ok().filter(|frame| *frame > 0)
    }

    /// Returns the samples, in the order in which they came.
    pub(super) fn into_samples(self) -> VecDeque<(usize, LiveSample)> {
        self.held
    }
}

impl Targets {
    /// Returns the longest part of a track in ticks.
    pub(super) fn part_ticks(&self, track: usize, clock: &CutTrack) -> i64 {
        let target = self.parts.as_ref().and_then(|parts| parts.get(track));
        target.map_or(i64::MAX, |target| boundary::ticks(*target, clock.timescale).max(1))
    }

    /// Returns the longest part target of all tracks; `None` without parts.
    #[must_use]
    pub fn longest_part(&self) -> Option<Duration> {
        self.parts.as_ref()?.iter().max().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_whole_groups_and_an_allowance() {
        let seconds = Duration::from_secs_f64;
        let table = [
            (2.0, Some(2.0), 900, 3),
            (2.0, Some(1.0), 900, 3),
            (2.0, Some(1.6), 900, 5),
            (2.0, Some(2.002), 900, 3),
            (2.0, Some(1.98), 900, 3),
            (2.0, Some(0.021_333), 0, 2),
            (2.0, None, 900, 10),
            (12.0, None, 900, 13),
            (2.0, Some(500.0), 900, 60),
        ];
        for (least, group, slack, expected) in table {
            let found = TargetDuration::of(seconds(least), group.map(seconds), Duration::from_millis(slack));
            assert_eq!(found.seconds(), expected, "{least} {group:?}");
        }
    }

    #[test]
    fn part_targets_fit_multiples_of_frames() {
        let table = [
            (Duration::from_millis(40), 334),
            (Duration::from_nanos(33_333_333), 334),
            (Duration::from_nanos(21_333_333), 334),
            (Duration::from_millis(100), 330),
            (Duration::from_millis(200), 220),
            (Duration::from_secs(1), 1100),
            (Duration::ZERO, 334),
        ];
        for (frame, expected) in table {
            assert_eq!(part_target(frame, Duration::from_millis(334)).as_millis(), expected, "{frame:?}");
        }
    }
}
