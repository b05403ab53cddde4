//! The origin of a place: storage, stripes, siblings, retries and hidden names, each a wrapper of the one before.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use super::{OriginOptions, PlaceError, PlaceSource, PlaceSpec};
use crate::origin::cloud::{CloudKind, CloudOrigin};
use crate::origin::disk::DiskOrigin;
use crate::origin::homes::{HomeOrigin, Homes};
use crate::origin::http::HttpOrigin;
use crate::origin::neighbours::NeighbourOrigin;
use crate::origin::retry::{RetryOrigin, RetryPolicy};
use crate::origin::single::{Single, SingleOrigin};
use crate::origin::visible::VisibleOrigin;
use crate::origin::{Origin, Timeouts};
use crate::stripe::origin::StripedOrigin;

/// Creates the origin of a place. Remote ones repeat requests after transient failures.
///
/// # Errors
///
/// A folder does not exist, a client cannot be made, or the place has live streams. A remote origin is not asked yet.
pub fn build(spec: &PlaceSpec, options: &OriginOptions) -> Result<Arc<dyn Origin>, PlaceError> {
    build_with_homes(spec, options, None)
}

/// As [`build`], with the nodes of a cluster that are asked before a remote origin. Siblings of the place are then not asked.
///
/// # Errors
///
/// As `build`.
pub fn build_with_homes(
    spec: &PlaceSpec,
    options: &OriginOptions,
    homes: Option<Arc<dyn Homes>>,
) -> Result<Arc<dyn Origin>, PlaceError> {
    let origin = with_hidden_names(spec, options, homes)?;
    Ok(if options.hidden_files == Some(true) { origin } else { Arc::new(VisibleOrigin::new(origin)) })
}

fn with_hidden_names(
    spec: &PlaceSpec,
    options: &OriginOptions,
    homes: Option<Arc<dyn Homes>>,
) -> Result<Arc<dyn Origin>, PlaceError> {
    let client = |detail: String| PlaceError::Client { place: spec.source.to_string(), detail };
    let origin = match (store(spec, options)?, options.stripe_over.as_slice()) {
        (origin, []) => origin,
        (origin, _) => Arc::new(StripedOrigin::new(origin, options)?),
    };
    if matches!(spec.source, PlaceSource::Folder(_)) {
        return Ok(origin);
    }
    let origin: Arc<dyn Origin> = match (homes, options.siblings.as_slice()) {
        (Some(homes), _) => {
            let options = options.clone();
            Arc::new(HomeOrigin::new(homes, origin, Box::new(move |base| home(base, &options))))
        }
        (None, []) => origin,
        (None, siblings) => Arc::new(NeighbourOrigin::new(
            siblings.iter().map(|url| sibling(url, options).map_err(client)).collect::<Result<_, _>>()?,
            origin,
            options.sibling_timeout,
        )),
    };
    // Around the siblings: a body that breaks off at one of them is resumed from another one or from the origin.
    let policy = RetryPolicy { tries: options.retries.saturating_add(1), base: options.retry_base };
    Ok(Arc::new(RetryOrigin::new(origin, policy)))
}

/// Creates the bare storage of a place.
pub(crate) fn store(spec: &PlaceSpec, options: &OriginOptions) -> Result<Arc<dyn Origin>, PlaceError> {
    let timeouts = options.timeouts();
    let client = |detail: String| PlaceError::Client { place: spec.source.to_string(), detail };
    Ok(match &spec.source {
        PlaceSource::Folder(folder) => disk(folder.clone())?,
        PlaceSource::Http(url) => {
            let allowed = &options.follow_redirects_to;
            Arc::new(HttpOrigin::new(url, timeouts, allowed).map_err(client)?)
        }
        PlaceSource::Rtsp(_) | PlaceSource::Transport(_) | PlaceSource::Publish => {
            return Err(PlaceError::Live { place: spec.source.to_string() });
        }
        PlaceSource::S3 { bucket, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::S3, bucket, prefix, options, timeouts).map_err(client)?)
        }
        PlaceSource::Gs { bucket, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::Gs, bucket, prefix, options, timeouts).map_err(client)?)
        }
        PlaceSource::Az { container, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::Az, container, prefix, options, timeouts).map_err(client)?)
        }
    })
}

fn sibling(url: &Url, options: &OriginOptions) -> Result<Arc<dyn Origin>, String> {
    let begin = options.sibling_timeout;
    let timeouts = Timeouts { connect: begin, first_byte: begin, stall: begin.max(options.stall_timeout / 5) };
    Ok(Arc::new(HttpOrigin::sibling(url, timeouts)?))
}

fn home(base: &str, options: &OriginOptions) -> Result<Arc<dyn Origin>, String> {
    let url = Url::parse(base).map_err(|error| error.to_string())?;
    let stall = options.stall_timeout / 2;
    let timeouts = Timeouts { connect: options.sibling_timeout, first_byte: options.first_byte_timeout, stall };
    Ok(Arc::new(HttpOrigin::home(&url, timeouts)?))
}

fn disk(folder: PathBuf) -> Result<Arc<dyn Origin>, PlaceError> {
    match DiskOrigin::new(&folder) {
        Ok(origin) => Ok(Arc::new(origin)),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => PlaceError::NoSuchFolder { folder },
            io::ErrorKind::NotADirectory if folder.is_file() => return file(folder),
            io::ErrorKind::NotADirectory => PlaceError::NotAFolder { folder },
            _ => PlaceError::Unreadable { folder, detail: error.to_string() },
        }),
    }
}

/// Creates a place of one file and the subtitles beside it.
fn file(file: PathBuf) -> Result<Arc<dyn Origin>, PlaceError> {
    let unreadable = |detail: &str| PlaceError::Unreadable { folder: file.clone(), detail: detail.to_owned() };
    let name =
        file.file_name().and_then(|name| name.to_str()).ok_or_else(|| unreadable("its name is no UTF-8 text"))?;
    if name.to_ascii_lowercase().ends_with(".toml") {
        return Err(PlaceError::Configuration { file });
    }
    // The folder of `film.mp4` is the empty path.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
    let Some(single) = Single::new(name) else { return Err(PlaceError::NamesOthers { file, folder }) };
    let origin = DiskOrigin::new(&folder).map_err(|error| unreadable(&error.to_string()))?;
    Ok(Arc::new(SingleOrigin::new(origin, single)))
}
