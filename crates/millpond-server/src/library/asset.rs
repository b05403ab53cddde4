//! Assets: opened from their path, kept while their objects stay the same.

use super::{
    LibraryError,
    flights::Flights,
    grouping::{self, Member, Recipe, SidecarFile},
    index::{Indexes, SEED, fnv},
    names,
};
use crate::metrics::Metrics;
use millpond_package::{Options, Presentation, Sidecar, Source, text};
use millpond_store::{Cache, Entry, Object, ObjectPath, OriginError, PathError, Permission, Store};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long an opened asset is used without asking the store whether its objects are still the same.
const TRUSTED: Duration = Duration::from_secs(1);
/// Largest server manifest or subtitle file.
const MOST_TEXT: u64 = 8 << 20;

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
}

/// Settings of the library.
#[derive(Clone, Debug)]
pub(crate) struct LibraryOptions {
    /// Target duration of segments in seconds.
    pub(crate) segment_duration: f64,
    /// Folder for indexes, across restarts.
    pub(crate) index_folder: Option<PathBuf>,
}

type AssetKey = (Arc<str>, String);

/// All assets of all places.
pub(crate) struct Library {
    store: Store,
    indexes: Indexes,
    assets: Cache<AssetKey, Arc<Asset>>,
    flights: Flights<AssetKey, Result<Arc<Asset>, LibraryError>>,
    options: LibraryOptions,
    metrics: Arc<Metrics>,
    started: Instant,
}

impl Library {
    pub(crate) fn new(store: Store, options: LibraryOptions, metrics: Arc<Metrics>) -> Self {
        let indexes = Indexes::new(store.clone(), options.index_folder.clone(), metrics.clone());
        let assets = Cache::of(store.memory(), "presentations");
        Self { store, indexes, assets, flights: Flights::new(), options, metrics, started: Instant::now() }
    }

    /// The asset at `path` of a place.
    pub(crate) async fn open(&self, place: &Arc<str>, path: &str) -> Result<Arc<Asset>, LibraryError> {
        let key = (place.clone(), path.to_owned());
        let known = self.assets.get(&key);
        if let Some(asset) = &known
            && self.now_ms().saturating_sub(asset.checked_ms.load(Ordering::Relaxed)) < TRUSTED.as_millis() as u64
        {
            self.metrics.asset_hit();
            return Ok(asset.clone());
        }
        self.flights
            .join(&key, || async {
                if let Some(asset) = known
                    && self.unchanged(place, &asset).await
                {
                    asset.checked_ms.store(self.now_ms(), Ordering::Relaxed);
                    self.metrics.asset_hit();
                    return Ok(asset);
                }
                self.metrics.asset_miss();
                let asset = Arc::new(self.build(place, path).await.inspect_err(|_| {
                    self.assets.remove(&key);
                })?);
                let weight = asset.presentation.heap_bytes() as u64 + 4096;
                self.assets.insert(key.clone(), asset.clone(), weight);
                Ok(asset)
            })
            .await
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

    async fn build(&self, place: &Arc<str>, path: &str) -> Result<Asset, LibraryError> {
        let shown = if place.is_empty() { path.to_owned() } else { format!("{place}/{path}") };
        let bad = |e: &dyn std::fmt::Display| LibraryError::BadPath { path: shown.clone(), why: e.to_string() };
        let object_path = folder_path(path).map_err(|e| bad(&e))?;
        let mut building = Building::default();
        let recipe = self.recipe(place, &object_path, &mut building).await?;
        if recipe.members.is_empty() {
            return Err(LibraryError::NoAsset(shown));
        }
        let mut sources = Vec::with_capacity(recipe.members.len());
        for member in &recipe.members {
            sources.push(self.source(place, member, &mut building).await?);
        }
        let mut sidecars = Vec::with_capacity(recipe.sidecars.len());
        for file in &recipe.sidecars {
            sidecars.push(self.sidecar(place, file, &mut building).await?);
        }
        let options = Options { target_duration: self.options.segment_duration };
        let presentation = tokio::task::spawn_blocking(move || Presentation::new(sources, sidecars, &options))
            .await
            .map_err(|e| bad(&e))?
            .map_err(|error| LibraryError::Package { asset: shown.clone(), error: Arc::new(error) })?;
        for warning in presentation.warnings() {
            tracing::warn!(asset = %shown, %warning, "packaging");
        }
        Ok(Asset {
            path: shown,
            id: identity(&building.depends, self.options.segment_duration),
            modified: building.depends.iter().filter_map(|o| o.meta().modified).max(),
            objects: building.objects,
            presentation: Arc::new(presentation),
            depends: building.depends,
            listed: building.listed,
            checked_ms: AtomicU64::new(self.now_ms()),
        })
    }

    async fn recipe(&self, place: &str, path: &ObjectPath, building: &mut Building) -> Result<Recipe, LibraryError> {
        let name = path.file_name();
        if names::is_url_set(name) {
            return grouping::url_set(path);
        }
        if names::is_manifest(name) {
            let text = self.read_text(place, path, building).await?;
            return grouping::manifest(path, &String::from_utf8_lossy(&text));
        }
        if names::is_media(name) {
            // Only where looking costs nothing: a listing of a large bucket would delay the first picture.
            if self.store.open(place, path).await?.file().is_none() {
                return Ok(grouping::single(path, &[]));
            }
            let folder = path.parent();
            let beside: Vec<Entry> = self.store.list(place, &folder).await.unwrap_or_default();
            let recipe = grouping::single(path, &beside);
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
        let recipe = grouping::folder(path, &entries);
        building.listed = Some((path.clone(), entries));
        Ok(recipe)
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
        let parsed = if name.to_ascii_lowercase().ends_with(".srt") {
            text::srt::parse(&bytes)
        } else {
            text::vtt::parse(&bytes)
        };
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
