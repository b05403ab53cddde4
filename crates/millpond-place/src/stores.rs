//! Stores of striping groups, as operators write them.

use crate::{PlaceError, PlaceSource, PlaceSpec};
use millpond_store::StripeStore;
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
}
