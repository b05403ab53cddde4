//! Reads the first and the last fragment of a table of fragments, and compares the table with them.

use crate::{
    boxes::Node,
    codec::TrackKind,
    error::MediaError,
    index::{
        fragment_loader::{check_places, with_fragments},
        lane::Arrived,
        span_walk::SpanWalk,
    },
    movie::{
        Movie, Track,
        edits::{media_end, spans},
        outline::{Boxes, Form, FragmentTimes, Outline, share},
        sample_table::SampleTable,
    },
    mp4::{
        fragment_tables::{FragmentStart, FragmentTable},
        moov::MovieDraft,
    },
    units::{ByteRange, Timescale},
    work::Work,
};
use bytes::Bytes;

/// Most bytes of fragment boxes in the first or the last fragment.
const MOST_METADATA: u64 = 4 << 20;
/// Longest difference between the borders of two tracks of a fragment, as a part of a second.
const BORROWED: i64 = 10;

/// A table of fragments to be compared.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Offset and bytes of the movie box.
    pub(crate) moov: (u64, Bytes),
    pub(crate) object_len: u64,
    /// Offset at or before which the first fragment begins.
    pub(crate) begin: u64,
    /// Offset at which media end at the latest.
    pub(crate) end: u64,
    pub(crate) has_header_samples: bool,
    pub(crate) tables: Vec<FragmentTable>,
    /// Place of the table whose fragments count.
    pub(crate) main: usize,
}

/// The comparison of a table with its first and last fragment.
#[derive(Debug)]
pub(crate) struct Ends {
    plan: Plan,
    offsets: Vec<u64>,
    /// The first fragment, the last one, and what follows it.
    walks: [SpanWalk; 3],
    work: Work,
}

/// Result of one step.
pub(crate) enum EndsStep {
    Needs(Vec<ByteRange>),
    Refused,
    Found(Box<Movie>),
}

/// Times of a track in a fragment.
struct Extent {
    /// Least composition time.
    start: i64,
    /// Composition time of the end.
    end: i64,
    /// Whether pictures are presented before the first one in decoding order.
    is_open: bool,
}

impl Ends {
    /// Begins the comparison; `None` where the table is impossible.
    pub(crate) fn new(plan: Plan, work: Work) -> Option<Self> {
        let table = plan.tables.get(plan.main)?;
        let (first, last) = (table.starts.first()?, table.starts.last()?);
        let end = table.end.map_or(plan.end, |(offset, _)| offset);
        let is_possible = table.starts.len() > 1 && first.offset <= plan.begin && last.offset < end && end <= plan.end;
        let is_rising = |pair: &[FragmentStart]| match pair {
            [a, b] => a.offset < b.offset && a.time <= b.time,
            _ => false,
        };
        (is_possible && table.starts.windows(2).all(is_rising)).then_some(())?;
        let offsets: Vec<u64> = table.starts.iter().map(|start| start.offset).chain([end]).collect();
        let second = *offsets.get(1)?;
        let walk = |start, end| SpanWalk::new(ByteRange::new(start, end), MOST_METADATA, work.clone());
        let walks = [walk(first.offset, second), walk(last.offset, end), walk(end, plan.end)];
        Some(Self { plan, offsets, walks, work })
    }

    /// Continues with the bytes that arrived.
    pub(crate) fn step(&mut self, arrived: &mut Arrived) -> Result<EndsStep, MediaError> {
        let mut wanted = Vec::new();
        for walk in &mut self.walks {
            if let Some(bytes) = arrived.take_from(walk.needed_from()) {
                walk.supply(bytes);
            }
            match walk.step() {
                Ok(range) => wanted.extend(range),
                Err(error @ MediaError::Work { .. }) => return Err(error),
                Err(_) => return Ok(EndsStep::Refused),
            }
        }
        let [_, _, after] = &self.walks;
        if after.has_media() {
            return Ok(EndsStep::Refused);
        }
        if !wanted.is_empty() {
            return Ok(EndsStep::Needs(wanted));
        }
        match self.outlined() {
            Ok(Some(movie)) => Ok(EndsStep::Found(Box::new(movie))),
            Err(error @ MediaError::Work { .. }) => Err(error),
            Ok(None) | Err(_) => Ok(EndsStep::Refused),
        }
    }

    /// Returns the movie; `None` or an error where its fragments are irregular.
    fn outlined(&self) -> Result<Option<Movie>, MediaError> {
        let [first, last, _] = &self.walks;
        let Some(head) = self.samples_of(first, self.plan.has_header_samples, &self.offsets[..2])? else {
            return Ok(None);
        };
        let ends = self.offsets.len().saturating_sub(2);
        let Some(tail) = self.samples_of(last, false, &self.offsets[ends..])? else { return Ok(None) };
        let Some(tracks) = self.times(&head, &tail) else { return Ok(None) };
        let outline = Outline {
            form: Form::Boxes(Boxes {
                header: self.plan.moov.1.to_vec(),
                header_offset: self.plan.moov.0,
                object_len: self.plan.object_len,
                has_header_samples: self.plan.has_header_samples,
            }),
            offsets: self.offsets.clone(),
            tracks,
        };
        Ok(Some(Movie { outline: Some(Box::new(outline)), ..head }))
    }

    /// Returns the movie with the samples of one fragment, which lies between two offsets.
    fn samples_of(&self, walk: &SpanWalk, keeps: bool, offsets: &[u64]) -> Result<Option<Movie>, MediaError> {
        let (at, moov) = &self.plan.moov;
        let Some(node) = Node::new(moov, *at, "moov") else { return Ok(None) };
        let mut draft = MovieDraft::parse(&node, self.plan.object_len, self.work.clone())?;
        draft.open_all_edits();
        let draft = with_fragments(if keeps { draft } else { draft.without_samples() }, walk.moofs())?;
        if !draft.is_regular(|_| false) {
            return Ok(None);
        }
        let count = draft.tracks.len();
        let movie = draft.finish()?;
        if let [start, end] = offsets {
            check_places(&movie, ByteRange::new(*start, *end))?;
        }
        let has_groups =
            |track: &Track| track.protection.as_ref().is_some_and(|protection| !protection.groups.is_empty());
        let is_plain = !movie.tracks.iter().any(has_groups);
        Ok((is_plain && movie.tracks.len() == count && movie.clips.is_empty() && !movie.cut_short).then_some(movie))
    }

    /// Returns the times of all tracks; `None` where the table doesn't fit the first or the last fragment.
    fn times(&self, head: &Movie, tail: &Movie) -> Option<Vec<FragmentTimes>> {
        let main = self.plan.tables.get(self.plan.main)?;
        let bytes = |track: &Track| track.samples.total_bytes();
        let of_tail = |track: &Track| tail.tracks.iter().find(|other| other.id == track.id);
        let both = |track: &Track| Some(bytes(track).saturating_add(bytes(of_tail(track)?)));
        let all: u64 = head.tracks.iter().filter_map(both).fold(0, u64::saturating_add);
        let main_scale = head.tracks.iter().find(|track| track.id == main.track)?.timescale;
        let times = |track: &Track| {
            let has_offsets = |table: &&FragmentTable| {
                table.track == track.id
                    && table.starts.iter().map(|start| start.offset).eq(main.starts.iter().map(|start| start.offset))
            };
            let own = self.plan.tables.iter().find(has_offsets);
            let scale =
                own.unwrap_or(main).timescale.unwrap_or(if own.is_some() { track.timescale } else { main_scale });
            let end = Extent::of(&of_tail(track)?.samples);
            let stated = own.unwrap_or(main);
            let tolerance = match own {
                Some(_) => i64::from(shortest(&track.samples)) / 2,
                None => i64::from(track.timescale.get()) / BORROWED,
            };
            let times = moved(stated, scale, track, &end, tolerance)?;
            let is_video = matches!(track.kind, TrackKind::Video { .. });
            let no_entry = |(place, start): (u32, &FragmentStart)| (!start.is_entry).then_some(place);
            let no_entries = (0_u32..).zip(&stated.starts).skip(1).filter_map(no_entry).filter(|_| is_video).collect();
            let is_open = is_video && (end.is_open || stated.starts.iter().any(|start| start.is_open));
            // Pictures count all bytes, so that no stated rate is below the true one.
            let is_borrowed = own.is_none() && !is_video;
            let own = if is_video { all } else { both(track)? };
            let share = share(own, all);
            let times = FragmentTimes { times, no_entries, is_open, is_borrowed, tolerance, share };
            is_shown_whole(track, head.timescale, &times).then_some(times)
        };
        head.tracks.iter().map(times).collect()
    }
}

impl Extent {
    fn of(samples: &SampleTable) -> Self {
        let start = samples.iter().map(|sample| sample.pts()).min().unwrap_or(0);
        let is_open = samples.get(0).is_some_and(|first| start < first.pts());
        Self { start, end: media_end(samples), is_open }
    }
}

/// Duration of the shortest sample.
fn shortest(samples: &SampleTable) -> u32 {
    samples.iter().map(|sample| sample.duration).min().unwrap_or(0)
}

/// Returns the stated times as composition times of a track. They are moved so that the second fragment begins where the first
/// one ends. `None` where the last fragment then begins elsewhere by more than `tolerance`.
fn moved(stated: &FragmentTable, scale: Timescale, track: &Track, last: &Extent, tolerance: i64) -> Option<Vec<i64>> {
    let first = Extent::of(&track.samples);
    let second = scale.convert(stated.starts.get(1)?.time, track.timescale);
    let shift = first.end.checked_sub(second)?;
    let later = stated.starts.iter().skip(1).map(|start| scale.convert(start.time, track.timescale).checked_add(shift));
    let times: Option<Vec<i64>> = std::iter::once(Some(first.start)).chain(later).chain([Some(last.end)]).collect();
    let times = times?;
    let stated = *times.get(times.len().checked_sub(2)?)?;
    let fits = stated.abs_diff(last.start) <= tolerance.unsigned_abs();
    (fits && times.is_sorted_by(|a, b| a < b)).then_some(times)
}

/// Whether the edit list shows the whole track, after at most one delay: only such a track is presented in one piece.
fn is_shown_whole(track: &Track, movie: Timescale, times: &FragmentTimes) -> bool {
    let spans = spans(track, movie);
    let [span] = &spans[..] else { return false };
    let shown: Vec<_> = track.edits.iter().filter(|edit| edit.media_time.is_some()).collect();
    let end = times.times.last().copied().unwrap_or(0);
    let lasts = match &shown[..] {
        [] => true,
        [edit] => {
            let duration = i64::try_from(edit.duration).unwrap_or(i64::MAX);
            let begin = edit.media_time.unwrap_or(0);
            let slack = i64::from(shortest(&track.samples)).saturating_add(movie.convert(1, track.timescale));
            let is_early = times.times.get(1).is_some_and(|second| begin < *second);
            let until = begin.saturating_add(movie.convert(duration, track.timescale)).saturating_add(slack);
            is_early && (duration == 0 || until >= end)
        }
        _ => false,
    };
    lasts && span.samples == (0..track.samples.len())
}
