//! The tracks that a filter keeps in a manifest.

use super::{TrackFilter, codec_name::entry_type, language_range::LanguageRange, list::List, parameter::Parameter};
use crate::{
    PackageError,
    error::exclusions::{Exclusion, Exclusions},
    manifest::track_listing::TrackListing,
    presentation::{selection::family, track::MediaKind},
};
use std::collections::HashSet;

/// Most values of excluded tracks in a message.
const MOST_VALUES: usize = 8;

impl TrackFilter {
    /// Returns the tracks that a manifest lists, in their order. If a default sound is excluded, another one becomes the default.
    ///
    /// A picture of unknown size passes `max-height`. Alternative pictures leave with the last picture of the main ladder.
    ///
    /// # Errors
    /// [`PackageError::Filtered`] where neither pictures nor sound are left of tracks that have some.
    pub(crate) fn choose<'a>(&self, tracks: Vec<TrackListing<'a>>) -> Result<Vec<TrackListing<'a>>, PackageError> {
        if self.is_empty() || tracks.is_empty() {
            return Ok(tracks);
        }
        let mut choice = Choice::of(tracks);
        self.keep_pictures(&mut choice);
        self.keep_languages(&mut choice, (MediaKind::Audio, Parameter::Audio), self.audio.as_ref());
        self.keep_languages(&mut choice, (MediaKind::Text, Parameter::Text), self.text.as_ref());
        choice.finish()
    }

    fn keep_pictures(&self, choice: &mut Choice<'_>) {
        if let Some(most) = self.max_height {
            let is_kept = |track: &TrackListing<'_>| track.display_size().is_none_or(|(_, height)| height <= most);
            choice.keep(MediaKind::Video, self.told(Parameter::MaxHeight), is_kept, size);
        }
        if let Some(most) = self.max_rate {
            let is_kept = |track: &TrackListing<'_>| rate(track) <= most.bits();
            choice.keep(MediaKind::Video, self.told(Parameter::MaxRate), is_kept, kilobits);
        }
        if let Some(least) = self.min_rate {
            let is_kept = |track: &TrackListing<'_>| rate(track) >= least.bits();
            choice.keep(MediaKind::Video, self.told(Parameter::MinRate), is_kept, kilobits);
        }
        if let Some(list) = &self.video {
            // Players need a decoder for each period.
            let is_kept = |track: &TrackListing<'_>| track.codecs().all(|codec| list.any(|name| name.matches(codec)));
            choice.keep(MediaKind::Video, self.told(Parameter::Video), is_kept, coding);
        }
    }

    fn keep_languages(
        &self,
        choice: &mut Choice<'_>,
        (kind, parameter): (MediaKind, Parameter),
        list: Option<&List<LanguageRange>>,
    ) {
        let Some(list) = list else { return };
        let is_kept = |track: &TrackListing<'_>| list.any(|range| range.matches(track.language));
        choice.keep(kind, self.told(parameter), is_kept, language);
    }

    /// Returns the name and value of a parameter.
    fn told(&self, parameter: Parameter) -> (&'static str, String) {
        (parameter.name(), self.value(parameter).unwrap_or_default())
    }

    /// Moves the picture with which HLS players begin before the other pictures: that of the highest rate up to `first`, else
    /// that of the lowest rate.
    pub(crate) fn put_first(&self, tracks: &mut [TrackListing<'_>]) {
        let Some(most) = self.first else { return };
        let Some(start) = tracks.iter().position(|track| track.kind == MediaKind::Video) else { return };
        let ladder = main_ladder(tracks);
        let pictures = || tracks.iter().enumerate().filter(move |(_, track)| is_picture_of(track, ladder));
        let below = pictures().filter(|(_, track)| rate(track) <= most.bits()).max_by_key(|(_, track)| rate(track));
        let chosen = below.or_else(|| pictures().min_by_key(|(_, track)| rate(track)));
        let Some(place) = chosen.map(|(place, _)| place) else { return };
        if let Some(run) = tracks.get_mut(start..=place) {
            run.rotate_right(1);
        }
    }
}

/// Tracks of which parameters exclude some.
struct Choice<'a> {
    left: Vec<TrackListing<'a>>,
    /// Whether there were pictures or sound.
    has_media: bool,
    /// Ladder of the variants: videos of other ladders are alternatives.
    ladder: u16,
    /// Tracks that each parameter excluded, for the message.
    excluded: Exclusions,
}

impl<'a> Choice<'a> {
    fn of(left: Vec<TrackListing<'a>>) -> Self {
        let has_media = left.iter().any(|track| track.kind != MediaKind::Text);
        let ladder = main_ladder(&left);
        Self { left, has_media, ladder, excluded: Exclusions::default() }
    }

    /// Keeps the tracks of a kind for which `is_kept` is true. The parameter, which is `stated` so, excludes the others, whose `value` is in the message.
    fn keep(
        &mut self,
        kind: MediaKind,
        (parameter, stated): (&'static str, String),
        is_kept: impl Fn(&TrackListing<'a>) -> bool,
        value: impl Fn(&TrackListing<'a>) -> String,
    ) {
        let ladder = self.ladder;
        let is_counted = |track: &&TrackListing<'a>| match kind {
            MediaKind::Video => is_picture_of(track, ladder),
            kind => track.kind == kind,
        };
        let count = self.left.iter().filter(is_counted).count();
        let all = std::mem::take(&mut self.left).into_iter();
        let (left, excluded): (Vec<_>, Vec<_>) = all.partition(|track| track.kind != kind || is_kept(track));
        self.left = left;
        let mut values: Vec<String> = excluded.iter().filter(is_counted).map(value).collect();
        let lacking = values.len();
        if lacking == 0 {
            return;
        }
        values.dedup();
        let more = if values.len() > MOST_VALUES { " ..." } else { "" };
        values.truncate(MOST_VALUES);
        let kind = name_of(kind);
        self.excluded.0.push(Exclusion {
            parameter,
            values: vec![(stated, Vec::new())],
            excluded: lacking,
            left: count,
            is_further: self.excluded.0.iter().any(|before| before.kind == kind),
            kind,
            tracks: format!("{}{more}", values.join(", ")),
        });
    }

    fn finish(self) -> Result<Vec<TrackListing<'a>>, PackageError> {
        let Self { mut left, has_media, ladder, excluded } = self;
        if !left.iter().any(|track| is_picture_of(track, ladder)) {
            left.retain(|track| track.kind != MediaKind::Video);
        }
        if !left.iter().any(|track| track.kind != MediaKind::Text || !has_media) {
            return Err(PackageError::Filtered { excluded });
        }
        restore_defaults(&mut left);
        Ok(left)
    }
}

/// Makes a sound the default of each codec that lost its default: the first one in the language of the first default, if it is no
/// commentary.
pub(crate) fn restore_defaults(tracks: &mut [TrackListing<'_>]) {
    let sounds = || tracks.iter().filter(|track| track.kind == MediaKind::Audio);
    let first = sounds().find(|track| track.is_default).or_else(|| sounds().find(|track| is_usual(track)));
    let language = first.and_then(|track| track.language);
    let mut done: HashSet<&'static str> = sounds().filter(|track| track.is_default).map(codec_of).collect();
    for (is_same_language, needs_usual) in [(true, true), (false, true), (false, false)] {
        for track in tracks.iter_mut().filter(|track| track.kind == MediaKind::Audio) {
            let may_be = (is_usual(track) || !needs_usual) && (!is_same_language || track.language == language);
            if may_be && done.insert(codec_of(track)) {
                track.is_default = true;
            }
        }
    }
}

/// Returns the ladder of the variants: that of the first video.
fn main_ladder(tracks: &[TrackListing<'_>]) -> u16 {
    tracks.iter().find(|track| track.kind == MediaKind::Video).map_or(0, |track| track.ladder)
}

fn is_picture_of(track: &TrackListing<'_>, ladder: u16) -> bool {
    track.kind == MediaKind::Video && track.ladder == ladder
}

/// Whether players may choose a sound by themselves: it is no commentary, and not for some viewers only.
fn is_usual(track: &TrackListing<'_>) -> bool {
    track.purposes().is_usual()
}

/// Returns the codec family of a sound; each family has a default.
fn codec_of(track: &TrackListing<'_>) -> &'static str {
    track.codec().map_or("", family)
}

/// Returns the peak bits per second of a track as fragmented MP4, so that manifests of all containers list the same tracks.
fn rate(track: &TrackListing<'_>) -> u64 {
    track.fragment_rate().peak
}

/// Returns the size of a picture, for messages.
fn size(track: &TrackListing<'_>) -> String {
    track.display_size().map_or_else(String::new, |(width, height)| format!("{width}x{height}"))
}

/// Returns the rate of a picture, for messages.
fn kilobits(track: &TrackListing<'_>) -> String {
    format!("{}k", rate(track).div_ceil(1000))
}

/// Returns the type of a picture's sample entry, for messages.
fn coding(track: &TrackListing<'_>) -> String {
    entry_type(&track.codec_parameter()).to_owned()
}

/// Returns the language of a track, for messages.
fn language(track: &TrackListing<'_>) -> String {
    track.language.unwrap_or("und").to_owned()
}

const fn name_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Video => "renditions",
        MediaKind::Audio => "sound tracks",
        MediaKind::Text => "subtitles",
    }
}
