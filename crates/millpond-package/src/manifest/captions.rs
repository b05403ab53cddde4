//! Captions within pictures, as multivariant playlists and MPDs announce them.

use crate::{
    language,
    manifest::track_listing::TrackListing,
    presentation::{captions::CaptionRule, track::MediaKind},
};
use millpond_media::{CaptionChannel, CaptionChannels, NalSyntax};
use std::collections::HashSet;

/// Captions within the pictures of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaptionListing<'a> {
    /// It is not known whether there are any.
    Unknown,
    /// There are none.
    Absent,
    /// Captions in these channels.
    Present(Vec<ListedCaptions<'a>>),
}

/// Captions in one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedCaptions<'a> {
    pub(crate) channel: CaptionChannel,
    /// BCP 47 tag; `None` where the language is unknown.
    pub(crate) language: Option<&'a str>,
    /// Name for menus, which no other channel has.
    pub(crate) label: String,
}

impl<'a> CaptionListing<'a> {
    /// Returns the captions of the videos among the tracks of a manifest, by the rule of its place. Captions of one rendition count
    /// for all: players know one list.
    pub(crate) fn of(rule: &'a CaptionRule, tracks: &[TrackListing<'_>]) -> Self {
        let videos = || tracks.iter().filter(|track| track.kind == MediaKind::Video);
        if videos().next().is_none() {
            return Self::Unknown;
        }
        match rule {
            CaptionRule::Off => Self::Absent,
            CaptionRule::Stated(all) if videos().any(carries) => {
                Self::labelled(all.iter().map(|stated| (stated.channel, stated.language.as_deref())))
            }
            CaptionRule::Stated(_) => Self::Unknown,
            CaptionRule::Auto => match CaptionChannels::joined(videos().map(TrackListing::captions)) {
                None => Self::Unknown,
                Some(channels) if channels.is_empty() => Self::Absent,
                Some(channels) => Self::labelled(channels.iter().map(|channel| (channel, None))),
            },
        }
    }

    /// Returns the captions of a list; none where it is empty.
    pub(crate) fn listed(&self) -> &[ListedCaptions<'a>] {
        match self {
            Self::Present(all) => all,
            Self::Unknown | Self::Absent => &[],
        }
    }

    /// Whether there are services of CEA-708.
    pub(crate) fn has_services(&self) -> bool {
        self.listed().iter().any(|captions| matches!(captions.channel, CaptionChannel::Cea708(_)))
    }

    fn labelled(channels: impl Iterator<Item = (CaptionChannel, Option<&'a str>)>) -> Self {
        let mut names = HashSet::new();
        let listed = channels.map(|(channel, language)| {
            let label = match language.map(language::display_name) {
                None => channel.to_string(),
                Some(name) if names.insert(name.clone()) => name,
                Some(name) => format!("{name} ({channel})"),
            };
            ListedCaptions { channel, language, label }
        });
        Self::Present(listed.collect())
    }
}

/// Whether a video can carry captions that players find: it is H.264 or H.265.
fn carries(video: &TrackListing<'_>) -> bool {
    video.codecs().any(|codec| NalSyntax::of(codec).is_some())
}
