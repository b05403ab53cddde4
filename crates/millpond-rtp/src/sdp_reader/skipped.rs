//! Sections of a description that state no stream.

use std::fmt;

/// A section without a payload format that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedSection {
    /// Number of the section, from 0.
    pub section: usize,
    /// `video`, `audio`, ...
    pub media: String,
    /// The line that was found, and what is expected.
    pub why: String,
}

impl fmt::Display for SkippedSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {} ({}): {}", self.section, self.media, self.why)
    }
}
