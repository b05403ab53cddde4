//! Titles that are played while their file is scanned.
//!
//! Requests of HLS players are answered from the part that was scanned so far. The scan is part of the flight of the whole asset. A task
//! waits for that flight between two requests, so that the scan goes on.

use crate::{
    asset::{Asset, AssetKey},
    error::LibraryError,
    library::{Library, Purpose, building::Building, index::SoFar},
    route::{Resource, Route},
};
use millpond_store::{Cache, Memory, SingleFlight};
use std::{
    collections::{HashMap, hash_map::Entry},
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// Time for which a scan goes on after the last request that was answered from it. Players load an event playlist each few seconds,
/// also while they are paused.
const KEPT: Duration = Duration::from_secs(60);

/// Assets of the beginnings of files.
pub(super) struct Beginnings {
    newest: Cache<AssetKey, Arc<Asset>>,
    under_way: SingleFlight<(AssetKey, u64), Option<Arc<Asset>>>,
    /// Time of the last request of each asset whose scan is kept, in milliseconds of the library's clock. A lock: held to look up, add
    /// or remove an entry.
    kept: Mutex<HashMap<AssetKey, Arc<AtomicU64>>>,
}

impl Beginnings {
    /// Creates an empty collection that counts among the presentations.
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self { newest: Cache::of(memory, "presentations"), under_way: SingleFlight::new(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<AssetKey, Arc<AtomicU64>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Library {
    /// Opens the asset that a resource is made of, as [`open_version`](Self::open_version) does. While the file of the asset is
    /// scanned, the result is the asset of the part that was scanned so far, if that part has all of the resource.
    ///
    /// # Errors
    /// As [`open_version`](Self::open_version).
    pub async fn open_resource(self: &Arc<Self>, place: &Arc<str>, route: &Route) -> Result<Arc<Asset>, LibraryError> {
        let detail = route.resource.detail();
        let whole = self.open_version(place, &route.asset, route.version, detail);
        if !route.begins_early() {
            return whole.await;
        }
        let key = AssetKey { place: place.clone(), path: route.asset.clone(), detail };
        tokio::select! {
            biased;
            whole = whole => whole,
            beginning = self.open_beginning(&key, route) => Ok(beginning),
        }
    }

    /// Waits until the scan of a file has read the part that a resource is made of.
    async fn open_beginning(self: &Arc<Self>, key: &AssetKey, route: &Route) -> Arc<Asset> {
        let mut changes = self.indexes.scans().changes();
        loop {
            if let Some(so_far) = self.indexes.scans().newest(&key.place, &key.path)
                && let Some(asset) = self.beginning(key, so_far).await
                && has(&asset, route)
            {
                self.keep_scanning(key).await;
                return asset;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns the asset of the beginning of a file; `None` if the beginning is too short, or does not show how the
    /// whole file is presented.
    async fn beginning(self: &Arc<Self>, key: &AssetKey, so_far: Arc<SoFar>) -> Option<Arc<Asset>> {
        let read = so_far.read();
        let is_newest = |asset: &Arc<Asset>| {
            asset.so_far.is_some_and(|known| known.read == read) && asset.depends_on(&so_far.object)
        };
        if let Some(asset) = self.beginnings.newest.get(key).filter(is_newest) {
            return Some(asset);
        }
        let flight = (key.clone(), read);
        let job = || {
            let (library, key, so_far) = (self.clone(), key.clone(), so_far.clone());
            async move {
                let mut building = Building::of_beginning(so_far, key.detail);
                let asset = Arc::new(library.build(&key, &mut building).await.ok()?);
                let weight = asset.heap_bytes() + asset.presentation.table_bytes() as u64;
                library.beginnings.newest.insert(key, asset.clone(), weight);
                Some(asset)
            }
        };
        self.beginnings.under_way.run(&flight, job).await.0
    }

    /// Keeps the scan of an asset's file going until nobody has asked for the asset for [`KEPT`]. Returns when a
    /// task keeps it.
    async fn keep_scanning(self: &Arc<Self>, key: &AssetKey) {
        let now = self.now_ms();
        let asked = match self.beginnings.kept().entry(key.clone()) {
            Entry::Occupied(known) => {
                known.get().store(now, Ordering::Relaxed);
                return;
            }
            Entry::Vacant(new) => new.insert(Arc::new(AtomicU64::new(now))).clone(),
        };
        let (sender, joined) = oneshot::channel();
        let (library, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            library.wait_for_players(&key, &asked, sender).await;
            library.beginnings.kept().remove(&key);
            library.beginnings.newest.remove(&key);
        });
        // An error means that the whole asset was opened, or has failed.
        let _ = joined.await;
    }

    /// Waits for an asset while players ask for its beginning. Sends on `joined` when it has joined the flight of the asset.
    async fn wait_for_players(self: &Arc<Self>, key: &AssetKey, asked: &AtomicU64, joined: oneshot::Sender<()>) {
        // The beginning grows while there is a receiver.
        let _changes = self.indexes.scans().changes();
        let mut open = pin!(self.open_for(&key.place, &key.path, Purpose::Playback, key.detail));
        tokio::select! {
            biased;
            _ = &mut open => return,
            () = std::future::ready(()) => {}
        }
        let _ = joined.send(());
        loop {
            let idle = self.now_ms().saturating_sub(asked.load(Ordering::Relaxed));
            let left = KEPT.saturating_sub(Duration::from_millis(idle));
            if left.is_zero() {
                tracing::info!(path = %key.path, seconds = KEPT.as_secs(), "scan ended: no player asked for the title");
                return;
            }
            tokio::select! {
                _ = &mut open => return,
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}

/// Whether the beginning in an asset has all of a resource.
fn has(asset: &Asset, route: &Route) -> bool {
    let is_version = route.version.is_none_or(|version| version == asset.version());
    let is_final = match &route.resource {
        Resource::Segment(track, number)
        | Resource::TsSegment(track, number)
        | Resource::TextSegment(_, track, number) => asset.presentation.is_final(track, *number),
        _ => true,
    };
    is_version && is_final
}
