//! The stores of a striping group, as an operator writes them.

use std::fmt;

use crate::place::{OriginOptions, PlaceError, PlaceSource, PlaceSpec};

/// A store of a striping group: the name that maps have for it, and its location.
///
/// A bucket may have its own endpoint and region behind a question mark: `a=s3://bucket/films?endpoint=http://10.0.0.7:9000`.
#[derive(Clone, PartialEq, Eq)]
pub struct StripeStore {
    name: String,
    source: PlaceSource,
    endpoint: Option<String>,
    region: Option<String>,
}

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

impl StripeStore {
    /// Parses `LOCATION` or `NAME=LOCATION`. Without a name, the location without secrets is the name.
    ///
    /// # Errors
    ///
    /// The location is neither a folder, a web server nor a bucket, or has an unknown option.
    pub fn parse(text: &str) -> Result<Self, StoreNameError> {
        // The query of a web server is part of its address.
        let is_bucket = ["s3://", "gs://", "az://"].iter().any(|scheme| text.contains(scheme));
        let (location, query) = text.split_once('?').filter(|_| is_bucket).unwrap_or((text, ""));
        let PlaceSpec { name, source } = PlaceSpec::parse(location)?;
        let store = source.to_string();
        if matches!(source, PlaceSource::Rtsp(_) | PlaceSource::Publish | PlaceSource::Transport(_)) {
            return Err(StoreNameError::Kind { store });
        }
        let name = if name.is_empty() { store.clone() } else { name };
        let mut parsed = Self { name, source, endpoint: None, region: None };
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "endpoint" => parsed.endpoint = Some(value.into_owned()),
                "region" => parsed.region = Some(value.into_owned()),
                _ => return Err(StoreNameError::Option { store, option: key.into_owned() }),
            }
        }
        Ok(parsed)
    }

    /// Returns the name that maps have for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn source(&self) -> &PlaceSource {
        &self.source
    }

    /// Returns the options of its place, with its own endpoint and region. Units have no siblings, and no stripes.
    pub(crate) fn options(&self, options: &OriginOptions) -> OriginOptions {
        let mut own = OriginOptions { siblings: Vec::new(), stripe_over: Vec::new(), ..options.clone() };
        if let Some(endpoint) = &self.endpoint {
            own.s3_endpoint = Some(endpoint.clone());
            own.gs_endpoint = Some(endpoint.clone());
            own.az_endpoint = Some(endpoint.clone());
        }
        own.s3_region = self.region.clone().or(own.s3_region);
        own
    }
}

impl fmt::Display for StripeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for StripeStore {
    /// Omits the endpoint, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeStore").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_have_names_locations_and_options() {
        let store = StripeStore::parse("a=s3://bucket/films?endpoint=http://10.0.0.7:9000&region=eu").unwrap();
        assert_eq!((store.name(), store.source().to_string()), ("a", "s3://bucket/films".into()));
        let options = store.options(&OriginOptions::default());
        assert_eq!(options.s3_endpoint.as_deref(), Some("http://10.0.0.7:9000"));
        assert_eq!(options.s3_region.as_deref(), Some("eu"));
        let store = StripeStore::parse("https://user:secret@host/units/?token=secret").unwrap();
        assert_eq!(store.name(), "https://host/units");
        assert!(!format!("{store:?}").contains("secret"));
        assert_eq!(StripeStore::parse("/data/1").unwrap().name(), "/data/1");
        assert!(matches!(StripeStore::parse("rtsp://host"), Err(StoreNameError::Kind { .. })));
        assert!(matches!(StripeStore::parse("s3://b?color=red"), Err(StoreNameError::Option { .. })));
        assert!(matches!(StripeStore::parse(""), Err(StoreNameError::Place(_))));
    }
}
