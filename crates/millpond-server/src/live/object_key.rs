//! What a path is called in a cluster.

use super::Sources;
use crate::cluster::Start;
use millpond_cluster::ObjectKey;
use millpond_stream::{Source, live::StreamState};

impl Sources {
    /// Returns the object that a path is assigned by, and its kind. A track's name at the end of the path does not count. `None` where the path
    /// has no place.
    pub(crate) fn object_key(&self, path: &str) -> Option<(ObjectKey, Start)> {
        let path = path.trim_matches('/');
        if self.list(path).is_some() {
            return Some((ObjectKey::new("", path), Start::Live));
        }
        let (_, place, name) = self.places.find(path)?;
        if let Some(live) = self.live.get(place) {
            let is_pushed = !matches!(live.source, Source::Rtsp(_));
            // The streams of a ladder are cut at common times, so they have one node.
            let ladder = live.ladders.of_stream(place, name);
            let name = ladder.as_deref().and_then(|path| self.places.find(path)).map_or(name, |(_, _, name)| name);
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
        let running = running.filter(|stream| matches!(stream.state, StreamState::Running { .. }));
        let key = |path: &str| self.object_key(path).filter(|(_, start)| *start == Start::Pushed);
        let mut all: Vec<_> = running.filter_map(|stream| Some(key(&stream.path)?.0.to_string())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Tells whether a place has streams that are pushed, or arrive as transport streams.
    pub(crate) fn has_pushed(&self) -> bool {
        self.live.values().any(|live| !matches!(live.source, Source::Rtsp(_)))
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
