//! The store of a server: its cache, and the places that it reads from.

mod metrics;
mod settings;

pub use metrics::PlaceBytes;
pub(crate) use metrics::{ReadStats, StorageCollector};
use millpond_store::{
    DiskOptions, Homes, MemoryOrigin, OriginOptions, PlaceError, PlaceSpec, Store, StoreError, StoreOptions,
};
pub use settings::StorageSettings;
use std::sync::Arc;

/// The bundled sample: files of one asset.
const SAMPLE: [(&str, &[u8]); 3] = [
    ("360p.mp4", include_bytes!("../../../../assets/sample/360p.mp4")),
    ("180p.mp4", include_bytes!("../../../../assets/sample/180p.mp4")),
    ("deu.vtt", include_bytes!("../../../../assets/sample/deu.vtt")),
];

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

/// The store, with a disk cache where a place is remote. A disk that can't be used is no reason not to serve.
fn store(settings: &StorageSettings, is_remote: bool) -> Result<Store, StoreError> {
    let folder = settings.folder.join("slices");
    let disk = DiskOptions { folder, quota: settings.cache_size, policy: settings.policy };
    let options = StoreOptions {
        memory: settings.memory,
        disk: (is_remote && settings.cache_size > 0).then_some(disk),
        slice: settings.slice,
        prefetch: settings.prefetch,
        ..StoreOptions::default()
    };
    match Store::new(&options) {
        Err(error @ StoreError::Disk(_)) => {
            tracing::error!(%error, "no slices are kept on the disk");
            Store::new(&StoreOptions { disk: None, ..options })
        }
        store => store,
    }
}

/// Opens the store and adds the places, or the sample where there is none; returns the names of the places too. Those with
/// live streams are none of the store's. `homes` gives the nodes of a cluster that are asked before a place's origin.
///
/// # Errors
/// The store or a place can't be opened.
pub(crate) fn open(
    settings: &StorageSettings,
    places: &[(&PlaceSpec, &OriginOptions)],
    homes: impl Fn(&str) -> Option<Arc<dyn Homes>>,
) -> Result<(Store, Vec<Arc<str>>), StorageError> {
    let store =
        store(settings, places.iter().any(|(spec, options)| spec.is_remote() || !options.stripe_over.is_empty()))?;
    let mut names = Vec::new();
    if places.is_empty() {
        let sample = MemoryOrigin::new("the bundled sample");
        for (name, bytes) in SAMPLE {
            sample.put(name, bytes::Bytes::from_static(bytes));
        }
        store.add_place("sample", Arc::new(sample));
        names.push(Arc::from("sample"));
    }
    for (spec, options) in places {
        let name = spec.name.as_str();
        if !spec.is_live() {
            store.add_place(name, millpond_store::build_with_homes(spec, options, homes(name))?);
        }
        names.push(Arc::from(name));
    }
    Ok((store, names))
}
