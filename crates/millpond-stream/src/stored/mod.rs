//! Stored titles: what a loader needs of one, and the blocks that it is loaded in.

mod block;
mod block_length;
mod intervals;
mod reader;
mod seek;

pub(crate) use block::{Block, Lanes, LoadError, Planned, PlannedBlock, seconds};
pub(crate) use block_length::{BlockLength, PERIOD};
pub(crate) use intervals::{Intervals, PoolReader, Subject};
pub use reader::HeavyWork;
pub(crate) use reader::MediaReader;
pub(crate) use seek::{beginnings, cursors, first_due, seek};

use crate::{Feed, Format, graph::Module, modules::Laps, resources::Resources};
use millpond_package::{MediaKind, ObjectIndex, Presentation, PresentedTrack};
use millpond_store::Object;
use std::{fmt, sync::Arc};

/// A stored title.
pub struct StoredMedia {
    path: String,
    id: u64,
    objects: Vec<Arc<Object>>,
    presentation: Arc<Presentation>,
    formats: Vec<Option<Format>>,
}

impl StoredMedia {
    /// Makes one of what the library knows. `id` differs whenever anything differs that a frame depends on; `objects` are those
    /// that the presentation counts.
    pub fn new(path: String, id: u64, objects: Vec<Arc<Object>>, presentation: Arc<Presentation>) -> Self {
        let formats = presentation.tracks().iter().map(Format::of).collect();
        Self { path, id, objects, presentation, formats }
    }

    /// Path in URLs.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Differs whenever anything differs that a frame depends on.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The presentation.
    pub fn presentation(&self) -> &Presentation {
        &self.presentation
    }

    /// Duration in seconds.
    pub fn duration(&self) -> f64 {
        self.presentation.duration()
    }

    /// The format of a track; `None` where it has no samples.
    pub fn format(&self, track: usize) -> Option<&Format> {
        self.formats.get(track)?.as_ref()
    }

    /// Bits a second of some of its tracks, on average.
    pub fn rate(&self, tracks: impl IntoIterator<Item = u16>) -> u64 {
        tracks.into_iter().filter_map(|track| self.format(track.into())).map(|format| format.bandwidth).sum()
    }

    /// Returns the tracks to describe, with their indexes: pictures of the rendition that is named, else the best ones that
    /// need no more than `most` bits a second together with the sound, or the least; sound of the default language.
    pub fn chosen(&self, rendition: Option<&str>, most: Option<u64>) -> Vec<(usize, &Format)> {
        let all: Vec<_> = self.formats.iter().enumerate().filter_map(|(n, f)| Some((n, f.as_ref()?))).collect();
        let of =
            |kind| all.iter().copied().filter(move |(n, format)| format.kind == kind && format.described(*n).is_some());
        let named = rendition.and_then(|name| all.iter().copied().find(|(_, format)| format.name == name));
        let audio = named.filter(|(_, format)| format.kind == MediaKind::Audio);
        if audio.is_some() {
            return audio.into_iter().collect();
        }
        let audio = of(MediaKind::Audio).find(|(_, format)| format.is_default).or_else(|| of(MediaKind::Audio).next());
        let left = most.map(|most| most.saturating_sub(audio.map_or(0, |(_, format)| format.bandwidth)));
        let main = of(MediaKind::Video).filter(|(_, format)| !format.is_alternative);
        let best = main.rev().find(|(_, format)| left.is_none_or(|left| format.bandwidth <= left));
        let video = named.filter(|(_, format)| format.kind == MediaKind::Video);
        let video = video.or(best).or_else(|| of(MediaKind::Video).next());
        video.into_iter().chain(audio).collect()
    }

    pub(crate) fn track(&self, track: u16) -> Option<&PresentedTrack> {
        self.presentation.tracks().get(usize::from(track))
    }

    pub(crate) fn objects(&self) -> &[Arc<Object>] {
        &self.objects
    }

    pub(crate) fn object(&self, object: ObjectIndex) -> Option<&Arc<Object>> {
        self.objects.get(usize::from(object.0))
    }
}

impl Feed for StoredMedia {
    fn path(&self) -> &str {
        &self.path
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn formats(&self) -> &[Option<Format>] {
        &self.formats
    }

    fn endless(self: Arc<Self>, tracks: Arc<[u16]>, resources: &Resources) -> Box<dyn Module> {
        Box::new(Laps::new(self, tracks, resources))
    }
}

impl fmt::Debug for StoredMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredMedia").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}
