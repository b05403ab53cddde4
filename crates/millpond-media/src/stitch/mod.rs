//! Stitching: the index of a title whose items, other files or parts of them, play one after the other.
//!
//! The movie is composed of the items' indexes, and no media is read. Each track has a clip for each item, whose edit list says
//! when and which part of the item is shown. The track itself has the samples of all items that one decoder plays.

mod clip;
mod clock;
mod error;
mod item;
mod join;

#[cfg(test)]
mod tests;

pub use clip::StitchClip;
pub use error::StitchError;

use crate::{
    Movie, Work,
    index::finer_clock::refine,
    movie::{SkippedTrack, Track, stitched::Stitched, tags::Tags},
    units::Timescale,
};
use item::{Lane, Shown};
use std::{collections::BTreeMap, sync::Arc};

/// Clock of a stitched movie: nanoseconds, so that the times of items stay exact on the clocks of all tracks.
const CLOCK: Timescale = Timescale::NANOS;

/// One item of a stitched title.
#[derive(Clone, Debug)]
pub struct StitchItem {
    /// Index of its file, with all samples.
    pub movie: Arc<Movie>,
    /// Number of the object of its media.
    pub object: u16,
    /// Name of its file, for messages.
    pub label: String,
    /// The part of the file that is shown.
    pub clip: StitchClip,
    /// Whether the item is a stretch of a longer stream, such as the segments between two discontinuities. Its time 0 is then the time of
    /// its first frame, whatever the stream's clock says.
    pub is_stretch: bool,
}

/// Returns the movie of items that play one after the other. Each sample and edit of an item's index is some steps of `work`.
///
/// A track is the video of all items, or their sound of one number. A track that an item lacks pauses for as long as the item lasts. Other videos of a file, and subtitles, are left out.
///
/// # Errors
/// No item, one that shows less than a second, a range beyond the end, encrypted media, or the end of `work`. Where one item has
/// video, all need video.
pub fn stitch(items: &[StitchItem], work: &Work) -> Result<Movie, StitchError> {
    let pictured = items.iter().position(|item| item::video(&item.movie).is_some());
    let mut lanes: BTreeMap<Lane, Vec<(usize, Track)>> = BTreeMap::new();
    let (mut start, mut starts, mut skipped) = (0_i64, Vec::with_capacity(items.len()), Vec::new());
    for (place, item) in items.iter().enumerate() {
        let shown = Shown::of(item, place, work)?;
        if let (Some(other), false) = (pictured, shown.has_video()) {
            return Err(item::without_video(items, place, other));
        }
        for (lane, track) in shown.clips(start)? {
            lanes.entry(lane).or_default().push((place, track));
        }
        skipped.extend(shown.left_out());
        starts.push(start);
        start = start.saturating_add(shown.length());
    }
    if lanes.is_empty() {
        return Err(StitchError::Empty);
    }
    let objects = items.iter().map(|item| item.object.saturating_add(1)).max().unwrap_or(0);
    let mut movie = composed(lanes, items, objects, starts);
    movie.duration = start.unsigned_abs();
    movie.skipped = skipped;
    refine(&mut movie, work)?;
    Ok(movie)
}

/// Returns an upper bound of the heap bytes of the movie of `items`.
#[must_use]
pub fn stitched_bytes(items: &[StitchItem]) -> u64 {
    items.iter().map(item::bytes).fold(0, u64::saturating_add)
}

fn composed(lanes: BTreeMap<Lane, Vec<(usize, Track)>>, items: &[StitchItem], objects: u16, starts: Vec<i64>) -> Movie {
    let (mut tracks, mut clips, mut clip_items, mut split) = (Vec::new(), Vec::new(), Vec::new(), None);
    for (id, parts) in (1..).zip(lanes.into_values()) {
        let parts: Vec<_> = parts.into_iter().map(|(place, track)| (place, Track { id, ..track })).collect();
        let (track, other) = join::joined(&parts, items);
        tracks.extend(track);
        split = split.or(other);
        for (place, clip) in parts {
            clip_items.push(place);
            clips.push(clip);
        }
    }
    Movie {
        timescale: CLOCK,
        duration: 0,
        fragmented: false,
        tracks,
        clips,
        chapters: Vec::new(),
        artwork: None,
        tags: Tags::default(),
        programmes: Vec::new(),
        skipped: Vec::<SkippedTrack>::new(),
        external_media: None,
        system_headers: Vec::new(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: true,
        extraction: None,
        stitched: Some(Box::new(Stitched { objects, split, starts, clip_items })),
    }
}
