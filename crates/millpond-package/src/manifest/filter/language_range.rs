//! Languages as filters name them.

use super::list::Item;
use crate::language;
use std::fmt;

/// Most characters of a range (RFC 5646 4.4.1).
const LONGEST: usize = 35;
/// The range of tracks whose language is unknown.
const UNKNOWN: &str = "und";

/// A basic language range (RFC 4647 2.1): `de` matches `de` and `de-CH`. ISO 639-2 codes stand for their BCP 47 tags.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LanguageRange(String);

impl LanguageRange {
    /// Whether it matches a track's tag, by basic filtering (RFC 4647 3.3.1).
    pub(super) fn matches(&self, tag: Option<&str>) -> bool {
        let tag = tag.unwrap_or(UNKNOWN);
        let Some((begin, rest)) = tag.split_at_checked(self.0.len()) else { return false };
        begin.eq_ignore_ascii_case(&self.0) && (rest.is_empty() || rest.starts_with('-'))
    }
}

impl Item for LanguageRange {
    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case(UNKNOWN) {
            return Some(Self(UNKNOWN.to_owned()));
        }
        let tag = language::tag(text).filter(|tag| tag.len() <= LONGEST)?;
        // Longer words are names of languages, which match nothing.
        let is_code = tag.split('-').next().is_some_and(|primary| matches!(primary.len(), 2 | 3));
        is_code.then_some(Self(tag))
    }

    fn covers(&self, other: &Self) -> bool {
        self.matches(Some(&other.0))
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }
}

impl fmt::Display for LanguageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
