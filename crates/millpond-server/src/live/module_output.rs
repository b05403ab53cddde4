//! Streams that the outputs of modules are published as.

use super::Sources;
use millpond_place::LiveReach;
use millpond_stream::{LiveRequest, Source};
use std::sync::Arc;

/// Why nothing can be published at a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpublishablePath {
    /// A channel has the path.
    #[error("it is the path of a channel")]
    Channel,
    /// No place has the path.
    #[error("no place has this path")]
    NoPlace,
    /// The place is not one of publishers.
    #[error("the place {0:?} takes no publishers")]
    Place(Arc<str>),
    /// The path can't be the name of a stream.
    #[error("no stream can have this name")]
    Name,
}

impl Sources {
    /// Returns the stream that the output of a module at `path` is published as.
    ///
    /// # Errors
    /// Nothing can be published there.
    pub(crate) fn module_output(&self, path: &str) -> Result<LiveRequest, UnpublishablePath> {
        let path = self.find(path);
        if path.list().is_some() {
            return Err(UnpublishablePath::Channel);
        }
        let (place, _) = self.place_of(&path).ok_or(UnpublishablePath::NoPlace)?;
        let stream = self.live(&path).map_err(|_| UnpublishablePath::Name)?;
        let stream = stream.filter(|stream| stream.source == Source::Published);
        stream.ok_or_else(|| UnpublishablePath::Place(place.clone()))
    }

    /// Returns the names of the places of publishers, in alphabetical order.
    pub(crate) fn places_of_publishers(&self) -> Vec<Arc<str>> {
        let places = self.live.iter().filter(|(_, place)| place.kind.reach == LiveReach::Pushed);
        let mut names: Vec<_> = places.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }
}
