//! Chapters: names of places on the timeline of a file.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most chapters of a file.
pub(crate) const MOST_CHAPTERS: usize = 1000;
/// Most bytes of the titles of a file together. Later chapters keep their times alone.
const MOST_TITLES: usize = 64 << 10;

/// A chapter of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chapter {
    /// Time at which it begins.
    pub start: Duration,
    /// Title in one line; empty where the file has none.
    pub title: String,
}

impl Chapter {
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.title.capacity()
    }
}

/// Returns the first [`MOST_CHAPTERS`] chapters in the order of their times, with titles of one line.
pub(crate) fn in_order(chapters: impl Iterator<Item = Chapter>) -> Vec<Chapter> {
    let mut left = MOST_TITLES;
    let tidy = |chapter: Chapter| {
        let title: String = chapter.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let title = title.trim();
        let fits = title.len() <= left;
        left -= if fits { title.len() } else { left };
        Chapter { start: chapter.start, title: if fits { title.to_owned() } else { String::new() } }
    };
    let mut chapters: Vec<Chapter> = chapters.take(MOST_CHAPTERS).map(tidy).collect();
    chapters.sort_by_key(|chapter| chapter.start);
    chapters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_are_ordered_and_bounded() {
        let chapter = |start: u64, title: &str| Chapter { start: Duration::from_secs(start), title: title.to_owned() };
        let found = in_order([chapter(9, " b\n\u{0}c\r\n"), chapter(0, "a")].into_iter());
        assert_eq!(found, [chapter(0, "a"), chapter(9, "b  c")]);
        assert_eq!(in_order((0..2000).map(|start| chapter(start, ""))).len(), MOST_CHAPTERS);
        let long = "x".repeat(40 << 10);
        let titles: Vec<usize> =
            in_order((0..3).map(|start| chapter(start, &long))).iter().map(|c| c.title.len()).collect();
        assert_eq!(titles, [40 << 10, 0, 0]);
    }
}
