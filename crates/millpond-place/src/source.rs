//! Locations of places.

use crate::{LiveLocation, PlaceKind, objects};
use millpond_store::OriginLocation;
use std::fmt;

/// Location of a place. `Display` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum PlaceSource {
    /// Objects, which the store makes an origin of.
    Objects(OriginLocation),
    /// Live streams instead of objects.
    Live(LiveLocation),
}

impl PlaceSource {
    /// Returns its kind.
    pub fn kind(&self) -> &'static PlaceKind {
        match self {
            Self::Objects(location) => objects::kind(location),
            Self::Live(location) => &location.kind().place,
        }
    }
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(location) => location.fmt(f),
            Self::Live(location) => location.fmt(f),
        }
    }
}

impl fmt::Debug for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
