//! Makes resources of assets: light ones where they are asked for, heavy ones on the pool and once for all who wait.

use super::{
    packed::PackedSegments,
    render::{self, Made},
};
use crate::{
    delivery::{Body, BodyError},
    library::{Asset, Library, LibraryError, Resource},
    work::PoolError,
};
use bytes::Bytes;
use millpond_media::Work;
use millpond_store::{Cache, SingleFlight, Store};
use std::{path::PathBuf, sync::Arc};

/// Largest text or rare TS segment that is made in memory to learn its length.
const MOST_COLLECTED: u64 = 64 << 20;
/// The same as a part of the memory budget.
const COLLECTED_SHARE: u64 = 8;

type Key = (u64, Resource);

/// Makes resources and keeps the texts.
pub(super) struct Renderer {
    store: Store,
    library: Arc<Library>,
    rendered: Cache<Key, Bytes>,
    /// Texts being made. `None` where the resource is no text in memory, but ranges of objects.
    flights: SingleFlight<Key, Result<Option<Bytes>, LibraryError>>,
    packed: PackedSegments,
}

impl Renderer {
    /// Keeps texts in the store's memory, and segments that are asked for again in files of `folder`.
    pub(super) fn new(store: Store, library: Arc<Library>, folder: PathBuf) -> Arc<Self> {
        let rendered = Cache::of(store.memory(), "texts");
        let packed = PackedSegments::new(store.memory(), library.pool().clone(), folder);
        Arc::new(Self { store, library, rendered, flights: SingleFlight::new(), packed })
    }

    /// The body of a resource. `fresh` has it made anew, and neither taken from memory nor put there.
    pub(super) async fn body(
        self: &Arc<Self>,
        asset: &Arc<Asset>,
        resource: Resource,
        fresh: bool,
    ) -> Result<Body, LibraryError> {
        let key = (asset.id, resource);
        if render::form(&key.1).keep {
            return self.text(asset, key, fresh).await;
        }
        if fresh {
            return self.make(asset, &key.1).await;
        }
        if let Some(body) = self.packed.get(&key) {
            return Ok(body);
        }
        let body = self.make(asset, &key.1).await?;
        if self.packed.wants(&key, &body) {
            let storable = asset.permission(&self.store).is_storable();
            return match self.packed.pack(key.clone(), body, storable).await {
                Err(BodyError::Keep(_)) => self.make(asset, &key.1).await,
                packed => packed.map_err(|error| broken(&asset.path, error)),
            };
        }
        Ok(body)
    }

    async fn text(self: &Arc<Self>, asset: &Arc<Asset>, key: Key, fresh: bool) -> Result<Body, LibraryError> {
        if !fresh && let Some(bytes) = self.rendered.get(&key) {
            return Ok(Body::bytes(bytes));
        }
        let job = || {
            let (renderer, asset, resource) = (self.clone(), asset.clone(), key.1.clone());
            async move { Ok(renderer.make(&asset, &resource).await?.as_bytes()) }
        };
        let Some(bytes) = self.flights.run(&key, job).await.0? else { return self.make(asset, &key.1).await };
        if !fresh && !self.rendered.contains(&key) {
            let weight = bytes.len() as u64 + 256;
            self.rendered.insert(key, bytes.clone(), weight);
        }
        Ok(Body::bytes(bytes))
    }

    /// Makes a resource, without a look at what is in memory.
    pub(super) async fn make(&self, asset: &Arc<Asset>, resource: &Resource) -> Result<Body, LibraryError> {
        let body = match self.made(asset, resource).await? {
            Made::Text(text) => return Ok(Body::bytes(Bytes::from(text))),
            Made::Bytes(bytes) => return Ok(Body::bytes(bytes)),
            Made::Plan(plan) => Body::plan(&self.store, &asset.objects, plan),
        };
        if body.len().is_some() { Ok(body) } else { self.collect(asset, resource, body).await }
    }

    /// Makes what a light answer for this resource needs, such as the layout of a track's TS segments.
    pub(super) async fn prepare(&self, asset: &Arc<Asset>, resource: &Resource) -> Result<(), LibraryError> {
        let segment = matches!(resource, Resource::TsSegment(..) | Resource::IFrame(..));
        match render::lazy(resource) {
            Some((track, part)) if segment && !asset.has_made(track, part) => {
                self.made(asset, resource).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn made(&self, asset: &Arc<Asset>, resource: &Resource) -> Result<Made, LibraryError> {
        if render::is_light(asset, resource) {
            return render::make(asset, resource);
        }
        let refused = |error| refused(asset, error);
        let pool = self.library.pool();
        let _charge = pool.charge(render::memory(asset, resource)).await.map_err(refused)?;
        let job = {
            let (asset, resource) = (asset.clone(), resource.clone());
            move || render::make(&asset, &resource)
        };
        let made = pool.run(&Work::unlimited(), job).await.map_err(refused)??;
        if let Some((track, part)) = render::lazy(resource) {
            asset.set_made(track, part);
        }
        self.library.weigh(asset);
        Ok(made)
    }

    /// The whole of a body whose length nothing else tells.
    async fn collect(&self, asset: &Arc<Asset>, resource: &Resource, body: Body) -> Result<Body, LibraryError> {
        // Text grows, for each cue has a line of times; TS has headers in each of its packets.
        let growth = if matches!(resource, Resource::TsSegment(..)) { 2 } else { 16 };
        let reads: u64 = body.needs().ranges.iter().map(|(_, range)| range.end - range.start).sum();
        let most = MOST_COLLECTED.min(self.store.memory().budget() / COLLECTED_SHARE);
        let limit = reads.saturating_mul(growth).saturating_add(64 << 10).min(most);
        let _charge = self.library.pool().charge(limit).await.map_err(|error| refused(asset, error))?;
        match body.collect(limit as usize).await {
            Ok(Some(bytes)) => Ok(Body::bytes(bytes)),
            Ok(None) => Err(render::nothing(asset, format!("the segment has more than {limit} bytes"))),
            Err(error) => Err(broken(&asset.path, error)),
        }
    }
}

fn refused(asset: &Asset, error: PoolError) -> LibraryError {
    LibraryError::Refused { asset: asset.path.clone(), error }
}

/// Why the body of something made of an asset, or of a file, can't be had.
pub(super) fn broken(asset: &str, error: BodyError) -> LibraryError {
    match error {
        BodyError::Origin(error) => error.into(),
        BodyError::Package(error) => LibraryError::Package { asset: asset.to_owned(), error: error.into() },
        error => LibraryError::Unreadable { asset: asset.to_owned(), why: error.to_string() },
    }
}
