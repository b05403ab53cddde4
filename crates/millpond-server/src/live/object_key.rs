//! What a path is called in a cluster.

use super::{Sources, StreamPath};
use crate::cluster::Start;
use millpond_cluster::ObjectKey;
use millpond_stream::StreamState;

impl Sources {
    /// Returns the object that a path is assigned by, and its kind. A track's name at the end of the path does not count. `None` where the path
    /// has no place.
    pub(crate) fn object_key(&self, path: &StreamPath) -> Option<(ObjectKey, Start)> {
        if path.list().is_some() {
            return Some((ObjectKey::new("", path), Start::Live));
        }
        let (place, name) = self.place_of(path)?;
        if let Some(live) = self.live.get(place) {
            let is_pushed = !live.kind.is_pulled();
            let exact = ObjectKey::new(place, name);
            if is_pushed && self.cluster.as_ref().is_some_and(|cluster| cluster.has_pushed(&exact)) {
                return Some((exact, Start::Pushed));
            }
            // The streams of a ladder are cut at common times, so they have one node.
            let ladder = live.ladders.of_stream(place, name);
            let name = ladder.as_deref().and_then(|path| self.places.find(path)).map_or(name, |found| found.inside);
            return Some((ObjectKey::new(place, name), if is_pushed { Start::Pushed } else { Start::Live }));
        }
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let name = if is_track(last) { above } else { name };
        let start =
            if self.is_channel(path) || self.is_channel(path_above(path, last)) { Start::Live } else { Start::Stored };
        Some((ObjectKey::new(place, name), start))
    }
}

impl Sources {
    /// Returns the keys of the streams that are pushed to this node now, as texts.
    pub(crate) fn pushed(&self) -> Vec<String> {
        let running = self.manager().streams().into_iter();
        // Those that come from another node have a server.
        let running =
            running.filter(|stream| matches!(stream.state, StreamState::Running { .. }) && stream.server.is_none());
        // Streams of a ladder have its name too.
        let names = |path: &str| {
            let path = self.find(path);
            let (key, start) = self.object_key(&path)?;
            let (place, name) = self.place_of(&path)?;
            (start == Start::Pushed).then(|| [key, ObjectKey::new(place, name)].map(|key| key.to_string()))
        };
        let mut all: Vec<_> = running.filter_map(|stream| names(&stream.path)).flatten().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The path without its last part.
fn path_above<'a>(path: &'a str, last: &str) -> &'a str {
    path.strip_suffix(last).unwrap_or(path).trim_end_matches('/')
}

/// `v1`, `a2`: a letter for the kind and a number from 1.
fn is_track(name: &str) -> bool {
    let number = name.strip_prefix(['v', 'a', 's']).filter(|number| !number.starts_with('0'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
