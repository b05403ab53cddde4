//! Stored titles: what a loader needs of one, and the blocks that it is loaded in.

mod block;
mod block_length;
mod courses;
mod intervals;
mod reader;

pub(crate) use block::{Block, Lanes, LoadError, Planned, PlannedBlock, seconds};
pub(crate) use block_length::{BlockLength, PERIOD};
pub(crate) use courses::Courses;
pub(crate) use intervals::{Intervals, PoolReader, Subject};
pub use reader::HeavyWork;
pub(crate) use reader::{MediaReader, held};

use crate::{Feed, Format};
use millpond_package::{ObjectIndex, Presentation, PresentedTrack};
use millpond_store::Object;
use std::{collections::BTreeSet, fmt, sync::Arc};

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

    pub(crate) fn track(&self, track: u16) -> Option<&PresentedTrack> {
        self.presentation.tracks().get(usize::from(track))
    }

    /// Whether its media is read from a storage that is not local.
    pub fn is_remote(&self) -> bool {
        self.objects().first().is_some_and(|object| object.file().is_none())
    }

    /// The place that its files come from; `None` where they are local.
    pub(crate) fn remote_place(&self) -> Option<&str> {
        let object = self.objects.first().filter(|object| object.file().is_none())?;
        Some(object.place())
    }

    /// Names of the stores of a striping group that hold its media; empty where it is not striped.
    pub fn stores(&self) -> BTreeSet<Arc<str>> {
        self.objects().iter().flat_map(|object| object.stores()).collect()
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
}

impl fmt::Debug for StoredMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredMedia").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}
