//! First and last viewers of live streams, found by comparing counts.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use std::{collections::BTreeMap, time::Duration};

/// The streams that have viewers.
#[derive(Debug, Default)]
pub(crate) struct ViewerWatch {
    /// Times at which the first viewers came, by the paths of streams.
    watched: BTreeMap<String, Duration>,
}

/// A change of a stream's audience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ViewerChange {
    /// The first viewer has come.
    Began {
        /// Path of the stream.
        path: String,
        /// Viewers that there are now.
        viewers: usize,
    },
    /// The last viewer has left.
    Ended {
        /// Path of the stream.
        path: String,
        /// Time since the first viewer came.
        lasted: Duration,
    },
}

impl ViewerWatch {
    /// Takes the viewers of each stream at a time. Streams without viewers may be left out. Returns the changes since the last call.
    pub(crate) fn look(&mut self, now: Duration, counts: &BTreeMap<String, usize>) -> Vec<ViewerChange> {
        let is_watched = |path: &str| counts.get(path).is_some_and(|count| *count > 0);
        let ended = self.watched.extract_if(.., |path, _| !is_watched(path));
        let mut changes: Vec<_> =
            ended.map(|(path, since)| ViewerChange::Ended { path, lasted: now.saturating_sub(since) }).collect();
        for (path, viewers) in counts.iter().filter(|(_, count)| **count > 0) {
            if !self.watched.contains_key(path) {
                self.watched.insert(path.clone(), now);
                changes.push(ViewerChange::Began { path: path.clone(), viewers: *viewers });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_viewer_are_told() {
        let mut watch = ViewerWatch::default();
        let mut look = |seconds: u64, counts: &[(&str, usize)]| {
            let counts = counts.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
            watch.look(Duration::from_secs(seconds), &counts)
        };
        let began = |path: &str, viewers| ViewerChange::Began { path: path.to_owned(), viewers };
        let ended =
            |path: &str, seconds| ViewerChange::Ended { path: path.to_owned(), lasted: Duration::from_secs(seconds) };
        assert_eq!(look(0, &[("a", 0)]), []);
        assert_eq!(look(1, &[("a", 2), ("b", 1)]), [began("a", 2), began("b", 1)]);
        assert_eq!(look(2, &[("a", 1), ("b", 5)]), []);
        assert_eq!(look(4, &[("b", 5), ("c", 1)]), [ended("a", 3), began("c", 1)]);
        assert_eq!(look(5, &[("a", 1), ("b", 0)]), [ended("b", 4), ended("c", 1), began("a", 1)]);
    }
}
