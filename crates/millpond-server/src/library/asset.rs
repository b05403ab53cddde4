//! Assets: opened from their path, kept while their objects stay the same.

use super::{
    LibraryError,
    flights::Flights,
    grouping::{self, Member, Recipe, SidecarFile},
    index::Indexes,
    index_files::{IndexFiles, SEED, fnv},
    names,
};
use crate::{
    metrics::Metrics,
    work::{Charge, Pool, Refusal},
};
use millpond_media::Work;
use millpond_package::{Options, Presentation, Sidecar, Source, building_bytes, text};
use millpond_store::{Cache, Entry, Object, ObjectPath, OriginError, PathError, Permission, Store};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long an opened asset is used without asking the store whether its objects are still the same.
const TRUSTED: Duration = Duration::from_secs(1);
/// Largest server manifest or subtitle file.
const MOST_TEXT: u64 = 8 << 20;
/// Bytes of memory for each byte of a server manifest or subtitle file: the text, and what is parsed of it.
const MEMORY_A_BYTE: u64 = 4;
/// Listings up to this size are sorted out where they are; longer ones are heavy work.
const FEW_ENTRIES: usize = 256;
/// Steps that building a presentation may take: some ten nanoseconds each.
const MOST_STEPS: u64 = 1 << 26;

/// An asset that can be served.
pub(crate) struct Asset {
    /// Path with its place, as in URLs.
    pub(crate) path: String,
    /// Differs whenever a version of any of its objects differs.
    pub(crate) id: u64,
    /// The objects that plans count.
    pub(crate) objects: Vec<Arc<Object>>,
    /// What is played.
    pub(crate) presentation: Arc<Presentation>,
    /// Last change of any of its objects.
    pub(crate) modified: Option<std::time::SystemTime>,
    /// Every object whose change changes the asset.
    depends: Vec<Arc<Object>>,
    /// What the folder held, where the asset is a folder or has neighbours.
    listed: Option<(ObjectPath, Vec<Entry>)>,
    checked_ms: AtomicU64,
    key: AssetKey,
    /// Bytes that it is counted as in memory.
    weight: AtomicU64,
    /// What was made once of each track, as bits of [`Lazy`].
    made: Vec<AtomicU8>,
}

/// A part of a track's presentation that is made when it is first used, in proportion to the track's samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lazy {
    /// The key frames that trick play shows.
    IFrames = 1,
    /// The layout of TS segments, sound included.
    Ts = 2,
}

impl Asset {
    /// What the origin permits caches to do with what is made of the asset: the strictest of all that it is made of.
    pub(crate) fn permission(&self, store: &Store) -> Permission {
        let place = self.depends.first().map_or("", |object| object.place());
        let listed = self.listed.as_ref().map(|(folder, _)| store.listing_permission(place, folder));
        let objects = self.depends.iter().map(|object| store.permission(object));
        objects.chain(listed).fold(Permission::default(), Permission::strictest)
    }

    /// Bits a second of some of its tracks, on average.
    pub(crate) fn rate(&self, tracks: impl IntoIterator<Item = usize>) -> u64 {
        let all = self.presentation.tracks();
        tracks.into_iter().filter_map(|track| all.get(track)).map(|track| track.bandwidth().average).sum()
    }

    /// Whether a part of the track of this name is made already.
    pub(crate) fn has_made(&self, track: &str, part: Lazy) -> bool {
        self.made_of(track).is_some_and(|made| made.load(Ordering::Relaxed) & part as u8 != 0)
    }

    /// Notes that a part of the track of this name is made.
    pub(crate) fn set_made(&self, track: &str, part: Lazy) {
        if let Some(made) = self.made_of(track) {
            made.fetch_or(part as u8, Ordering::Relaxed);
        }
    }

    fn made_of(&self, track: &str) -> Option<&AtomicU8> {
        self.made.get(self.presentation.tracks().iter().position(|t| t.name() == track)?)
    }

    fn measured(&self) -> u64 {
        let listed = self.listed.iter().flat_map(|(_, entries)| entries);
        let listed: usize = listed.map(|entry| size_of::<Entry>() + entry.name.len()).sum();
        (self.presentation.heap_bytes() + listed + self.made.len()) as u64 + 4096
    }
}

/// Settings of the library.
#[derive(Clone, Debug)]
pub(crate) struct LibraryOptions {
    /// Target duration of segments in seconds.
    pub(crate) segment_duration: f64,
    /// Folder for indexes, across restarts.
    pub(crate) index_folder: Option<PathBuf>,
    /// Bytes of the disk cache, of which indexes have a share.
    pub(crate) cache_size: u64,
}

type AssetKey = (Arc<str>, String);

/// All assets of all places.
pub(crate) struct Library {
    store: Store,
    pool: Arc<Pool>,
    indexes: Arc<Indexes>,
    assets: Cache<AssetKey, Arc<Asset>>,
    flights: Flights<AssetKey, Result<Arc<Asset>, LibraryError>>,
    options: LibraryOptions,
    metrics: Arc<Metrics>,
    started: Instant,
}

impl Library {
    pub(crate) fn new(store: Store, pool: Arc<Pool>, options: LibraryOptions, metrics: Arc<Metrics>) -> Self {
        let files = options.index_folder.clone().map(|folder| IndexFiles::new(folder, options.cache_size));
        let indexes = Indexes::new(store.clone(), pool.clone(), files, metrics.clone());
        let assets = Cache::of(store.memory(), "presentations");
        Self { store, pool, indexes, assets, flights: Flights::new(), options, metrics, started: Instant::now() }
    }

    /// Where heavy work is done.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The asset at `path` of a place.
    pub(crate) async fn open(self: &Arc<Self>, place: &Arc<str>, path: &str) -> Result<Arc<Asset>, LibraryError> {
        let key = (place.clone(), path.to_owned());
        let known = self.assets.get(&key);
        if let Some(asset) = &known
            && self.now_ms().saturating_sub(asset.checked_ms.load(Ordering::Relaxed)) < TRUSTED.as_millis() as u64
        {
            self.metrics.asset_hit();
            return Ok(asset.clone());
        }
        let job = || {
            let (library, key) = (self.clone(), key.clone());
            async move { library.check_or_build(key, known).await }
        };
        self.flights.join(&key, job).await
    }

    async fn check_or_build(&self, key: AssetKey, known: Option<Arc<Asset>>) -> Result<Arc<Asset>, LibraryError> {
        if let Some(asset) = known
            && self.unchanged(&key.0, &asset).await
        {
            asset.checked_ms.store(self.now_ms(), Ordering::Relaxed);
            self.metrics.asset_hit();
            return Ok(asset);
        }
        self.metrics.asset_miss();
        let mut building = Building::default();
        let asset = self.build(&key, &mut building).await.inspect_err(|_| {
            self.assets.remove(&key);
        })?;
        let asset = Arc::new(asset);
        self.keep(&asset);
        Ok(asset)
    }

    /// Counts an asset as what it weighs now, for parts of it are made when they are first used.
    pub(crate) fn weigh(&self, asset: &Arc<Asset>) {
        let known = asset.weight.load(Ordering::Relaxed);
        if asset.measured() > known && self.assets.contains(&asset.key) {
            self.keep(asset);
        }
    }

    fn keep(&self, asset: &Arc<Asset>) {
        let weight = asset.measured();
        asset.weight.store(weight, Ordering::Relaxed);
        self.assets.insert(asset.key.clone(), asset.clone(), weight);
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    async fn unchanged(&self, place: &str, asset: &Asset) -> bool {
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

    async fn build(&self, key: &AssetKey, building: &mut Building) -> Result<Asset, LibraryError> {
        let (place, path) = key;
        let shown = if place.is_empty() { path.to_owned() } else { format!("{place}/{path}") };
        let bad = |e: &dyn std::fmt::Display| LibraryError::BadPath { path: shown.clone(), why: e.to_string() };
        let object_path = folder_path(path).map_err(|e| bad(&e))?;
        let recipe = self.recipe(place, &object_path, building).await?;
        if recipe.members.is_empty() {
            return Err(LibraryError::NoAsset(shown));
        }
        let mut sources = Vec::with_capacity(recipe.members.len());
        for member in &recipe.members {
            sources.push(self.source(place, member, building).await?);
        }
        let mut sidecars = Vec::with_capacity(recipe.sidecars.len());
        for file in &recipe.sidecars {
            sidecars.push(self.sidecar(place, file, building).await?);
        }
        let options = Options { target_duration: self.options.segment_duration };
        let refused = |refusal| LibraryError::Refused { asset: shown.clone(), refusal };
        building.charge(&self.pool, building_bytes(&sources)).await.map_err(refused)?;
        let work = Work::new(MOST_STEPS);
        let job = {
            let work = work.clone();
            move || Presentation::build(sources, sidecars, &options, &work)
        };
        let presentation = self.pool.run(&work, job).await.map_err(refused)?;
        let presentation =
            presentation.map_err(|error| LibraryError::Package { asset: shown.clone(), error: Arc::new(error) })?;
        for warning in presentation.warnings() {
            tracing::warn!(asset = %shown, %warning, "packaging");
        }
        Ok(Asset {
            path: shown,
            id: identity(&building.depends, self.options.segment_duration),
            modified: building.depends.iter().filter_map(|o| o.meta().modified).max(),
            objects: std::mem::take(&mut building.objects),
            made: presentation.tracks().iter().map(|_| AtomicU8::new(0)).collect(),
            presentation: Arc::new(presentation),
            depends: std::mem::take(&mut building.depends),
            listed: building.listed.take(),
            checked_ms: AtomicU64::new(self.now_ms()),
            key: key.clone(),
            weight: AtomicU64::new(0),
        })
    }

    async fn recipe(&self, place: &str, path: &ObjectPath, building: &mut Building) -> Result<Recipe, LibraryError> {
        let name = path.file_name();
        if names::is_url_set(name) {
            return grouping::url_set(path);
        }
        if names::is_manifest(name) {
            let text = self.read_text(place, path, building).await?;
            let manifest = path.clone();
            return self.job(path, move || grouping::manifest(&manifest, &String::from_utf8_lossy(&text))).await?;
        }
        if names::is_media(name) {
            // Only where looking costs nothing: a listing of a large bucket would delay the first picture.
            if self.store.open(place, path).await?.file().is_none() {
                return grouping::single(path, &[]);
            }
            let folder = path.parent();
            let beside: Vec<Entry> = self.store.list(place, &folder).await.unwrap_or_default();
            let (recipe, beside) = self.grouped(path, beside, grouping::single).await?;
            if !recipe.sidecars.is_empty() {
                building.listed = Some((folder, beside));
            }
            return Ok(recipe);
        }
        let entries = match self.store.list(place, path).await {
            Ok(entries) => entries,
            Err(OriginError::Unsupported { .. } | OriginError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let (recipe, entries) = self.grouped(path, entries, grouping::folder).await?;
        building.listed = Some((path.clone(), entries));
        Ok(recipe)
    }

    /// What a listing makes of a path; the listing comes back.
    async fn grouped(
        &self,
        path: &ObjectPath,
        entries: Vec<Entry>,
        group: fn(&ObjectPath, &[Entry]) -> Result<Recipe, LibraryError>,
    ) -> Result<(Recipe, Vec<Entry>), LibraryError> {
        if entries.len() <= FEW_ENTRIES {
            return Ok((group(path, &entries)?, entries));
        }
        let owned = path.clone();
        self.job(path, move || group(&owned, &entries).map(|recipe| (recipe, entries))).await?
    }

    /// Runs a short job of the pool for the object or folder at `path`.
    async fn job<T: Send + 'static>(
        &self,
        path: &ObjectPath,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, LibraryError> {
        let refused = |refusal| LibraryError::Refused { asset: path.to_string(), refusal };
        self.pool.run(&Work::unlimited(), job).await.map_err(refused)
    }

    async fn source(&self, place: &str, member: &Member, building: &mut Building) -> Result<Source, LibraryError> {
        let object = self.store.open(place, &member.path).await?;
        let movie = self.indexes.get(&object).await?;
        building.depends.push(object.clone());
        let media = match &movie.external_media {
            None => object,
            Some(location) => {
                let media = external(&member.path, location)?;
                let media = self.store.open(place, &media).await?;
                building.depends.push(media.clone());
                media
            }
        };
        building.objects.push(media);
        Ok(Source {
            movie,
            label: member.path.file_name().to_owned(),
            language: member.language.clone(),
            named: member.named.clone(),
            bandwidth: member.bandwidth,
            use_video: member.video,
            use_audio: member.audio,
            use_text: member.text,
        })
    }

    async fn sidecar(&self, place: &str, file: &SidecarFile, building: &mut Building) -> Result<Sidecar, LibraryError> {
        let bytes = self.read_text(place, &file.path, building).await?;
        let name = file.path.file_name();
        let parse = if name.to_ascii_lowercase().ends_with(".srt") { text::srt::parse } else { text::vtt::parse };
        let parsed = self.job(&file.path, move || parse(&bytes)).await?;
        let subtitles =
            parsed.map_err(|e| LibraryError::Manifest { manifest: file.path.to_string(), why: e.to_string() })?;
        for warning in &subtitles.warnings {
            tracing::warn!(file = %file.path, %warning, "subtitles");
        }
        Ok(Sidecar {
            language: file.language.clone(),
            name: String::new(),
            cues: Arc::new(subtitles.cues),
            default: false,
            forced: file.forced,
        })
    }

    async fn read_text(
        &self,
        place: &str,
        path: &ObjectPath,
        building: &mut Building,
    ) -> Result<bytes::Bytes, LibraryError> {
        let object = self.store.open(place, path).await?;
        let len = object.meta().len;
        if len > MOST_TEXT {
            let why = format!("it has {len} bytes, expected at most {MOST_TEXT}");
            return Err(LibraryError::Manifest { manifest: path.to_string(), why });
        }
        let refused = |refusal| LibraryError::Refused { asset: path.to_string(), refusal };
        building.charge(&self.pool, len * MEMORY_A_BYTE).await.map_err(refused)?;
        let bytes = self.store.read_all(&object, 0..len).await?;
        building.depends.push(object);
        Ok(bytes)
    }
}

/// A path that may be the place's own folder.
pub(crate) fn folder_path(path: &str) -> Result<ObjectPath, PathError> {
    if path.is_empty() { Ok(ObjectPath::root()) } else { ObjectPath::parse(path) }
}

/// What opening an asset has gathered so far.
#[derive(Default)]
struct Building {
    objects: Vec<Arc<Object>>,
    depends: Vec<Arc<Object>>,
    listed: Option<(ObjectPath, Vec<Entry>)>,
    /// Memory of what is being made, until the asset is counted itself.
    charges: Vec<Charge>,
}

impl Building {
    async fn charge(&mut self, pool: &Pool, bytes: u64) -> Result<(), Refusal> {
        self.charges.push(pool.charge(bytes).await?);
        Ok(())
    }
}

/// The object that a data reference names, relative to the index file's folder and never outside the place.
fn external(index: &ObjectPath, location: &str) -> Result<ObjectPath, LibraryError> {
    let wrong = |why: String| LibraryError::Manifest { manifest: index.to_string(), why };
    if location.contains("://") || location.starts_with('/') {
        return Err(wrong(format!("data reference {location:?}: expected a path relative to the index file")));
    }
    let decoded = percent_encoding::percent_decode_str(location)
        .decode_utf8()
        .map_err(|_| wrong(format!("data reference {location:?} is not UTF-8")))?;
    let decoded = decoded.strip_prefix("./").unwrap_or(&decoded);
    index.parent().join(decoded).map_err(|e| wrong(format!("data reference {location:?}: {e}")))
}

fn identity(depends: &[Arc<Object>], segment_duration: f64) -> u64 {
    let mut hash = fnv(env!("CARGO_PKG_VERSION").as_bytes(), SEED);
    hash = fnv(&segment_duration.to_le_bytes(), hash);
    for object in depends {
        hash = fnv(object.path().as_str().as_bytes(), hash);
        hash = fnv(object.meta().version.as_str().as_bytes(), hash);
        hash = fnv(&object.meta().len.to_le_bytes(), hash);
    }
    hash
}
