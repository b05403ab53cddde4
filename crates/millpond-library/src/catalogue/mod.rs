//! Names of everything that can be played at a place, so that viewers can search all of its folders.
//!
//! A [`Catalogue`] reads the folders of a place when somebody searches it, in a task of its own. Searches use the names that
//! it has. They are read again when they are old, by the next search; nobody waits for that. The [`Names`] of a place are
//! one entry of the memory budget.

mod crawl;
mod folder_pictures;
mod names;
mod query;
mod titles;

use crate::{folder::listed::ListedFolder, library::Library};
use crawl::Crawl;
pub use folder_pictures::FolderPicture;
use folder_pictures::FolderPictures;
use millpond_store::Cache;
pub use names::{NameRow, Names};
pub use query::{Found, Query, search};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
pub use titles::{PlayableTitle, PlayableTitles, playable_titles};
use tokio::sync::watch;

/// Names younger than this are not read again.
const FRESH: Duration = Duration::from_secs(30);
/// The same as a multiple of the time that reading took: it costs the storage a twentieth of its time at most.
const FRESH_SHARE: u32 = 20;
/// Names older than this are read again, however long it takes.
const OLD: Duration = Duration::from_secs(3600);
/// Time for which the first search of a place waits for its names.
const PATIENCE: Duration = Duration::from_secs(3);
/// The names of a place take at most the memory budget divided by this.
const MEMORY_SHARE: u64 = 16;

/// The names of all places, as far as they were searched.
pub struct Catalogue {
    library: Arc<Library>,
    /// Folders that are read for each place, at most.
    most_folders: AtomicUsize,
    /// Number of changes of the places. Names that were read before one are not kept.
    changes: AtomicU64,
    known: Cache<Arc<str>, Arc<Known>>,
    pictures: FolderPictures,
    /// Places whose folders are being read now. The lock is held for look-ups only.
    reading: Mutex<HashMap<Arc<str>, watch::Receiver<Arc<Names>>>>,
}

struct Known {
    names: Arc<Names>,
    read: Instant,
    /// Age from which on the names are read again.
    lasts: Duration,
}

impl Catalogue {
    /// Makes an empty catalogue of the places of `library`.
    #[must_use]
    pub fn new(library: Arc<Library>, most_folders: usize) -> Arc<Self> {
        let known = Cache::of(library.store.memory(), "catalogues");
        let most_folders = AtomicUsize::new(most_folders);
        let pictures = FolderPictures::new(library.clone());
        let (changes, reading) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { library, most_folders, changes, known, pictures, reading })
    }

    /// Forgets all names, because the places may be others now, and returns the same catalogue with another bound of folders.
    #[must_use]
    pub fn again(self: &Arc<Self>, most_folders: usize) -> Arc<Self> {
        self.most_folders.store(most_folders, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.known.clear();
        self.pictures.clear();
        self.clone()
    }

    /// Returns the names of a place, each with `prefix` before it: the name of the place and a slash, or nothing.
    ///
    /// The first call waits up to 3 s, and returns what was read until then. Call within a Tokio runtime.
    pub async fn names(self: &Arc<Self>, place: &Arc<str>, prefix: &str) -> Arc<Names> {
        let known = self.known.get(place);
        if let Some(known) = &known
            && known.read.elapsed() < known.lasts
        {
            return known.names.clone();
        }
        let mut receiver = self.read(place, prefix);
        if let Some(known) = known {
            return known.names.clone();
        }
        let whole = receiver.wait_for(|names| names.is_read);
        // Without a result in time, or with a task that was dropped, there is what it has read.
        let _ = tokio::time::timeout(PATIENCE, whole).await;
        receiver.borrow().clone()
    }

    /// Notes the picture of a folder of a place that was listed.
    pub fn learn(&self, place: &str, listed: &ListedFolder) {
        self.pictures.learn(place, listed);
    }

    /// Returns the picture of the folder `inside` a place, whose paths begin with `prefix`. Remote storage gets no request for it.
    pub async fn picture(&self, place: &str, prefix: &str, inside: &str) -> FolderPicture {
        self.pictures.get(place, prefix, inside).await
    }

    /// Starts to read a place, unless that is under way.
    fn read(self: &Arc<Self>, place: &Arc<str>, prefix: &str) -> watch::Receiver<Arc<Names>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(receiver) = reading.get(place) {
            return receiver.clone();
        }
        let (sender, receiver) = watch::channel(Arc::new(Names::default()));
        reading.insert(place.clone(), receiver.clone());
        let crawl = Crawl {
            library: self.library.clone(),
            pictures: self.pictures.clone(),
            place: place.clone(),
            prefix: prefix.to_owned(),
            most_folders: self.most_folders.load(Ordering::Relaxed),
            most_bytes: self.library.store.memory().budget() / MEMORY_SHARE,
        };
        let change = self.changes.load(Ordering::Relaxed);
        tokio::spawn(Reading { catalogue: self.clone(), place: place.clone(), change }.run(crawl, sender));
        receiver
    }
}

/// A place that is being read. Dropping it lets the next search begin anew.
struct Reading {
    catalogue: Arc<Catalogue>,
    place: Arc<str>,
    /// Changes of the places until it began.
    change: u64,
}

impl Reading {
    async fn run(self, crawl: Crawl, sender: watch::Sender<Arc<Names>>) {
        let began = Instant::now();
        let names = crawl.run(&sender).await;
        let took = began.elapsed();
        tracing::debug!(place = %self.place, folders = names.folders, rows = names.rows(), ?took, "names are read");
        let lasts = took.saturating_mul(FRESH_SHARE).clamp(FRESH, OLD);
        let weight = names.heap_bytes();
        let known = Known { names: names.clone(), read: Instant::now(), lasts };
        if self.catalogue.changes.load(Ordering::Relaxed) == self.change {
            self.catalogue.known.insert(self.place.clone(), Arc::new(known), weight);
        }
        sender.send_replace(names);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.catalogue.reading.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place);
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("most_folders", &self.most_folders).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
