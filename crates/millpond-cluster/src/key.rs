//! Keys of objects.

use super::hash;
use std::fmt;

/// The object of an assignment: the path of an asset, stream or object in its place. Versions do not count, so that a new version has the
/// dispenser of the old one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    place: String,
    path: String,
    hash: u64,
}

impl ObjectKey {
    /// The key of `path` in `place`. Slashes at the ends of the path do not count.
    pub fn new(place: &str, path: &str) -> Self {
        let path = path.trim_matches('/');
        // No place has a zero byte in its name.
        let hash = hash::bytes(format!("{place}\0{path}").as_bytes());
        Self { place: place.into(), path: path.into(), hash }
    }

    /// Its place.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Its hash: the same on all machines and in all versions.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place, self.path)
    }
}
