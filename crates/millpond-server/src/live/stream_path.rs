//! The path of a stream, and the place that it lies in.

use std::ops::Deref;

/// The path of a live stream or channel, without slashes at its ends. Its place is found once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPath {
    path: Box<str>,
    /// Index of the place whose settings it has, where it is a list of assets.
    list: Option<usize>,
    place: Option<PlaceOffset>,
}

/// The place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlaceOffset {
    /// Index of the place.
    pub(crate) index: usize,
    /// Offset of the name inside the place.
    pub(crate) inside: usize,
}

impl StreamPath {
    /// Names a path. Slashes at its ends are removed; `place` is that of `path` as it is given.
    pub(crate) fn new(path: &str, list: Option<usize>, place: Option<PlaceOffset>) -> Self {
        let begun = path.trim_start_matches('/');
        let (before, path) = (path.len() - begun.len(), begun.trim_end_matches('/'));
        let place =
            place.map(|place| PlaceOffset { inside: place.inside.saturating_sub(before).min(path.len()), ..place });
        Self { path: path.into(), list, place }
    }

    /// Returns the index of the place whose settings it has, where it is a list of assets.
    pub(crate) fn list(&self) -> Option<usize> {
        self.list
    }

    /// Returns the index of its place, and its name in there.
    pub(crate) fn place(&self) -> Option<(usize, &str)> {
        let PlaceOffset { index, inside } = self.place?;
        Some((index, self.path.get(inside..)?))
    }
}

impl Deref for StreamPath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lie_behind_their_places() {
        for (path, inside, stream, name) in [
            ("/cams/door", 6, "cams/door", "door"),
            ("cams/a/b", 5, "cams/a/b", "a/b"),
            ("/cams", 5, "cams", ""),
            ("/cams/", 6, "cams", ""),
            ("/door", 1, "door", "door"),
            ("//door/", 1, "door", "door"),
        ] {
            let at = StreamPath::new(path, None, Some(PlaceOffset { index: 3, inside }));
            assert_eq!((&*at, at.place()), (stream, Some((3, name))), "{path}");
        }
    }
}
