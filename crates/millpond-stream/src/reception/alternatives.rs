//! Sources of one stream on several servers.

use crate::reception::{RtspSource, StoredPolicy};
use std::fmt;

/// Sources of one stream on one or more servers, all with the same transport and policies.
#[derive(Clone, PartialEq, Eq)]
pub struct Alternatives {
    first: RtspSource,
    others: Vec<RtspSource>,
}

impl Alternatives {
    /// Creates the alternatives to a source. The first is preferred where servers are equal.
    #[must_use]
    pub fn new(first: RtspSource, others: Vec<RtspSource>) -> Self {
        Self { first, others }
    }

    /// Returns the sources of a name below each one: see [`RtspSource::join`].
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self { first: self.first.join(name), others: self.others.iter().map(|source| source.join(name)).collect() }
    }

    /// Returns the sources with this treatment of stored titles.
    pub(crate) fn with_titles(mut self, stored: StoredPolicy) -> Self {
        self.first.policies.stored = stored;
        self.others.iter_mut().for_each(|source| source.policies.stored = stored);
        self
    }

    /// The preferred source.
    pub(crate) fn first(&self) -> &RtspSource {
        &self.first
    }

    /// All sources, the preferred one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RtspSource> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<RtspSource> for Alternatives {
    fn from(source: RtspSource) -> Self {
        Self::new(source, Vec::new())
    }
}

/// The addresses, without credentials.
impl fmt::Display for Alternatives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.others.iter().try_for_each(|source| write!(f, ",{source}"))
    }
}

impl fmt::Debug for Alternatives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
