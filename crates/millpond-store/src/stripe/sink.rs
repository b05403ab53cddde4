//! Places that units and maps are written to: folders and buckets.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::layout::LayoutError;
use super::map::{MAP_SUFFIX, MapError};
use super::store_name::{StoreNameError, StripeStore};
use crate::error::{At, OriginError};
use crate::origin::cloud::{CloudKind, CloudOrigin};
use crate::path::ObjectPath;
use crate::place::{OriginOptions, PlaceError, PlaceSource, PlaceSpec};

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
    /// A location is none.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A store is none.
    #[error(transparent)]
    Store(#[from] StoreNameError),
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
    /// Another run stripes the same object.
    #[error("{map}: another command stripes this object")]
    Busy {
        /// The map.
        map: String,
    },
    /// The bytes are not those that were striped.
    #[error("{at}: the SHA-256 is {found}, expected {expected}")]
    Checksum {
        /// The striped object.
        at: String,
        /// That of the map.
        expected: String,
        /// That of the bytes.
        found: String,
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
    pub(super) fn new(source: &PlaceSource, options: &OriginOptions) -> Result<Self, StripeError> {
        let client = |detail: String| PlaceError::Client { place: source.to_string(), detail };
        let bucket = |kind, bucket: &str, prefix: &str| {
            CloudOrigin::new(kind, bucket, prefix, options, options.timeouts()).map(Self::Bucket).map_err(client)
        };
        Ok(match source {
            // A store that is not mounted is not filled.
            PlaceSource::Folder(folder) if !folder.is_dir() => {
                return Err(PlaceError::NoSuchFolder { folder: folder.clone() }.into());
            }
            PlaceSource::Folder(folder) => Self::Folder(folder.clone()),
            PlaceSource::S3 { bucket: name, prefix } => bucket(CloudKind::S3, name, prefix)?,
            PlaceSource::Gs { bucket: name, prefix } => bucket(CloudKind::Gs, name, prefix)?,
            PlaceSource::Az { container, prefix } => bucket(CloudKind::Az, container, prefix)?,
            PlaceSource::Http(_) | PlaceSource::Rtsp(_) | PlaceSource::Publish | PlaceSource::Transport(_) => {
                return Err(StripeError::ReadOnly { place: source.to_string() });
            }
        })
    }

    pub(super) fn of_store(store: &StripeStore, options: &OriginOptions) -> Result<Self, StripeError> {
        Self::new(store.source(), &store.options(options))
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
    pub(super) spec: PlaceSpec,
    /// Path of the striped object, without the end of the map's name.
    pub(super) path: ObjectPath,
}

impl MapTarget {
    /// Parses a location such as `/films/a.mp4.stripe` or `s3://films/a.mp4.stripe`.
    ///
    /// # Errors
    ///
    /// The text is no location, or its name does not end in `.stripe`.
    pub fn parse(text: &str) -> Result<Self, StripeError> {
        let wrong = || StripeError::Name { name: text.to_owned() };
        let whole = text.strip_suffix(MAP_SUFFIX).ok_or_else(wrong)?;
        let (folder, name) = match whole.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((folder, name)) if !folder.ends_with(':') && !folder.ends_with(":/") => (folder, name),
            Some(_) => return Err(wrong()),
            None => (".", whole),
        };
        let is_local = !text.contains("://");
        let folder =
            if is_local && !folder.starts_with(['/', '.']) { format!("./{folder}") } else { folder.to_owned() };
        let path = ObjectPath::parse(name).map_err(|_| wrong())?;
        Ok(Self { spec: PlaceSpec::parse(&folder)?, path })
    }

    /// Returns the name of the striped object.
    pub fn name(&self) -> &str {
        self.path.as_str()
    }

    pub(super) fn sink(&self, options: &OriginOptions) -> Result<Sink, StripeError> {
        Sink::new(&self.spec.source, options)
    }
}

impl std::fmt::Display for MapTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}{MAP_SUFFIX}", self.spec.source.to_string().trim_end_matches('/'), self.path)
    }
}
