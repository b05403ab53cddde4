//! The samples of one track: a table for each time base and each kind of frames, and tables that are joined.

use super::timeline::FrameTime;
use crate::{
    movie::sample_table::{SampleTable, SampleTableBuilder},
    units::{ByteRange, Timescale},
};

/// Duration of a picture whose end is not known, in ticks of 90 kHz.
const USUAL: i64 = 3600;
/// Longest distance of pictures that is taken for their duration.
const LONGEST: i64 = 90_000;
/// Longest overlap of a frame of sound with those before, as a part of a second, by which it is only moved.
const OVERLAP: i64 = 10;
/// Ticks of the sound's clock by which rounding explains a gap between two time bases.
const ROUNDED: i64 = 2;

/// Samples of one kind in one time base.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Number of the time base.
    pub(super) base: usize,
    /// Kind of its frames. Frames of one kind need one decoder.
    pub(super) kind: usize,
    /// Number of its first sample in the track.
    pub(super) start: u32,
    /// Clock of its samples.
    pub(super) clock: Timescale,
    /// Least time of presentation, and end of presentation, in ticks of 90 kHz.
    pub(super) first: i64,
    pub(super) end: i64,
    /// Times are ticks of `clock` since the beginning of the base.
    pub(super) samples: SampleTable,
}

/// Frames that need one decoder: their number among the kinds of the track, and the clock of their samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameKind {
    pub(super) kind: usize,
    /// 90 kHz for pictures, the sampling rate for sound.
    pub(super) clock: Timescale,
}

/// Collects the samples of one track.
#[derive(Debug, Default)]
pub(super) struct Parts {
    finished: Vec<Part>,
    open: Option<Open>,
    count: u32,
}

#[derive(Clone, Debug)]
struct Open {
    base: usize,
    of: FrameKind,
    start: u32,
    first: i64,
    end: i64,
    /// Distance of pictures.
    usual: i64,
    table: SampleTableBuilder,
}

/// The samples of several parts.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) samples: SampleTable,
    /// Least time of presentation: on the clock of the presentation, in ticks of 90 kHz, and on that of the samples.
    pub(super) first: i64,
    pub(super) media_time: i64,
}

impl Parts {
    /// Number of samples so far.
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Adds a picture.
    pub(super) fn picture(&mut self, of: FrameKind, time: FrameTime, place: ByteRange, is_sync: bool) {
        let open = self.open(of, time);
        let last = open.table.last_dts();
        // Decoding times rise.
        let dts = if open.table.is_empty() { time.dts } else { time.dts.max(last + 1) };
        if !open.table.is_empty() && dts - last <= LONGEST {
            open.usual = dts - last;
        }
        open.first = open.first.min(time.pts);
        open.end = open.end.max(time.pts.max(dts).saturating_add(open.usual));
        open.table.set_start_dts(dts);
        open.table.push(
            place.start,
            narrow(place.len()),
            narrow(open.usual.unsigned_abs()),
            offset(time.pts - dts),
            is_sync,
        );
        self.count += 1;
    }

    /// Returns when a frame of sound of `length` samples is presented, on the clock of its kind: at the end of the frame before, if
    /// rounding explains the difference. `None` if it overlaps others, and is left out.
    pub(super) fn sound_time(&mut self, of: FrameKind, time: FrameTime, length: u32) -> Option<i64> {
        let start = Timescale::MPEG.convert(time.pts, of.clock);
        let overlap = i64::from(of.clock.get()) / OVERLAP;
        let open = self.open(of, time);
        let next = open.table.next_dts();
        let late = start.saturating_sub(next);
        match late {
            _ if open.table.is_empty() => Some(start),
            _ if late > i64::from(length) / 2 => Some(start),
            _ if late >= -overlap => Some(next),
            _ => None,
        }
    }

    /// Adds a frame of sound at the time that [`sound_time`](Self::sound_time) returned.
    pub(super) fn sound(&mut self, at: i64, length: u32, place: ByteRange) {
        let Some(open) = &mut self.open else { return };
        self.count += 1;
        open.table.set_start_dts(at);
        open.table.push(place.start, narrow(place.len()), length, 0, true);
        open.end = open.of.clock.convert(open.table.next_dts(), Timescale::MPEG);
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let finished = self.finished.iter().map(|part| part.samples.heap_bytes()).sum::<usize>();
        let open = self.open.as_ref().map_or(0, |open| open.table.heap_bytes());
        self.finished.capacity() * size_of::<Part>() + finished + open
    }

    /// Returns the samples so far of the first kind in the first time base; `None` for a track that begins in another base.
    pub(super) fn first(&self) -> Option<Part> {
        let open = || self.open.clone().and_then(Open::finish);
        self.finished.first().cloned().or_else(open).filter(|part| part.base == 0)
    }

    /// Returns the parts, in order of their samples and time bases.
    pub(super) fn finish(mut self) -> Vec<Part> {
        self.close();
        self.finished
    }

    /// Returns the part of a frame's kind and time base.
    fn open(&mut self, of: FrameKind, time: FrameTime) -> &mut Open {
        if self.open.as_ref().is_some_and(|open| (open.base, open.of) != (time.base, of)) {
            self.close();
        }
        let (first, start, table) = (time.pts, self.count, SampleTableBuilder::default());
        self.open.get_or_insert(Open { base: time.base, of, start, first, end: first, usual: USUAL, table })
    }

    fn close(&mut self) {
        self.finished.extend(self.open.take().and_then(Open::finish));
    }
}

impl Open {
    /// Returns its samples, if there are any.
    fn finish(self) -> Option<Part> {
        let Self { base, of: FrameKind { kind, clock }, start, first, end, table, .. } = self;
        (!table.is_empty()).then(|| Part { base, kind, start, clock, first, end, samples: table.finish() })
    }
}

/// Returns the decoding time of a part's first sample in the presentation, on the clock of its samples. `shifts` are the ticks of 90 kHz
/// by which each time base is later in the presentation.
pub(super) fn start(part: &Part, shifts: &[i64]) -> i64 {
    part.samples.start_dts().saturating_add(Timescale::MPEG.convert(shift(part, shifts), part.clock))
}

fn shift(part: &Part, shifts: &[i64]) -> i64 {
    shifts.get(part.base).copied().unwrap_or(0)
}

/// Joins parts with one clock. Their decoding times count from `zero`, a time in the presentation on that clock.
pub(super) fn join(parts: &[&Part], shifts: &[i64], clock: Timescale, zero: i64) -> Joined {
    let moved = |part: &Part| Timescale::MPEG.convert(shift(part, shifts), clock);
    let first = parts.iter().map(|part| part.first.saturating_add(shift(part, shifts))).min().unwrap_or(0);
    let (mut table, mut media_time) = (SampleTable::builder(), i64::MAX);
    for part in parts.iter().copied() {
        let mut later = moved(part).saturating_sub(zero);
        let gap = part.samples.start_dts().saturating_add(later).saturating_sub(table.next_dts());
        if clock != Timescale::MPEG && !table.is_empty() && gap.abs() <= ROUNDED {
            later -= gap;
        }
        for sample in &part.samples {
            let (pts, dts) = (sample.pts().saturating_add(later), sample.dts.saturating_add(later));
            let dts = if table.is_empty() { dts } else { dts.max(table.last_dts() + 1) };
            table.set_start_dts(dts);
            table.push(sample.range.start, narrow(sample.range.len()), sample.duration, offset(pts - dts), sample.sync);
            media_time = media_time.min(pts);
        }
    }
    Joined { samples: table.finish(), first, media_time }
}

fn offset(ticks: i64) -> i32 {
    ticks.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURES: FrameKind = FrameKind { kind: 0, clock: Timescale::MPEG };

    fn at(base: usize, pts: i64, dts: i64) -> FrameTime {
        FrameTime { base, pts, dts }
    }

    fn times(samples: &SampleTable) -> Vec<(i64, i64)> {
        samples.iter().map(|sample| (sample.dts, sample.pts())).collect()
    }

    #[test]
    fn pictures_of_two_bases_follow_one_another() {
        let mut parts = Parts::default();
        for (base, pts, dts) in [(0, 10_000, 3000), (0, 6400, 6600), (0, 6500, 6600), (1, 100, -50)] {
            parts.picture(PICTURES, at(base, pts, dts), ByteRange::at(0, 10), true);
        }
        assert_eq!(parts.len(), 4);
        let parts = parts.finish();
        let ends: Vec<_> = parts.iter().map(|part| (part.base, part.first, part.end)).collect();
        assert_eq!(ends, [(0, 6400, 13_600), (1, 100, 3700)]);
        let shifts = [-6400, 7100];
        let joined = join(&parts.iter().collect::<Vec<_>>(), &shifts, Timescale::MPEG, start(&parts[0], &shifts));
        assert_eq!(times(&joined.samples), [(0, 7000), (3600, 3400), (3601, 3500), (10_450, 10_600)]);
        assert_eq!((joined.first, joined.media_time), (0, 3400));
    }

    #[test]
    fn kinds_are_parts() {
        let mut parts = Parts::default();
        for (kind, base, time) in [(0, 0, 0), (0, 0, 3600), (1, 0, 7200), (0, 0, 10_800), (0, 1, 0)] {
            parts.picture(FrameKind { kind, ..PICTURES }, at(base, time, time), ByteRange::at(0, 10), true);
        }
        let parts = parts.finish();
        let found: Vec<_> = parts.iter().map(|part| (part.kind, part.base, part.start, part.samples.len())).collect();
        assert_eq!(found, [(0, 0, 0, 2), (1, 0, 2, 1), (0, 0, 3, 1), (0, 1, 4, 1)]);
        let main: Vec<&Part> = parts.iter().filter(|part| part.kind == 0).collect();
        let joined = join(&main, &[0, 14_400], Timescale::MPEG, 0);
        assert_eq!(times(&joined.samples), [(0, 0), (3600, 3600), (10_800, 10_800), (14_400, 14_400)]);
        let other = join(&[&parts[1]], &[0, 14_400], Timescale::MPEG, 0);
        assert_eq!((times(&other.samples), other.first, other.media_time), (vec![(7200, 7200)], 7200, 7200));
    }

    #[test]
    fn sound_follows_by_samples() {
        let clock = Timescale::new(48_000).unwrap();
        let (mut parts, of) = (Parts::default(), FrameKind { kind: 0, clock });
        // A time that is rounded to milliseconds, a lost frame, a repetition, and another time base.
        for (base, pts) in [(0, 900), (0, 2790), (0, 6660), (0, -9000), (0, 8580), (1, 77)] {
            let time = at(base, pts, pts);
            if let Some(start) = parts.sound_time(of, time, 1024) {
                parts.sound(start, 1024, ByteRange::at(0, 10));
            }
        }
        let parts = parts.finish();
        assert_eq!(parts.iter().map(|part| part.samples.len()).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(parts[0].end, 10_500);
        let shifts = [-900, 10_500 - 900 - 77];
        let joined = join(&parts.iter().collect::<Vec<_>>(), &shifts, clock, start(&parts[0], &shifts));
        let decoded: Vec<i64> = joined.samples.iter().map(|sample| sample.dts).collect();
        assert_eq!(decoded, [0, 1024, 3072, 4096, 5120]);
        assert_eq!((joined.first, joined.media_time), (0, 0));
    }
}
