//! Segments of outlined files: their samples are read with their bytes.

use crate::{
    asset::Asset,
    error::{IndexError, LibraryError},
    library::Library,
    work::FEW_SAMPLES,
};
use millpond_media::{ByteRange, FragmentLoader, LoadStep, MediaError, Movie, Work};
use millpond_package::{
    Plan, SegmentFragments,
    fmp4::{self, LoadedError},
};
use millpond_store::{Cache, Memory, Object, SingleFlight};
use std::sync::Arc;

/// Steps that loading the fragments of a segment may take, of some ten nanoseconds each.
const MOST_STEPS: u64 = 1 << 24;
/// Bytes of memory for each byte of a read of the loader: the byte, and the tables made of it.
const MEMORY_A_BYTE: u64 = 4;

/// Identity of an asset, and fragments of one of its objects.
type Key = (u64, SegmentFragments);

/// Why fragments can't be loaded.
#[derive(Clone, Debug)]
enum LoadError {
    /// The store or the pool failed.
    Library(LibraryError),
    /// The fragments are not as the index of fragments says.
    Wrong(MediaError),
}

/// Samples of fragments, kept within the budget of memory.
pub(crate) struct Loading {
    loaded: Cache<Key, Arc<Movie>>,
    under_way: SingleFlight<Key, Result<Arc<Movie>, LoadError>>,
}

impl Loading {
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self { loaded: Cache::of(memory, "fragments"), under_way: SingleFlight::new() }
    }
}

impl Library {
    /// Returns the plan of segment `number` of a track, whose samples are read now. `None` if the index has all samples, or the
    /// asset has no such segment.
    ///
    /// # Errors
    /// The storage fails, the pool refuses the work, the fragments are not as the index of fragments says, or the segment is too long
    /// to be made in memory. In the last two cases the asset is opened with all samples from then on.
    pub async fn loaded_segment(
        self: &Arc<Self>,
        asset: &Arc<Asset>,
        track: &str,
        number: u32,
    ) -> Result<Option<Plan>, LibraryError> {
        let presented = asset.presentation.track(track);
        let Some(fragments) = presented.and_then(|presented| presented.fragments(number)) else { return Ok(None) };
        let Some(object) = asset.objects.get(usize::from(fragments.object.0)) else { return Ok(None) };
        let loaded = match self.fragments(asset, object, track, &fragments).await {
            Ok(loaded) => loaded,
            Err(LoadError::Library(error)) => return Err(error),
            Err(LoadError::Wrong(error)) => return Err(self.forsaken(asset, object, wrong(&error)).await),
        };
        let is_light = loaded.tracks.iter().all(|track| track.samples.len() <= FEW_SAMPLES);
        let job = {
            let (asset, track) = (asset.clone(), track.to_owned());
            move || {
                let presented = asset.presentation.track(&track)?;
                fmp4::loaded_segment(presented, number, &loaded).transpose()
            }
        };
        let refused = |error| LibraryError::Refused { asset: asset.path.clone(), error };
        let plan = if is_light { job() } else { self.pool.run(&Work::unlimited(), job).await.map_err(refused)? };
        match plan {
            None => Ok(None),
            Some(Ok(plan)) => Ok(Some(plan)),
            Some(Err(error @ LoadedError::Mismatch { .. })) => Err(self.forsaken(asset, object, wrong(&error)).await),
            // An index of all samples divides long segments.
            Some(Err(error @ LoadedError::TooLong { .. })) => {
                Err(self.forsaken(asset, object, error.to_string()).await)
            }
        }
    }

    /// Replaces the outline of a file by an index of all samples, for this reason. Returns the error of the segment that showed the fault.
    async fn forsaken(self: &Arc<Self>, asset: &Arc<Asset>, object: &Arc<Object>, fault: String) -> LibraryError {
        tracing::warn!(asset = %asset.path, object = %object.path(), %fault, "the index of fragments is not used: all fragments are read");
        let forsaken = self.indexes.forsake_outline(object).await;
        self.forget(asset);
        match forsaken {
            Err(error) => error.into(),
            Ok(()) => {
                let what = format!("{fault}; load the playlist or manifest again");
                LibraryError::NoResource { asset: asset.path.clone(), what }
            }
        }
    }

    /// Returns the samples of fragments, from memory or read now.
    async fn fragments(
        self: &Arc<Self>,
        asset: &Arc<Asset>,
        object: &Arc<Object>,
        track: &str,
        fragments: &SegmentFragments,
    ) -> Result<Arc<Movie>, LoadError> {
        let key = (asset.id, fragments.clone());
        if let Some(loaded) = self.loading.loaded.get(&key) {
            return Ok(loaded);
        }
        let Some(movie) = asset.presentation.track(track).and_then(|track| track.movie()).cloned() else {
            let (asset, what) = (asset.path.clone(), format!("no track {track}"));
            return Err(LoadError::Library(LibraryError::NoResource { asset, what }));
        };
        let job = || {
            let (library, asset, object, key) = (self.clone(), asset.path.clone(), object.clone(), key.clone());
            async move {
                let loaded = Arc::new(library.load(&asset, &object, movie, &key.1).await?);
                let weight = loaded.heap_bytes() as u64 + 1024;
                library.loading.loaded.insert(key, loaded.clone(), weight);
                Ok(loaded)
            }
        };
        self.loading.under_way.run(&key, job).await.0
    }

    /// Drives a loader. The bytes of the fragments are requested at once, and the loader reads from them as they arrive.
    async fn load(
        &self,
        asset: &str,
        object: &Arc<Object>,
        movie: Arc<Movie>,
        SegmentFragments { fragments, range, .. }: &SegmentFragments,
    ) -> Result<Movie, LoadError> {
        let refused = |error| LoadError::Library(LibraryError::Refused { asset: asset.to_owned(), error });
        let work = Work::new(MOST_STEPS);
        let Some(mut loader) = FragmentLoader::new(movie, fragments.clone(), work.clone()) else {
            let what = format!("no fragments {fragments:?}");
            return Err(LoadError::Library(LibraryError::NoResource { asset: asset.to_owned(), what }));
        };
        self.store.prefetch_exactly(object, range.start..range.end).await;
        let mut charges = Vec::new();
        // Before there are bytes, the loader only tells which it needs.
        let mut step = loader.poll();
        loop {
            let ByteRange { start, end } = match step {
                Ok(LoadStep::Done(movie)) => return Ok(*movie),
                Ok(LoadStep::Need(range)) => range,
                Err(error @ MediaError::Work { .. }) => {
                    let object = object.path().to_string();
                    return Err(LoadError::Library(IndexError::Media { object, error }.into()));
                }
                Err(error) => return Err(LoadError::Wrong(error)),
            };
            charges.push(self.pool.charge((end - start).saturating_mul(MEMORY_A_BYTE)).await.map_err(refused)?);
            let bytes = self.store.read_all(object, start..end).await;
            loader.supply(bytes.map_err(|error| LoadError::Library(error.into()))?);
            let polled = move || {
                let step = loader.poll();
                (loader, step)
            };
            (loader, step) = self.pool.run(&work, polled).await.map_err(refused)?;
        }
    }
}

/// Returns the reason why an outline is replaced that contradicts its fragments.
fn wrong(error: &impl std::fmt::Display) -> String {
    format!("its index of fragments is wrong ({error})")
}
