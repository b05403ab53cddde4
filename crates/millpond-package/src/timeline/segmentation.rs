//! Decides where segments begin.
//!
//! Video is cut at sync samples. The boundary after another is the sync sample whose presentation time is nearest to
//! that boundary plus the target duration; of two equally near ones the earlier. The end of the track counts as a
//! candidate. So a regular GOP gives regular segments of whole GOPs, and a GOP longer than the target becomes a segment
//! of its own.
//!
//! The renditions of one asset are cut at common points: sync samples that all renditions have within half a frame.
//! Where this would make segments longer than three target durations, and longer than each rendition alone would have,
//! each rendition is cut separately. Players then can't switch between them seamlessly.
//!
//! The start of a segment is its earliest presentation time. In an open group of pictures that is the time of the
//! leading pictures, which follow their sync sample in decoding order but are presented before it.
//!
//! Other tracks are cut by time, at the boundaries of the video: a sample belongs to the segment that contains its
//! presentation time.

use crate::{
    timeline::{Timed, Timeline},
    writing::digits,
};
use millpond_media::{SampleTable, units::Timescale};
use std::ops::Range;

/// The segments of one track. Numbers start at 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Segments {
    timescale: Timescale,
    /// First ordinal of each segment, and the end of the last segment; empty for tracks without samples.
    first: Box<[u32]>,
    /// Presentation time of each segment's start, and of the last one's end.
    time: Box<[i64]>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Number of the segment, from 1.
    pub number: u32,
    /// Ordinals of the samples in the track's timeline, in decode order.
    pub samples: Range<u32>,
    /// Presentation time of the start, in ticks.
    pub start: i64,
    /// Duration in ticks.
    pub duration: i64,
    /// Clock of `start` and `duration`.
    pub timescale: Timescale,
}

impl Segments {
    pub(crate) fn new(timescale: Timescale, first: Vec<u32>, time: Vec<i64>) -> Self {
        Self { timescale, first: first.into(), time: time.into() }
    }

    /// Number of segments.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.time.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Returns segment `number`.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<SegmentInfo> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        let (start, end) = (*self.time.get(place)?, *self.time.get(place.checked_add(1)?)?);
        let samples = match (self.first.get(place), self.first.get(place + 1)) {
            (Some(from), Some(to)) => *from..*to,
            _ => 0..0,
        };
        Some(SegmentInfo { number, samples, start, duration: end.saturating_sub(start), timescale: self.timescale })
    }

    /// Returns all segments.
    pub fn iter(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        (1..=self.count()).filter_map(|n| self.get(n))
    }

    /// Clock of the times.
    #[must_use]
    pub const fn timescale(&self) -> Timescale {
        self.timescale
    }

    /// Starts of the segments, and the end of the last, in ticks.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        &self.time
    }

    /// Returns the durations in millionths of a second.
    pub(crate) fn micros(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let scale = self.timescale.get();
        // Most segments are as long as the one before.
        let mut last = (0, 0);
        self.time.windows(2).map(move |pair| {
            let ticks = pair[1].saturating_sub(pair[0]);
            if ticks != last.0 {
                last = (ticks, digits::micros(ticks, scale));
            }
            last.1
        })
    }

    /// Presentation time of the end of the last segment, in ticks.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.time.last().copied().unwrap_or(0)
    }

    /// Number of samples in the segment that has most.
    pub(crate) fn most_samples(&self) -> u32 {
        self.first.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0)
    }

    /// Whether `other` has the same boundaries on the same clock.
    pub(crate) fn same_times(&self, other: &Self) -> bool {
        self.timescale == other.timescale && self.time == other.time
    }

    /// Bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.first.len() * size_of::<u32>() + self.time.len() * size_of::<i64>()
    }
}

/// A sync sample as a possible boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncPoint {
    pub(crate) ordinal: u32,
    /// Earliest presentation time, in ticks, of the pictures from here on.
    pub(crate) time: i64,
    /// Bytes of all samples before this one.
    pub(crate) bytes: u64,
    /// Whether some pictures after it are presented before it, and may need pictures of the group before.
    pub(crate) is_open: bool,
}

/// Sync samples by time.
pub(crate) type Points<'a> = Box<dyn Iterator<Item = SyncPoint> + 'a>;

/// Sync samples of one rendition, which are walked over and never collected.
pub(crate) struct Candidates<'a> {
    pub(crate) timescale: Timescale,
    /// Starts a new walk at the first sync sample.
    pub(crate) points: Box<dyn Fn() -> Points<'a> + 'a>,
    /// End of the track, in ticks.
    pub(crate) end: i64,
    /// Duration of the shortest frame, in ticks.
    pub(crate) frame: i64,
}

/// Boundaries of the renditions.
pub(crate) struct Cuts {
    /// For each rendition, the points that begin a segment, the first point included.
    pub(crate) chosen: Vec<Vec<SyncPoint>>,
    /// Whether all renditions have the same boundaries.
    pub(crate) aligned: bool,
}

impl Candidates<'_> {
    fn nanos(&self, point: &SyncPoint) -> i64 {
        nanos(point.time, self.timescale)
    }

    fn end(&self) -> i64 {
        nanos(self.end, self.timescale)
    }

    /// Returns the duration of the longest segment, in nanoseconds.
    fn longest(&self, chosen: impl Iterator<Item = SyncPoint> + Clone) -> i64 {
        let times = chosen.map(|point| self.nanos(&point));
        let ends = times.clone().skip(1).chain([self.end()]);
        times.zip(ends).map(|(from, to)| to.saturating_sub(from)).max().unwrap_or(0)
    }
}

/// Chooses the boundaries of all renditions, at most `most` plus one of each, by the rules of the module. `target` is
/// in nanoseconds.
pub(crate) fn choose(renditions: &[Candidates<'_>], target: i64, most: usize) -> Cuts {
    let alone = |r: &Candidates<'_>| spaced((r.points)(), |point| r.nanos(point), r.end(), target, most);
    let Some((first, [_, ..])) = renditions.split_first() else {
        return Cuts { chosen: renditions.iter().map(alone).collect(), aligned: true };
    };
    let tolerance = renditions.iter().map(|r| nanos(r.frame, r.timescale) / 2).min().unwrap_or(0);
    let end = renditions.iter().map(Candidates::end).max().unwrap_or(0);
    let time = |row: &Vec<SyncPoint>| row.first().map_or(0, |point| first.nanos(point));
    let rows = spaced(common(renditions, tolerance), time, end, target, most);
    let shared = |place: usize| rows.iter().filter_map(move |row| row.get(place).copied());
    let spacing = (0..).zip(renditions).map(|(place, r)| r.longest(shared(place))).max().unwrap_or(0);
    let column = |place| {
        let mut column = Vec::with_capacity(rows.len());
        column.extend(shared(place));
        column
    };
    let all_shared = || Cuts { chosen: (0..renditions.len()).map(column).collect(), aligned: true };
    if spacing <= target.saturating_mul(3) {
        return all_shared();
    }
    let own: Vec<Vec<SyncPoint>> = renditions.iter().map(alone).collect();
    let longest = renditions.iter().zip(&own).map(|(r, own)| r.longest(own.iter().copied())).max().unwrap_or(0);
    if spacing <= longest { all_shared() } else { Cuts { chosen: own, aligned: false } }
}

/// Returns which of `points` are boundaries, at most `most` plus one, the first always included.
fn spaced<T>(points: impl Iterator<Item = T>, time: impl Fn(&T) -> i64, end: i64, target: i64, most: usize) -> Vec<T> {
    let mut points = points.peekable();
    let mut chosen: Vec<T> = points.next().into_iter().collect();
    while let Some(from) = chosen.last().map(&time).filter(|_| chosen.len() <= most) {
        let want = from.saturating_add(target);
        let mut before = None;
        while let Some(point) = points.next_if(|point| time(point) < want) {
            before = Some(point);
        }
        let distance = |point: &T| time(point).abs_diff(want);
        let nearer = |before: &T| points.peek().is_none_or(|after| distance(before) <= distance(after));
        let nearest = match before.filter(nearer) {
            Some(before) => Some(before),
            None => points.next(),
        };
        match nearest.filter(|point| time(point) < end && distance(point) <= end.abs_diff(want)) {
            Some(point) => chosen.push(point),
            None => break,
        }
    }
    chosen
}

/// Returns the points that all renditions have within `tolerance` nanoseconds; each item has the point of every
/// rendition. The first points always count.
fn common<'a>(renditions: &'a [Candidates<'_>], tolerance: i64) -> impl Iterator<Item = Vec<SyncPoint>> + 'a {
    let mut lanes = renditions.iter().map(|r| (r.points)().peekable());
    let reference = lanes.next().into_iter().flatten().enumerate();
    let mut others: Vec<_> = renditions.iter().skip(1).zip(lanes.map(|lane| (lane, false))).collect();
    reference.filter_map(move |(place, point)| {
        let time = renditions.first().map_or(0, |r| r.nanos(&point));
        let mut row = Vec::with_capacity(others.len() + 1);
        row.push(point);
        for (rendition, (lane, advanced)) in &mut others {
            let first = lane.peek().copied().filter(|_| place == 0);
            while lane.next_if(|p| rendition.nanos(p) < time.saturating_sub(tolerance)).is_some() {
                *advanced = true;
            }
            let is_near = |p: &SyncPoint| *advanced && rendition.nanos(p) <= time.saturating_add(tolerance);
            row.push(first.or_else(|| lane.peek().copied().filter(|p| place > 0 && is_near(p)))?);
        }
        Some(row)
    })
}

/// Converts ticks to nanoseconds, rounded down.
pub(crate) fn nanos(ticks: i64, timescale: Timescale) -> i64 {
    let scale = i64::from(timescale.get());
    match ticks.checked_mul(1_000_000_000) {
        Some(scaled) => scaled.div_euclid(scale),
        None => {
            let exact = i128::from(ticks) * 1_000_000_000 / i128::from(scale);
            i64::try_from(exact).unwrap_or(if ticks > 0 { i64::MAX } else { i64::MIN })
        }
    }
}

/// Cuts a track by time: each sample goes to the segment that contains its presentation time.
pub(crate) struct TimeCut<'a> {
    /// Boundaries inside the track, in ticks, in ascending order.
    boundaries: &'a [i64],
    next: usize,
    first: Vec<u32>,
    time: Vec<i64>,
    bytes: Vec<u64>,
    /// Whether segments without samples are kept, and segments begin at their boundaries.
    keep_empty: bool,
}

impl<'a> TimeCut<'a> {
    /// Creates a cut that drops segments without samples. Segments begin with their first sample.
    pub(crate) fn by_sample(boundaries: &'a [i64]) -> Self {
        Self { boundaries, next: 0, first: Vec::new(), time: Vec::new(), bytes: Vec::new(), keep_empty: false }
    }

    /// Creates a cut with a segment between any two boundaries, with or without samples. The first begins at `start`.
    pub(crate) fn by_time(boundaries: &'a [i64], start: i64) -> Self {
        Self { keep_empty: true, first: vec![0], time: vec![start], bytes: vec![0], ..Self::by_sample(boundaries) }
    }

    pub(crate) fn add(&mut self, timed: &Timed) {
        let mut begin = self.first.is_empty();
        while let Some(boundary) = self.boundaries.get(self.next).filter(|b| **b <= timed.pts) {
            self.next += 1;
            begin = true;
            if self.keep_empty {
                self.open(timed.ordinal, *boundary);
            }
        }
        if begin && !self.keep_empty {
            let time = if self.first.is_empty() { timed.pts.max(0) } else { timed.pts };
            self.open(timed.ordinal, time);
        }
        if let Some(bytes) = self.bytes.last_mut() {
            *bytes = bytes.saturating_add(timed.sample.range.len());
        }
    }

    fn open(&mut self, ordinal: u32, time: i64) {
        self.first.push(ordinal);
        self.time.push(time);
        self.bytes.push(0);
    }

    /// Returns the segments of a track of `len` samples that ends at `end`, and the bytes of each.
    pub(crate) fn finish(mut self, timescale: Timescale, len: u32, end: i64) -> (Segments, Vec<u64>) {
        if self.keep_empty {
            while let Some(boundary) = self.boundaries.get(self.next) {
                self.next += 1;
                self.open(len, *boundary);
            }
        }
        if let Some(last) = self.time.last() {
            let end = end.max(last.saturating_add(1));
            self.time.push(end);
            self.first.push(len);
        }
        (Segments::new(timescale, self.first, self.time), self.bytes)
    }
}

/// Returns the ordinals at which boundaries divide a whole track. Empty segments are included: there is one more
/// ordinal than segments.
pub(crate) fn partition(timeline: &Timeline, table: &SampleTable, boundaries: &[i64]) -> Vec<u32> {
    let mut cut = TimeCut::by_time(boundaries, i64::MIN);
    timeline.walk(table, 0..timeline.len()).for_each(|t| cut.add(&t));
    cut.finish(Timescale::MILLIS, timeline.len(), i64::MAX).0.first.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn rendition(times: &[i64], end: i64) -> Candidates<'_> {
        let point = |(ordinal, time): (u32, &i64)| SyncPoint { ordinal, time: *time, bytes: 0, is_open: false };
        let points = move || -> Points<'_> { Box::new((0..).zip(times).map(point)) };
        Candidates { timescale: Timescale::MILLIS, points: Box::new(points), end, frame: 40 }
    }

    fn chosen(cuts: &Cuts) -> Vec<Vec<u32>> {
        cuts.chosen.iter().map(|points| points.iter().map(|point| point.ordinal).collect()).collect()
    }

    fn times(every: i64, end: i64) -> Vec<i64> {
        (0..end / every).map(|i| i * every).collect()
    }

    fn cut(points: &[i64], end: i64) -> Vec<i64> {
        spaced(points.iter().copied(), |point| *point, end, 4 * S, usize::MAX)
    }

    #[test]
    fn regular_gops_give_regular_segments() {
        assert_eq!(cut(&times(S, 10 * S), 10 * S), [0, 4 * S, 8 * S]);
        assert_eq!(cut(&times(3 * S, 12 * S), 12 * S), [0, 3 * S, 6 * S, 9 * S]);
        assert_eq!(cut(&times(5 * S / 2, 20 * S), 20 * S), [0, 5 * S, 10 * S, 15 * S]);
        assert_eq!(cut(&times(10 * S, 30 * S), 30 * S), [0, 10 * S, 20 * S]);
    }

    #[test]
    fn the_end_counts_as_a_boundary() {
        assert_eq!(cut(&[0, S], 5 * S), [0], "5 s is as near to 4 s as any other");
        assert_eq!(cut(&[0, 3 * S], 100 * S), [0, 3 * S]);
        assert_eq!(cut(&[0, 4 * S], 4 * S), [0], "nothing is after the end");
        assert_eq!(cut(&[], 4 * S), [0; 0]);
    }

    #[test]
    fn renditions_are_cut_at_common_points() {
        let (a, b) = (times(2000, 24_000), times(3000, 24_000));
        let cuts = choose(&[rendition(&a, 24_000), rendition(&b, 24_000)], 4 * S, usize::MAX);
        assert!(cuts.aligned);
        assert_eq!(chosen(&cuts), [[0, 3, 6, 9], [0, 2, 4, 6]]);
    }

    #[test]
    fn common_is_within_half_a_frame() {
        for (off, aligned) in [(20, true), (21, false)] {
            let a = times(1000, 60_000);
            let b: Vec<i64> = a.iter().map(|t| if *t == 0 { 0 } else { t + off }).collect();
            let cuts = choose(&[rendition(&a, 60_000), rendition(&b, 60_000)], 4 * S, usize::MAX);
            assert_eq!(cuts.aligned, aligned, "{off} ms");
        }
    }

    #[test]
    fn long_gops_are_no_reason_to_cut_apart() {
        let a = times(20_000, 60_000);
        let cuts = choose(&[rendition(&a, 60_000), rendition(&times(1000, 60_000), 60_000)], 4 * S, usize::MAX);
        assert!(cuts.aligned, "one rendition has segments of 20 s anyway");
        assert_eq!(chosen(&cuts), [[0, 1, 2], [0, 20, 40]]);
    }
}
