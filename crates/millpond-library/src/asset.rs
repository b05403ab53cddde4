//! Assets: media that can be served, with everything that it depends on.

use crate::{index_files::fnv, version::AssetVersion};
use millpond_package::Presentation;
use millpond_store::{Entry, Object, ObjectPath, Permission, Store};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

/// Time that an opened asset is used without asking the store whether its objects are still the same.
pub(crate) const TRUSTED: Duration = Duration::from_secs(1);

/// Samples that the index of an asset holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    /// All samples.
    #[default]
    Samples,
    /// The samples of first fragments only, where files have an index of their fragments: enough for manifests, init segments
    /// and fragmented MP4. Samples of a segment are loaded with its bytes.
    Outline,
}

/// Place and path of an asset, and the detail of its index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AssetKey {
    pub(crate) place: Arc<str>,
    pub(crate) path: String,
    pub(crate) detail: Detail,
}

/// An asset that can be served: one version of one title.
pub struct Asset {
    /// Path with its place, as in URLs.
    pub path: String,
    /// Hash of everything that bytes made of the asset depend on.
    pub id: u64,
    /// The `id` of the first version that this one continues; its own where it continues none.
    pub(crate) origin: u64,
    /// Number of changes of its place since the start, when it was opened. Two assets with one id read from different origins
    /// where it differs.
    pub edition: u64,
    /// Objects that hold the media. Plans name them by their index here.
    pub objects: Vec<Arc<Object>>,
    /// Tracks of the asset on one timeline.
    pub presentation: Arc<Presentation>,
    /// Warnings of what the asset lacks, each with its file and the reason: files of another title, files and subtitles that can't be
    /// read, and the ends of files that are cut short.
    pub left_out: Vec<String>,
    /// Last change of any of its objects.
    pub modified: Option<SystemTime>,
    /// Every object whose change changes the asset, but for those that are joined.
    pub(crate) depends: Vec<Arc<Object>>,
    /// Segments of HLS playlists, joined. Segments are not compared with the storage: a segment that changed alone is noticed when its
    /// bytes are read from there again, not while they are in memory.
    pub(crate) joined: Vec<JoinedSegments>,
    /// Entries of the folder, where the asset is a folder or has subtitle files beside it.
    pub(crate) listed: Option<(ObjectPath, Vec<Entry>)>,
    /// Time of the last check that its objects are still the same, in milliseconds of the library's clock.
    pub(crate) checked_ms: AtomicU64,
    /// Time when its objects were last [doubted](Object::doubt), on the same clock.
    pub(crate) doubted_ms: AtomicU64,
    pub(crate) key: AssetKey,
    /// Whether its index has all samples because no file of it can be outlined.
    pub(crate) is_indivisible: bool,
    /// Bytes that the budget counts for it.
    pub(crate) weight: AtomicU64,
    /// Parts of each track that are made, as bits of [`Lazy`].
    pub(crate) made: Vec<AtomicU8>,
    /// The beginning of its file, if the file is still scanned.
    pub(crate) so_far: Option<Beginning>,
}

/// The beginning of a file that is still scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Identity of the whole asset, which URLs name.
    pub(crate) whole: u64,
    /// Bytes of frames in the beginning.
    pub(crate) read: u64,
}

impl Beginning {
    /// Returns the identity of the asset of this beginning.
    pub(crate) fn id(self) -> u64 {
        let of_whole = fnv(b"so far", self.whole);
        fnv(&self.read.to_le_bytes(), of_whole)
    }
}

/// The segments of an HLS playlist as one object.
#[derive(Clone, Debug)]
pub(crate) struct JoinedSegments {
    pub(crate) object: Arc<Object>,
    /// Bytes of memory that the list of segments takes.
    pub(crate) heap_bytes: u64,
}

/// A part of a track's presentation that is made when it is first used, in proportion to the track's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lazy {
    /// Key frames for trick play.
    IFrames = 1,
    /// Layout of TS segments, sound included.
    Ts = 2,
}

impl Asset {
    /// Returns what caches may do with bytes made of the asset: the strictest permission among all of its objects.
    pub fn permission(&self, store: &Store) -> Permission {
        // Most assets are local files, which carry no permission.
        if self.depends.iter().all(|object| object.file().is_some()) {
            return Permission::default();
        }
        let place = self.depends.first().map_or("", |object| object.place());
        let listed = self.listed.as_ref().map(|(folder, _)| store.listing_permission(place, folder));
        let joined = self.joined.iter().map(|joined| &joined.object);
        let objects = self.depends.iter().chain(joined).map(|object| store.permission(object));
        objects.chain(listed).fold(Permission::default(), Permission::strictest)
    }

    /// Returns the version that its URLs name.
    #[must_use]
    pub fn version(&self) -> AssetVersion {
        AssetVersion(self.so_far.map_or(self.id, |beginning| beginning.whole))
    }

    /// Whether its file is still scanned, so that only the beginning is known. Its playlists grow.
    #[must_use]
    pub fn is_so_far(&self) -> bool {
        self.so_far.is_some()
    }

    /// Whether the asset is made of this very object.
    pub(crate) fn depends_on(&self, object: &Arc<Object>) -> bool {
        self.depends.iter().any(|known| Arc::ptr_eq(known, object))
    }

    /// Whether it may be used without asking the store whether its objects are still the same.
    pub(crate) fn is_trusted(&self, now_ms: u64) -> bool {
        let checked = self.checked_ms.load(Ordering::Relaxed);
        checked > self.doubted_ms.load(Ordering::Relaxed)
            && now_ms.saturating_sub(checked) < TRUSTED.as_millis() as u64
            && !self.depends.iter().any(|object| object.is_outdated())
            && !self.has_changed_segments()
    }

    /// Whether a read from the storage met another version of a segment.
    pub(crate) fn has_changed_segments(&self) -> bool {
        self.joined.iter().any(|joined| joined.object.is_outdated())
    }

    /// Whether a part of the track named `track` is made already.
    #[must_use]
    pub fn has_made(&self, track: &str, part: Lazy) -> bool {
        self.made_of(track).is_some_and(|made| made.load(Ordering::Relaxed) & part as u8 != 0)
    }

    /// Records that a part of the track named `track` is made.
    pub fn set_made(&self, track: &str, part: Lazy) {
        if let Some(made) = self.made_of(track) {
            made.fetch_or(part as u8, Ordering::Relaxed);
        }
    }

    fn made_of(&self, track: &str) -> Option<&AtomicU8> {
        self.made.get(self.presentation.all_tracks().position(|t| t.name() == track)?)
    }

    /// Returns the bytes of memory that it takes now, without its open files.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let listed = self.listed.iter().flat_map(|(_, entries)| entries);
        let listed: usize = listed.map(|entry| size_of::<Entry>() + entry.name.len()).sum();
        let left_out: usize = self.left_out.iter().map(String::len).sum();
        let joined: u64 = self.joined.iter().map(|joined| joined.heap_bytes).sum();
        (self.presentation.heap_bytes() + self.presentation.stitched_bytes() + listed + left_out + self.made.len())
            as u64
            + joined
            + 4096
    }

    /// Returns the number of files that it keeps open.
    pub(crate) fn open_files(&self) -> u64 {
        self.depends.iter().filter(|object| object.file().is_some()).count() as u64
    }
}

impl fmt::Debug for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asset").field("path", &self.path).field("version", &self.version()).finish_non_exhaustive()
    }
}
