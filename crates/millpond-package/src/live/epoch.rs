//! Epochs of a window: the formats of the tracks, and their place on the wall clock.

use crate::{
    fmp4::{TrackHeader, live_init},
    presentation::track::MediaKind,
};
use bytes::Bytes;
use millpond_media::movie::{Track, TrackKind};
use std::{sync::Arc, time::Duration};

/// Format of one track in an epoch.
#[derive(Clone, Debug)]
pub struct LiveFormat {
    /// Codec, sample entry, timescale and picture. It has no samples.
    pub track: Arc<Track>,
    /// BCP 47 tag; `None` where the language is unknown.
    pub language: Option<String>,
    /// Name for menus, unique among the tracks of its kind.
    pub label: String,
    /// Whether players should start with this track of its kind.
    pub is_default: bool,
    /// Frames per second as a fraction, where known.
    pub frame_rate: Option<(u32, u32)>,
    /// ID of the track in its segments.
    pub id: u32,
    /// Media time of presentation time 0, in ticks of the track.
    pub early: i64,
}

impl LiveFormat {
    /// Kind of the track.
    pub(super) fn kind(&self) -> MediaKind {
        match self.track.kind {
            TrackKind::Video { .. } => MediaKind::Video,
            TrackKind::Audio { .. } => MediaKind::Audio,
            TrackKind::Text => MediaKind::Text,
        }
    }

    /// Returns its track in an init segment.
    #[must_use]
    pub fn header(&self) -> TrackHeader<'_> {
        TrackHeader {
            id: self.id,
            track: &self.track,
            kind: self.kind(),
            language: self.language.as_deref(),
            label: &self.label,
            timescale: self.track.timescale,
            early: self.early,
        }
    }

    fn init(&self) -> Bytes {
        live_init(&[self.header()])
    }
}

/// An epoch: segments of one set of formats on one timeline.
#[derive(Clone, Debug)]
pub struct WindowEpoch {
    /// Its number.
    pub number: u32,
    /// Stream time at which it begins.
    pub from: Duration,
    /// Wall time of that, since the Unix epoch; zero where it has none.
    pub wall: Duration,
    /// The format of each track of the window; `None` where a track has no media in this epoch.
    pub formats: Box<[Option<LiveFormat>]>,
    inits: Box<[Option<Bytes>]>,
    /// Stream time at which its first segment begins.
    pub(crate) began: Option<Duration>,
}

impl WindowEpoch {
    /// Creates an epoch, with the init segments of its formats.
    #[must_use]
    pub fn new(number: u32, from: Duration, wall: Duration, formats: Vec<Option<LiveFormat>>) -> Self {
        let inits = formats.iter().map(|format| format.as_ref().map(LiveFormat::init)).collect();
        Self { number, from, wall, formats: formats.into(), inits, began: None }
    }

    /// Creates an epoch of another server's window, with its init segments.
    pub(super) fn copied(
        number: u32,
        from: Duration,
        wall: Duration,
        formats: Vec<Option<(LiveFormat, Bytes)>>,
    ) -> Self {
        let (formats, inits): (Vec<_>, Vec<_>) = formats.into_iter().map(Option::unzip).unzip();
        Self { number, from, wall, formats: formats.into(), inits: inits.into(), began: None }
    }

    /// Returns the init segment of a track.
    #[must_use]
    pub fn init(&self, track: usize) -> Option<&Bytes> {
        self.inits.get(track)?.as_ref()
    }

    /// Whether another one has its place and its init segments.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.from, self.wall, &self.inits) == (other.from, other.wall, &other.inits)
    }

    /// Returns the wall time of a stream time, since the Unix epoch.
    #[must_use]
    pub fn wall_of(&self, at: Duration) -> Duration {
        // Tracks may begin up to a frame before the epoch.
        self.wall.saturating_add(at).saturating_sub(self.from)
    }
}
