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
}

/// A purge of all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeEntry {
    /// The place.
    pub place: String,
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
    /// Neither a path nor a pattern, or both.
    #[error("expected a path or a pattern")]
    Objects,
}

#[derive(Serialize, Deserialize)]
struct WirePurge {
    place: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
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
        let (path, pattern) = match &self.objects {
            PurgedObjects::Path(path) => (Some(path.clone()), None),
            PurgedObjects::Pattern(pattern) => (None, Some(pattern.clone())),
        };
        let wire = WirePurge { place: self.place.clone(), path, pattern, soft: self.is_soft, at: self.at.as_secs() };
        Ok(serde_json::to_string(&wire).expect("plain structs are JSON"))
    }

    /// Reads a purge.
    ///
    /// # Errors
    /// A value that is too long, no JSON, or without the objects.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PurgeEntryError> {
        bounded("entry", bytes.len(), LONGEST)?;
        let WirePurge { place, path, pattern, soft, at } = serde_json::from_slice(bytes)?;
        let objects = match (path, pattern) {
            (Some(path), None) => PurgedObjects::Path(path),
            (None, Some(pattern)) => PurgedObjects::Pattern(pattern),
            _ => return Err(PurgeEntryError::Objects),
        };
        let entry = Self { place, objects, is_soft: soft, at: Duration::from_secs(at) };
        entry.check()?;
        Ok(entry)
    }

    fn check(&self) -> Result<(), PurgeEntryError> {
        let (field, text) = match &self.objects {
            PurgedObjects::Path(path) => ("path", path),
            PurgedObjects::Pattern(pattern) => ("pattern", pattern),
        };
        bounded("place", self.place.len(), LONGEST_TEXT)?;
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
            (r#"{"place":"p"}"#.to_owned(), "expected a path or a pattern"),
            (r#"{"place":"p","path":"a","pattern":"b"}"#.to_owned(), "expected a path or a pattern"),
            (r#"{"path":"a"}"#.to_owned(), "missing field `place`"),
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
        fn what_is_written_is_read(place in ".{0,20}", text in ".{0,40}", is_pattern: bool, is_soft: bool, at in 0_u64..1 << 40) {
            let objects = if is_pattern { PurgedObjects::Pattern(text) } else { PurgedObjects::Path(text) };
            let entry = PurgeEntry { place, objects, is_soft, at: Duration::from_secs(at) };
            prop_assert_eq!(PurgeEntry::from_json(entry.to_json().unwrap().as_bytes()).unwrap(), entry);
        }
    }
}
