//! The store of a server: its cache, and the places that it reads from.

mod metrics;
mod settings;

pub use metrics::PlaceBytes;
pub(crate) use metrics::{ReadStats, SentBytes, StorageCollector};
use millpond_place::{PlaceError, PlaceSpec};
use millpond_settings::value::show_size;
use millpond_store::{
    DiskOptions, Homes, MemoryOrigin, Origin, OriginOptions, SlabError, Store, StoreError, StoreOptions,
};
pub use settings::StorageSettings;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// The bundled sample: files of one asset.
const SAMPLE: [(&str, &[u8]); 3] = [
    ("360p.mp4", include_bytes!("../../sample/360p.mp4")),
    ("180p.mp4", include_bytes!("../../sample/180p.mp4")),
    ("deu.vtt", include_bytes!("../../sample/deu.vtt")),
];

/// Interval between attempts to open a disk cache that another process is about to give up.
const LOOK: Duration = Duration::from_millis(250);

/// Why the store or a place can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A place.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

/// Effect and cure of a cache folder that can't be used, for the log.
pub(crate) const NO_DISK_CACHE: &str = "the disk cache is off until its folder is mended: let the server write it, or set cache to another \
                                        folder, and restart the server";

/// The disk cache, where there is one. Local places need none.
fn disk_options(settings: &StorageSettings, is_remote: bool) -> Option<DiskOptions> {
    let folder = settings.folder.join("slices");
    let disk = DiskOptions { folder, quota: settings.cache_size, policy: settings.policy };
    (is_remote && settings.cache_size > 0).then_some(disk)
}

/// The store, with a disk cache where a place is remote. A disk that can't be used is no reason not to serve.
pub(crate) fn store(settings: &StorageSettings, is_remote: bool) -> Result<Store, StoreError> {
    let options = StoreOptions {
        memory: settings.memory,
        disk: disk_options(settings, is_remote),
        slice: settings.slice,
        prefetch: settings.prefetch,
        ..StoreOptions::default()
    };
    match Store::new(&options) {
        Err(error @ StoreError::Disk(_)) => {
            tracing::error!(%error, why = NO_DISK_CACHE, "no slices are kept on the disk");
            Store::new(&StoreOptions { disk: None, ..options })
        }
        store => store,
    }
}

/// Opens the disk cache of a store once the process before this one has given it up. Ends without it where `leaving` turns true: another
/// process waits for it then.
pub(crate) async fn take_disk_over(
    store: Store,
    settings: StorageSettings,
    is_remote: bool,
    mut leaving: watch::Receiver<bool>,
) {
    let Some(options) = disk_options(&settings, is_remote) else { return };
    while !*leaving.borrow() {
        let (of, options) = (store.clone(), options.clone());
        match tokio::task::spawn_blocking(move || of.open_disk(&options)).await {
            Ok(Ok(())) => return tracing::info!("the disk cache is taken over"),
            Ok(Err(StoreError::Disk(SlabError::Locked { .. }))) => {
                let _ = tokio::time::timeout(LOOK, leaving.wait_for(|leaving| *leaving)).await;
            }
            Ok(Err(error)) => return tracing::error!(%error, why = NO_DISK_CACHE, "no slices are kept on the disk"),
            Err(_) => return,
        }
    }
}

/// Makes the origin of a place with objects; `None` for one with live streams. `homes` are the nodes of a cluster that are asked
/// before it.
///
/// # Errors
/// The place can't be opened.
pub(crate) fn origin(
    (spec, options): (&PlaceSpec, &OriginOptions),
    homes: Option<Arc<dyn Homes>>,
) -> Result<Option<Arc<dyn Origin>>, StorageError> {
    if spec.is_live() {
        return Ok(None);
    }
    Ok(Some(spec.origin(options, homes)?))
}

/// Makes the origin of the bundled sample.
pub(crate) fn sample() -> Arc<dyn Origin> {
    let sample = MemoryOrigin::new("the bundled sample");
    for (name, bytes) in SAMPLE {
        sample.put(name, bytes::Bytes::from_static(bytes));
    }
    Arc::new(sample)
}

/// Changes the settings of a store that is in use. Returns warnings.
pub(crate) fn reconfigure(store: &Store, settings: &StorageSettings, is_remote: bool) -> Vec<String> {
    store.set_memory(settings.memory);
    if store.prefetch_mode() != settings.prefetch {
        store.set_prefetch_mode(settings.prefetch);
    }
    if let Some(disk) = disk_options(settings, is_remote)
        && let Err(error) = store.open_disk(&disk)
    {
        return vec![format!("no slices are kept on the disk: {error}")];
    }
    store.set_disk(Some(settings.cache_size), Some(settings.policy));
    let capacity = store.stats().disk.map_or(settings.cache_size, |disk| disk.capacity);
    // Names and records of the slices take some of it.
    if capacity < settings.cache_size / 16 * 15 {
        let capacity = show_size(capacity);
        return vec![format!("cache-size: the disk cache grows from {capacity} to its new size at the next start")];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::{Host, Settings as _, machine::Machine};

    #[tokio::test]
    async fn a_process_that_hands_over_leaves_the_disk_to_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let defaults = StorageSettings::defaults(&host);
        let settings = StorageSettings { folder: folder.path().to_owned(), cache_size: 64 << 20, ..defaults };
        let (old, middle, last) =
            (store(&settings, true).unwrap(), store(&settings, false).unwrap(), store(&settings, false).unwrap());
        let (leaves, leaving) = watch::channel(false);
        let waiting = tokio::spawn(take_disk_over(middle.clone(), settings.clone(), true, leaving));
        tokio::time::sleep(Duration::from_millis(50)).await;
        leaves.send_replace(true);
        waiting.await.unwrap();
        assert!(old.leave_disk() && middle.leave_disk() && middle.stats().disk.is_none());
        let (_stays, staying) = watch::channel(false);
        take_disk_over(last.clone(), settings, true, staying).await;
        assert!(last.stats().disk.is_some());
    }
}
