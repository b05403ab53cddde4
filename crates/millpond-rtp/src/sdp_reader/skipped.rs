//! Sections that are not received.

use super::MediaDescription;
use std::fmt;

/// A section of a description that is no stream which can be received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedSection {
    /// Number of the section, from 0.
    pub section: usize,
    /// `video`, `audio`, ...
    pub media: String,
    /// URL of requests for it. Publishers set it up all the same.
    pub control: String,
    /// Reason for skipping the section: the value that it has, and the expected value.
    pub why: String,
}

impl SkippedSection {
    /// A stream that the client of a server may send.
    pub(super) fn back_channel(stream: MediaDescription) -> Self {
        let MediaDescription { media, control, section, .. } = stream;
        Self { section, media, control, why: "a=sendonly: the client sends it".to_owned() }
    }
}

impl fmt::Display for SkippedSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {} ({}): {}", self.section, self.media, self.why)
    }
}
