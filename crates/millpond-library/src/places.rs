//! The names that places are reached by.

use std::sync::Arc;

/// All places of a server, in the order of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Places(Arc<[Arc<str>]>);

impl Places {
    pub(crate) fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The place that a path begins with, its number, and the path inside it.
    pub(crate) fn find<'a>(&self, path: &'a str) -> Option<(usize, &Arc<str>, &'a str)> {
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
    pub(crate) fn are_named(&self) -> bool {
        !matches!(&*self.0, [only] if only.is_empty())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }
}
