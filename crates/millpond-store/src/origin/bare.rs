//! The bare origin of a location, without wrappers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::location::OriginLocation;
use crate::origin::cloud::CloudOrigin;
use crate::origin::disk::DiskOrigin;
use crate::origin::http::HttpOrigin;
use crate::origin::single::{Single, SingleOrigin};
use crate::origin::{Origin, RemoteOptions};

/// Why no origin can be made of a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The folder does not exist.
    #[error("folder {}: does not exist: create it, or correct the path", folder.display())]
    NoSuchFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The path is neither a folder nor a file.
    #[error("folder {}: is neither a folder nor a file", folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// A file that refers to other files, which a place of one file does not have.
    #[error("file {}: names other files; serve its folder {}", file.display(), folder.display())]
    NamesOthers {
        /// The file.
        file: PathBuf,
        /// The folder of the file.
        folder: PathBuf,
    },
    /// The folder cannot be opened.
    #[error("folder {}: {detail}", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        detail: String,
    },
    /// The client for a remote origin cannot be made.
    #[error("{location}: {detail}")]
    Client {
        /// The location.
        location: String,
        /// Description of the fault.
        detail: String,
    },
}

/// Creates the bare origin of a location.
///
/// # Errors
/// A folder does not exist, or a client cannot be made.
pub(crate) fn bare(location: &OriginLocation, options: &RemoteOptions) -> Result<Arc<dyn Origin>, LocationError> {
    let client = |detail: String| LocationError::Client { location: location.to_string(), detail };
    Ok(match location {
        OriginLocation::Folder(folder) => disk(folder.clone())?,
        OriginLocation::Http(url) => {
            let allowed = &options.follow_redirects_to;
            let origin = match options.requires_ranges {
                true => HttpOrigin::requiring_ranges(url, options.timeouts, allowed),
                false => HttpOrigin::new(url, options.timeouts, allowed),
            };
            Arc::new(origin.map_err(client)?)
        }
        OriginLocation::Bucket(bucket) => Arc::new(CloudOrigin::new(bucket, options).map_err(client)?),
    })
}

fn disk(folder: PathBuf) -> Result<Arc<dyn Origin>, LocationError> {
    match DiskOrigin::new(&folder) {
        Ok(origin) => Ok(Arc::new(origin)),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => LocationError::NoSuchFolder { folder },
            io::ErrorKind::NotADirectory if folder.is_file() => return file(folder),
            io::ErrorKind::NotADirectory => LocationError::NotAFolder { folder },
            _ => LocationError::Unreadable { folder, detail: error.to_string() },
        }),
    }
}

/// Creates a place of one file and the subtitles beside it.
fn file(file: PathBuf) -> Result<Arc<dyn Origin>, LocationError> {
    let unreadable = |detail: &str| LocationError::Unreadable { folder: file.clone(), detail: detail.to_owned() };
    let name =
        file.file_name().and_then(|name| name.to_str()).ok_or_else(|| unreadable("its name is no UTF-8 text"))?;
    // The folder of `film.mp4` is the empty path.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
    let Some(single) = Single::new(name) else { return Err(LocationError::NamesOthers { file, folder }) };
    let origin = DiskOrigin::new(&folder).map_err(|error| unreadable(&error.to_string()))?;
    Ok(Arc::new(SingleOrigin::new(origin, single)))
}
