//! Ladders: several streams that are renditions of one.

use super::Window;
use crate::{
    manifest::track_listing::TrackListing,
    presentation::{captions::CaptionRule, track::MediaKind},
};

/// One stream of a ladder. Its stream time is the ladder's common stream time, and equals its wall time.
#[derive(Clone, Copy, Debug)]
pub struct Rung<'a> {
    /// Relative reference from the folder of the ladder's playlist to the stream's folder, with a slash at its end.
    pub base: &'a str,
    /// Name of the stream's run in URIs.
    pub run: &'a str,
    /// Its segments.
    pub window: &'a Window,
}

/// A track of a rung that manifests list.
#[derive(Debug)]
pub(crate) struct LadderTrack<'a> {
    /// The rung.
    pub(crate) rung: Rung<'a>,
    /// Its track there.
    pub(crate) track: TrackListing<'a>,
    /// Its name below the ladder, such as `hi/v1`.
    name: String,
}

/// The tracks of a ladder that manifests list: the first video of each rung that is ready, from the smallest picture to the
/// largest, and the sound and the subtitles of the first such rung that has some.
#[derive(Debug)]
pub(crate) struct Tracks<'a>(pub(crate) Vec<LadderTrack<'a>>);

impl<'a> Tracks<'a> {
    pub(crate) fn of(rungs: &[Rung<'a>]) -> Self {
        let ready = rungs.iter().filter(|rung| rung.window.is_ready());
        let listed: Vec<_> =
            ready.filter_map(|rung| Some((*rung, rung.window.listings(rung.window.newest_epoch()?)))).collect();
        let of = |rung: Rung<'a>, track: TrackListing<'a>| LadderTrack {
            rung,
            track,
            name: format!("{}{}", rung.base, track.name),
        };
        let video = |(rung, tracks): &(Rung<'a>, Vec<TrackListing<'a>>)| {
            let track = tracks.iter().find(|track| track.kind == MediaKind::Video)?;
            Some(of(*rung, *track))
        };
        let mut all: Vec<_> = listed.iter().filter_map(video).collect();
        all.sort_by_key(|of| {
            let (width, height) = of.track.display_size().unwrap_or_default();
            (u64::from(width) * u64::from(height), of.track.bandwidth.peak)
        });
        let is_sound = |track: &&TrackListing<'_>| track.kind == MediaKind::Audio;
        let sound = listed.iter().find(|(_, tracks)| tracks.iter().any(|track| is_sound(&track)));
        all.extend(
            sound.into_iter().flat_map(|(rung, tracks)| tracks.iter().filter(is_sound).map(|track| of(*rung, *track))),
        );
        let is_text = |track: &&TrackListing<'_>| track.kind == MediaKind::Text;
        let texts = listed.iter().find(|(_, tracks)| tracks.iter().any(|track| is_text(&track)));
        all.extend(
            texts.into_iter().flat_map(|(rung, tracks)| tracks.iter().filter(is_text).map(|track| of(*rung, *track))),
        );
        Self(all)
    }

    /// Returns the rule by which manifests announce captions within pictures; `None` without tracks. All rungs have the
    /// rule of their place.
    pub(crate) fn caption_rule(&self) -> Option<&'a CaptionRule> {
        self.0.first().map(|of| of.rung.window.caption_rule())
    }

    /// Returns the tracks under their names below the ladder. Their places are their positions in the list.
    pub(crate) fn listings(&self) -> Vec<TrackListing<'_>> {
        let each = self.0.iter().enumerate();
        each.map(|(place, of)| TrackListing { name: &of.name, place, ..of.track }).collect()
    }
}
