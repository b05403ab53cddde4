//! What an asset may cost to present.
//!
//! Memory and work of [`Presentation::build`](crate::Presentation::build) and of everything rendered afterwards grow
//! with tracks, edits and segments, never with samples alone: samples are walked, not collected. The limits here bound
//! the first three, so that each render is bounded too. Samples are bounded by `millpond_media`.

use crate::presentation::Source;

/// Most heap bytes that a segment takes while a presentation is built: boundary, ordinal, bytes and load, each in a
/// list that doubles as it grows.
const SEGMENT_BYTES: u64 = 96;
/// Most heap bytes that an edit takes: its span and its run, each in a list that doubles as it grows.
const EDIT_BYTES: u64 = 512;
/// Heap bytes of a track without its segments and edits: names, facts, codec parameters.
const TRACK_BYTES: u64 = 4096;
/// Shortest segments in a row: two of them are longer than the shortest target duration of half a second.
const SEGMENTS_A_SECOND: f64 = 4.0;

/// Upper estimate of the heap bytes that [`Presentation::build`](crate::Presentation::build) takes for `sources`, and
/// that the presentation keeps. The indexes themselves and sidecar cues are not counted.
#[must_use]
pub fn building_bytes(sources: &[Source]) -> u64 {
    let tracks = || sources.iter().flat_map(|source| &source.movie.tracks);
    let of_track = |track: &millpond_media::Track| {
        let samples = &track.samples;
        let ticks = samples.end_dts().saturating_sub(samples.start_dts());
        let timed = (track.timescale.seconds(ticks).max(0.0) * SEGMENTS_A_SECOND) as u64;
        let segments = timed.saturating_add(2).min(u64::from(samples.len()) + 1);
        let edits = track.edits.len() as u64 + 1;
        let names = track.name.as_ref().map_or(0, String::len) as u64;
        TRACK_BYTES + 4 * names + edits * EDIT_BYTES + segments * SEGMENT_BYTES
    };
    tracks().map(of_track).fold(0, u64::saturating_add)
}
