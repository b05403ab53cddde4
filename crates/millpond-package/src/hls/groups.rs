//! Audio groups: tracks from which players of a variant choose.

use crate::{manifest::track_listing::TrackListing, presentation::selection::family, timeline::bandwidth::Bandwidth};
use std::collections::BTreeSet;

/// Most numbers of channels that have groups of their own.
const MOST_COUNTS: usize = 8;

/// Audio tracks of one codec, and of one number of channels where a language has several.
pub(super) struct Group<'a> {
    pub(super) id: String,
    pub(super) tracks: Vec<TrackListing<'a>>,
    pub(super) bandwidth: Bandwidth,
    /// Codecs of its variants except for the video's, without duplicates.
    pub(super) codecs: Vec<String>,
}

impl<'a> Group<'a> {
    /// Returns the groups of audio tracks, in the order of their first tracks.
    pub(super) fn all(audio: &[TrackListing<'a>]) -> Vec<Self> {
        let mut families: Vec<(&'static str, Vec<TrackListing<'a>>)> = Vec::new();
        for track in audio {
            let id = track.codec().map_or("audio", family);
            match families.iter_mut().find(|(known, _)| *known == id) {
                Some((_, tracks)) => tracks.push(*track),
                None => families.push((id, vec![*track])),
            }
        }
        families.into_iter().flat_map(|(id, tracks)| Self::of_family(id, tracks)).collect()
    }

    fn of_family(id: &str, tracks: Vec<TrackListing<'a>>) -> Vec<Self> {
        let counts: BTreeSet<u16> = tracks.iter().filter_map(TrackListing::channels).collect();
        let of = |track: &TrackListing<'a>, count: u16| {
            let alike = || tracks.iter().filter(|other| is_alike(track, other));
            // A language without this number of channels is in the group with what it has.
            track.channels() == Some(count) || !alike().any(|other| other.channels() == Some(count))
        };
        let is_several = |track: &TrackListing<'a>| {
            tracks.iter().any(|other| is_alike(track, other) && other.channels() != track.channels())
        };
        if counts.len() > MOST_COUNTS || !tracks.iter().any(is_several) {
            return vec![Self::new(id.to_owned(), tracks)];
        }
        let default = tracks.iter().find(|track| track.is_default);
        let group = |count: &u16| {
            let of_count = tracks.iter().copied().filter(|track| of(track, *count)).collect();
            Self::new(format!("{id}-{count}"), of_count).with_default(default)
        };
        counts.iter().map(group).collect()
    }

    fn new(id: String, tracks: Vec<TrackListing<'a>>) -> Self {
        let bandwidth = tracks.iter().fold(Bandwidth::default(), |all, track| all.larger(track.bandwidth));
        Self { id, tracks, bandwidth, codecs: Vec::new() }
    }

    /// Makes a track the default where none is: one like `default`, else the first one.
    fn with_default(mut self, default: Option<&TrackListing<'a>>) -> Self {
        if !self.tracks.iter().any(|track| track.is_default) {
            let like = self.tracks.iter().position(|track| default.is_some_and(|default| is_alike(track, default)));
            if let Some(track) = self.tracks.get_mut(like.unwrap_or(0)) {
                track.is_default = true;
            }
        }
        self
    }
}

/// Whether two tracks are the same sound but for their channels.
fn is_alike(a: &TrackListing<'_>, b: &TrackListing<'_>) -> bool {
    let names = (a.track.map(|track| &track.name), b.track.map(|track| &track.name));
    a.language == b.language && a.purposes() == b.purposes() && names.0 == names.1
}
