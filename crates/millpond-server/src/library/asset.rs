//! Assets: opened from their path, kept while their objects stay the same.

use super::{
    LibraryError,
    copying::is_recent,
    flights::Flights,
    grouping::{Member, Recipe, SidecarFile},
    index::Indexes,
    index_files::{IndexFiles, SEED, fnv},
    version::Version,
};
use crate::{
    metrics::Metrics,
    work::{Charge, Pool, Refusal},
};
use millpond_media::{Movie, Work};
use millpond_package::{
    KeyAddress, Options, Presentation, Sidecar, Source, building_bytes,
    ladder::{self, Shape},
    text,
};
use millpond_store::{Cache, Entry, Object, ObjectPath, PathError, Permission, Store, Titles};
use std::{
    collections::HashMap,
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
/// Steps that building a presentation may take: some ten nanoseconds each.
const MOST_STEPS: u64 = 1 << 26;

/// An asset that can be served.
pub(crate) struct Asset {
    /// Path with its place, as in URLs.
    pub(crate) path: String,
    /// Differs whenever anything differs that a byte made of the asset depends on.
    pub(crate) id: u64,
    /// The objects that plans count.
    pub(crate) objects: Vec<Arc<Object>>,
    /// What is played.
    pub(crate) presentation: Arc<Presentation>,
    /// Files of its folder that are another title, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// Last change of any of its objects.
    pub(crate) modified: Option<std::time::SystemTime>,
    /// Every object whose change changes the asset.
    depends: Vec<Arc<Object>>,
    /// What the folder held, where the asset is a folder or has neighbours.
    listed: Option<(ObjectPath, Vec<Entry>)>,
    checked_ms: AtomicU64,
    /// When its objects were last [doubted](Object::doubt).
    doubted_ms: AtomicU64,
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
        // Nobody says anything of files here, which most assets are made of.
        if self.depends.iter().all(|object| object.file().is_some()) {
            return Permission::default();
        }
        let place = self.depends.first().map_or("", |object| object.place());
        let listed = self.listed.as_ref().map(|(folder, _)| store.listing_permission(place, folder));
        let objects = self.depends.iter().map(|object| store.permission(object));
        objects.chain(listed).fold(Permission::default(), Permission::strictest)
    }

    /// What its URLs name.
    pub(crate) fn version(&self) -> Version {
        Version(self.id)
    }

    /// Whether it may be used without asking the store whether its objects are still the same.
    fn is_trusted(&self, now_ms: u64) -> bool {
        let checked = self.checked_ms.load(Ordering::Relaxed);
        checked > self.doubted_ms.load(Ordering::Relaxed)
            && now_ms.saturating_sub(checked) < TRUSTED.as_millis() as u64
            && !self.depends.iter().any(|object| object.is_outdated())
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
        let left_out: usize = self.left_out.iter().map(String::len).sum();
        (self.presentation.heap_bytes() + listed + left_out + self.made.len()) as u64 + 4096
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
    /// Addresses of the keys of encrypted files, by place.
    pub(crate) key_addresses: HashMap<Arc<str>, Arc<KeyAddress>>,
    /// Which files of a folder are one title, by place.
    pub(crate) titles: HashMap<String, Titles>,
}

type AssetKey = (Arc<str>, String);

/// All assets of all places.
pub(crate) struct Library {
    pub(super) store: Store,
    pub(super) pool: Arc<Pool>,
    indexes: Arc<Indexes>,
    assets: Cache<AssetKey, Arc<Asset>>,
    flights: Flights<AssetKey, Result<Arc<Asset>, LibraryError>>,
    pub(super) options: LibraryOptions,
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
            && asset.is_trusted(self.now_ms())
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

    /// The asset at `path` of a place in one version; without a version, what is there now.
    ///
    /// Another server may have seen a new version before this one did. Where the known version is another one, the
    /// origin is therefore asked, once a second at most.
    pub(crate) async fn open_version(
        self: &Arc<Self>,
        place: &Arc<str>,
        path: &str,
        version: Option<Version>,
    ) -> Result<Arc<Asset>, LibraryError> {
        let asset = self.open(place, path).await?;
        let Some(version) = version.filter(|version| *version != asset.version()) else { return Ok(asset) };
        let doubted = asset.doubted_ms.load(Ordering::Relaxed);
        let now = self.now_ms();
        if now.saturating_sub(doubted) >= TRUSTED.as_millis() as u64 {
            asset.depends.iter().for_each(|object| object.doubt());
            asset.doubted_ms.store(now, Ordering::Relaxed);
        }
        let asset = self.open(place, path).await?;
        if asset.version() == version {
            return Ok(asset);
        }
        let what = format!("version {version} is gone: now it is {}", asset.version());
        Err(LibraryError::NoResource { asset: asset.path.clone(), what })
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
        // Not 0, so that never to have been is before all.
        self.started.elapsed().as_millis() as u64 + 1
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
        let left_out = if recipe.by_name { building.one_title(&shown, &mut sources)? } else { Vec::new() };
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
        let key_address = self.options.key_addresses.get(place).cloned();
        for warning in presentation.warnings() {
            tracing::warn!(asset = %shown, %warning, "packaging");
        }
        for file in &left_out {
            tracing::warn!(asset = %shown, %file, "another title than the rest of its folder");
        }
        let identity = self.identity(&recipe, &building.depends, key_address.as_deref());
        let presentation = presentation.below(format!("{}/", Version(identity)));
        Ok(Asset {
            path: shown,
            left_out,
            id: identity,
            modified: building.depends.iter().filter_map(|o| o.meta().modified).max(),
            objects: std::mem::take(&mut building.objects),
            made: presentation.tracks().iter().map(|_| AtomicU8::new(0)).collect(),
            presentation: Arc::new(presentation.with_key_address(key_address)),
            depends: std::mem::take(&mut building.depends),
            listed: building.listed.take(),
            checked_ms: AtomicU64::new(self.now_ms()),
            doubted_ms: AtomicU64::new(0),
            key: key.clone(),
            weight: AtomicU64::new(0),
        })
    }

    async fn source(&self, place: &str, member: &Member, building: &mut Building) -> Result<Source, LibraryError> {
        let object = self.store.open(place, &member.path).await?;
        let movie = self.movie(&object).await?;
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
        Ok(member.source(movie))
    }

    /// The index of an object that is there as a whole, or is not about to be.
    async fn movie(&self, object: &Arc<Object>) -> Result<Arc<Movie>, LibraryError> {
        let meta = object.meta();
        let movie = self.indexes.get(object).await;
        let cut_short = match &movie {
            Ok(movie) => movie.cut_short,
            Err(error) => error.is_cut_short(meta.len),
        };
        if cut_short && is_recent(meta.modified) {
            return Err(LibraryError::BeingCopied { path: object.path().to_string(), len: meta.len });
        }
        Ok(movie?)
    }

    /// Whether the file at `path` is being copied into its place.
    pub(crate) async fn is_being_copied(&self, place: &str, path: &ObjectPath) -> bool {
        let Ok(object) = self.store.open(place, path).await else { return false };
        matches!(self.movie(&object).await, Err(LibraryError::BeingCopied { .. }))
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

    /// A hash of everything that the bytes made of an asset depend on.
    fn identity(&self, recipe: &Recipe, depends: &[Arc<Object>], keys: Option<&KeyAddress>) -> u64 {
        let mut hash = fnv(env!("CARGO_PKG_VERSION").as_bytes(), SEED);
        hash = fnv(format!("{recipe:?}").as_bytes(), hash);
        hash = fnv(&self.options.segment_duration.to_le_bytes(), hash);
        if let Some(address) = keys {
            hash = fnv(format!("{address:?}").as_bytes(), hash);
        }
        for object in depends {
            hash = fnv(object.path().as_str().as_bytes(), hash);
            hash = fnv(object.meta().version.as_str().as_bytes(), hash);
            hash = fnv(&object.meta().len.to_le_bytes(), hash);
        }
        hash
    }

    pub(super) async fn read_text(
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
pub(super) struct Building {
    objects: Vec<Arc<Object>>,
    depends: Vec<Arc<Object>>,
    pub(super) listed: Option<(ObjectPath, Vec<Entry>)>,
    /// Memory of what is being made, until the asset is counted itself.
    charges: Vec<Charge>,
}

impl Building {
    async fn charge(&mut self, pool: &Pool, bytes: u64) -> Result<(), Refusal> {
        self.charges.push(pool.charge(bytes).await?);
        Ok(())
    }

    /// Takes out the files that are another title than most of their folder, and tells why.
    fn one_title(&mut self, folder: &str, sources: &mut Vec<Source>) -> Result<Vec<String>, LibraryError> {
        let shapes: Vec<(&str, Shape)> = sources.iter().map(|s| (s.label.as_str(), Shape::of(&s.movie))).collect();
        let verdicts = ladder::title(&shapes).map_err(|other| LibraryError::NotOneTitle {
            folder: folder.to_owned(),
            found: format!("files of different titles ({other})"),
        })?;
        let told = sources.iter().zip(&verdicts);
        let left_out = told.filter_map(|(source, why)| Some(format!("{}: {}", source.label, why.as_ref()?))).collect();
        let mut keep = verdicts.iter().map(Option::is_none);
        sources.retain(|_| keep.next().unwrap_or(true));
        let mut keep = verdicts.iter().map(Option::is_none);
        self.objects.retain(|_| keep.next().unwrap_or(true));
        Ok(left_out)
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
