//! Places that units and maps are written to: folders and buckets.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::map::MapError;
use crate::error::{At, OriginError};
use crate::layout::LayoutError;
use crate::location::OriginLocation;
use crate::origin::RemoteOptions;
use crate::origin::bare::LocationError;
use crate::origin::cloud::CloudOrigin;
use crate::path::ObjectPath;
use crate::striping::{MAP_SUFFIX, StripeStore};

/// Attempts to write one object.
const TRIES: u32 = 4;
/// Pause after the first failed attempt. It doubles each time.
const PAUSE: Duration = Duration::from_millis(200);

/// Why an object was not striped, or not read back.
#[derive(Debug, thiserror::Error)]
pub enum StripeError {
    /// The source, the map or a unit cannot be read or written.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// No origin can be made of a location.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// A size is out of its limits.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The map is none.
    #[error("{at}: {error}")]
    Map {
        /// The map.
        at: String,
        /// Its fault.
        error: MapError,
    },
    /// A location that cannot be written to.
    #[error("{place}: objects can be written to folders and buckets only")]
    ReadOnly {
        /// The location.
        place: String,
    },
    /// A name that is no map's.
    #[error("{name}: expected a name that ends in {MAP_SUFFIX}")]
    Name {
        /// The name.
        name: String,
    },
    /// Two stores have one name.
    #[error("store {name:?} is named twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// The map names a store that is not among those that were named.
    #[error(
        "the map has units in {}, but --over names {}: name each store as the map does, with NAME= before a location that differs",
        .map.join(" "),
        .given.join(" ")
    )]
    Stores {
        /// Names of the map's stores.
        map: Vec<String>,
        /// Names of the stores that were named.
        given: Vec<String>,
    },
    /// Another run stripes the same object.
    #[error("{map}: another command stripes this object")]
    Busy {
        /// The map.
        map: String,
    },
    /// The bytes differ from the striped bytes.
    #[error("{at}: the SHA-256 is {found}, expected {expected}")]
    Checksum {
        /// The striped object.
        at: String,
        /// That of the map.
        expected: String,
        /// That of the bytes.
        found: String,
    },
    /// The map has no checksums of units.
    #[error("{map}: the map has no checksums: stripe the file again, or verify all bytes with millpond unstripe")]
    Unsummed {
        /// The map.
        map: String,
    },
    /// The output failed.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

/// A folder or a bucket that objects are written to.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    Folder(PathBuf),
    Bucket(CloudOrigin),
}

impl Sink {
    /// # Errors
    ///
    /// The location is neither a folder that exists nor a bucket.
    pub(super) fn new(location: &OriginLocation, options: &RemoteOptions) -> Result<Self, StripeError> {
        let client = |detail: String| LocationError::Client { location: location.to_string(), detail };
        Ok(match location {
            // A store that is not mounted is not filled.
            OriginLocation::Folder(folder) if !folder.is_dir() => {
                return Err(LocationError::NoSuchFolder { folder: folder.clone() }.into());
            }
            OriginLocation::Folder(folder) => Self::Folder(folder.clone()),
            OriginLocation::Bucket(bucket) => Self::Bucket(CloudOrigin::new(bucket, options).map_err(client)?),
            OriginLocation::Http(_) => return Err(StripeError::ReadOnly { place: location.to_string() }),
        })
    }

    pub(super) fn of_store(store: &StripeStore, options: &RemoteOptions) -> Result<Self, StripeError> {
        Self::new(store.location(), &store.remote(options))
    }

    /// Writes an object whole, or not at all. An earlier one of that name is replaced.
    pub(super) async fn put(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), OriginError> {
        self.again(|| self.put_once(path, bytes.clone())).await
    }

    /// Removes an object. One that does not exist is no error.
    pub(super) async fn remove(&self, path: &ObjectPath) -> Result<(), OriginError> {
        self.again(|| self.remove_once(path)).await
    }

    async fn again<F: Future<Output = Result<(), OriginError>>>(
        &self,
        work: impl Fn() -> F,
    ) -> Result<(), OriginError> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match work().await {
                Err(error) if error.is_retryable() => {
                    tracing::debug!(%error, "writing again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
        work().await
    }

    async fn put_once(&self, path: &ObjectPath, bytes: Bytes) -> Result<(), OriginError> {
        match self {
            Self::Bucket(bucket) => bucket.put(path, bytes).await,
            Self::Folder(folder) => on_disk(folder, path, move |file| replace(&file, &bytes)).await,
        }
    }

    async fn remove_once(&self, path: &ObjectPath) -> Result<(), OriginError> {
        match self {
            Self::Bucket(bucket) => bucket.remove(path).await,
            Self::Folder(folder) => {
                on_disk(folder, path, |file| match fs::remove_file(file) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    outcome => outcome,
                })
                .await
            }
        }
    }

    /// Removes a folder of units, with files that were being written; buckets have none.
    pub(super) async fn remove_folder(&self, path: &ObjectPath) {
        if let Self::Folder(folder) = self {
            let folder = folder.join(path.as_str());
            // It does not exist where the store has no unit.
            let _ = tokio::task::spawn_blocking(move || fs::remove_dir_all(folder)).await;
        }
    }
}

/// Runs `work` with the path of a file, on a blocking thread.
async fn on_disk(
    folder: &std::path::Path,
    path: &ObjectPath,
    work: impl FnOnce(PathBuf) -> io::Result<()> + Send + 'static,
) -> Result<(), OriginError> {
    let at = At::new(&folder.display().to_string(), path.as_str());
    let file = folder.join(path.as_str());
    let outcome =
        tokio::task::spawn_blocking(move || work(file)).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    outcome.map_err(|error| OriginError::Io { at, kind: error.kind(), detail: error.to_string() })
}

/// Writes a file beside, and renames it.
fn replace(file: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Two runs may write the same map.
    let part = file.with_file_name(format!(".{name}.{:016x}.part", fastrand::u64(..)));
    let mut out = File::create(&part)?;
    let written = out.write_all(bytes).and_then(|()| out.sync_data()).and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// The place of a map, and the object that it stands for.
#[derive(Clone, Debug)]
pub struct MapTarget {
    pub(super) location: OriginLocation,
    /// Path of the striped object, without the end of the map's name.
    pub(super) path: ObjectPath,
}

impl MapTarget {
    /// Creates the target of the map of an object at a location.
    pub fn new(location: OriginLocation, path: ObjectPath) -> Self {
        Self { location, path }
    }

    /// Returns the name of the striped object.
    pub fn name(&self) -> &str {
        self.path.as_str()
    }

    pub(super) fn sink(&self, options: &RemoteOptions) -> Result<Sink, StripeError> {
        Sink::new(&self.location, options)
    }
}

impl std::fmt::Display for MapTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}{MAP_SUFFIX}", self.location.to_string().trim_end_matches('/'), self.path)
    }
}
