//! Names of places in paths.

use std::sync::Arc;

/// Names of all places, in the order of the configuration. A single place may have the empty name: then paths begin
/// without one.
#[derive(Clone, Debug)]
pub struct Places(Arc<[Arc<str>]>);

impl Places {
    /// Makes the list of these names.
    pub fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Returns the place that a path begins with: its index, its name, and the path inside it.
    #[must_use]
    pub fn find<'a>(&self, path: &'a str) -> Option<(usize, &Arc<str>, &'a str)> {
        let path = path.strip_prefix('/').unwrap_or(path);
        match &*self.0 {
            [only] if only.is_empty() => Some((0, only, path)),
            places => {
                let (name, rest) = path.split_once('/').unwrap_or((path, ""));
                let index = places.iter().position(|place| **place == *name)?;
                Some((index, &places[index], rest))
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
