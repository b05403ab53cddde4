//! One track of a cutter: samples that wait for the end of their part.

use super::{
    boundary::{Boundary, ticks},
    cutter::{Cut, CutTrack},
    measure::Targets,
    part::{LiveSample, Part, PartPlace, SegmentNumber},
};
use crate::fmp4::FragmentSample;
use bytes::Bytes;
use std::{collections::VecDeque, time::Duration};

/// Most samples of a part.
const MOST_SAMPLES: usize = 4096;
/// Longest time that samples wait for the beginning of an epoch.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A sample of the part that is not complete yet.
#[derive(Debug)]
struct Waiting {
    dts: i64,
    pts: i64,
    /// Ticks up to the next sample; 0 for the last one.
    duration: i64,
    is_sync: bool,
    data: Bytes,
}

/// A track. All times are in its ticks.
#[derive(Debug)]
pub(super) struct Lane {
    track: usize,
    clock: CutTrack,
    /// Longest part.
    longest_part: i64,
    /// Longest segment.
    longest: i64,
    /// Usual duration of a sample.
    usual: i64,
    /// Ticks from decode to presentation time of the epoch's first sample: those of all others on average.
    shift: Option<i64>,
    /// Least decode time of the next sample.
    next_dts: i64,
    waiting: VecDeque<Waiting>,
    /// Sum of the durations of the samples that wait, without the last.
    settled: i64,
    /// Segment that the next part belongs to.
    segment: SegmentNumber,
    /// Whether the beginning of the epoch was reached.
    has_entered: bool,
    /// Index of the next part in the segment.
    index: u16,
    /// Presentation time of the segment's first part.
    began: i64,
    /// Sum of the durations of the segment's parts.
    published: i64,
    /// Number of fragments made.
    sequence: u32,
    /// Number of samples that are in no part.
    skipped: u64,
}

impl Lane {
    pub(super) fn new(track: usize, clock: CutTrack, targets: &Targets, segment: SegmentNumber) -> Self {
        Self {
            track,
            clock,
            longest_part: targets.part_ticks(track, &clock),
            longest: ticks(targets.segment.duration(), clock.timescale),
            usual: i64::from(clock.frame).max(1),
            shift: None,
            next_dts: 0,
            waiting: VecDeque::new(),
            settled: 0,
            segment,
            has_entered: false,
            index: 0,
            began: 0,
            published: 0,
            sequence: 0,
            skipped: 0,
        }
    }

    pub(super) const fn clock(&self) -> &CutTrack {
        &self.clock
    }

    pub(super) const fn segment(&self) -> SegmentNumber {
        self.segment
    }

    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes a sample. Its decode time becomes later than the last sample's. Returns whether it was taken: pictures before the
    /// first key frame of an epoch are not.
    pub(super) fn take(&mut self, sample: LiveSample) -> bool {
        if self.shift.is_none() && self.clock.is_video && !sample.is_sync {
            self.skipped += 1;
            return false;
        }
        let dts = sample.dts.max(self.next_dts);
        self.next_dts = dts.saturating_add(1);
        self.shift.get_or_insert(sample.pts.saturating_sub(dts));
        self.settle(dts);
        let LiveSample { pts, is_sync, data, .. } = sample;
        self.waiting.push_back(Waiting { dts, pts, duration: 0, is_sync, data });
        true
    }

    /// Settles the duration of the last sample, which ends at `end`. No segment becomes longer than the target by it.
    fn settle(&mut self, end: i64) {
        let room = self.longest.saturating_sub(self.elapsed()).max(1);
        let Some(last) = self.waiting.back_mut() else { return };
        last.duration = end.saturating_sub(last.dts).clamp(1, room);
        self.settled = self.settled.saturating_add(last.duration);
        self.usual = (self.usual + (last.duration - self.usual) / 8).max(1);
    }

    /// Duration of the segment up to the last sample.
    fn elapsed(&self) -> i64 {
        self.published.saturating_add(self.settled)
    }

    /// Whether the segment would become too long by the last sample.
    pub(super) fn is_full(&self) -> bool {
        let elapsed = self.elapsed();
        self.has_entered && elapsed > 0 && elapsed.saturating_add(self.usual) > self.longest
    }

    /// Presentation time of the last sample.
    pub(super) fn last(&self) -> Option<i64> {
        self.waiting.back().map(|last| self.shown(last))
    }

    /// Returns the presentation time of a sample, without reordering.
    fn shown(&self, sample: &Waiting) -> i64 {
        sample.dts.saturating_add(self.shift.unwrap_or(0))
    }

    /// Index of the first sample of the segment that a boundary begins. Sound that lasts over the boundary belongs to it:
    /// hls.js misplaces the sound of a stream that begins later than its pictures.
    fn first_at(&self, boundary: &Boundary) -> usize {
        let next = self.waiting.partition_point(|sample| boundary.is_behind(self.shown(sample), self.clock.timescale));
        next.checked_sub(1).filter(|before| self.lasts_over(*before, boundary)).unwrap_or(next)
    }

    /// Whether a sample of sound begins before a boundary and ends behind it. One with a pause behind it does not.
    fn lasts_over(&self, index: usize, boundary: &Boundary) -> bool {
        let next = self.waiting.get(index + 1).filter(|_| !self.clock.is_video);
        let Some((sample, next)) = self.waiting.get(index).zip(next) else { return false };
        let has_pause = next.dts.saturating_sub(sample.dts) > self.usual.saturating_mul(2);
        !has_pause && boundary.is_before(self.shown(next), self.clock.timescale)
    }

    /// Leaves out old samples while the epoch has no beginning.
    pub(super) fn wait(&mut self) {
        let longest = ticks(LONGEST_WAIT, self.clock.timescale);
        while self.settled > longest || self.waiting.len() > MOST_SAMPLES {
            self.leave_out(1);
        }
    }

    fn leave_out(&mut self, count: usize) {
        for sample in self.waiting.drain(..count) {
            self.settled = self.settled.saturating_sub(sample.duration);
            self.skipped += 1;
        }
    }

    /// Begins the epoch at `boundary`: earlier samples are left out. Returns whether there is a later one, or sound that lasts
    /// over the boundary.
    pub(super) fn enter(&mut self, boundary: &Boundary) -> bool {
        if !self.has_entered {
            let before = self.first_at(boundary);
            self.has_entered = before < self.waiting.len();
            // The duration of the last sample is unknown until the next one comes.
            let may_last = usize::from(!self.has_entered && !self.clock.is_video);
            self.leave_out(before.saturating_sub(may_last));
        }
        self.has_entered
    }

    /// Ends the segment at `next` if a sample after `next` waits. If the segment would become too long, ends it before the last
    /// sample, because a late track may catch up all at once. Returns whether the segment ended.
    pub(super) fn pass(&mut self, begin: &Boundary, next: &Boundary, out: &mut Vec<Cut>) -> bool {
        let most = if self.is_full() { self.waiting.len().saturating_sub(1) } else { usize::MAX };
        let count = self.first_at(next).min(most);
        if count >= self.waiting.len() {
            return false;
        }
        let mut rest = self.waiting.split_off(count);
        self.publish_all(out);
        // The end of the old segment may have cut it.
        if let Some(second) = rest.get(1).map(|second| second.dts)
            && let Some(first) = rest.front_mut()
        {
            first.duration = second.saturating_sub(first.dts);
        }
        self.close(begin.ticks(self.clock.timescale), next.ticks(self.clock.timescale), out);
        self.settled = rest.iter().map(|sample| sample.duration).fold(0, i64::saturating_add);
        self.waiting = rest;
        true
    }

    /// Ends the segment at `end` without a sample behind it. The last sample gets the usual duration, but is not shown
    /// after `limit`.
    pub(super) fn give_up(&mut self, begin: &Boundary, end: i64, limit: i64, out: &mut Vec<Cut>) {
        if self.has_entered {
            let last = self.waiting.back().map_or(0, |last| last.dts);
            let limit = limit.saturating_sub(self.shift.unwrap_or(0));
            self.settle(last.saturating_add(self.usual).min(limit));
            self.publish_all(out);
        } else {
            self.leave_out(self.waiting.len());
            self.has_entered = true;
        }
        self.close(begin.ticks(self.clock.timescale), end, out);
    }

    /// Leaves the epoch. The next one begins with `segment`.
    pub(super) fn leave(&mut self, segment: SegmentNumber) {
        self.leave_out(self.waiting.len());
        self.settled = 0;
        self.segment = segment;
        self.has_entered = false;
        self.shift = None;
    }

    /// Publishes the parts that are complete.
    pub(super) fn publish_ready(&mut self, out: &mut Vec<Cut>) {
        while let Some(count) = self.ready().filter(|_| self.has_entered) {
            self.publish(count, out);
        }
    }

    /// Number of the samples of a part that is complete. It ends before the next sample would make it too long.
    fn ready(&self) -> Option<usize> {
        let known = self.waiting.len().checked_sub(1).filter(|known| *known > 0)?;
        if self.settled > self.longest_part {
            return Some(self.fitting(known));
        }
        // Parts but the last of a segment have at least 85 % of the target (rfc8216bis 4.4.4.9).
        let is_long = self.settled >= self.longest_part / 20 * 17;
        let is_full = is_long && self.settled.saturating_add(self.usual) > self.longest_part;
        (is_full || known >= MOST_SAMPLES).then_some(known)
    }

    /// Number of the first samples that fit into a part: at least one, and at most `count`.
    fn fitting(&self, count: usize) -> usize {
        let mut sum = 0_i64;
        let fits = |sample: &&Waiting| {
            sum = sum.saturating_add(sample.duration);
            sum <= self.longest_part
        };
        self.waiting.iter().take(count.min(MOST_SAMPLES)).take_while(fits).count().max(1)
    }

    /// Publishes all samples, whose durations must be settled.
    fn publish_all(&mut self, out: &mut Vec<Cut>) {
        while !self.waiting.is_empty() {
            let count = self.fitting(self.waiting.len());
            self.publish(count, out);
        }
    }

    /// Publishes the first samples as a part.
    fn publish(&mut self, count: usize, out: &mut Vec<Cut>) {
        let Some(first) = self.waiting.front() else { return };
        let (decode_time, start) = (first.dts, self.shown(first));
        self.sequence = self.sequence.wrapping_add(1);
        let (track, segment, index, sequence) = (self.track, self.segment, self.index, self.sequence);
        let samples: Vec<_> = self.waiting.drain(..count).map(Waiting::row).collect();
        let part = Part::new(PartPlace { track, segment, index, start, decode_time, sequence }, samples);
        if index == 0 {
            self.began = start;
        }
        self.settled = self.settled.saturating_sub(part.duration);
        self.published = self.published.saturating_add(part.duration);
        self.index = index.saturating_add(1);
        out.push(Cut::Part(part));
    }

    /// Closes the segment. One without samples has the times of its boundaries.
    fn close(&mut self, begin: i64, end: i64, out: &mut Vec<Cut>) {
        let (start, duration) = match self.index {
            0 => (begin, end.saturating_sub(begin).max(0)),
            _ => (self.began, self.published),
        };
        out.push(Cut::Closed { track: self.track, segment: self.segment, start, duration });
        self.segment = self.segment.next();
        (self.index, self.published) = (0, 0);
    }
}

impl Waiting {
    fn row(self) -> (FragmentSample, Bytes) {
        let row = FragmentSample {
            duration: u32::try_from(self.duration).unwrap_or(u32::MAX),
            size: u32::try_from(self.data.len()).unwrap_or(u32::MAX),
            offset: self.pts.saturating_sub(self.dts),
            is_sync: self.is_sync,
        };
        (row, self.data)
    }
}
