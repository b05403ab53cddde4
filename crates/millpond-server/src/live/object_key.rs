//! What a path is called in a cluster.

use super::Sources;
use crate::cluster::Start;
use millpond_cluster::ObjectKey;
use millpond_stream::Source;

impl Sources {
    /// Returns the object that a path is assigned by, and its kind. A track's name at the end of the path does not count. `None` for live streams that arrive at one node
    /// alone: streams that are pushed, and transport streams.
    pub(crate) fn object_key(&self, path: &str) -> Option<(ObjectKey, Start)> {
        let path = path.trim_matches('/');
        if self.list(path).is_some() {
            return Some((ObjectKey::new("", path), Start::Live));
        }
        let (_, place, name) = self.places.find(path)?;
        if let Some(live) = self.live.get(place) {
            if !matches!(live.source, Source::Rtsp(_)) {
                return None;
            }
            // The streams of a ladder are cut at common times, so they have one node.
            let ladder = live.ladders.of_stream(place, name);
            let name = ladder.as_deref().and_then(|path| self.places.find(path)).map_or(name, |(_, _, name)| name);
            return Some((ObjectKey::new(place, name), Start::Live));
        }
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let name = if is_track(last) { above } else { name };
        let start =
            if self.is_channel(path) || self.is_channel(path_above(path, last)) { Start::Live } else { Start::Stored };
        Some((ObjectKey::new(place, name), start))
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
