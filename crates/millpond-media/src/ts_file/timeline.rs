//! Timestamps of a programme as one timeline: wraps of the clock, and jumps where another time base begins.
//!
//! A time base lasts until the timestamps jump (ISO/IEC 13818-1 2.4.3.4, 2.7.6). The streams of a programme reach it one after the
//! other. A stream whose times jump joins the base that another stream has begun, if its times are near to those. Otherwise it begins
//! one.

use super::parts::Part;

/// Ticks after which a timestamp wraps.
const WRAP: i64 = 1 << 33;
const SECOND: i64 = 90_000;
/// Longest pause of a stream that goes on without a jump; and the greatest distance of streams in one time base.
const LONGEST_PAUSE: i64 = 10 * SECOND;
/// Shortest jump: back, or forth after the clock is said to have jumped.
const SHORTEST_JUMP: i64 = SECOND;
/// Time within which the streams follow a jump of the clock.
const ALERT: i64 = 3 * SECOND;
/// Most time bases. Further jumps are ignored.
const MOST_BASES: usize = 4096;

/// The time bases of a programme.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    bases: Vec<Base>,
    /// Jumps of the programme's clock.
    clock_jumps: u32,
}

/// A stretch of continuous timestamps. Its times are ticks since its first one.
#[derive(Debug)]
struct Base {
    /// Timestamp of its first frame.
    origin: u64,
    /// Latest time of a frame.
    latest: i64,
}

/// Position of one stream in the timeline.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// Time base and decoding time of the last frame; `None` before the first.
    last: Option<(usize, i64)>,
    clock_jumps: u32,
    /// Time until which the stream follows a jump of the clock.
    alert_until: i64,
}

/// Times of a frame in ticks of 90 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameTime {
    /// Number of the time base.
    pub(super) base: usize,
    pub(super) pts: i64,
    pub(super) dts: i64,
}

impl Timeline {
    /// Notes that the clock of the programme does not continue.
    pub(super) fn jump(&mut self) {
        self.clock_jumps = self.clock_jumps.wrapping_add(1);
    }

    /// Number of time bases so far.
    pub(super) fn bases(&self) -> usize {
        self.bases.len()
    }

    /// Returns the timestamp of the time 0 of the presentation. `shifts` is the result of [`shifts`] for the same `streams`.
    pub(super) fn zero(&self, shifts: &[i64], streams: &[&[Part]]) -> u64 {
        let first = streams.iter().filter_map(|parts| parts.first()).map(|part| part.base).min();
        let base = first.and_then(|first| self.bases.get(first).zip(shifts.get(first)));
        base.map_or(0, |(base, shift)| base.origin.wrapping_add_signed(shift.wrapping_neg()) & (WRAP as u64 - 1))
    }

    /// Returns the times of the next frame of a stream.
    pub(super) fn place(&mut self, cursor: &mut Cursor, pts: u64, dts: u64) -> FrameTime {
        let (base, decoded) = self.find(cursor, dts);
        cursor.last = Some((base, decoded));
        if let Some(base) = self.bases.get_mut(base) {
            base.latest = base.latest.max(decoded);
        }
        // Greater distances are errors of the stream.
        let reordered = Some(distance(dts, pts)).filter(|ticks| ticks.abs() <= LONGEST_PAUSE).unwrap_or(0);
        FrameTime { base, pts: decoded + reordered, dts: decoded }
    }

    /// Returns the time base from `first` on, and the time in it, of a timestamp that begins no base, such as that of a text. `None` if
    /// it is near to no base.
    pub(super) fn locate(&self, first: usize, pts: u64) -> Option<(usize, i64)> {
        self.near(first, pts)
    }

    fn find(&mut self, cursor: &mut Cursor, dts: u64) -> (usize, i64) {
        let Some((base, last)) = cursor.last else {
            cursor.clock_jumps = self.clock_jumps;
            return self.near(0, dts).unwrap_or_else(|| self.begin(dts, (0, 0)));
        };
        if std::mem::replace(&mut cursor.clock_jumps, self.clock_jumps) != self.clock_jumps {
            cursor.alert_until = last.saturating_add(ALERT);
        }
        let is_alert = last < cursor.alert_until;
        let longest = if is_alert { SHORTEST_JUMP } else { LONGEST_PAUSE };
        let time = self.time(base, last, dts);
        let others = self.bases.get(base).map_or(last, |base| base.latest);
        let pauses = !is_alert && time > last && time.saturating_sub(others) <= LONGEST_PAUSE;
        if (-SHORTEST_JUMP..=longest).contains(&(time - last)) || pauses {
            return (base, time);
        }
        cursor.alert_until = i64::MIN;
        self.near(base + 1, dts).unwrap_or_else(|| self.begin(dts, (base, last + 1)))
    }

    /// Returns the time base from `first` on, the latest one preferred, whose times are near to a timestamp; and the time in it.
    fn near(&self, first: usize, dts: u64) -> Option<(usize, i64)> {
        (first..self.bases.len()).rev().find_map(|number| {
            let latest = self.bases.get(number)?.latest;
            let time = self.time(number, latest, dts);
            ((time - latest).abs() <= LONGEST_PAUSE).then_some((number, time))
        })
    }

    /// Returns the time of a timestamp in a base, if it is within half a wrap of `reference`.
    fn time(&self, base: usize, reference: i64, dts: u64) -> i64 {
        let origin = self.bases.get(base).map_or(0, |base| base.origin);
        reference + distance(origin.wrapping_add_signed(reference), dts)
    }

    /// Begins a time base. If there are too many, returns `otherwise`.
    fn begin(&mut self, origin: u64, otherwise: (usize, i64)) -> (usize, i64) {
        if self.bases.len() >= MOST_BASES {
            return otherwise;
        }
        self.bases.push(Base { origin, latest: 0 });
        (self.bases.len() - 1, 0)
    }
}

/// Returns the ticks from one timestamp to another, at most half a wrap either way.
fn distance(from: u64, to: u64) -> i64 {
    let forth = (to.wrapping_sub(from) & (WRAP as u64 - 1)).cast_signed();
    if forth >= WRAP / 2 { forth - WRAP } else { forth }
}

/// Returns the ticks by which the times of each base are later in the presentation, which begins at 0. Each base follows the one
/// before without a gap, and no stream overlaps itself. `streams` are the parts of each stream, in order.
pub(super) fn shifts(bases: usize, streams: &[&[Part]]) -> Vec<i64> {
    // Next part and end of the presentation of each stream.
    let mut ends: Vec<(usize, Option<i64>)> = vec![(0, None); streams.len()];
    let mut shifts = Vec::with_capacity(bases);
    for base in 0..bases {
        // First time and end of each stream in the base.
        let mut here = Vec::with_capacity(streams.len());
        for (parts, (next, end)) in streams.iter().zip(&mut ends) {
            let parts = parts.get(*next..).unwrap_or_default().iter().take_while(|part| part.base == base);
            let count = parts.clone().count();
            here.push((parts.map(|part| (part.first, part.end)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))), *end));
            *next += count;
        }
        let begins = here.iter().filter_map(|(times, _)| Some(times.as_ref()?.0)).min().unwrap_or(0);
        let all_end = here.iter().filter_map(|(_, end)| *end).max().unwrap_or(0);
        let follows = here.iter().filter_map(|(times, end)| Some((*end)?.saturating_sub(times.as_ref()?.0))).max();
        let shift = follows.unwrap_or_else(|| all_end.saturating_sub(begins));
        shifts.push(shift);
        for ((times, _), (_, end)) in here.iter().zip(&mut ends) {
            *end = times.map(|(_, until)| until.saturating_add(shift)).or(*end);
        }
    }
    shifts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{movie::sample_table::SampleTable, units::Timescale};

    const MASK: u64 = WRAP as u64 - 1;

    fn places(timeline: &mut Timeline, cursor: &mut Cursor, times: &[u64]) -> Vec<(usize, i64)> {
        let place = |dts: &u64| timeline.place(cursor, (dts + 10) & MASK, *dts);
        times.iter().map(place).map(|time| (time.base, time.dts)).collect()
    }

    #[test]
    fn wraps_are_continuous() {
        let (mut timeline, mut cursor) = (Timeline::default(), Cursor::default());
        let times = [MASK - 3599, 0, 3600];
        assert_eq!(places(&mut timeline, &mut cursor, &times), [(0, 0), (0, 3600), (0, 7200)]);
        assert_eq!(timeline.place(&mut cursor, 7210, 7200), FrameTime { base: 0, pts: 10_810, dts: 10_800 });
    }

    #[test]
    fn streams_follow_one_another_into_a_time_base() {
        let (mut timeline, mut pictures, mut sound) = (Timeline::default(), Cursor::default(), Cursor::default());
        assert_eq!(places(&mut timeline, &mut pictures, &[900_000, 990_000]), [(0, 0), (0, 90_000)]);
        assert_eq!(places(&mut timeline, &mut sound, &[890_000, 980_000]), [(0, -10_000), (0, 80_000)]);
        // The pictures go back by nine seconds, the sound still has some frames.
        assert_eq!(places(&mut timeline, &mut pictures, &[180_000, 270_000]), [(1, 0), (1, 90_000)]);
        assert_eq!(places(&mut timeline, &mut sound, &[990_000, 171_000]), [(0, 90_000), (1, -9000)]);
        // Forth by a day.
        assert_eq!(places(&mut timeline, &mut sound, &[7_776_000_000]), [(2, 0)]);
        assert_eq!(places(&mut timeline, &mut pictures, &[7_776_000_090]), [(2, 90)]);
    }

    #[test]
    fn pauses_are_no_jumps() {
        let (mut timeline, mut pictures, mut sound) = (Timeline::default(), Cursor::default(), Cursor::default());
        places(&mut timeline, &mut sound, &[0]);
        let seconds: Vec<u64> = (0..60).map(|second| second * 90_000).collect();
        places(&mut timeline, &mut pictures, &seconds);
        assert_eq!(places(&mut timeline, &mut sound, &[59 * 90_000]), [(0, 59 * 90_000)]);
        assert_eq!(places(&mut timeline, &mut pictures, &[71 * 90_000]), [(1, 0)], "both pause");
    }

    #[test]
    fn a_clock_that_jumps_makes_short_jumps_known() {
        let (mut timeline, mut cursor) = (Timeline::default(), Cursor::default());
        assert_eq!(places(&mut timeline, &mut cursor, &[0, 450_000]), [(0, 0), (0, 450_000)], "a loss");
        timeline.jump();
        assert_eq!(places(&mut timeline, &mut cursor, &[453_600, 900_000]), [(0, 453_600), (1, 0)]);
    }

    #[test]
    fn bases_follow_without_gap_and_overlap() {
        let (kind, start, clock) = (0, 0, Timescale::MPEG);
        let part = |base, first, end| Part { base, kind, start, clock, first, end, samples: SampleTable::default() };
        // In the first base, the pictures are of two kinds.
        let pictures = [part(0, 1000, 51_000), part(0, 51_000, 91_000), part(1, 500, 90_500), part(3, 0, 10)];
        let sound = [part(0, 900, 90_000), part(1, 100, 90_100)];
        let late = [part(2, 7, 17)];
        // In the second base the pictures follow at once, and the sound after 600 ticks.
        let found = shifts(4, &[&pictures, &sound, &late]);
        assert_eq!(found, [-900, 89_600, 180_100 - 7, 180_100]);
        assert_eq!(shifts(1, &[]), [0]);
    }

    #[test]
    fn the_presentation_begins_at_the_earliest_frame() {
        let clock = Timescale::MPEG;
        let part =
            |base, first, end| Part { base, kind: 0, start: 0, clock, first, end, samples: SampleTable::default() };
        let (mut timeline, mut pictures, mut sound) = (Timeline::default(), Cursor::default(), Cursor::default());
        places(&mut timeline, &mut pictures, &[1000]);
        places(&mut timeline, &mut sound, &[MASK - 999]);
        let streams = [&[part(0, 10, 3600)][..], &[part(0, -2000, 1000)]];
        assert_eq!(timeline.zero(&shifts(1, &streams), &streams), MASK - 999);
        assert_eq!(timeline.zero(&shifts(1, &streams[..1]), &streams[..1]), 1010);
        assert_eq!(timeline.zero(&[], &[]), 0);
    }
}
