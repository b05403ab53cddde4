//! Makes resources of assets: light ones on the calling thread, heavy ones on the worker pool, once for all waiting
//! requests.

use super::{
    error::AnswerError,
    packed::PackedSegments,
    pictures::Pictures,
    resource::{self, Output},
};
use crate::{
    library::{Asset, Library, LibraryError, Resource},
    work::{MemoryShare, PoolError},
};
use bytes::Bytes;
use millpond_http::body::{Body, BodyError};
use millpond_media::Work;
use millpond_package::{
    PackageError, TrackFilter,
    plan::{self, Plan, PlanItem, Rewrite, RewriteJob},
};
use millpond_store::{Cache, SingleFlight, Store};
use millpond_stream::NewestKeyFrame;
use std::{path::PathBuf, sync::Arc};

/// Longest text or segment that is made in memory to learn its length, in bytes.
const COLLECTED_MOST: u64 = 64 << 20;
/// Longest such text or segment, as a share of the memory budget.
const COLLECTED_SHARE: MemoryShare = MemoryShare::Eighth;

/// Memory of a FLAC encoder, in bytes: for the values of a read and the values of a frame, in 32 bits each.
const ENCODER: u64 = 2 << 20;

/// Identity of a text: its asset, the resource, and the filter of a playlist or manifest of the whole asset.
type TextKey = (u64, Resource, TrackFilter);

/// Makes resources and caches the texts.
pub(crate) struct Renderer {
    store: Store,
    library: Arc<Library>,
    texts: Cache<TextKey, Bytes>,
    /// Texts being made. `None` stands for a resource that consists of object ranges.
    flights: SingleFlight<TextKey, Result<Option<Bytes>, AnswerError>>,
    packed: PackedSegments,
    /// `None` where thumbnails are off.
    pictures: Option<Pictures>,
}

impl Renderer {
    /// Creates a renderer. It caches texts in the store's memory and packed segments in files of `folder`.
    pub(crate) fn new(store: Store, library: Arc<Library>, folder: PathBuf, has_thumbnails: bool) -> Arc<Self> {
        let texts = Cache::of(store.memory(), "texts");
        let packed = PackedSegments::new(store.memory(), library.pool().clone(), folder);
        let pictures = has_thumbnails.then(|| Pictures::new(store.clone(), library.clone()));
        Arc::new(Self { store, library, texts, flights: SingleFlight::new(), packed, pictures })
    }

    /// Returns the body of a resource. A `fresh` one is made anew and bypasses the caches.
    ///
    /// # Errors
    /// A resource that the asset does not have, malformed media, a failing origin, or a worker pool without room.
    pub(crate) async fn body(
        self: &Arc<Self>,
        asset: &Arc<Asset>,
        resource: Resource,
        fresh: bool,
    ) -> Result<Body, AnswerError> {
        let key = (asset.id, resource);
        let profile = resource::profile(&key.1);
        if profile.is_of_thumbnails() && self.pictures.is_none() {
            return Err(resource::no_resource(asset, "thumbnails are off".to_owned()).into());
        }
        if let Some(pictures) = self.pictures.as_ref().filter(|_| profile.image().is_some()) {
            return pictures.body(asset, key, fresh).await;
        }
        if profile.is_text() {
            return self.text(asset, (key.0, key.1, TrackFilter::ALL), fresh).await;
        }
        if fresh {
            return self.make(asset, &key.1).await;
        }
        if let Some(body) = self.packed.get(&key) {
            return Ok(body);
        }
        let body = self.make(asset, &key.1).await?;
        if self.packed.reserve(&key, &body) {
            let storable = asset.permission(&self.store).is_storable();
            return match self.packed.pack(key.clone(), body, storable).await {
                Err(BodyError::Pack(_)) => self.make(asset, &key.1).await,
                packed => packed.map_err(|error| AnswerError::of_body(&asset.path, error)),
            };
        }
        Ok(body)
    }

    /// Returns the body of a playlist or manifest of the whole asset, which lists the tracks that a filter keeps.
    ///
    /// # Errors
    /// As [`body`](Self::body), and a filter that leaves nothing to play.
    pub(crate) async fn filtered(
        self: &Arc<Self>,
        asset: &Arc<Asset>,
        (resource, filter): (Resource, TrackFilter),
        fresh: bool,
    ) -> Result<Body, AnswerError> {
        self.text(asset, (asset.id, resource, filter), fresh).await
    }

    /// Returns the newest key frame of a live stream as a JPEG image.
    ///
    /// # Errors
    /// Images are off, the picture can't be decoded, or the worker pool has no room.
    pub(crate) async fn snapshot(
        &self,
        path: &str,
        newest: NewestKeyFrame,
    ) -> Result<super::SnapshotImage, AnswerError> {
        match &self.pictures {
            Some(pictures) => pictures.snapshot(path, newest).await,
            None => {
                Err(LibraryError::NoResource { asset: path.to_owned(), what: "thumbnails are off".to_owned() }.into())
            }
        }
    }

    /// Returns the body of a text, from the cache or made now.
    async fn text(self: &Arc<Self>, asset: &Arc<Asset>, key: TextKey, fresh: bool) -> Result<Body, AnswerError> {
        if !fresh && let Some(bytes) = self.texts.get(&key) {
            return Ok(Body::bytes(bytes));
        }
        let job = || {
            let (renderer, asset, (_, resource, filter)) = (self.clone(), asset.clone(), key.clone());
            async move { Ok(renderer.make_filtered(&asset, &resource, &filter).await?.as_bytes()) }
        };
        let Some(bytes) = self.flights.run(&key, job).await.0? else {
            return self.make_filtered(asset, &key.1, &key.2).await;
        };
        if !fresh && !self.texts.contains(&key) {
            let weight = (bytes.len() + key.2.heap_bytes()) as u64 + 256;
            self.texts.insert(key, bytes.clone(), weight);
        }
        Ok(Body::bytes(bytes))
    }

    /// Makes a resource.
    async fn make(&self, asset: &Arc<Asset>, resource: &Resource) -> Result<Body, AnswerError> {
        self.make_filtered(asset, resource, &TrackFilter::ALL).await
    }

    /// Makes a resource whose manifests list the tracks that a filter keeps. Bypasses the caches.
    ///
    /// # Errors
    /// As [`filtered`](Self::filtered).
    pub(crate) async fn make_filtered(
        &self,
        asset: &Arc<Asset>,
        resource: &Resource,
        filter: &TrackFilter,
    ) -> Result<Body, AnswerError> {
        let body = match self.run(asset, resource, filter).await? {
            Output::Text(text) => return Ok(Body::bytes(Bytes::from(text))),
            Output::Bytes(bytes) => return Ok(Body::bytes(bytes)),
            Output::Plan(Plan::Rewrite(rewrite)) => match rewrite.job() {
                Some(job) => return self.rewritten(asset, rewrite, job).await,
                None => Body::plan(&self.store, &asset.objects, Plan::Rewrite(rewrite)),
            },
            Output::Plan(plan) => Body::plan(&self.store, &asset.objects, plan),
        };
        if body.len().is_some() { Ok(body) } else { self.collect(asset, resource, body).await }
    }

    /// Completes the lazy part of a track that a segment needs, such as the layout of TS segments.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    pub(crate) async fn prepare(&self, asset: &Arc<Asset>, resource: &Resource) -> Result<(), AnswerError> {
        let profile = resource::profile(resource);
        let is_segment = !profile.is_text() && (profile.image().is_none() || self.pictures.is_some());
        match profile.lazy() {
            Some(part) if is_segment && !asset.has_made(profile.track, part) => {
                self.run(asset, resource, &TrackFilter::ALL).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes a resource on this thread or on the worker pool.
    async fn run(&self, asset: &Arc<Asset>, resource: &Resource, filter: &TrackFilter) -> Result<Output, AnswerError> {
        let profile = resource::profile(resource).filtered(filter);
        if matches!(resource, Resource::Segment(..))
            && let Some(plan) = self.library.loaded_segment(asset, profile.track, profile.number).await?
        {
            return Ok(Output::Plan(plan));
        }
        if profile.is_light(asset) {
            return Ok(profile.make(asset)?);
        }
        let refused = |error| refused(asset, error);
        let pool = self.library.pool();
        let _charge = pool.charge(profile.memory(asset)).await.map_err(refused)?;
        let job = {
            let (asset, resource, filter) = (asset.clone(), resource.clone(), filter.clone());
            move || resource::profile(&resource).filtered(&filter).make(&asset)
        };
        let output = pool.run(&Work::unlimited(), job).await.map_err(refused)??;
        if let Some(part) = profile.lazy() {
            asset.set_made(profile.track, part);
        }
        self.library.weigh(asset);
        Ok(output)
    }

    /// Makes a whole body as a job. FLAC takes milliseconds of a processor, which would delay other connections of this thread.
    async fn rewritten(
        &self,
        asset: &Arc<Asset>,
        rewrite: Box<dyn Rewrite>,
        RewriteJob { reads, most_bytes }: RewriteJob,
    ) -> Result<Body, AnswerError> {
        if most_bytes > self.most_in_memory() {
            return Err(self.too_large(asset, most_bytes));
        }
        let read = reads.iter().map(|read| read.range.len()).fold(0, u64::saturating_add);
        let refused = |error| refused(asset, error);
        // A buffer that grows takes up to twice its bytes.
        let memory = read.saturating_add(most_bytes.saturating_mul(2)).saturating_add(ENCODER);
        let _charge = self.library.pool().charge(memory).await.map_err(refused)?;
        let reads = reads.into_iter().map(PlanItem::Object).collect();
        let input = Body::plan(&self.store, &asset.objects, Plan::Items(reads));
        let counts = input.read_counts();
        let of_body = |error| AnswerError::of_body(&asset.path, error);
        let Some(bytes) = input.collect(read as usize).await.map_err(of_body)? else {
            return Err(too_long(asset, read.saturating_add(1), read));
        };
        let job = move || plan::made(rewrite, &bytes);
        let made = self.library.pool().run(&Work::unlimited(), job).await.map_err(refused)?;
        let made = made.map_err(|error| of_body(error.into()))?;
        Ok(Body::bytes(made.into()).with_counts(counts).laborious())
    }

    /// Returns the most bytes of any body that is made in memory.
    fn most_in_memory(&self) -> u64 {
        COLLECTED_MOST.min(COLLECTED_SHARE.of(self.store.memory().budget()))
    }

    /// Returns the error of a body that may have `wanted` bytes, above the limit of bodies in memory.
    fn too_large(&self, asset: &Asset, wanted: u64) -> AnswerError {
        let budget = self.store.memory().budget();
        let most = COLLECTED_SHARE.of(budget);
        if most >= COLLECTED_MOST {
            return too_long(asset, wanted, COLLECTED_MOST);
        }
        refused(asset, PoolError::TooLarge { wanted, most, share: COLLECTED_SHARE, budget }).into()
    }

    /// Makes a whole body in memory, to learn its length.
    async fn collect(&self, asset: &Arc<Asset>, resource: &Resource, body: Body) -> Result<Body, AnswerError> {
        let reads: u64 = body.inputs().ranges.iter().map(|(_, range)| range.end - range.start).sum();
        let grown = reads.saturating_mul(resource::profile(resource).growth()).saturating_add(64 << 10);
        let limit = grown.min(self.most_in_memory());
        let _charge = self.library.pool().charge(limit).await.map_err(|error| refused(asset, error))?;
        let counts = body.read_counts();
        match body.collect(limit as usize).await {
            Ok(Some(bytes)) => Ok(Body::bytes(bytes).with_counts(counts).laborious()),
            Ok(None) if limit < grown => Err(self.too_large(asset, grown)),
            Ok(None) => Err(too_long(asset, limit.saturating_add(1), limit)),
            Err(error) => Err(AnswerError::of_body(&asset.path, error)),
        }
    }
}

/// Returns the error of a body of `found` bytes or more, too long for any memory budget.
fn too_long(asset: &Asset, found: u64, limit: u64) -> AnswerError {
    let error = PackageError::TooMany { what: "bytes of a segment", found, limit };
    LibraryError::Package { asset: asset.path.clone(), error: error.into() }.into()
}

/// Returns the error of work that the worker pool refuses.
fn refused(asset: &Asset, error: PoolError) -> LibraryError {
    LibraryError::Refused { asset: asset.path.clone(), error }
}
