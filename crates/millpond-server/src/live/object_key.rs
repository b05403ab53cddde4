//! What a path is called in a cluster.

use super::{Sources, StreamPath};
use crate::cluster::{HeldStreams, Start};
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
    /// Returns the live streams that run at this node now.
    pub(crate) fn held(&self) -> HeldStreams {
        let mut held = HeldStreams::default();
        for stream in self.manager().streams() {
            // A node keeps a stream while it opens the source again: two that take it from each other would never ask the source.
            let is_held = match stream.state {
                StreamState::Running { .. } => true,
                StreamState::Lost { .. } => stream.server.is_some(),
                _ => false,
            };
            if !is_held {
                continue;
            }
            let path = self.find(&stream.path);
            let Some((key, start)) = self.object_key(&path) else { continue };
            let server = stream.server.as_deref();
            match (start, server) {
                // Those that come from another node have a server. Streams of a ladder have its name too.
                (Start::Pushed, None) => {
                    let exact = self.place_of(&path).map(|(place, name)| ObjectKey::new(place, name));
                    held.pushed.extend([Some(key), exact].into_iter().flatten().map(|key| key.to_string()));
                }
                (Start::Live, server) if !server.is_some_and(|server| self.is_at_node(server)) => {
                    held.asked.push(key.to_string());
                }
                _ => {}
            }
        }
        for names in [&mut held.pushed, &mut held.asked] {
            names.sort_unstable();
            names.dedup();
        }
        held
    }

    /// Whether a stream that runs here comes from another node.
    pub(crate) fn is_relayed(&self, path: &str) -> bool {
        let (streams, path) = (self.manager().streams(), self.find(path));
        let stream = streams.iter().find(|stream| *stream.path == *path);
        stream.and_then(|stream| stream.server.as_deref()).is_some_and(|server| self.is_at_node(server))
    }

    fn is_at_node(&self, server: &str) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.is_at_node(server))
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
