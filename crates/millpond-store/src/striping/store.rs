//! The stores of a striping group.

use std::fmt;

use crate::location::OriginLocation;
use crate::origin::RemoteOptions;

/// A store of a striping group: the name that maps have for it, and its location.
#[derive(Clone, PartialEq, Eq)]
pub struct StripeStore {
    name: String,
    location: OriginLocation,
    endpoint: Option<String>,
    region: Option<String>,
}

impl StripeStore {
    /// Creates a store.
    pub fn new(name: impl Into<String>, location: OriginLocation) -> Self {
        Self { name: name.into(), location, endpoint: None, region: None }
    }

    /// Gives the store's bucket an endpoint of its own.
    #[must_use]
    pub fn with_endpoint(self, endpoint: String) -> Self {
        Self { endpoint: Some(endpoint), ..self }
    }

    /// Gives the store's bucket a region of its own.
    #[must_use]
    pub fn with_region(self, region: String) -> Self {
        Self { region: Some(region), ..self }
    }

    /// Returns the name that maps have for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its location.
    pub fn location(&self) -> &OriginLocation {
        &self.location
    }

    /// Returns the options of its place, with its own endpoint and region.
    pub fn remote(&self, options: &RemoteOptions) -> RemoteOptions {
        let mut own = options.clone();
        own.bucket.endpoint = self.endpoint.clone().or(own.bucket.endpoint);
        own.bucket.region = self.region.clone().or(own.bucket.region);
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
        f.debug_struct("StripeStore")
            .field("name", &self.name)
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}
