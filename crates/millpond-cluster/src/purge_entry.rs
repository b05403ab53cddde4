//! A purge as JSON in etcd. Fields that this version does not know are skipped.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most bytes of an entry.
const LONGEST: usize = 16 << 10;
/// Most bytes of the name of a place, and of a path or pattern.
const LONGEST_TEXT: usize = 2048;

/// The objects of a place whose cached bytes are purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgedObjects {
    /// An object, or all below a folder. Empty: the whole place.
    Path(String),
    /// All whose paths match a pattern.
    Pattern(String),
    /// All that carry a tag.
    Tag(String),
}

impl PurgedObjects {
    /// Name of the field in an entry, and its text.
    fn field(&self) -> (&'static str, &String) {
        match self {
            Self::Path(path) => ("path", path),
            Self::Pattern(pattern) => ("pattern", pattern),
            Self::Tag(tag) => ("tag", tag),
        }
    }

    /// The path, the pattern or the tag.
    pub fn text(&self) -> &str {
        self.field().1
    }
}

/// A purge of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeEntry {
    /// The place; `None` for all places, which only a tag may have.
    pub place: Option<String>,
    /// Its objects.
    pub objects: PurgedObjects,
    /// Whether bytes stay if their version is the same when they are needed next.
    pub is_soft: bool,
    /// Time at which it was asked for, since the Unix epoch, in whole seconds.
    pub at: Duration,
}

/// Why a value is no purge.
#[derive(Debug, thiserror::Error)]
pub enum PurgeEntryError {
    /// More bytes than an entry or one of its texts may have.
    #[error("{field} of {found} bytes: expected at most {most}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Its bytes.
        found: usize,
        /// Most bytes.
        most: usize,
    },
    /// No JSON, or a field of another type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// None of the fields that choose objects, or several of them.
    #[error("expected a path, a pattern or a tag")]
    Objects,
    /// A path or a pattern that no place has.
    #[error("expected a place beside the {0}")]
    Place(&'static str),
}

#[derive(Serialize, Deserialize)]
struct WirePurge {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    /// Versions without tags refuse an entry that has neither of the others: their nodes empty their caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(default)]
    soft: bool,
    /// Seconds since 1970.
    #[serde(default)]
    at: u64,
}

impl PurgeEntry {
    /// The purge as JSON.
    ///
    /// # Errors
    /// A text that is too long.
    ///
    /// # Panics
    /// Never: a purge has no maps and no numbers that JSON lacks.
    pub fn to_json(&self) -> Result<String, PurgeEntryError> {
        self.check()?;
        let (path, pattern, tag) = match self.objects.clone() {
            PurgedObjects::Path(path) => (Some(path), None, None),
            PurgedObjects::Pattern(pattern) => (None, Some(pattern), None),
            PurgedObjects::Tag(tag) => (None, None, Some(tag)),
        };
        let (place, at) = (self.place.clone(), self.at.as_secs());
        let wire = WirePurge { place, path, pattern, tag, soft: self.is_soft, at };
        Ok(serde_json::to_string(&wire).expect("plain structs are JSON"))
    }

    /// Reads a purge.
    ///
    /// # Errors
    /// A value that is too long, no JSON, or without the objects.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PurgeEntryError> {
        bounded("entry", bytes.len(), LONGEST)?;
        let WirePurge { place, path, pattern, tag, soft, at } = serde_json::from_slice(bytes)?;
        let objects = match (path, pattern, tag) {
            (Some(path), None, None) => PurgedObjects::Path(path),
            (None, Some(pattern), None) => PurgedObjects::Pattern(pattern),
            (None, None, Some(tag)) => PurgedObjects::Tag(tag),
            _ => return Err(PurgeEntryError::Objects),
        };
        let entry = Self { place, objects, is_soft: soft, at: Duration::from_secs(at) };
        entry.check()?;
        Ok(entry)
    }

    fn check(&self) -> Result<(), PurgeEntryError> {
        let (field, text) = self.objects.field();
        match &self.place {
            Some(place) => bounded("place", place.len(), LONGEST_TEXT)?,
            None if matches!(self.objects, PurgedObjects::Tag(_)) => {}
            None => return Err(PurgeEntryError::Place(field)),
        }
        bounded(field, text.len(), LONGEST_TEXT)
    }
}

fn bounded(field: &'static str, found: usize, most: usize) -> Result<(), PurgeEntryError> {
    if found <= most { Ok(()) } else { Err(PurgeEntryError::TooLong { field, found, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_name_the_field_and_what_is_new_is_skipped() {
        let entry = PurgeEntry::from_json(br#"{"place":"p","path":"","colour":"red"}"#).unwrap();
        assert_eq!((entry.objects, entry.is_soft), (PurgedObjects::Path(String::new()), false));
        let long = "x".repeat(LONGEST_TEXT + 1);
        for (text, told) in [
            (r#"{"place":"p"}"#.to_owned(), "expected a path, a pattern or a tag"),
            (r#"{"place":"p","path":"a","pattern":"b"}"#.to_owned(), "expected a path, a pattern or a tag"),
            (r#"{"place":"p","path":"a","tag":"b"}"#.to_owned(), "expected a path, a pattern or a tag"),
            (r#"{"path":"a"}"#.to_owned(), "expected a place beside the path"),
            (format!(r#"{{"tag":"{long}"}}"#), "tag of 2049 bytes"),
            (format!(r#"{{"place":"p","pattern":"{long}"}}"#), "pattern of 2049 bytes: expected at most 2048"),
            (format!(r#"{{"place":"{long}","path":""}}"#), "place of 2049 bytes"),
            (" ".repeat(LONGEST + 1), "entry of 16385 bytes"),
        ] {
            let error = PurgeEntry::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(told), "{text:.80}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            place in proptest::option::of(".{0,20}"), text in ".{0,40}", kind in 0..3_u8, is_soft: bool, at in 0_u64..1 << 40
        ) {
            let objects = [PurgedObjects::Path, PurgedObjects::Pattern, PurgedObjects::Tag][usize::from(kind)](text);
            let place = place.or_else(|| (kind < 2).then(String::new));
            let entry = PurgeEntry { place, objects, is_soft, at: Duration::from_secs(at) };
            prop_assert_eq!(PurgeEntry::from_json(entry.to_json().unwrap().as_bytes()).unwrap(), entry);
        }
    }
}
