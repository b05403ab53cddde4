//! Segments of tracks whose samples are loaded fragment by fragment.

use super::{encoded, segment::fragment};
use crate::{
    plan::Plan,
    presentation::track::{MediaKind, MediaTrack, PresentedTrack, StreamAccess},
    timeline::Timed,
};
use millpond_media::Movie;
use std::sync::{Arc, OnceLock};

/// Most bytes of a segment of FLAC, which is made in memory. The segments of an index of all samples are shorter.
const MOST_ENCODED: u64 = 32 << 20;

/// The reason why no segment is made of the samples of its fragments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadedError {
    /// Samples are not where the index of fragments promised them.
    #[error("segment {number} of track {track}: found {found}, expected {expected}, as the index of fragments says")]
    Mismatch {
        /// Name of the track.
        track: String,
        /// Number of the segment.
        number: u32,
        /// Facts of the samples.
        found: String,
        /// The value that the index of fragments states.
        expected: String,
    },
    /// The segment is too long to be made in memory.
    #[error("segment {number} of track {track}: found up to {found} bytes as FLAC, expected at most {}", MOST_ENCODED)]
    TooLong {
        /// Name of the track.
        track: String,
        /// Number of the segment.
        number: u32,
        /// Most bytes of the segment.
        found: u64,
    },
}

/// Returns segment `number` (from 1) of a track, the samples of whose [fragments](PresentedTrack::fragments) are in `loaded`.
/// `None` where there is no such segment. In a pause of sound the segment has no samples.
///
/// # Errors
/// The samples contradict the boundaries in manifests, or are too many for one segment.
pub fn loaded_segment(track: &PresentedTrack, number: u32, loaded: &Arc<Movie>) -> Result<Option<Plan>, LoadedError> {
    let Some(media) = track.packaged().filter(|media| media.outlined().is_some()) else { return Ok(None) };
    let Some(info) = track.segment(number) else { return Ok(None) };
    let mismatch =
        |found: String, expected: String| LoadedError::Mismatch { track: track.name.clone(), number, found, expected };
    let may_pause = media.outlined().is_some_and(|outlined| outlined.may_pause());
    let Some(own) = loaded.tracks.get(media.index).filter(|own| may_pause || !own.samples.is_empty()) else {
        return Err(mismatch("no samples".to_owned(), "some".to_owned()));
    };
    let timeline = media.timeline.of_fragments(own.samples.len(), info.samples.start == 0);
    let samples: Vec<Timed> = timeline.walk(&own.samples, 0..timeline.len()).collect();
    let facts = Boundary::of(&samples);
    let tolerance = media.outlined().map_or(0, |outlined| outlined.tolerance());
    let start = if info.samples.start == 0 { facts.start.max(0) } else { facts.start };
    // Sound that pauses begins late.
    let latest = info.start.saturating_add(if may_pause { info.duration } else { 0 });
    let expected = info.start.saturating_sub(tolerance)..=latest.saturating_add(tolerance);
    if !samples.is_empty() && !expected.contains(&start) {
        return Err(mismatch(format!("a start at {start} ticks"), info.start.to_string()));
    }
    if track.kind == MediaKind::Video && media.access != StreamAccess::Unknown && !facts.begins_sync {
        return Err(mismatch("a first picture that needs others".to_owned(), "a key frame".to_owned()));
    }
    if media.access == StreamAccess::Closed && info.samples.start > 0 && facts.is_open {
        return Err(mismatch("an open group of pictures".to_owned(), "a closed one".to_owned()));
    }
    let largest = media.facts.largest_field();
    if timeline.squeezed().next().is_some() && facts.largest > largest {
        return Err(mismatch(format!("times {} ticks apart", facts.largest), format!("at most {largest}")));
    }
    let end = if samples.is_empty() { info.start } else { timeline.dts_at(&own.samples, timeline.len()) };
    let flac = media.flac.as_deref().filter(|_| !samples.is_empty());
    if let Some(form) = flac.map(|flac| &flac.form) {
        let found = form.most_bytes(samples.iter().map(|unit| form.shape.frames_in(unit)).sum());
        if found > MOST_ENCODED {
            return Err(LoadedError::TooLong { track: track.name.clone(), number, found });
        }
    }
    let media = MediaTrack {
        object: media.object,
        movie: loaded.clone(),
        index: media.index,
        timeline,
        facts: media.facts.clone(),
        access: media.access,
        most_iframes: 0,
        iframes: OnceLock::new(),
        fits_ts: OnceLock::new(),
        ts: OnceLock::new(),
        flac: None,
    };
    Ok(Some(match flac {
        Some(flac) => encoded::loaded(&media, flac, &samples, end, number),
        None => fragment(&media, &samples, end, number),
    }))
}

/// Facts of the first and other samples of a segment.
struct Boundary {
    /// Least presentation time.
    start: i64,
    begins_sync: bool,
    /// Whether samples are presented before the first one.
    is_open: bool,
    /// Largest duration or composition offset.
    largest: i64,
}

impl Boundary {
    fn of(samples: &[Timed]) -> Self {
        let start = samples.iter().map(|timed| timed.pts).min().unwrap_or(0);
        let fields = |timed: &Timed| [i64::from(timed.sample.duration), timed.pts.saturating_sub(timed.dts).abs()];
        Self {
            start,
            begins_sync: samples.first().is_some_and(|timed| timed.sample.sync),
            is_open: samples.first().is_some_and(|timed| start < timed.pts),
            largest: samples.iter().flat_map(fields).max().unwrap_or(0),
        }
    }
}
