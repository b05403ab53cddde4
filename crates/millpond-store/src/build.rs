//! The origin of a location: storage, stripes, siblings, retries and hidden names, each a wrapper of the one before.

mod credentials;
mod faults;
mod options;

use std::sync::Arc;

use url::Url;

use crate::location::OriginLocation;
use crate::origin::bare::{LocationError, bare};
use crate::origin::homes::{HomeAddress, HomeOrigin, Homes};
use crate::origin::http::HttpOrigin;
use crate::origin::neighbours::NeighbourOrigin;
use crate::origin::retry::RetryOrigin;
use crate::origin::visible::VisibleOrigin;
use crate::origin::{Origin, Timeouts};
#[cfg(feature = "stripe")]
use crate::stripe::origin::StripedOrigin;

pub use credentials::credentials;
pub use faults::faults;
pub use options::OriginOptions;

/// Creates the origin of a location. Remote ones repeat requests after transient failures.
///
/// # Errors
///
/// A folder does not exist, or a client cannot be made. A remote origin is not asked yet.
pub fn build(location: &OriginLocation, options: &OriginOptions) -> Result<Arc<dyn Origin>, LocationError> {
    build_with_homes(location, options, None)
}

/// As [`build`], with the nodes of a cluster that are asked before a remote origin. Siblings of the place are then not asked.
///
/// # Errors
///
/// As `build`.
pub fn build_with_homes(
    location: &OriginLocation,
    options: &OriginOptions,
    homes: Option<Arc<dyn Homes>>,
) -> Result<Arc<dyn Origin>, LocationError> {
    let origin = with_hidden_names(location, options, homes)?;
    Ok(if options.hidden_files { origin } else { Arc::new(VisibleOrigin::new(origin)) })
}

fn with_hidden_names(
    location: &OriginLocation,
    options: &OriginOptions,
    homes: Option<Arc<dyn Homes>>,
) -> Result<Arc<dyn Origin>, LocationError> {
    let client = |detail: String| LocationError::Client { location: location.to_string(), detail };
    let origin = bare(location, &options.remote)?;
    let origin = match options.striping.stores.as_slice() {
        [] => origin,
        _ => striped(origin, options)?,
    };
    if matches!(location, OriginLocation::Folder(_)) {
        return Ok(origin);
    }
    let origin: Arc<dyn Origin> = match (homes, options.siblings.as_slice()) {
        (Some(homes), _) => {
            let (options, of) = (options.clone(), homes.clone());
            Arc::new(HomeOrigin::new(homes, origin, Box::new(move |at| home(at, &options, of.clone()))))
        }
        (None, []) => origin,
        (None, siblings) => Arc::new(NeighbourOrigin::new(
            siblings.iter().map(|url| sibling(url, options).map_err(client)).collect::<Result<_, _>>()?,
            origin,
            options.sibling_timeout,
        )),
    };
    // Around the siblings: a body that breaks off at one of them is resumed from another one or from the origin.
    Ok(Arc::new(RetryOrigin::new(origin, options.remote.retry)))
}

#[cfg(feature = "stripe")]
fn striped(origin: Arc<dyn Origin>, options: &OriginOptions) -> Result<Arc<dyn Origin>, LocationError> {
    Ok(Arc::new(StripedOrigin::new(origin, &options.striping, &options.remote)?))
}

/// Refuses the stores of striped objects, which this program can't read.
#[cfg(not(feature = "stripe"))]
fn striped(origin: Arc<dyn Origin>, _: &OriginOptions) -> Result<Arc<dyn Origin>, LocationError> {
    let detail = "stripe-over needs a program with the feature \"stripe\"".to_owned();
    Err(LocationError::Client { location: origin.describe(), detail })
}

fn sibling(url: &Url, options: &OriginOptions) -> Result<Arc<dyn Origin>, String> {
    let begin = options.sibling_timeout;
    let timeouts = Timeouts { connect: begin, first_byte: begin, stall: begin.max(options.remote.timeouts.stall / 5) };
    Ok(Arc::new(HttpOrigin::sibling(url, timeouts)?))
}

fn home(at: &HomeAddress, options: &OriginOptions, homes: Arc<dyn Homes>) -> Result<Arc<dyn Origin>, String> {
    let url = Url::parse(&at.url).map_err(|error| error.to_string())?;
    let Timeouts { first_byte, stall, .. } = options.remote.timeouts;
    let timeouts = Timeouts { connect: options.sibling_timeout, first_byte, stall: stall / 2 };
    Ok(Arc::new(HttpOrigin::home(homes.client(timeouts.connect)?, (&url, at.step), timeouts, homes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{BucketPrefix, Cloud};
    use std::path::PathBuf;

    #[test]
    fn buckets_store_objects_whole_through_all_wrappers() {
        let sibling = Url::parse("http://127.0.0.1:1/").unwrap();
        let options = OriginOptions { siblings: vec![sibling], ..OriginOptions::default() };
        let bucket = BucketPrefix { cloud: Cloud::S3, bucket: "bucket".into(), prefix: String::new() };
        for (location, whole, has_neighbours) in [
            (OriginLocation::Bucket(bucket), true, true),
            (OriginLocation::Http(Url::parse("http://127.0.0.1:1/films").unwrap()), false, true),
            (OriginLocation::Folder("/".into()), false, false),
        ] {
            let facts = build(&location, &options).unwrap().facts();
            assert_eq!((facts.stores_whole, facts.has_neighbours), (whole, has_neighbours), "{location}");
        }
    }

    #[test]
    fn folders_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let build = |path: PathBuf| build(&OriginLocation::Folder(path), &OriginOptions::default());
        assert!(build(dir.path().to_owned()).unwrap().facts().is_local);
        assert!(build(file).unwrap().facts().is_local, "one file is a place too");
        let manifest = dir.path().join("film.smil");
        std::fs::write(&manifest, "x").unwrap();
        assert!(build(manifest).unwrap_err().to_string().contains("serve its folder"));
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(build(fifo.clone()).unwrap_err(), LocationError::NotAFolder { folder: fifo });
        let none = dir.path().join("none");
        let error = build(none.clone()).unwrap_err();
        assert!(error.to_string().contains(&none.display().to_string()));
        assert_eq!(error, LocationError::NoSuchFolder { folder: none });
    }
}
