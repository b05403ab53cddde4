//! Ladders of a place: names of live streams that are renditions of one.

use std::collections::HashMap;

/// The ladders of one place. Names are those inside the place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ladders {
    /// Streams of each ladder, by its name.
    streams: HashMap<String, Vec<String>>,
    /// The ladder of each stream.
    of_stream: HashMap<String, String>,
    /// Whether each folder is the ladder of the streams in it.
    are_folders: bool,
}

/// The ladder at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LadderAt {
    /// These streams, by their paths.
    Named(Vec<String>),
    /// All streams that run in a folder, where none has its path.
    Folder,
}

impl Ladders {
    /// Makes ladders by their names and those of their streams. Without any, folders are ladders where streams are pushed.
    pub(crate) fn new(named: impl Iterator<Item = (String, Vec<String>)>, is_pushed: bool) -> Self {
        let streams: HashMap<_, _> = named.collect();
        let each = streams.iter().flat_map(|(name, of)| of.iter().map(|stream| (stream.clone(), name.clone())));
        let of_stream: HashMap<_, _> = each.collect();
        Self { are_folders: is_pushed && streams.is_empty(), streams, of_stream }
    }

    /// Returns the ladder of a name, with the paths of streams below `place`.
    pub(super) fn at(&self, place: &str, name: &str) -> Option<LadderAt> {
        if let Some(streams) = self.streams.get(name) {
            return Some(LadderAt::Named(streams.iter().map(|stream| below(place, stream)).collect()));
        }
        (self.are_folders && !name.is_empty()).then_some(LadderAt::Folder)
    }

    /// Returns the path of the ladder that a stream is one of.
    pub(super) fn of_stream(&self, place: &str, name: &str) -> Option<String> {
        if let Some(ladder) = self.of_stream.get(name) {
            return Some(below(place, ladder));
        }
        name.rsplit_once('/').filter(|_| self.are_folders).map(|(folder, _)| below(place, folder))
    }
}

/// Returns the path of a name in a place, which may have no name.
fn below(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(is_pushed: bool) -> Ladders {
        let streams = ["door/hi", "101"].map(str::to_owned).to_vec();
        Ladders::new([("door".to_owned(), streams)].into_iter(), is_pushed)
    }

    #[test]
    fn ladders_are_named() {
        for is_pushed in [false, true] {
            let ladders = named(is_pushed);
            let expected = LadderAt::Named(vec!["cams/door/hi".to_owned(), "cams/101".to_owned()]);
            assert_eq!(ladders.at("cams", "door"), Some(expected));
            assert_eq!(ladders.at("cams", "gate"), None);
            assert_eq!(ladders.of_stream("cams", "101").as_deref(), Some("cams/door"));
            assert_eq!(ladders.of_stream("", "door/hi").as_deref(), Some("door"));
            assert_eq!(ladders.of_stream("cams", "door/lo"), None);
        }
    }

    #[test]
    fn folders_of_pushed_streams_are_ladders() {
        let ladders = Ladders::new(std::iter::empty(), true);
        assert_eq!(ladders.at("live", "door"), Some(LadderAt::Folder));
        assert_eq!(ladders.at("live", ""), None);
        assert_eq!(ladders.of_stream("live", "door/hi").as_deref(), Some("live/door"));
        assert_eq!(ladders.of_stream("live", "door"), None);
        assert_eq!(Ladders::new(std::iter::empty(), false).at("cams", "door"), None);
    }
}
