//! The library: assets opened from their paths, and kept while their objects stay the same.

pub(crate) mod building;
mod former;
mod frames;
pub(crate) mod index;
mod loading;
mod open_files;
mod segments;
mod so_far;
mod stitching;
mod subtitles;

use crate::{
    asset::{Asset, AssetKey, Detail, TRUSTED},
    counters::{Counters, LibraryStats},
    error::LibraryError,
    index_files::IndexFiles,
    library::{
        building::{Building, identity_in},
        former::Formers,
        index::Indexes,
        loading::Loading,
        so_far::Beginnings,
    },
    options::{AssetOptions, LibraryOptions, Titles},
    version::AssetVersion,
    work::WorkPool,
};
use millpond_media::Work;
use millpond_store::{Cache, Object, ObjectPath, PathError, SingleFlight, Store};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock, atomic::Ordering},
    time::Instant,
};

/// All assets of all places of a store.
pub struct Library {
    pub(crate) store: Store,
    pub(crate) pool: Arc<WorkPool>,
    pub(crate) indexes: Arc<Indexes>,
    assets: Cache<AssetKey, Arc<Asset>>,
    formers: Formers,
    pub(crate) loading: Loading,
    beginnings: Beginnings,
    under_way: SingleFlight<AssetKey, Result<Arc<Asset>, LibraryError>>,
    /// A lock: written when the configuration changes.
    settings: RwLock<Settings>,
    counters: Arc<Counters>,
    started: Instant,
}

/// Settings that may change while the library is used.
#[derive(Debug)]
struct Settings {
    options: Arc<LibraryOptions>,
    /// Number of changes of each place that has changed.
    editions: HashMap<Arc<str>, u64>,
}

impl Library {
    /// Makes a library over the places of `store`. Heavy work runs on `pool`; memory counts in the store's budget.
    #[must_use]
    pub fn new(store: Store, pool: Arc<WorkPool>, options: LibraryOptions) -> Self {
        let counters = Arc::new(Counters::default());
        let files = options.index_folder.clone().map(|folder| IndexFiles::new(folder, options.cache_size));
        let indexes = Indexes::new(store.clone(), pool.clone(), files, counters.clone());
        let assets = Cache::of(store.memory(), "presentations");
        let (formers, loading) = (Formers::new(store.memory()), Loading::new(store.memory()));
        let beginnings = Beginnings::new(store.memory());
        let (under_way, started) = (SingleFlight::new(), Instant::now());
        let settings = RwLock::new(Settings { options: Arc::new(options), editions: HashMap::new() });
        Self { store, pool, indexes, assets, formers, loading, beginnings, under_way, settings, counters, started }
    }

    /// Changes the settings of places while the library is used. Assets of the places `replaced` are opened anew: their origin
    /// or their settings are others now. Playing clients keep the asset that they have. Segment duration, index folder and
    /// cache size stay as they are.
    pub fn reconfigure(&self, places: HashMap<Arc<str>, AssetOptions>, replaced: &[Arc<str>]) {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        settings.options = Arc::new(LibraryOptions { places, ..(*settings.options).clone() });
        for place in replaced {
            *settings.editions.entry(place.clone()).or_default() += 1;
        }
    }

    /// Returns the settings in force.
    #[must_use]
    pub fn options(&self) -> Arc<LibraryOptions> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).options.clone()
    }

    /// Returns the number of changes of a place since the start.
    pub(crate) fn edition(&self, place: &str) -> u64 {
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        settings.editions.get(place).copied().unwrap_or_default()
    }

    /// Returns the pool that heavy work runs on.
    #[must_use]
    pub fn pool(&self) -> &Arc<WorkPool> {
        &self.pool
    }

    /// Returns what the library counted up to now.
    #[must_use]
    pub fn stats(&self) -> LibraryStats {
        self.counters.snapshot(self.pool.stats())
    }

    /// Returns which files of a folder are one title at a place.
    #[must_use]
    pub fn titles(&self, place: &str) -> Titles {
        self.options().places.get(place).map(|place| place.titles).unwrap_or_default()
    }

    /// Opens the asset at `path` of a place.
    ///
    /// Concurrent calls for one asset share the work. The work is dropped when no caller waits for it.
    ///
    /// # Errors
    /// Where the storage fails, the path names no asset, its media can't be played, or the pool refuses the work.
    pub async fn open(self: &Arc<Self>, place: &Arc<str>, path: &str) -> Result<Arc<Asset>, LibraryError> {
        self.open_for(place, path, Purpose::Playback, Detail::Samples).await
    }

    /// Opens the asset at `path` of a place for a purpose, which decides what is read for a missing index. An asset whose files
    /// can't be outlined has all samples in every detail.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_for(
        self: &Arc<Self>,
        place: &Arc<str>,
        path: &str,
        purpose: Purpose,
        detail: Detail,
    ) -> Result<Arc<Asset>, LibraryError> {
        if self.options().places.get(place).is_some_and(|place| place.is_live) {
            let what = "it is a live stream, and no stored media".to_owned();
            return Err(LibraryError::NoResource { asset: path.to_owned(), what });
        }
        let key = AssetKey { place: place.clone(), path: path.to_owned(), detail };
        let known = self.known(&key).filter(|asset| asset.edition == self.edition(place));
        if let Some(asset) = &known
            && asset.is_trusted(self.now_ms())
        {
            self.counters.asset_hit();
            return Ok(asset.clone());
        }
        let job = || {
            let (library, key) = (self.clone(), key.clone());
            async move { library.check_or_build(key, known, purpose).await }
        };
        self.under_way.run(&key, job).await.0
    }

    /// Returns the asset of a key from memory.
    fn known(&self, key: &AssetKey) -> Option<Arc<Asset>> {
        let whole = || self.assets.get(&AssetKey { detail: Detail::Samples, ..key.clone() });
        self.assets.get(key).or_else(|| whole().filter(|asset| asset.is_indivisible))
    }

    /// Opens the asset at `path` of a place in one version, or in the current one without `version`. A version names the detail
    /// in which the URLs of its segments were made. Other resources, which need all samples, are those of either detail.
    ///
    /// Another server may have seen a new version before this one did. Where the known version differs, the origin is
    /// therefore asked, once a second at most.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`LibraryError::NoResource`] where the asset has another version now, which does not
    /// continue that one.
    pub async fn open_version(
        self: &Arc<Self>,
        place: &Arc<str>,
        path: &str,
        version: Option<AssetVersion>,
        detail: Detail,
    ) -> Result<Arc<Asset>, LibraryError> {
        let asset = self.open_for(place, path, Purpose::Playback, detail).await?;
        let Some(version) = version.filter(|version| *version != asset.version()) else { return Ok(asset) };
        if detail == Detail::Samples && identity_in(asset.id, Detail::Outline) == version.0 {
            return Ok(asset);
        }
        match self.open_former(asset, place, version).await {
            // Segments with this version may have been listed when the files were not outlined.
            Err(_) if detail == Detail::Outline => {
                let asset = self.open(place, path).await?;
                if asset.version() == version {
                    return Ok(asset);
                }
                self.open_former(asset, place, version).await
            }
            other => other,
        }
    }

    /// Opens another version of an asset, which its origin may have by now.
    async fn open_former(
        self: &Arc<Self>,
        asset: Arc<Asset>,
        place: &Arc<str>,
        version: AssetVersion,
    ) -> Result<Arc<Asset>, LibraryError> {
        let AssetKey { path, detail, .. } = asset.key.clone();
        if let Some(former) = self.formers.get(&asset, version) {
            return Ok(former);
        }
        let doubted = asset.doubted_ms.load(Ordering::Relaxed);
        let now = self.now_ms();
        if now.saturating_sub(doubted) >= TRUSTED.as_millis() as u64 {
            asset.depends.iter().for_each(|object| object.doubt());
            asset.doubted_ms.store(now, Ordering::Relaxed);
        }
        let asset = self.open_for(place, &path, Purpose::Playback, detail).await?;
        if asset.version() == version {
            return Ok(asset);
        }
        if let Some(former) = self.formers.get(&asset, version) {
            return Ok(former);
        }
        let what = format!("version {version} is gone: now it is {}", asset.version());
        Err(LibraryError::NoResource { asset: asset.path.clone(), what })
    }

    async fn check_or_build(
        &self,
        key: AssetKey,
        known: Option<Arc<Asset>>,
        purpose: Purpose,
    ) -> Result<Arc<Asset>, LibraryError> {
        if let Some(asset) = &known
            && self.unchanged(&key.place, asset).await
        {
            asset.checked_ms.store(self.now_ms(), Ordering::Relaxed);
            self.counters.asset_hit();
            return Ok(asset.clone());
        }
        self.counters.asset_miss();
        let mut building = Building::new(purpose, key.detail);
        let mut asset = self.build(&key, &mut building).await.inspect_err(|_| {
            self.assets.remove(&key);
        })?;
        if let Some(former) = known.filter(|known| known.id != asset.id)
            && self.is_continued(&former, &asset).await
        {
            asset.origin = former.origin;
            self.formers.keep(&former);
        }
        let asset = Arc::new(asset);
        if asset.key != key {
            self.assets.remove(&key);
        }
        self.keep(&asset);
        Ok(asset)
    }

    /// Whether the files of `asset` are those of `former`, and only grew.
    async fn is_continued(&self, former: &Asset, asset: &Asset) -> bool {
        let pairs = || former.depends.iter().zip(&asset.depends);
        let is_longer = |former: &Object, now: &Object| former.meta().len < now.meta().len;
        let is_same = |former: &Object, now: &Object| former.meta().version == now.meta().version;
        let stays = |(former, now): (&Arc<Object>, &Arc<Object>)| {
            former.path() == now.path() && (is_longer(former, now) || is_same(former, now))
        };
        let grew = pairs().any(|(former, now)| is_longer(former, now));
        // A longer playlist may have other segments.
        if !former.joined.is_empty() || !asset.joined.is_empty() {
            return false;
        }
        if former.depends.len() != asset.depends.len() || !grew || !pairs().all(stays) {
            return false;
        }
        let (former, now) = (former.presentation.clone(), asset.presentation.clone());
        self.pool.run(&Work::unlimited(), move || former.is_continued_by(&now)).await.unwrap_or(false)
    }

    /// Charges an asset for the memory that it takes now. Parts of it are made when they are first used.
    pub fn weigh(&self, asset: &Arc<Asset>) {
        let known = asset.weight.load(Ordering::Relaxed);
        // A former version is kept elsewhere.
        let is_current = || self.assets.get(&asset.key).is_some_and(|current| current.id == asset.id);
        if self.weight(asset) > known && is_current() {
            self.keep(asset);
        }
    }

    /// Forgets an asset whose index of fragments is not used any more.
    pub(crate) fn forget(&self, asset: &Asset) {
        self.assets.remove(&asset.key);
    }

    fn keep(&self, asset: &Arc<Asset>) {
        let weight = self.weight(asset);
        asset.weight.store(weight, Ordering::Relaxed);
        self.assets.insert(asset.key.clone(), asset.clone(), weight);
    }

    fn weight(&self, asset: &Asset) -> u64 {
        open_files::weight(asset.heap_bytes(), asset.open_files(), self.store.memory().budget())
    }

    pub(crate) fn now_ms(&self) -> u64 {
        // Never 0, which stands for "never".
        self.started.elapsed().as_millis() as u64 + 1
    }

    async fn unchanged(&self, place: &str, asset: &Asset) -> bool {
        if asset.has_changed_segments() {
            return false;
        }
        for object in &asset.depends {
            match self.store.open(place, object.path()).await {
                Ok(now) if now.meta().version == object.meta().version => {}
                _ => return false,
            }
        }
        match &asset.listed {
            Some((folder, entries)) => self.store.list(place, folder).await.is_ok_and(|now| now == *entries),
            None => true,
        }
    }
}

/// Purpose of opening an asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A viewer will play it. Slices that are read with its index are useful.
    #[default]
    Playback,
    /// Its properties are listed. As few bytes as possible are read.
    Listing,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("options", &self.options()).finish_non_exhaustive()
    }
}

/// Parses a path that may be the root of a place.
///
/// # Errors
/// Where a component is no plain name.
pub fn folder_path(path: &str) -> Result<ObjectPath, PathError> {
    if path.is_empty() { Ok(ObjectPath::root()) } else { ObjectPath::parse(path) }
}
