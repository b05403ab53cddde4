//! Searches names. Heavy work: it looks at every row.

use super::names::{NameRow, Names};
use millpond_media::{Work, WorkError};
use std::{cmp::Ordering, ops::Range, sync::Arc};

/// Longest text of a search, in characters. The rest of a longer one is ignored.
const LONGEST: usize = 200;
/// Most words of a search. Further ones are ignored.
const MOST_WORDS: usize = 8;
/// Rows for which a step of work is spent at a time.
const STEP: usize = 256;

/// The text of a search. Upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    words: Vec<String>,
    /// The words with single spaces between them.
    whole: String,
}

/// One page of the result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of rows that match.
    pub total: usize,
    /// Rows of the page, the best first.
    pub rows: Vec<NameRow>,
}

/// Rank of a match: the better ones are less.
type Rank = (u8, usize);

impl Query {
    /// Reads the text of a search. `None` where it has no words.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().take(LONGEST).collect();
        let words: Vec<String> = text.to_lowercase().split_whitespace().take(MOST_WORDS).map(str::to_owned).collect();
        let whole = words.join(" ");
        (!words.is_empty()).then_some(Self { words, whole })
    }

    /// Tells whether a path has all words.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let folded = path.to_lowercase();
        self.words.iter().all(|word| folded.contains(word.as_str()))
    }

    /// Returns the rank of a row; `None` where a word is missing.
    fn rank(&self, row: &NameRow) -> Option<Rank> {
        if !self.words.iter().all(|word| row.folded.contains(word.as_str())) {
            return None;
        }
        let name = row.folded.rsplit('/').next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let depth = row.folded.bytes().filter(|byte| *byte == b'/').count();
        let tier = if name == self.whole || stem == self.whole {
            0
        } else if name.starts_with(&self.whole) {
            1
        } else if begins_a_word(name, &self.whole) {
            2
        } else if name.contains(&self.whole) {
            3
        } else if self.words.iter().all(|word| name.contains(word.as_str())) {
            4
        } else {
            5
        };
        Some((tier, depth))
    }
}

/// Whether a text stands in a name behind something that is neither letter nor digit.
fn begins_a_word(name: &str, text: &str) -> bool {
    name.match_indices(text).any(|(at, _)| {
        name.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| !c.is_alphanumeric())
    })
}

/// Searches the names of some places and returns one page of the matches. Rows for which `is_visible` is false are neither
/// returned nor counted.
///
/// # Errors
/// The end of `work`, which is spent for every 256 rows.
pub fn search(
    places: &[Arc<Names>],
    query: &Query,
    page: Range<usize>,
    is_visible: impl Fn(&str) -> bool,
    work: &Work,
) -> Result<Found, WorkError> {
    let mut matches: Vec<(Rank, &NameRow)> = Vec::new();
    for chunk in places.iter().flat_map(|names| &names.chunks) {
        for rows in chunk.chunks(STEP) {
            work.spend(1)?;
            let found = rows.iter().filter_map(|row| Some((query.rank(row)?, row)));
            matches.extend(found.filter(|(_, row)| is_visible(row.path.trim_end_matches('/'))));
        }
    }
    let total = matches.len();
    let end = page.end.min(total);
    // Only what is shown is sorted.
    if end > 0 && end < total {
        matches.select_nth_unstable_by(end - 1, order);
    }
    let shown = matches.get_mut(..end).unwrap_or_default();
    shown.sort_unstable_by(order);
    let rows = shown.get(page.start.min(end)..).unwrap_or_default().iter().map(|(_, row)| (*row).clone()).collect();
    Ok(Found { total, rows })
}

fn order(a: &(Rank, &NameRow), b: &(Rank, &NameRow)) -> Ordering {
    let key = |(rank, row): &(Rank, &NameRow)| (*rank, row.kind as u8);
    (a.0, &a.1.folded).cmp(&(b.0, &b.1.folded)).then_with(|| key(a).cmp(&key(b)))
}
