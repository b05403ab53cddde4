//! The edit list (ISO/IEC 14496-12 8.6.6) as spans: runs of samples with their presentation times.

use crate::{
    codec::TrackKind,
    movie::{
        Edit, Track,
        sample_table::{Sample, SampleTable},
    },
    units::Timescale,
};
use std::ops::Range;

mod clips;
mod hidden;
mod preroll;

pub use clips::clip_spans;
pub use hidden::Hidden;

/// Number of samples at the end of a track that are searched for the last one shown: more than any reordering spans.
const REORDER: u32 = 512;
/// Number of samples that are searched one by one.
const BLOCK: u32 = 128;

/// A run of samples shown by one edit. The presentation time of a sample is `sample.pts() + shift`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Samples in decoding order. They begin with a sync sample and include samples that are decoded but not shown.
    pub samples: Range<u32>,
    /// Presentation time minus composition time, in ticks of the track.
    pub shift: i64,
    /// Presentation time from which samples are shown; earlier samples are preroll.
    pub start: i64,
    /// Presentation time at which the span ends; later samples are decoded but not shown.
    pub end: i64,
}

/// Returns the spans of `track` in presentation order. A track without an edit list, or with one that shows nothing,
/// has one span of all samples with a shift of 0. A track without samples has none.
#[must_use]
pub fn spans(track: &Track, movie_timescale: Timescale) -> Vec<Span> {
    spans_of(track, &track.edits, movie_timescale)
}

/// Returns the spans of `track` by other edits than its own.
pub(crate) fn spans_of(track: &Track, edits: &[Edit], movie_timescale: Timescale) -> Vec<Span> {
    let table = &track.samples;
    if table.is_empty() {
        return Vec::new();
    }
    let end = media_end(table);
    let media = (!edits.is_empty()).then(|| Media::new(track, end));
    let mut spans: Vec<Span> = Vec::new();
    // The sum is kept in movie ticks so that rounding errors of many edits don't add up.
    let mut elapsed = 0_i64;
    let count = edits.len();
    for (index, edit) in edits.iter().enumerate() {
        let duration = i64::try_from(edit.duration).unwrap_or(i64::MAX);
        let until = elapsed.saturating_add(duration);
        let times = movie_timescale.convert(elapsed, track.timescale)..movie_timescale.convert(until, track.timescale);
        if let Some(span) = media.as_ref().and_then(|media| media.span(*edit, times, index + 1 == count)) {
            push(&mut spans, span, movie_timescale, track.timescale);
        }
        elapsed = until;
    }
    if spans.is_empty() {
        let start = first_shown(table);
        return vec![Span { samples: 0..table.len(), shift: 0, start, end: end.max(start) }];
    }
    close_gap(&mut spans, track);
    spans
}

/// Moves all spans so that the first picture is shown when the first edit begins. Edits often begin between two
/// pictures. Read literally, the picture before would be shown for the rest of its time, and every decoder would have
/// to be told. Players, ffmpeg among them, drop it and begin with the next one, less than a picture early.
fn close_gap(spans: &mut [Span], track: &Track) {
    let (Some(first), TrackKind::Video { .. }) = (spans.first(), track.kind) else { return };
    let shown = track.samples.range(first.samples.clone()).map(|s| s.pts().saturating_add(first.shift));
    let Some(earliest) = shown.filter(|pts| *pts >= first.start).take(REORDER as usize).min() else { return };
    let gap = earliest.saturating_sub(first.start);
    for (place, span) in spans.iter_mut().enumerate() {
        span.shift = span.shift.saturating_sub(gap);
        span.end = span.end.saturating_sub(gap);
        if place > 0 {
            span.start = span.start.saturating_sub(gap);
        }
    }
}

/// Appends `span`, or extends the last span where the media continues without a gap.
fn push(spans: &mut Vec<Span>, span: Span, movie: Timescale, track: Timescale) {
    // An edit ends on a movie tick, so the media time of the next one is off by up to one movie tick.
    let tick = i64::from(track.get().div_ceil(movie.get()));
    match spans.last_mut() {
        Some(last)
            if last.end == span.start
                && last.shift.abs_diff(span.shift) <= tick.unsigned_abs()
                && span.samples.start <= last.samples.end =>
        {
            last.samples.end = last.samples.end.max(span.samples.end);
            last.end = span.end;
        }
        _ => spans.push(span),
    }
}

struct Media<'a> {
    track: &'a Track,
    /// Composition time of the first picture. Edits that begin earlier begin with it, as in ffmpeg: otherwise they would
    /// end as many pictures early.
    start: i64,
    /// Composition time at which the last sample ends.
    end: i64,
    /// All samples, searchable by composition time.
    all: Shown<'a>,
    /// Sync samples, searchable by composition time; `None` where all samples are sync samples.
    sync: Option<Shown<'a>>,
}

impl<'a> Media<'a> {
    fn new(track: &'a Track, end: i64) -> Self {
        let table = &track.samples;
        let sync = (!table.all_sync()).then(|| Shown::of(table, |sample| sample.sync));
        let is_video = matches!(track.kind, TrackKind::Video { .. });
        let start = if is_video { first_shown(table) } else { i64::MIN };
        Self { track, start, end, all: Shown::of(table, |_| true), sync }
    }

    /// Returns the span that `edit` shows at the presentation `times`; `None` where it shows nothing.
    fn span(&self, edit: Edit, times: Range<i64>, last: bool) -> Option<Span> {
        let time = edit.media_time?.max(self.start);
        let declared = times.end.saturating_sub(times.start);
        let length = match (declared, last) {
            (0, false) => return None,
            (0, true) => self.end.saturating_sub(time),
            (declared, true) => declared.min(self.end.saturating_sub(time)),
            (declared, false) => declared,
        };
        if length <= 0 {
            return None;
        }
        let start = self.first_sample(time);
        let end = self.before(time.saturating_add(length))?.checked_add(1)?;
        let shift = times.start.saturating_sub(time);
        let until = times.start.saturating_add(length);
        (start < end && time < self.end).then_some(Span { samples: start..end, shift, start: times.start, end: until })
    }

    /// Returns the sample from which decoding must begin to show composition time `time`.
    fn first_sample(&self, time: i64) -> u32 {
        let shown = self.sync_at(time);
        if !matches!(self.track.kind, TrackKind::Audio { .. }) {
            return shown;
        }
        self.sync_before(preroll::start(self.track, shown))
    }

    /// Returns the last sync sample shown at or before `time`; the first sample where there is none.
    fn sync_at(&self, time: i64) -> u32 {
        self.sync.as_ref().unwrap_or(&self.all).last_before(time.saturating_add(1)).unwrap_or(0)
    }

    /// Returns the last sync sample at or before sample `index`; the first sample where there is none.
    fn sync_before(&self, index: u32) -> u32 {
        self.sync.as_ref().map_or(Some(index), |sync| sync.last_up_to(index)).unwrap_or(0)
    }

    /// Returns the last sample in decoding order that is shown before `time`.
    fn before(&self, time: i64) -> Option<u32> {
        self.all.last_before(time)
    }
}

/// An index of samples by composition time. A search takes logarithmic time whatever the order of presentation is.
struct Shown<'a> {
    table: &'a SampleTable,
    is_meant: fn(&Sample) -> bool,
    /// For each block, the least composition time in it and all later blocks. These values never fall.
    least: Vec<i64>,
    /// For each block, the last block up to it that has an indexed sample.
    last: Vec<u32>,
}

impl<'a> Shown<'a> {
    fn of(table: &'a SampleTable, is_meant: fn(&Sample) -> bool) -> Self {
        let blocks = table.len().div_ceil(BLOCK) as usize;
        let mut shown = Self { table, is_meant, least: vec![i64::MAX; blocks], last: vec![u32::MAX; blocks] };
        for sample in table.iter().filter(is_meant) {
            let block = sample.index / BLOCK;
            if let Some(least) = shown.least.get_mut(block as usize) {
                *least = sample.pts().min(*least);
                shown.last[block as usize] = block;
            }
        }
        for block in (1..blocks).rev() {
            shown.least[block - 1] = shown.least[block - 1].min(shown.least[block]);
        }
        for block in 1..blocks {
            if shown.last[block] == u32::MAX {
                shown.last[block] = shown.last[block - 1];
            }
        }
        shown
    }

    /// Returns the last sample in decoding order that is shown before `time`.
    fn last_before(&self, time: i64) -> Option<u32> {
        let block = self.least.partition_point(|least| *least < time).checked_sub(1)?;
        self.last_in(u32::try_from(block).ok()?, |sample| sample.pts() < time)
    }

    /// Returns the last indexed sample up to sample `index`.
    fn last_up_to(&self, index: u32) -> Option<u32> {
        let block = index / BLOCK;
        let here = self.last_in(block, |sample| sample.index <= index);
        here.or_else(|| self.last_in(*self.last.get(block.checked_sub(1)? as usize)?, |_| true))
    }

    fn last_in(&self, block: u32, test: impl Fn(&Sample) -> bool) -> Option<u32> {
        let start = block.checked_mul(BLOCK)?;
        let samples = self.table.range(start..start.saturating_add(BLOCK));
        samples.filter(|sample| (self.is_meant)(sample) && test(sample)).last().map(|sample| sample.index)
    }
}

/// Returns the least composition time at the start of the track.
pub(crate) fn first_shown(table: &SampleTable) -> i64 {
    table.range(0..REORDER).map(|sample| sample.pts()).min().unwrap_or(0)
}

/// Returns the composition time at which the last sample ends.
pub(crate) fn media_end(table: &SampleTable) -> i64 {
    let tail = table.len().saturating_sub(REORDER)..table.len();
    let ends = table.range(tail).map(|sample| sample.pts().saturating_add(i64::from(sample.duration)));
    ends.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
