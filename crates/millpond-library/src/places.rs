//! Names of places in paths.

use std::sync::Arc;

/// Names of all places, in the order of the configuration. A single place may have the empty name: then paths begin
/// without one.
#[derive(Clone, Debug)]
pub struct Places(Arc<[Arc<str>]>);

/// A place, and a path inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacePath<'a> {
    /// Index of the place.
    pub index: usize,
    /// Name of the place.
    pub name: &'a Arc<str>,
    /// Path inside the place.
    pub inside: &'a str,
}

impl Places {
    /// Makes the list of these names.
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Returns the place that a path begins with: its index, its name, and the path inside it.
    #[must_use]
    pub fn find<'a>(&'a self, path: &'a str) -> Option<PlacePath<'a>> {
        let path = path.strip_prefix('/').unwrap_or(path);
        match &*self.0 {
            [only] if only.is_empty() => Some(PlacePath { index: 0, name: only, inside: path }),
            places => {
                let (name, rest) = path.split_once('/').unwrap_or((path, ""));
                let index = places.iter().position(|place| **place == *name)?;
                Some(PlacePath { index, name: &places[index], inside: rest })
            }
        }
    }

    /// Whether paths begin with the name of a place.
    #[must_use]
    pub fn are_named(&self) -> bool {
        !matches!(&*self.0, [only] if only.is_empty())
    }

    /// Iterates over the names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }
}
