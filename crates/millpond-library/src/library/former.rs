//! Former versions of assets whose files only grew.
//!
//! A fragmented MP4 file that an encoder still writes gets a new version with each fragment. Viewers keep asking for the
//! version whose playlist they loaded. Where the longer file begins with all samples of that version, segments of that
//! version are made from the longer file: their bytes are the same.

use crate::{
    asset::{Asset, AssetKey},
    version::AssetVersion,
};
use millpond_store::{Cache, Memory};
use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

/// Former versions, within the budget of memory.
pub(crate) struct Formers(Cache<(AssetKey, u64), Arc<Asset>>);

impl Formers {
    /// Creates an empty collection that counts among the presentations.
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self(Cache::of(memory, "presentations"))
    }

    /// Keeps `former`, which a longer version continues.
    pub(crate) fn keep(&self, former: &Arc<Asset>) {
        let weight = former.heap_bytes() + former.presentation.table_bytes() as u64;
        self.0.insert((former.key.clone(), former.id), former.clone(), weight);
    }

    /// Returns a former version of `asset`, which reads from the files of `asset`.
    pub(crate) fn get(&self, asset: &Asset, version: AssetVersion) -> Option<Arc<Asset>> {
        let former = self.0.get(&(asset.key.clone(), version.0)).filter(|former| former.origin == asset.origin)?;
        let is_same = former.objects.iter().zip(&asset.objects).all(|(a, b)| Arc::ptr_eq(a, b));
        if is_same && former.edition == asset.edition {
            return Some(former);
        }
        let renewed = Arc::new(renewed(&former, asset));
        self.keep(&renewed);
        Some(renewed)
    }
}

/// Returns `former` with the files of `asset`.
fn renewed(former: &Asset, asset: &Asset) -> Asset {
    let copy = |value: &AtomicU64| AtomicU64::new(value.load(Ordering::Relaxed));
    Asset {
        path: former.path.clone(),
        id: former.id,
        origin: former.origin,
        edition: asset.edition,
        objects: asset.objects.clone(),
        presentation: former.presentation.clone(),
        left_out: former.left_out.clone(),
        modified: former.modified,
        depends: asset.depends.clone(),
        joined: asset.joined.clone(),
        listed: None,
        checked_ms: copy(&asset.checked_ms),
        doubted_ms: copy(&asset.doubted_ms),
        key: former.key.clone(),
        is_indivisible: former.is_indivisible,
        weight: copy(&former.weight),
        so_far: former.so_far,
        made: former.made.iter().map(|made| AtomicU8::new(made.load(Ordering::Relaxed))).collect(),
    }
}
