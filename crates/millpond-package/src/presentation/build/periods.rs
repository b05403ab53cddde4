//! Divides a presentation into periods, where clips of its tracks need another decoder.

use super::{scan, sidecar, texts, timed, videos};
use crate::{
    PackageError,
    presentation::{
        Presentation,
        budget::Budget,
        period::{self, Period},
        selection::{Picked, Selection, family, of_movie},
        track::{Content, MediaKind, PresentedTrack},
    },
    timeline::{
        Timeline,
        grid::{Grid, nanos_to},
        joints::{Joined, Joint, NEAR, joints, nearest},
        scan::{Facts, sync_points},
        segmentation::nanos,
    },
};
use millpond_media::Track;
use std::{ops::Range, sync::OnceLock};

/// Number of samples at the start of a clip among which the first one shown is: more than any reordering spans.
const REORDER: u32 = 512;

#[cfg(test)]
mod tests;

/// Returns the tracks of a selection if one of the tracks has clips, else an empty list.
pub(super) fn strands(selection: &Selection) -> Vec<Picked> {
    let all = || selection.video.iter().chain(&selection.audio).chain(&selection.text);
    if all().any(|picked| !picked.clips.is_empty()) { all().cloned().collect() } else { Vec::new() }
}

/// Returns the presentation with its periods; without any where no clip needs another decoder.
pub(super) fn divided(
    mut whole: Presentation,
    strands: Vec<Picked>,
    budget: &mut Budget<'_>,
) -> Result<Presentation, PackageError> {
    if strands.is_empty() {
        return Ok(whole);
    }
    // In the order of the tracks: later periods must not order renditions by their own bit rates.
    let strand = |track: &PresentedTrack| {
        let media = track.media()?;
        let found = strands.iter().find(|strand| strand.object == media.object && strand.index == media.index)?;
        Some(Strand { kind: track.kind, picked: Picked { name: track.name.clone(), ..found.clone() } })
    };
    let strands: Vec<Strand> = whole.tracks.iter().filter_map(strand).collect();
    for strand in &strands {
        // Walks for its clips and key frames.
        budget.walk(&strand.picked.timeline, 4)?;
    }
    let joints = match items(&strands) {
        Some(starts) => item_joints(&strands, starts),
        None => joints(&strands.iter().map(Strand::joined).collect::<Vec<_>>(), entries(&strands)),
    };
    if joints.is_empty() {
        return Ok(whole);
    }
    budget.tracks(whole.tracks.len().saturating_mul(joints.len() + 2))?;
    let parts: Vec<Vec<Option<Picked>>> =
        strands.iter().enumerate().map(|(place, s)| s.parts(place, &joints)).collect();
    let of = |place: usize, kind: MediaKind| {
        let parts = strands.iter().zip(&parts).filter(move |(strand, _)| strand.kind == kind);
        parts.filter_map(move |(_, parts)| parts.get(place)?.clone()).collect::<Vec<_>>()
    };
    let mut scanned = Vec::with_capacity(joints.len() + 1);
    for place in 0..=joints.len() {
        scanned.push(scan(of(place, MediaKind::Video), budget)?);
    }
    order_alike(&mut scanned);
    let ends = joints.iter().map(|joint| joint.time).chain([i64::MAX]);
    let mut start = 0;
    for ((place, end), video) in ends.enumerate().zip(scanned) {
        let parts = Parts { video, audio: of(place, MediaKind::Audio), text: of(place, MediaKind::Text) };
        let presentation = presentation(&whole, (place + 1, start..end), parts, budget)?;
        whole.periods.push(Period { number: place + 1, start, presentation });
        start = end;
    }
    let last = whole.periods.iter().map(|period| period.presentation.duration);
    whole.duration = last.fold(whole.duration, f64::max);
    Ok(whole)
}

/// Gives all parts of videos the decode times of the part whose pictures are reordered most. So decode times of transport streams
/// continue over periods too. Fragments are decoded from the time of their first picture on, by which players place a period.
fn order_alike(scanned: &mut [Vec<(Picked, Facts)>]) {
    let nanos = |(part, facts): &(Picked, Facts)| nanos(facts.reorder, part.track().timescale);
    let most = scanned.iter().flatten().map(nanos).max().unwrap_or(0);
    for (part, facts) in scanned.iter_mut().flatten() {
        let timescale = part.track().timescale;
        facts.reorder = facts.reorder.max(nanos_to(most, timescale));
        facts.early = facts.early.max(facts.reorder);
        facts.has_signed_offsets = true;
    }
}

/// Returns the times at which the items of a stitched title begin, in nanoseconds; `None` for other assets.
fn items(strands: &[Strand]) -> Option<&[i64]> {
    let movie = &strands.first()?.picked.movie;
    movie.stitched.as_ref().map(|stitched| &stitched.starts[..])
}

/// Returns the joints of a stitched title, whose items begin at `starts`. Each item is a period, whatever its tracks are. It begins
/// with the first picture, unless that is late.
fn item_joints(strands: &[Strand], starts: &[i64]) -> Vec<Joint> {
    let start_of = |strand: &Strand, item: usize| {
        let (place, timeline) = strand.clip_of(item)?;
        Some(strand.start(*place, timeline))
    };
    let joint = |(item, start): (usize, &i64)| {
        let video = strands.iter().find(|strand| strand.kind == MediaKind::Video);
        let first = video.and_then(|video| start_of(video, item));
        let time = first.filter(|first| first.abs_diff(*start) <= NEAR.unsigned_abs()).unwrap_or(*start);
        let all = strands.iter().enumerate().filter(|(_, strand)| strand.clip_of(item).is_some());
        Joint { time, tracks: all.map(|(place, _)| place).collect() }
    };
    starts.iter().enumerate().skip(1).map(joint).collect()
}

/// Returns the times at which the main video can be entered, in nanoseconds; `None` without video.
fn entries(strands: &[Strand]) -> Option<Vec<i64>> {
    let main = strands.iter().find(|strand| strand.kind == MediaKind::Video)?;
    let of_clip = |(place, timeline): (usize, Timeline)| {
        let track = of_movie(&main.picked.movie, place);
        sync_points(track, &timeline).map(|point| nanos(point.time, track.timescale)).collect::<Vec<_>>()
    };
    Some(main.clips().into_iter().flat_map(of_clip).collect())
}

/// A track of the asset, as it was selected.
struct Strand {
    kind: MediaKind,
    picked: Picked,
}

impl Strand {
    /// Returns places and timelines of the clips; the whole track is one where it has none.
    fn clips(&self) -> Vec<(usize, Timeline)> {
        match &self.picked.clips[..] {
            [] => vec![(self.picked.index, self.picked.timeline.clone())],
            clips => clips.to_vec(),
        }
    }

    fn joined(&self) -> Joined {
        let starts = self.picked.clips.iter().skip(1).map(|(place, timeline)| self.start(*place, timeline));
        Joined { starts: starts.collect(), is_video: self.kind == MediaKind::Video }
    }

    /// Returns the time at which a clip begins, in nanoseconds.
    fn start(&self, place: usize, timeline: &Timeline) -> i64 {
        let track = of_movie(&self.picked.movie, place);
        let first = timeline.walk(&track.samples, 0..REORDER).map(|timed| timed.pts).min();
        nanos(first.unwrap_or(0), track.timescale)
    }

    /// Returns place and timeline of the clip that an item of a stitched title shows; `None` where the item lacks the track.
    fn clip_of(&self, item: usize) -> Option<&(usize, Timeline)> {
        self.picked.clips.iter().find(|(place, _)| self.picked.movie.item_of(*place) == Some(item))
    }

    /// Returns the clips of a stitched title's items, as the parts of its periods.
    fn item_parts(&self, items: usize) -> Vec<Option<Picked>> {
        let whole = Picked { clips: Vec::new(), ..self.picked.clone() };
        let part = |item: usize| {
            let (index, timeline) = self.clip_of(item)?;
            let name = period::name(&whole.name, item + 1);
            Some(Picked { index: *index, timeline: timeline.clone(), name, ..whole.clone() })
        };
        (0..items).map(part).collect()
    }

    /// Returns the part of the track in each period. `place` is that of the track among all.
    fn parts(&self, place: usize, joints: &[Joint]) -> Vec<Option<Picked>> {
        if self.picked.movie.stitched.is_some() {
            return self.item_parts(joints.len() + 1);
        }
        let own = (1..).zip(joints).filter(|(_, joint)| joint.tracks.contains(&place)).map(|(period, _)| period);
        let begins: Vec<usize> = std::iter::once(0).chain(own).collect();
        let ends = begins.iter().skip(1).copied().chain([joints.len() + 1]);
        let mut parts = Vec::with_capacity(joints.len() + 1);
        for ((index, timeline), (begin, end)) in self.clips().into_iter().zip(begins.iter().copied().zip(ends)) {
            let times = joints.get(begin..end.saturating_sub(1)).unwrap_or_default();
            let part = |timeline: Timeline| {
                (!timeline.is_empty()).then(|| Picked { index, timeline, name: String::new(), ..self.picked.clone() })
            };
            parts.extend(self.cut(index, &timeline, times).into_iter().map(part));
        }
        for (number, part) in (1..).zip(&mut parts) {
            if let Some(part) = part {
                part.name = period::name(&self.picked.name, number);
            }
        }
        parts
    }

    /// Divides the timeline of a clip where periods begin in it.
    fn cut(&self, index: usize, timeline: &Timeline, joints: &[Joint]) -> Vec<Timeline> {
        let track = of_movie(&self.picked.movie, index);
        let mut from = 0;
        let mut parts = Vec::with_capacity(joints.len() + 1);
        for joint in joints {
            let time = nanos_to(joint.time, track.timescale);
            let at = self.ordinal(track, timeline, time).max(from);
            parts.push(self.part(timeline, from..at));
            from = at;
        }
        parts.push(self.part(timeline, from..timeline.len()));
        parts
    }

    /// Returns a part of the timeline. A cue before it may be shown in it.
    fn part(&self, timeline: &Timeline, ordinals: Range<u32>) -> Timeline {
        let has_cues = family(&self.picked.track().codec) == "webvtt";
        let before = u32::from(has_cues).min(ordinals.start);
        timeline.part(ordinals.start - before..ordinals.end)
    }

    /// Returns the first sample of a period that begins at `time`, in ticks.
    fn ordinal(&self, track: &Track, timeline: &Timeline, time: i64) -> u32 {
        if self.kind == MediaKind::Video {
            return nearest(sync_points(track, timeline), time).map_or(0, |point| point.ordinal);
        }
        // Sound and text are presented in decoding order.
        let (mut from, mut to) = (0, timeline.len());
        while from < to {
            let middle = from + (to - from) / 2;
            let is_before = timeline.at(&track.samples, middle).is_some_and(|timed| timed.pts < time);
            if is_before { from = middle + 1 } else { to = middle }
        }
        from
    }
}

/// Whether transport streams of an asset carry sound apart from the video. Then they do so in each period, also where a period has
/// one of several sound tracks.
fn has_sounds_apart(whole: &Presentation) -> bool {
    let is_carried = |track: &&PresentedTrack| {
        let fits = track.source_track().is_some_and(|source| source.codec.fits_ts());
        track.kind == MediaKind::Audio && fits && track.protection().is_none()
    };
    whole.tracks.iter().filter(is_carried).nth(1).is_some()
}

/// The parts of all tracks in one period.
struct Parts {
    video: Vec<(Picked, Facts)>,
    audio: Vec<Picked>,
    text: Vec<Picked>,
}

/// Builds the presentation of period `number`, which lasts for `shown`, in nanoseconds.
fn presentation(
    whole: &Presentation,
    (number, shown): (usize, Range<i64>),
    parts: Parts,
    budget: &mut Budget<'_>,
) -> Result<Presentation, PackageError> {
    let (mut tracks, aligned) = videos(parts.video, whole.target, &mut Vec::new(), budget)?;
    let grid = Grid::new(tracks.first().map(|track| &track.segments), whole.target).from(shown.start);
    for picked in parts.audio {
        tracks.extend(timed(picked, MediaKind::Audio, &grid, budget)?);
    }
    let end_of = |track: &PresentedTrack| track.segments.timescale().seconds(track.segments.end());
    let seconds = |nanos: i64| nanos as f64 / 1e9;
    let start = seconds(shown.start);
    let end = if shown.end == i64::MAX { tracks.iter().map(end_of).fold(start, f64::max) } else { seconds(shown.end) };
    for picked in parts.text {
        tracks.extend(texts(picked, &grid, start..end, budget)?);
    }
    for track in whole.tracks.iter() {
        if let Content::Sidecar(cues) = &track.content {
            let part = sidecar(cues.clone(), &grid, start..end, budget)?;
            tracks.push(PresentedTrack { name: period::name(&track.name, number), ..part });
        }
    }
    for part in &mut tracks {
        let of = whole.tracks.iter().find(|track| period::name(&track.name, number) == part.name);
        if let Some(of) = of {
            (part.language, part.label) = (of.language.clone(), of.label.clone());
            (part.default, part.forced) = (of.default, of.forced);
        }
    }
    Ok(Presentation {
        tracks,
        warnings: Vec::new(),
        duration: end,
        aligned,
        target: whole.target,
        muxed: if has_sounds_apart(whole) { OnceLock::from(None) } else { OnceLock::new() },
        key_address: None,
        base: String::new(),
        lists_thumbnails: false,
        captions: whole.captions.clone(),
        shown: Some(shown),
        table_version: (number - 1) as u8,
        periods: Vec::new(),
        so_far: None,
    })
}
