//! Ranges of objects in order, and their versions.

use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Default;

use crate::freshness::Permission;
use crate::path::ObjectPath;
use crate::reading::object::Object;
use crate::version::Version;

/// An object that is joined with others, in the version that it had. It is not held open.
#[derive(Clone, Debug)]
pub struct JoinedSource {
    path: ObjectPath,
    version: Version,
    len: u64,
    permission: Permission,
}

impl JoinedSource {
    /// Notes an open object.
    #[must_use]
    pub fn of(object: &Object) -> Self {
        Self {
            path: object.path().clone(),
            version: object.meta().version.clone(),
            len: object.meta().len,
            permission: object.permission(),
        }
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.len
    }
}

/// A range of a source, and its place in the joined object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Offset in the joined object.
    pub(super) at: u64,
    pub(super) path: ObjectPath,
    pub(super) version: Version,
    /// Range of the source.
    pub(super) range: Range<u64>,
}

impl Part {
    /// Returns the offset in the joined object behind the part.
    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(self.range.end - self.range.start)
    }
}

/// Ranges of objects of one place, in order: the content of a joined object.
#[derive(Clone, Default)]
pub struct JoinedRanges {
    parts: Vec<Part>,
    /// Offsets of all ranges in the joined object. Ranges that follow one another in their source are one part.
    starts: Vec<u64>,
    len: u64,
    permission: Permission,
    hash: Xxh3Default,
}

impl JoinedRanges {
    /// Adds a range of a source behind the others. It is cut at the end of the source. An empty one changes nothing.
    pub fn push(&mut self, source: &JoinedSource, range: Range<u64>) {
        let range = range.start..range.end.min(source.len);
        if range.is_empty() {
            return;
        }
        for text in [source.path.as_str(), source.version.as_str()] {
            self.hash.update(&(text.len() as u64).to_le_bytes());
            self.hash.update(text.as_bytes());
        }
        for number in [source.len, range.start, range.end] {
            self.hash.update(&number.to_le_bytes());
        }
        self.permission = self.permission.strictest(source.permission);
        self.starts.push(self.len);
        let at = self.len;
        self.len = self.len.saturating_add(range.end - range.start);
        if let Some(last) = self.parts.last_mut()
            && (&last.path, &last.version, last.range.end) == (&source.path, &source.version, range.start)
        {
            last.range.end = range.end;
            return;
        }
        self.parts.push(Part { at, path: source.path.clone(), version: source.version.clone(), range });
    }

    /// Returns the length of all ranges in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.len
    }

    /// Returns the offset of each range in the joined object.
    #[must_use]
    pub fn starts(&self) -> Arc<[u64]> {
        Arc::from(&self.starts[..])
    }

    /// Returns the bytes of memory that the joined object takes for them.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let texts = self.parts.iter().map(|part| part.path.as_str().len() + part.version.as_str().len());
        (self.parts.len() * size_of::<Part>() + texts.sum::<usize>()) as u64
    }

    /// Returns the version of the joined object. It covers those of all sources.
    pub(super) fn version(&self) -> Version {
        Version::new(&format!("joined-{:032x}", self.hash.digest128()))
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// Returns the strictest permission of all sources.
    pub(super) fn permission(&self) -> Permission {
        self.permission
    }

    pub(super) fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}
