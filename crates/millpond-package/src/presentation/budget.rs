//! Limits on the memory and work that one asset takes to present.
//!
//! Memory and work of [`Presentation::build`](crate::Presentation::build), and of all later rendering, grow with
//! tracks, edits and segments. They never grow with samples alone, because samples are walked over but not collected.
//! Samples are bounded by `millpond_media`; the limits here bound the other three, and so each render. One asset has at
//! most:
//!
//! | what | at most | reason |
//! |---|---|---|
//! | tracks | 1,024 | a hundred languages in three codecs, as many subtitles, ten pictures |
//! | segments of all tracks | 262,144, and one for each 16 bytes of index | 12 tracks of 24 hours; long tracks have large indexes |
//! | samples in a segment | 262,144 | an hour of 60 pictures per second without a key frame |
//! | samples of a text track | 262,144 | one WebVTT file contains all: three cues per second for 24 hours |
//! | boundaries of the first video, times other tracks | 8,388,608 | 300 tracks of 24 hours |
//! | pictures of trick play of all tracks | as many as segments | six videos of 24 hours with a key frame per second |
//!
//! Every sample walked over, edit and segment is also a step of the job's [`Work`].

use crate::{
    PackageError,
    presentation::SourceObject,
    timeline::{Timeline, segmentation::Segments},
};
use millpond_media::{Movie, Track, Work};

/// Most tracks of an asset.
const MOST_TRACKS: u64 = 1024;
/// Segments of an asset that need no bytes of index to justify them.
const BASE_SEGMENTS: u64 = 1 << 18;
/// Bytes of index that justify one more segment.
const INDEX_A_SEGMENT: u64 = 16;
/// Most samples in one segment.
pub(crate) const MOST_SEGMENT_SAMPLES: u32 = 1 << 18;
/// Most samples of one text track.
const MOST_TEXT_SAMPLES: u32 = 1 << 18;
/// Most boundaries that are converted to the clocks of other tracks.
const MOST_BOUNDARIES: u64 = 1 << 23;

/// Most heap bytes per segment while a presentation is built: boundary, ordinal, bytes and load, and the first block of sound that
/// becomes FLAC, each in a list that doubles as it grows.
const SEGMENT_BYTES: u64 = 160;
/// Most heap bytes per edit: its span and its run, each in a list that doubles as it grows.
const EDIT_BYTES: u64 = 512;
/// Heap bytes of a track without its segments and edits: names, facts, codec parameters.
const TRACK_BYTES: u64 = 4096;
/// Most segments per second: two consecutive ones are longer than the shortest target duration of half a second.
const SEGMENTS_A_SECOND: f64 = 4.0;

/// Returns an upper bound of the heap bytes that [`Presentation::build`](crate::Presentation::build) takes for
/// `sources`, and that the presentation keeps. The indexes and sidecar cues are not counted.
#[must_use]
pub fn building_bytes(sources: &[SourceObject]) -> u64 {
    let tracks = || sources.iter().flat_map(|source| &source.movie.tracks);
    let outlines = sources.iter().filter_map(|source| source.movie.outline.as_ref());
    let most_fragments = outlines.map(|outline| u64::from(outline.len())).max().unwrap_or(0);
    let of_track = |track: &Track| {
        let samples = &track.samples;
        let ticks = samples.end_dts().saturating_sub(samples.start_dts());
        let timed = (track.timescale.seconds(ticks).max(0.0) * SEGMENTS_A_SECOND) as u64;
        let segments = timed.saturating_add(2).min(u64::from(samples.len()) + 1).max(most_fragments);
        let edits = track.edits.len() as u64 + 1;
        let names = track.name.as_ref().map_or(0, String::len) as u64;
        TRACK_BYTES + 4 * names + edits * EDIT_BYTES + segments * SEGMENT_BYTES
    };
    let clips = sources.iter().map(|source| source.movie.clips.len() as u64).fold(0, u64::saturating_add);
    let all = tracks().map(of_track).fold(0, u64::saturating_add);
    // The tracks of periods have as many segments together as the whole, and two more each.
    let periods = (MOST_TRACKS * (TRACK_BYTES + EDIT_BYTES + 2 * SEGMENT_BYTES)).min(all.saturating_mul(clips));
    if clips == 0 { all } else { all.saturating_mul(2).saturating_add(periods) }
}

/// Remaining allowance of one asset.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    work: &'a Work,
    segments: u64,
    most_segments: u64,
    boundaries: u64,
}

impl<'a> Budget<'a> {
    /// Creates the budget of an asset of `sources`, whose steps are spent on `work`.
    pub(crate) fn new(sources: &[SourceObject], work: &'a Work) -> Self {
        let tracks = sources.iter().flat_map(|source| &source.movie.tracks);
        let index: u64 = tracks.map(|track| track.samples.heap_bytes() as u64).sum();
        Self { work, segments: 0, most_segments: BASE_SEGMENTS + index / INDEX_A_SEGMENT, boundaries: 0 }
    }

    /// Takes the steps of selecting `track`.
    pub(crate) fn pick(&self, track: &Track) -> Result<(), PackageError> {
        // The samples of edits are found by the times of all samples.
        let samples = if track.edits.is_empty() { 0 } else { u64::from(track.samples.len()) };
        Ok(self.work.spend(1 + 64 * track.edits.len() as u64 + samples)?)
    }

    /// Takes the steps of finding the samples of a track's clips that are presented.
    pub(crate) fn clips(&self, movie: &Movie, track: &Track) -> Result<(), PackageError> {
        let steps = |place| movie.track(place).map_or(0, |clip| 64 + 2 * u64::from(clip.samples.len()));
        Ok(self.work.spend(movie.clips_of(track.id).map(steps).sum())?)
    }

    /// Takes the steps of walking `times` times over all samples.
    pub(crate) fn walk(&self, timeline: &Timeline, times: u64) -> Result<(), PackageError> {
        Ok(self.work.spend(times * (1 + u64::from(timeline.len())))?)
    }

    /// Returns an error where an asset has too many tracks.
    pub(crate) fn tracks(&self, found: usize) -> Result<(), PackageError> {
        at_most("tracks of one asset", found as u64, MOST_TRACKS)
    }

    /// Takes the steps of converting `boundaries` to the clock of another track.
    pub(crate) fn convert(&mut self, boundaries: usize) -> Result<(), PackageError> {
        self.boundaries += boundaries as u64;
        at_most("boundaries of one asset", self.boundaries, MOST_BOUNDARIES)?;
        Ok(self.work.spend(1 + boundaries as u64)?)
    }

    /// Most further segments of one track, where `tracks` are cut together.
    pub(crate) fn room(&self, tracks: usize) -> usize {
        let left = self.most_segments.saturating_sub(self.segments) / (tracks as u64).max(1);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Returns an error where `count` further segments would be too many.
    pub(crate) fn fits(&self, count: usize) -> Result<(), PackageError> {
        at_most("segments of one asset", self.segments.saturating_add(count as u64), self.most_segments)
    }

    /// Takes the segments of a track.
    pub(crate) fn segments(&mut self, segments: &Segments) -> Result<(), PackageError> {
        self.segments += u64::from(segments.count());
        at_most("segments of one asset", self.segments, self.most_segments)?;
        at_most("samples in one segment", segments.most_samples().into(), MOST_SEGMENT_SAMPLES.into())?;
        Ok(self.work.spend(u64::from(segments.count()))?)
    }

    /// Returns an error where a text track has too many samples for one file.
    pub(crate) fn text(timeline: &Timeline) -> Result<(), PackageError> {
        at_most("samples of a text track", timeline.len().into(), MOST_TEXT_SAMPLES.into())
    }

    /// Most pictures for trick play in each of `videos` tracks.
    pub(crate) fn iframes(&self, videos: usize) -> usize {
        usize::try_from(self.most_segments).unwrap_or(usize::MAX) / videos.max(1)
    }
}

fn at_most(what: &'static str, found: u64, limit: u64) -> Result<(), PackageError> {
    if found > limit { Err(PackageError::TooMany { what, found, limit }) } else { Ok(()) }
}
