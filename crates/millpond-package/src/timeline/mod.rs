//! The samples of one track in the order and at the times in which they are presented.
//!
//! A track's edit list (ISO/IEC 14496-12 8.6.6) selects runs of samples and their presentation times. A [`Timeline`]
//! numbers the samples of all runs consecutively (their *ordinals*, in decode order). Each sample gets a decode time
//! and a presentation time in ticks of the track; presentation time 0 is the start of the edit list.
//!
//! Rules:
//! - The presentation time follows the edit list: composition time plus the shift of the run.
//! - Decode times of a run are moved so that its first sample is decoded when it is presented. Other samples may then
//!   be presented before they are decoded. So all decode times are written earlier by the greatest such difference (the
//!   track's *reorder* time).
//! - Some samples are decoded but not shown (preroll: presented before the run's start). Preroll of audio at the start keeps its
//!   true time: it is before 0, and the edit list of the init segment tells players to decode and drop it. Preroll of pictures at
//!   the start keeps its time too, if the track's clock has no ticks for it. Indexes refine such clocks, except for times that
//!   would exceed 32 bits. Other preroll is *squeezed*, for two reasons: players drop pictures before 0, and in later runs that
//!   time belongs to samples shown earlier. It is presented in order within a short window that begins at the run's start. The
//!   first shown sample follows it, less than half a frame late.
//! - Decode times never decrease from run to run. If they would, each is one tick after the last.

pub(crate) mod bandwidth;
pub(crate) mod blocks;
pub(crate) mod grid;
pub(crate) mod joints;
pub(crate) mod loads;
pub(crate) mod outlined;
pub(crate) mod scan;
pub(crate) mod segmentation;

use millpond_media::{
    Hidden, Sample, SampleTable, Span,
    movie::{Track, TrackKind},
    spans,
    units::Timescale,
};
use std::ops::Range;

/// Presentation of each sample of a track, by the rules of the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    runs: Box<[Run]>,
    len: u32,
}

/// A sample with its times in ticks of the track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Number among the presented samples, from 0.
    pub ordinal: u32,
    /// The sample of the index. Its own times don't count here.
    pub sample: Sample,
    /// Decode time.
    pub dts: i64,
    /// Presentation time.
    pub pts: i64,
}

/// Consecutive samples under one edit.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    first: u32,
    samples: Range<u32>,
    dts_shift: i64,
    pts_shift: i64,
    dts_floor: i64,
    step: i64,
    squeeze: Option<Squeeze>,
    end: i64,
}

/// Movement of preroll: from `lowest..start` to `start..start + window`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Squeeze {
    lowest: i64,
    start: i64,
    window: i64,
    /// Ticks from the start to the second sample shown.
    gap: i64,
}

/// Times of squeezed samples, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Squeezed {
    /// First and last time. The last time is the time of the first shown sample.
    pub(crate) window: (i64, i64),
    /// Ticks between two samples.
    pub(crate) step: i64,
    /// Time of the second sample shown.
    pub(crate) second: i64,
}

/// Clock on which squeezed samples of a track are as near to each other as a transport stream can tell.
const FINEST: u32 = Timescale::MPEG.get();

impl Timeline {
    /// Creates the timeline of `track`, with `origin` ticks of the track subtracted from every time.
    #[must_use]
    pub fn new(track: &Track, movie_timescale: Timescale, origin: i64) -> Self {
        Self::of(track, spans(track, movie_timescale), origin)
    }

    /// Creates the timeline of spans of `track`, with `origin` ticks of the track subtracted from every time.
    pub(crate) fn of(track: &Track, spans: impl IntoIterator<Item = Span>, origin: i64) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let mut len = 0_u32;
        for span in spans {
            let span = moved(span, origin);
            let Some(count) = span.samples.end.checked_sub(span.samples.start).filter(|c| *c > 0) else { continue };
            let Some(next) = len.checked_add(count) else { break };
            let previous = runs.last().and_then(|r| r.last(&track.samples)).map(|t| t.dts);
            let Some(run) = Run::new(track, span, len, previous) else { continue };
            runs.push(run);
            len = next;
        }
        Self { runs: runs.into(), len }
    }

    /// Returns the part of the timeline with the samples of `ordinals`, which are numbered from 0 again. Their times stay.
    pub(crate) fn part(&self, ordinals: Range<u32>) -> Self {
        let mut len = 0_u32;
        let part = |run: &Run| {
            let from = ordinals.start.clamp(run.first, run.end_ordinal()) - run.first;
            let to = ordinals.end.clamp(run.first + from, run.end_ordinal()) - run.first;
            let samples = run.samples.start + from..run.samples.start + to;
            let dts_floor = run.dts_floor.saturating_add(i64::from(from).saturating_mul(run.step));
            let first = len;
            len += to - from;
            (from < to).then(|| Run { first, samples, dts_floor, ..run.clone() })
        };
        let runs: Vec<Run> = self.runs.iter().filter_map(part).collect();
        Self { runs: runs.into(), len }
    }

    /// Returns the same presentation for a table of `len` samples of later fragments, or of the first ones.
    pub(crate) fn of_fragments(&self, len: u32, is_first: bool) -> Self {
        let run = self.runs.first().map(|run| {
            let run = Run { first: 0, samples: 0..len, end: i64::MAX, ..run.clone() };
            if is_first { run } else { Run { dts_floor: i64::MIN / 2, step: 1, squeeze: None, ..run } }
        });
        Self { len: if run.is_some() { len } else { 0 }, runs: run.into_iter().collect() }
    }

    /// Presentation time minus composition time of the first run.
    pub(crate) fn first_shift(&self) -> Option<i64> {
        self.runs.first().map(|run| run.pts_shift)
    }

    /// Number of samples presented.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether no sample is presented.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the samples of `ordinals` that exist, in decode order.
    pub fn walk<'a>(&'a self, table: &'a SampleTable, ordinals: Range<u32>) -> impl Iterator<Item = Timed> + 'a {
        let after = self.runs.partition_point(|run| run.end_ordinal() <= ordinals.start);
        let runs = self.runs.get(after..).unwrap_or_default().iter();
        let end = ordinals.end;
        runs.take_while(move |run| run.first < end).flat_map(move |run| {
            let from = ordinals.start.clamp(run.first, run.end_ordinal());
            let to = ordinals.end.clamp(from, run.end_ordinal());
            let base = run.samples.start;
            table.range(base + (from - run.first)..base + (to - run.first)).map(|s| run.timed(s))
        })
    }

    /// Returns the sample of one ordinal.
    #[must_use]
    pub fn at(&self, table: &SampleTable, ordinal: u32) -> Option<Timed> {
        let after = self.runs.partition_point(|run| run.end_ordinal() <= ordinal);
        let run = self.runs.get(after).filter(|run| run.first <= ordinal)?;
        table.get(run.samples.start + (ordinal - run.first)).map(|s| run.timed(s))
    }

    /// Returns the decode time of sample `ordinal`, or the end of the last sample.
    #[must_use]
    pub fn dts_at(&self, table: &SampleTable, ordinal: u32) -> i64 {
        if let Some(t) = self.at(table, ordinal) {
            return t.dts;
        }
        let last = self.len.checked_sub(1).and_then(|o| self.at(table, o));
        last.map_or(0, |t| t.dts.saturating_add(i64::from(t.sample.duration)))
    }

    /// Returns the end of the last edit.
    #[must_use]
    pub fn edit_end(&self) -> i64 {
        self.runs.last().map_or(0, |r| r.end)
    }

    /// Whether one edit selects all samples.
    pub(crate) fn is_of_one_edit(&self) -> bool {
        self.runs.len() == 1
    }

    /// Returns the times of squeezed samples, in ascending order.
    pub(crate) fn squeezed(&self) -> impl Iterator<Item = Squeezed> + '_ {
        self.runs.iter().filter_map(|run| {
            let Squeeze { start, window, gap, .. } = run.squeeze?;
            let (window, second) = ((start, start.saturating_add(window)), start.saturating_add(gap));
            Some(Squeezed { window, step: run.step, second })
        })
    }

    /// Returns the ordinals of the sync samples, in decode order.
    pub fn sync_ordinals<'a>(&'a self, table: &'a SampleTable) -> impl Iterator<Item = u32> + 'a {
        let single = self.runs.len() == 1;
        let from_index = table.sync_samples().filter(move |_| single).filter_map(|i| {
            let run = self.runs.first()?;
            run.samples.contains(&i).then(|| run.first + (i - run.samples.start))
        });
        let from_walk = self.walk(table, 0..if single { 0 } else { self.len }).filter(|t| t.sample.sync);
        from_index.chain(from_walk.map(|t| t.ordinal))
    }

    /// Returns the sync samples with their times, in decode order.
    pub(crate) fn sync_samples<'a>(&'a self, table: &'a SampleTable) -> impl Iterator<Item = Timed> + 'a {
        self.walk(table, 0..self.len).filter(|timed| timed.sample.sync)
    }

    /// Bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>()
    }
}

impl Run {
    fn new(track: &Track, span: Span, first: u32, previous: Option<i64>) -> Option<Self> {
        let table = &track.samples;
        let tick = i64::from(track.timescale.get() / FINEST).max(1);
        let head = table.get(span.samples.start)?;
        let hidden = Hidden::of(table, &span);
        let floor = previous.map_or(i64::MIN / 2, |d| d.saturating_add(1));
        let mut run = Self {
            first,
            dts_shift: span.shift.saturating_add(i64::from(head.composition)),
            pts_shift: span.shift,
            dts_floor: floor,
            step: 1,
            squeeze: None,
            end: span.end,
            samples: span.samples,
        };
        // Where the clock has fewer ticks than there are samples to squeeze, those shown would be late.
        let keeps_time = previous.is_none() && (matches!(track.kind, TrackKind::Audio { .. }) || !hidden.fits());
        if hidden.count > 0 && !keeps_time {
            let step = (hidden.gap / (2 * hidden.count)).clamp(1, tick);
            let window = hidden.count.saturating_mul(step).min(hidden.gap / 2);
            run.squeeze = Some(Squeeze { lowest: hidden.lowest, start: span.start, window, gap: hidden.gap });
            run.dts_floor = floor.max(span.start);
            run.step = step;
        }
        Some(run)
    }

    fn end_ordinal(&self) -> u32 {
        self.first + (self.samples.end - self.samples.start)
    }

    fn last(&self, table: &SampleTable) -> Option<Timed> {
        table.get(self.samples.end.checked_sub(1)?).map(|s| self.timed(s))
    }

    fn timed(&self, sample: Sample) -> Timed {
        let place = sample.index.saturating_sub(self.samples.start);
        let floor = self.dts_floor.saturating_add(i64::from(place).saturating_mul(self.step));
        let pts = sample.pts().saturating_add(self.pts_shift);
        Timed {
            ordinal: self.first + place,
            dts: sample.dts.saturating_add(self.dts_shift).max(floor),
            pts: self.squeeze.map_or(pts, |s| s.apply(pts)),
            sample,
        }
    }
}

impl Squeeze {
    fn apply(self, pts: i64) -> i64 {
        if pts >= self.start {
            return pts.max(self.start.saturating_add(self.window));
        }
        let from = i128::from(pts.saturating_sub(self.lowest).max(0));
        let width = i128::from(self.start.saturating_sub(self.lowest).max(1));
        let place = from * i128::from(self.window) / width;
        self.start.saturating_add(i64::try_from(place).unwrap_or(self.window))
    }
}

fn moved(span: Span, origin: i64) -> Span {
    Span {
        shift: span.shift.saturating_sub(origin),
        start: span.start.saturating_sub(origin),
        end: span.end.saturating_sub(origin),
        samples: span.samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{audio, frames, reordered, table, video};
    use millpond_media::movie::Edit;

    fn times(track: &Track) -> Vec<(i64, i64)> {
        let timeline = Timeline::new(track, Timescale::MILLIS, 0);
        timeline.walk(&track.samples, 0..timeline.len()).map(|t| (t.dts, t.pts)).collect()
    }

    fn edit(duration: u64, media_time: i64) -> Edit {
        Edit { duration, media_time: Some(media_time) }
    }

    #[test]
    fn the_first_sample_is_decoded_when_it_shows() {
        let track = video(table(&reordered(6, 6, 9), 0, 0), 12_800, vec![edit(0, 512)]);
        let shown: Vec<_> = times(&track).iter().map(|(d, p)| (d / 512, p / 512)).collect();
        assert_eq!(shown, [(0, 0), (1, 3), (2, 1), (3, 2), (4, 4), (5, 5)]);
    }

    #[test]
    fn preroll_of_the_first_run_is_squeezed() {
        let track = video(table(&reordered(50, 25, 9), 0, 0), 12_800, vec![edit(0, 512 * 13 + 512)]);
        let all = times(&track);
        let mut shown: Vec<i64> = all.iter().map(|t| t.1).collect();
        shown.sort_unstable();
        let expected: Vec<i64> = (0..14).chain((1..37).map(|n| n * 512)).collect();
        assert_eq!(shown, expected);
        assert!(all.windows(2).all(|w| w[0].0 < w[1].0), "decode times rise");
        let squeezed: Vec<_> = Timeline::new(&track, Timescale::MILLIS, 0).squeezed().collect();
        assert_eq!(squeezed, [Squeezed { window: (0, 13), step: 1, second: 512 }]);
    }

    #[test]
    fn a_second_edit_goes_on_where_the_first_ends() {
        let track =
            video(table(&reordered(100, 25, 9), 0, 0), 12_800, vec![edit(1000, 512), edit(1000, 512 + 512 * 60)]);
        let all = times(&track);
        assert!(all.windows(2).all(|w| w[0].0 < w[1].0), "decode times rise");
        let mut shown: Vec<i64> = all.iter().map(|t| t.1).filter(|t| *t >= 12_800 + 256).collect();
        shown.sort_unstable();
        assert_eq!(shown[..3], [12_800 + 512, 12_800 + 1024, 12_800 + 1536]);
    }

    #[test]
    fn priming_of_audio_keeps_its_time() {
        let track = audio(table(&frames(4), 0, 0), "eng", vec![edit(0, 1024)]);
        assert_eq!(times(&track), [(-1024, -1024), (0, 0), (1024, 1024), (2048, 2048)]);
    }

    #[test]
    fn walks_cut_where_asked() {
        let track =
            video(table(&reordered(100, 25, 9), 0, 0), 12_800, vec![edit(1000, 512), edit(1000, 512 + 512 * 60)]);
        let timeline = Timeline::new(&track, Timescale::MILLIS, 0);
        let all: Vec<_> = timeline.walk(&track.samples, 0..timeline.len()).collect();
        for (from, to) in [(0, 0), (3, 9), (20, 40), (30, u32::MAX), (u32::MAX, 3)] {
            let expected: Vec<_> = all.iter().filter(|t| (from..to).contains(&t.ordinal)).copied().collect();
            assert_eq!(timeline.walk(&track.samples, from..to).collect::<Vec<_>>(), expected);
        }
        for t in &all {
            assert_eq!(timeline.at(&track.samples, t.ordinal), Some(*t));
        }
        assert_eq!(timeline.at(&track.samples, timeline.len()), None);
        let sync: Vec<u32> = all.iter().filter(|t| t.sample.sync).map(|t| t.ordinal).collect();
        assert_eq!(timeline.sync_ordinals(&track.samples).collect::<Vec<_>>(), sync);
    }
}
