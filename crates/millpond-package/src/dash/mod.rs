//! The MPD of DASH (ISO/IEC 23009-1) with a `SegmentTemplate` and a `SegmentTimeline`.
//!
//! Times in the timeline are presentation times, after the edit lists of the init segments. So a Period begins at
//! presentation time 0 and needs no `presentationTimeOffset`. With one, players that apply the edit list (as Media
//! Source Extensions do) would subtract encoder priming twice.

pub mod live;

mod captions;
mod protection;
mod sets;
mod supplement;

#[cfg(test)]
mod tests;

use crate::{
    PackageError,
    delivery::{container::Container, text_track::is_webvtt, thumbnails::Thumbnails},
    manifest::{
        filter::{TrackFilter, restore_defaults},
        track_listing::TrackListing,
    },
    presentation::{
        Presentation,
        period::{self, Period},
        track::{MediaKind, PresentedTrack},
    },
    timeline::bandwidth::seconds,
    writing::{digits, xml::Writer},
};
use std::collections::HashSet;

use sets::{entries, sets};

/// Most bytes of an entry in a segment timeline, except for very long segments. The text then never grows by copying.
const ENTRY: usize = 40;

/// Returns the MPD of an asset.
///
/// # Errors
/// [`PackageError::Container`] where no video and no audio of the asset can be carried.
pub fn mpd(presentation: &Presentation) -> Result<String, PackageError> {
    filtered_mpd(presentation, &TrackFilter::default())
}

/// Returns the MPD of the tracks that a filter keeps. Their order stays: players of DASH choose the first rendition themselves.
///
/// # Errors
/// As [`mpd`], and [`PackageError::Filtered`] where the filter keeps neither video nor audio.
pub fn filtered_mpd(presentation: &Presentation, filter: &TrackFilter) -> Result<String, PackageError> {
    if !presentation.is_text() && presentation.listed().all(|track| track.kind == MediaKind::Text) {
        return Err(presentation.not_carried("DASH", "video, or audio other than G.711 and PCM of 8 bits"));
    }
    let all = TrackListing::of_presentation(presentation, Container::Fmp4, |track| presentation.lists(track));
    let tracks = filter.choose(all.clone())?;
    let longest_of = |of: &Presentation| of.listed().flat_map(|t| t.segments.micros()).max().unwrap_or(0);
    // A track of the whole asset has one long segment where a period lacks it.
    let of_periods = presentation.periods.iter().map(|period| longest_of(&period.presentation)).max();
    let longest = of_periods.unwrap_or_else(|| longest_of(presentation));
    let entries: usize = presentation.listed().filter(|t| !is_webvtt(t)).map(|t| entries(&t.segments)).sum();
    let mut w = Writer::new(1024 + 512 * presentation.tracks.len() + ENTRY * entries);
    w.start("MPD")
        .attribute("xmlns", "urn:mpeg:dash:schema:mpd:2011")
        .attribute("profiles", "urn:mpeg:dash:profile:isoff-live:2011")
        .attribute("type", "static")
        .attribute("mediaPresentationDuration", &duration((presentation.duration * 1e6).round() as u64))
        .attribute("maxSegmentDuration", &duration(seconds(longest.saturating_add(499_999)).saturating_mul(1_000_000)))
        .attribute("minBufferTime", "PT2S");
    protection::name_space(&mut w, &tracks);
    let kept: HashSet<&str> = tracks.iter().map(|track| track.name).collect();
    let excluded: HashSet<&str> = all.iter().map(|track| track.name).filter(|name| !kept.contains(name)).collect();
    for period in &presentation.periods {
        write_period(&mut w, period, &excluded);
    }
    if !presentation.periods.is_empty() {
        return Ok(w.finish());
    }
    let sets = sets(&tracks, presentation.aligned);
    w.start("Period").attribute("id", "0").attribute("start", "PT0S");
    for (id, set) in (0..).zip(&sets) {
        set.write(&mut w, id, presentation);
    }
    let has_video = tracks.iter().any(|track| track.kind == MediaKind::Video);
    if let Some(thumbnails) = Thumbnails::of(presentation).filter(|_| presentation.lists_thumbnails && has_video) {
        thumbnails.adaptation_set(&mut w, sets.len() as u64, &presentation.base);
    }
    Ok(w.finish())
}

/// Writes one of several periods (5.3.2), without the parts of `excluded` tracks.
fn write_period(w: &mut Writer, period: &Period, excluded: &HashSet<&str>) {
    let presentation = &period.presentation;
    let is_listed = |part: &PresentedTrack| presentation.lists(part) && !excluded.contains(period::whole(&part.name));
    let mut tracks = TrackListing::of_presentation(presentation, Container::Fmp4, is_listed);
    if !excluded.is_empty() {
        restore_defaults(&mut tracks);
    }
    let micros = u64::try_from((period.start + 500) / 1000).unwrap_or(0);
    w.start("Period").number("id", period.number as u64).attribute("start", &duration(micros));
    for (id, set) in (0..).zip(&sets(&tracks, presentation.aligned)) {
        set.write(w, id, period);
    }
    w.end();
}

/// Formats an `xs:duration` in seconds.
fn duration(micros: u64) -> String {
    let mut out = "PT".to_owned();
    digits::push_micros(&mut out, micros);
    let len = out.trim_end_matches('0').trim_end_matches('.').len();
    out.truncate(len);
    out.push('S');
    out
}
