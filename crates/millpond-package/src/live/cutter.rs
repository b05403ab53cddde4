//! Cuts the samples of a running stream into parts and segments.

use super::{
    boundary::{Boundary, ticks, time},
    lane::Lane,
    measure::{EARLY, Measurement, TargetDuration, Targets},
    part::{LiveSample, Part, SegmentNumber},
};
use millpond_media::units::Timescale;
use std::{collections::VecDeque, time::Duration};

/// Longest time in which a track must reach a boundary after the stream has passed it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where a stream is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRules {
    /// Longest part; `None` makes each segment one part.
    pub part: Option<Duration>,
    /// Least duration of a segment. The next key frame of the leading track ends it.
    pub segment: Duration,
    /// Target duration of an earlier run of the stream. It is measured where there is none.
    pub target: Option<TargetDuration>,
    /// Whether the first key frame after each multiple of `segment` in stream time begins a segment, and no other one. Streams
    /// with one common clock are cut at common times by this rule.
    pub is_aligned: bool,
}

/// A track as the cutter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutTrack {
    /// Clock of its samples.
    pub timescale: Timescale,
    /// Whether its key frames are rare.
    pub is_video: bool,
    /// Usual duration of a frame in ticks, until it is measured.
    pub frame: u32,
}

/// A decision of a cutter. Decisions have the order in which a window takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The target durations. They come first, once.
    Targets(Targets),
    /// A segment begins for all tracks.
    Opened {
        /// Its number.
        segment: SegmentNumber,
        /// Its epoch.
        epoch: u32,
        /// Presentation time of its beginning as stream time.
        start: Duration,
        /// Whether the leading track begins it with a key frame.
        is_independent: bool,
    },
    /// A part is complete.
    Part(Part),
    /// A track's segment is complete. One without parts is a gap.
    Closed {
        /// Index of the track.
        track: usize,
        /// Number of the segment.
        segment: SegmentNumber,
        /// Presentation time of its beginning as stream time, in ticks of the track.
        start: i64,
        /// Ticks that it lasts.
        duration: i64,
    },
}

/// Cuts the tracks of one stream at common times.
///
/// Segments begin with key frames of the leading track. All other tracks are cut at the same presentation time. A sample lasts
/// until the next sample of its track. So a part is published one sample late, and its durations are exact. No segment is longer
/// than the target duration. A longer group of pictures is cut without a key frame. A stream whose leading track stalls is cut
/// too.
#[derive(Debug)]
pub struct Cutter {
    rules: CutRules,
    tracks: Vec<CutTrack>,
    lead: usize,
    epoch: u32,
    /// Number of the next segment.
    next: SegmentNumber,
    /// Least target duration, where that is measured.
    least: Option<TargetDuration>,
    /// Those of the run that it goes on with, in place of measured ones.
    fixed: Option<Targets>,
    /// Until the target durations are known.
    measurement: Option<Measurement>,
    /// Empty until the target durations are known.
    lanes: Vec<Lane>,
    /// Boundaries from the first segment that a track is still in.
    boundaries: VecDeque<Boundary>,
}

impl Cutter {
    /// Creates the cutter of `tracks`. The leading track is the first video, else the first track. Segments are counted
    /// from `first`.
    #[must_use]
    pub fn new(rules: CutRules, tracks: Vec<CutTrack>, epoch: u32, first: SegmentNumber) -> Self {
        let lead = tracks.iter().position(|track| track.is_video).unwrap_or(0);
        Self {
            rules,
            tracks,
            lead,
            epoch,
            next: first,
            least: None,
            fixed: None,
            measurement: Some(Measurement::default()),
            lanes: Vec::new(),
            boundaries: VecDeque::new(),
        }
    }

    /// Keeps the target durations of a run that goes on: players take changed ones as errors.
    #[must_use]
    pub fn with_targets(self, targets: Option<Targets>) -> Self {
        let rules =
            CutRules { target: targets.as_ref().map(|targets| targets.segment).or(self.rules.target), ..self.rules };
        Self { rules, fixed: targets, ..self }
    }

    /// Makes the target duration at least `target`, unless it is known already.
    pub fn expect(&mut self, target: TargetDuration) {
        self.least = Some(target);
    }

    /// Index of the leading track.
    #[must_use]
    pub const fn lead(&self) -> usize {
        self.lead
    }

    /// Number of samples that are in no part: pictures before a key frame, and samples before the beginning of an epoch.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.lanes.iter().map(Lane::skipped).sum()
    }

    /// Takes a sample of a track. Samples of one track must come in decode order. Samples of unknown tracks are ignored.
    pub fn push(&mut self, track: usize, sample: LiveSample, out: &mut Vec<Cut>) {
        let Some(clock) = self.tracks.get(self.lead).filter(|_| track < self.tracks.len()) else { return };
        match &mut self.measurement {
            Some(measurement) => {
                if measurement.push(track, sample, (self.lead, clock), &self.rules) {
                    self.begin(out);
                }
            }
            None => self.cut(track, sample, out),
        }
    }

    /// Begins another epoch at a stream time: all open parts and segments end.
    pub fn discontinue(&mut self, epoch: u32, at: Duration, out: &mut Vec<Cut>) {
        if self.measurement.as_ref().is_some_and(Measurement::has_begun) {
            self.begin(out);
        } else if self.measurement.is_some() {
            self.measurement = Some(Measurement::default());
        }
        for index in 0..self.lanes.len() {
            while let Some((lane, [begin, next])) = self.lane(index).filter(|(_, [begin, _])| begin.is_some()) {
                let Some(begin) = begin else { break };
                let scale = lane.clock().timescale;
                let last = ticks(at, scale);
                lane.give_up(&begin, next.map_or(last, |next| next.ticks(scale)), last, out);
            }
        }
        let next = self.next;
        self.lanes.iter_mut().for_each(|lane| lane.leave(next));
        self.boundaries.clear();
        self.epoch = epoch;
    }

    /// Ends the segments of tracks that did not reach a boundary within half a second of stream time.
    /// [`Self::push`] does it too: this is for streams whose samples cease.
    pub fn expire(&mut self, stream_now: Duration, out: &mut Vec<Cut>) {
        for index in 0..self.lanes.len() {
            while let Some((lane, [Some(begin), Some(next)])) = self.lane(index) {
                if stream_now < next.time().saturating_add(PATIENCE) {
                    break;
                }
                lane.give_up(&begin, next.ticks(lane.clock().timescale), i64::MAX, out);
            }
        }
        self.forget();
    }

    /// Returns a lane with the beginning and the end of its segment, where these are known.
    fn lane(&mut self, index: usize) -> Option<(&mut Lane, [Option<Boundary>; 2])> {
        let lane = self.lanes.get_mut(index)?;
        let first = self.boundaries.front().map_or(0, |boundary| boundary.segment.0);
        let place = lane.segment().0.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        let at = |place: Option<usize>| self.boundaries.get(place?).copied();
        let bounds = [at(place), at(place.and_then(|place| place.checked_add(1)))];
        Some((lane, bounds))
    }

    /// Ends the measurement, and cuts what was held.
    fn begin(&mut self, out: &mut Vec<Cut>) {
        let Some(measurement) = self.measurement.take() else { return };
        let measured = measurement.targets(&mut self.tracks, self.lead, &self.rules);
        let mut targets = self.fixed.take().unwrap_or(measured);
        if let Some(least) = self.least.filter(|_| self.rules.target.is_none()) {
            targets.segment = targets.segment.max(least);
        }
        let lane = |(index, track): (usize, &CutTrack)| Lane::new(index, *track, &targets, self.next);
        self.lanes = self.tracks.iter().enumerate().map(lane).collect();
        out.push(Cut::Targets(targets));
        for (track, sample) in measurement.into_samples() {
            self.cut(track, sample, out);
        }
    }

    fn cut(&mut self, track: usize, sample: LiveSample, out: &mut Vec<Cut>) {
        let is_key = track == self.lead && sample.is_sync;
        let Some(lane) = self.lanes.get_mut(track) else { return };
        if !lane.take(sample) {
            return;
        }
        let (last, scale) = (lane.last().unwrap_or(0), lane.clock().timescale);
        if self.begins_segment(track, is_key) {
            let after = self.boundaries.back().map_or(last, |current| current.ticks(scale).saturating_add(1));
            self.open(Boundary::new(self.next, last.max(after), scale, is_key), out);
            (0..self.lanes.len()).for_each(|index| self.advance(index, out));
        } else {
            self.advance(track, out);
        }
        self.expire(time(last, scale), out);
    }

    /// Whether the last sample of a track begins a segment.
    fn begins_segment(&self, track: usize, is_key: bool) -> bool {
        let Some(lane) = self.lanes.get(track) else { return false };
        let Some(current) = self.boundaries.back() else { return track == self.lead };
        if lane.segment() != current.segment {
            return false;
        }
        let clock = lane.clock();
        let passed = lane.last().unwrap_or(0).saturating_sub(current.ticks(clock.timescale));
        let is_due = match self.rules.is_aligned {
            true => self.place(time(lane.last().unwrap_or(0), clock.timescale)) > self.place(current.time()),
            false => time(passed, clock.timescale).saturating_add(EARLY) >= self.rules.segment,
        };
        // After a cut without a key frame, the next key frame begins a segment at once.
        (is_key && passed > 0 && (is_due || !current.is_independent)) || lane.is_full()
    }

    /// Number of multiples of the least duration of a segment before a stream time.
    fn place(&self, at: Duration) -> u128 {
        at.saturating_add(EARLY).as_nanos() / self.rules.segment.as_nanos().max(1)
    }

    fn open(&mut self, boundary: Boundary, out: &mut Vec<Cut>) {
        let Boundary { segment, is_independent, .. } = boundary;
        out.push(Cut::Opened { segment, epoch: self.epoch, start: boundary.time(), is_independent });
        self.next = segment.next();
        self.boundaries.push_back(boundary);
    }

    /// Moves a track over the boundaries that its samples have reached, and publishes its complete parts.
    fn advance(&mut self, index: usize, out: &mut Vec<Cut>) {
        while let Some((lane, bounds)) = self.lane(index) {
            let has_passed = match bounds {
                [None, _] => {
                    lane.wait();
                    return;
                }
                [Some(begin), next] => lane.enter(&begin) && next.is_some_and(|next| lane.pass(&begin, &next, out)),
            };
            if !has_passed {
                lane.publish_ready(out);
                return;
            }
        }
    }

    /// Forgets boundaries that all tracks have passed.
    fn forget(&mut self) {
        let Some(oldest) = self.lanes.iter().map(Lane::segment).min() else { return };
        while self.boundaries.front().is_some_and(|boundary| boundary.segment < oldest) {
            self.boundaries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
