//! Faults of a session description, whether it is an offer or an answer.

use super::FingerprintError;

/// Longest part of a description in an error, in characters.
const MOST_SHOWN: usize = 100;

/// A fault that offers and answers have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The description is too long: count, unit, and the greatest count allowed.
    TooLong { found: usize, what: &'static str, most: usize },
    /// A line is unreadable.
    Line { line: usize, found: String, expected: &'static str },
    /// The section of a line lacks an attribute.
    Missing { name: &'static str, line: usize, media: String, expected: &'static str },
    /// No certificate is known.
    Fingerprint { line: usize, why: FingerprintError },
    /// The sections have a transport each.
    NoGroup { sections: usize },
}

impl Fault {
    pub(super) fn line(line: usize, found: &str, expected: &'static str) -> Self {
        Self::Line { line, found: shown(found), expected }
    }
}

/// The beginning of a text, for an error.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

pub(super) fn at_most(found: usize, what: &'static str, most: usize) -> Result<(), Fault> {
    if found > most { Err(Fault::TooLong { found, what, most }) } else { Ok(()) }
}
