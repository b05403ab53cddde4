//! Where segments begin.
//!
//! Video is cut at sync samples. From one boundary, the next is the sync sample nearest (in presentation time) to
//! boundary plus target duration, the earlier of two as near; the end of the track counts as one. So a regular
//! GOP gives regular segments, each a whole number of GOPs, and a GOP longer than the target a segment of its own.
//!
//! The renditions of one asset are cut at common points: sync samples that every rendition has within half a
//! frame. When cutting so would make segments longer than three target durations (and longer than the renditions
//! have them anyway), each is cut by itself and players can't switch between them without a hitch.
//!
//! Everything else is cut in time, at the boundaries of the video: a sample belongs to the segment in which its
//! presentation time lies.

use crate::{
    digits,
    timeline::{Timed, Timeline},
};
use millpond_media::{sample_table::SampleTable, units::Timescale};
use std::ops::Range;

/// The segments of one track. Numbers start at 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Segments {
    timescale: Timescale,
    /// First ordinal of each segment, and the one after the last; empty for tracks without samples.
    first: Box<[u32]>,
    /// Presentation time of each segment's start, and of the end of the last.
    time: Box<[i64]>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number, from 1.
    pub number: u32,
    /// Ordinals of its samples in the track's timeline, in decode order.
    pub samples: Range<u32>,
    /// Presentation time of its start, in ticks.
    pub start: i64,
    /// Its length, in ticks.
    pub duration: i64,
    /// The clock of `start` and `duration`.
    pub timescale: Timescale,
}

impl Segments {
    pub(crate) fn new(timescale: Timescale, first: Vec<u32>, time: Vec<i64>) -> Self {
        Self { timescale, first: first.into(), time: time.into() }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.time.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Segment `number`.
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

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        (1..=self.count()).filter_map(|n| self.get(n))
    }

    /// The clock of the times.
    #[must_use]
    pub const fn timescale(&self) -> Timescale {
        self.timescale
    }

    /// Starts of the segments and the end of the last, in ticks.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        &self.time
    }

    /// Lengths in millionths of a second.
    pub(crate) fn micros(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let scale = self.timescale.get();
        self.time.windows(2).map(move |w| digits::micros(w[1].saturating_sub(w[0]), scale))
    }

    /// Presentation time at which the last one ends, in ticks.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.time.last().copied().unwrap_or(0)
    }

    /// Whether the other has the same boundaries on the same clock.
    pub(crate) fn same_times(&self, other: &Self) -> bool {
        self.timescale == other.timescale && self.time == other.time
    }

    /// Bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.first.len() * size_of::<u32>() + self.time.len() * size_of::<i64>()
    }
}

/// A sync sample as a place to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncPoint {
    pub(crate) ordinal: u32,
    /// Presentation time in ticks.
    pub(crate) time: i64,
    /// Bytes of the samples before it.
    pub(crate) bytes: u64,
}

/// The sync samples of one rendition, in order of time.
pub(crate) struct Candidates {
    pub(crate) timescale: Timescale,
    pub(crate) points: Vec<SyncPoint>,
    /// End of the track in ticks.
    pub(crate) end: i64,
    /// The shortest frame in ticks.
    pub(crate) frame: i64,
}

/// Where the renditions are cut.
pub(crate) struct Cuts {
    /// For each rendition, which of its points begin a segment; the first always does.
    pub(crate) chosen: Vec<Vec<usize>>,
    /// Whether the boundaries are common to all.
    pub(crate) aligned: bool,
}

impl Candidates {
    fn nanos(&self) -> Vec<i64> {
        self.points.iter().map(|p| nanos(p.time, self.timescale)).collect()
    }
}

/// Chooses the boundaries of all renditions. See the module's rules. `target` in nanoseconds.
pub(crate) fn choose(renditions: &[Candidates], target: i64) -> Cuts {
    let clocks: Vec<Vec<i64>> = renditions.iter().map(Candidates::nanos).collect();
    let ends: Vec<i64> = renditions.iter().map(|r| nanos(r.end, r.timescale)).collect();
    let alone = || clocks.iter().zip(&ends).map(|(points, end)| spaced(points, *end, target));
    if clocks.len() < 2 {
        return Cuts { chosen: alone().collect(), aligned: true };
    }
    let tolerance = renditions.iter().map(|r| nanos(r.frame, r.timescale) / 2).min().unwrap_or(0);
    let common = common(&clocks, tolerance);
    let times: Vec<i64> = common.iter().filter_map(|c| clocks[0].get(*c.first()?).copied()).collect();
    let end = ends.iter().copied().max().unwrap_or(0);
    let picked = spaced(&times, end, target);
    let shared: Vec<Vec<usize>> = (0..clocks.len()).map(|r| picked.iter().map(|p| common[*p][r]).collect()).collect();
    let longest = |chosen: &[Vec<usize>]| {
        let each = chosen.iter().zip(&clocks).zip(&ends);
        each.map(|((c, points), end)| longest(c, points, *end)).max().unwrap_or(0)
    };
    let spacing = longest(&shared);
    if spacing <= target.saturating_mul(3) {
        return Cuts { chosen: shared, aligned: true };
    }
    let own: Vec<Vec<usize>> = alone().collect();
    if spacing <= longest(&own) {
        return Cuts { chosen: shared, aligned: true };
    }
    Cuts { chosen: own, aligned: false }
}

/// Which of `points` to cut at; always the first.
fn spaced(points: &[i64], end: i64, target: i64) -> Vec<usize> {
    let mut chosen = Vec::new();
    let mut at = 0;
    while let Some(from) = points.get(at) {
        chosen.push(at);
        let want = from.saturating_add(target);
        let after = at + 1 + points[at + 1..].partition_point(|p| *p < want);
        let before = (after - 1 > at).then(|| after - 1);
        let after = (after < points.len()).then_some(after);
        let distance = |place: usize| points[place].abs_diff(want);
        let nearest = [before, after].into_iter().flatten().min_by_key(|p| distance(*p));
        match nearest.filter(|p| points[*p] < end && distance(*p) <= end.abs_diff(want)) {
            Some(place) => at = place,
            None => break,
        }
    }
    chosen
}

/// Points that all clocks have within `tolerance`: for each, its place in every clock. The first is always one.
fn common(clocks: &[Vec<i64>], tolerance: i64) -> Vec<Vec<usize>> {
    let Some((reference, others)) = clocks.split_first() else { return Vec::new() };
    let mut cursors = vec![0_usize; others.len()];
    let mut found = Vec::new();
    for (place, time) in reference.iter().enumerate() {
        let mut places = Vec::with_capacity(clocks.len());
        places.push(place);
        for (other, cursor) in others.iter().zip(&mut cursors) {
            while other.get(*cursor).is_some_and(|t| *t < time.saturating_sub(tolerance)) {
                *cursor += 1;
            }
            if place == 0 {
                places.push(0);
            } else if other.get(*cursor).is_some_and(|t| *cursor > 0 && *t <= time.saturating_add(tolerance)) {
                places.push(*cursor);
            }
        }
        if places.len() == clocks.len() {
            found.push(places);
        }
    }
    found
}

fn longest(chosen: &[usize], points: &[i64], end: i64) -> i64 {
    let times = chosen.iter().filter_map(|c| points.get(*c).copied());
    let ends = times.clone().skip(1).chain([end]);
    times.zip(ends).map(|(from, to)| to.saturating_sub(from)).max().unwrap_or(0)
}

/// Ticks in nanoseconds, rounded down.
fn nanos(ticks: i64, timescale: Timescale) -> i64 {
    let scale = i64::from(timescale.get());
    match ticks.checked_mul(1_000_000_000) {
        Some(scaled) => scaled.div_euclid(scale),
        None => {
            let exact = i128::from(ticks) * 1_000_000_000 / i128::from(scale);
            i64::try_from(exact).unwrap_or(if ticks > 0 { i64::MAX } else { i64::MIN })
        }
    }
}

/// Cuts a track in time: each sample goes to the segment that holds its presentation time.
pub(crate) struct TimeCut<'a> {
    /// Boundaries inside the track, in ticks, rising.
    boundaries: &'a [i64],
    next: usize,
    first: Vec<u32>,
    time: Vec<i64>,
    bytes: Vec<u64>,
    /// Whether segments without samples stay, and begin at their boundary.
    keep_empty: bool,
}

impl<'a> TimeCut<'a> {
    /// A cut that drops segments without samples; segments begin with their first sample.
    pub(crate) fn by_sample(boundaries: &'a [i64]) -> Self {
        Self { boundaries, next: 0, first: Vec::new(), time: Vec::new(), bytes: Vec::new(), keep_empty: false }
    }

    /// A cut with a segment between any two boundaries, with samples or without; the first begins at `start`.
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

    /// The segments of a track of `len` samples that ends at `end`, and the bytes of each.
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

/// Ordinals of the samples of a whole track between boundaries, also where there are none: one more than segments.
pub(crate) fn partition(timeline: &Timeline, table: &SampleTable, boundaries: &[i64]) -> Vec<u32> {
    let mut cut = TimeCut::by_time(boundaries, i64::MIN);
    timeline.walk(table, 0..timeline.len()).for_each(|t| cut.add(&t));
    cut.finish(Timescale::MILLIS, timeline.len(), i64::MAX).0.first.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn rendition(times: &[i64], end: i64) -> Candidates {
        let points = (0..).zip(times).map(|(ordinal, time)| SyncPoint { ordinal, time: *time, bytes: 0 }).collect();
        Candidates { timescale: Timescale::MILLIS, points, end, frame: 40 }
    }

    fn times(every: i64, end: i64) -> Vec<i64> {
        (0..end / every).map(|i| i * every).collect()
    }

    fn cut(points: &[i64], end: i64) -> Vec<i64> {
        spaced(points, end, 4 * S).into_iter().map(|c| points[c]).collect()
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
        let cuts = choose(&[rendition(&a, 24_000), rendition(&b, 24_000)], 4 * S);
        assert!(cuts.aligned);
        assert_eq!(cuts.chosen, [[0, 3, 6, 9], [0, 2, 4, 6]]);
    }

    #[test]
    fn common_is_within_half_a_frame() {
        for (off, aligned) in [(20, true), (21, false)] {
            let a = times(1000, 60_000);
            let b: Vec<i64> = a.iter().map(|t| if *t == 0 { 0 } else { t + off }).collect();
            let cuts = choose(&[rendition(&a, 60_000), rendition(&b, 60_000)], 4 * S);
            assert_eq!(cuts.aligned, aligned, "{off} ms");
        }
    }

    #[test]
    fn long_gops_are_no_reason_to_cut_apart() {
        let a = times(20_000, 60_000);
        let cuts = choose(&[rendition(&a, 60_000), rendition(&times(1000, 60_000), 60_000)], 4 * S);
        assert!(cuts.aligned, "one rendition has segments of 20 s anyway");
        assert_eq!(cuts.chosen, [[0, 1, 2], [0, 20, 40]]);
    }
}
