//! Stores of striping groups, and maps of striped objects, as operators write them.

use crate::{PlaceError, PlaceSource, PlaceSpec};
use millpond_store::{MAP_SUFFIX, MapTarget, ObjectPath, OriginLocation, StripeStore};
use url::form_urlencoded;

/// A text that names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreNameError {
    /// Its location is none.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Its location has no objects.
    #[error("store {store}: expected a folder, a web server or a bucket")]
    Kind {
        /// The location.
        store: String,
    },
    /// An option that stores do not have.
    #[error("store {store}: unknown option {option:?}; known are endpoint and region")]
    Option {
        /// The location.
        store: String,
        /// The option.
        option: String,
    },
}

/// Parses a store, `LOCATION` or `NAME=LOCATION`. Without a name, the location without secrets is the name.
///
/// A bucket may have its own endpoint and region behind a question mark: `a=s3://bucket/films?endpoint=http://10.0.0.7:9000`.
///
/// # Errors
///
/// The location is neither a folder, a web server nor a bucket, or has an unknown option.
pub fn stripe_store(text: &str) -> Result<StripeStore, StoreNameError> {
    // The query of a web server is part of its address.
    let is_bucket = ["s3://", "gs://", "az://"].iter().any(|scheme| text.contains(scheme));
    let (location, query) = text.split_once('?').filter(|_| is_bucket).unwrap_or((text, ""));
    let PlaceSpec { name, source } = PlaceSpec::parse(location)?;
    let store = source.to_string();
    let PlaceSource::Objects(location) = source else { return Err(StoreNameError::Kind { store }) };
    let name = if name.is_empty() { store.clone() } else { name };
    let mut parsed = StripeStore::new(name, location);
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        parsed = match &*key {
            "endpoint" => parsed.with_endpoint(value.into_owned()),
            "region" => parsed.with_region(value.into_owned()),
            _ => return Err(StoreNameError::Option { store, option: key.into_owned() }),
        };
    }
    Ok(parsed)
}

/// Parses the location of a map, such as `/films/a.mp4.stripe` or `s3://films/a.mp4.stripe`.
///
/// # Errors
///
/// The text is no location of objects, or its name does not end in `.stripe`.
pub fn map_target(text: &str) -> Result<MapTarget, PlaceError> {
    let wrong = || PlaceError::MapName { name: text.to_owned() };
    let whole = text.strip_suffix(MAP_SUFFIX).ok_or_else(wrong)?;
    let (folder, name) = match whole.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) if !folder.ends_with(':') && !folder.ends_with(":/") => (folder, name),
        Some(_) => return Err(wrong()),
        None => (".", whole),
    };
    let is_local = !text.contains("://");
    let folder = if is_local && !folder.starts_with(['/', '.']) { format!("./{folder}") } else { folder.to_owned() };
    let path = ObjectPath::parse(name).map_err(|_| wrong())?;
    Ok(MapTarget::new(objects(PlaceSpec::parse(&folder)?.source)?, path))
}

fn objects(source: PlaceSource) -> Result<OriginLocation, PlaceError> {
    match source {
        PlaceSource::Objects(location) => Ok(location),
        PlaceSource::Live(live) => Err(PlaceError::Live { place: live.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::RemoteOptions;

    #[test]
    fn stores_have_names_locations_and_options() {
        let store = stripe_store("a=s3://bucket/films?endpoint=http://10.0.0.7:9000&region=eu").unwrap();
        assert_eq!((store.name(), store.location().to_string()), ("a", "s3://bucket/films".into()));
        let bucket = store.remote(&RemoteOptions::default()).bucket;
        assert_eq!(bucket.endpoint.as_deref(), Some("http://10.0.0.7:9000"));
        assert_eq!(bucket.region.as_deref(), Some("eu"));
        let store = stripe_store("https://user:secret@host/units/?token=secret").unwrap();
        assert_eq!(store.name(), "https://host/units");
        assert!(!format!("{store:?}").contains("secret"));
        assert_eq!(stripe_store("/data/1").unwrap().name(), "/data/1");
        assert!(matches!(stripe_store("rtsp://host"), Err(StoreNameError::Kind { .. })));
        assert!(matches!(stripe_store("s3://b?color=red"), Err(StoreNameError::Option { .. })));
        assert!(matches!(stripe_store(""), Err(StoreNameError::Place(_))));
    }

    #[test]
    fn maps_have_a_place_and_a_name() {
        for (text, place) in [
            ("/films/a.mp4.stripe", "/films/a.mp4.stripe"),
            ("a.mp4.stripe", "./a.mp4.stripe"),
            ("x/a.mp4.stripe", "./x/a.mp4.stripe"),
            ("s3://bucket/x/a.mp4.stripe", "s3://bucket/x/a.mp4.stripe"),
        ] {
            assert_eq!(map_target(text).unwrap().to_string(), place);
        }
        for text in ["a.mp4", "s3://a.mp4.stripe", ".stripe", "/films/.stripe", "rtsp://h/a.mp4.stripe"] {
            assert!(map_target(text).is_err(), "{text}");
        }
    }
}
