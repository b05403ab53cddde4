//! The map of a striped object: a small JSON text.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::sums::SumTable;
use crate::layout::{Layout, LayoutError};
use crate::path::ObjectPath;
use crate::striping::MAP_SUFFIX;

/// Longest text of a map, in bytes.
pub(crate) const LONGEST_MAP: usize = 64 << 10;
/// Longest name of a store, and longest text about the source, in bytes.
const LONGEST_NAME: usize = 512;
/// Format of maps without checksums of units.
const WITHOUT_SUMS: u32 = 1;
/// Format of maps with checksums of units.
const WITH_SUMS: u32 = 2;
/// Hexadecimal digits of an identifier.
const ID_DIGITS: usize = 32;
/// Hexadecimal digits of a SHA-256.
const HASH_DIGITS: usize = 64;

/// The arrangement of a striped object on its stores.
///
/// A map has been checked: the sizes are within limits, store names are distinct, and units have the names that
/// [`unit_path`](Self::unit_path) returns. So the map of a stranger can name no other object of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeMap {
    id: String,
    layout: Layout,
    stores: Vec<String>,
    sha256: String,
    sums: Option<SumRoot>,
    source: StripeSource,
}

/// The arrangement of an object's checksums, and the SHA-256 of their head, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SumRoot {
    pub(super) table: SumTable,
    pub(super) sha256: String,
}

/// The object that was striped, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripeSource {
    /// Location without secrets.
    pub location: String,
    /// Version, as its origin named it.
    pub version: String,
}

/// Why a text is no map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// It is too long.
    #[error("expected at most {LONGEST_MAP} bytes, found {len}")]
    TooLong {
        /// Its length in bytes.
        len: u64,
    },
    /// It is no JSON of that form.
    #[error("expected a stripe map: {detail}")]
    Syntax {
        /// Description of the fault.
        detail: String,
    },
    /// It has another format.
    #[error("expected a stripe map of format {WITHOUT_SUMS} or {WITH_SUMS}, found {found}")]
    Format {
        /// The number in the map.
        found: u32,
    },
    /// A size is out of its limits.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A field does not have its form.
    #[error("{field}: expected {expected}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Expected form.
        expected: &'static str,
    },
}

/// The fields as they are written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "millpond-stripe")]
    format: u32,
    id: String,
    length: u64,
    unit: u64,
    copies: usize,
    stores: Vec<String>,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sums: Option<String>,
    source: StripeSource,
}

impl StripeMap {
    /// Creates a map with a new identifier. `sha256` is the hash of the whole object, and `sums` the hash of the head of its
    /// checksums, both in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// A name is too long or occurs twice, the number of names differs from the layout's, or an object with checksums is too long.
    pub(crate) fn new(
        id: String,
        layout: Layout,
        stores: Vec<String>,
        sha256: String,
        sums: Option<String>,
        source: StripeSource,
    ) -> Result<Self, MapError> {
        let field = |field, expected| Err(MapError::Field { field, expected });
        if !is_hex(&id, ID_DIGITS) {
            return field("id", "32 hexadecimal digits in lower case");
        }
        if !is_hex(&sha256, HASH_DIGITS) {
            return field("sha256", "64 hexadecimal digits in lower case");
        }
        let sums = match sums {
            Some(sha256) if !is_hex(&sha256, HASH_DIGITS) => {
                return field("sums", "64 hexadecimal digits in lower case");
            }
            Some(sha256) => Some(SumRoot { table: SumTable::new(layout)?, sha256 }),
            None => None,
        };
        let mut names = HashSet::new();
        let is_sound = |name: &String| !name.is_empty() && name.len() <= LONGEST_NAME;
        if stores.len() != layout.stores() || !stores.iter().all(|name| is_sound(name) && names.insert(name)) {
            return field("stores", "distinct names of 1 to 512 bytes");
        }
        if source.location.len().max(source.version.len()) > LONGEST_NAME {
            return field("source", "texts of at most 512 bytes");
        }
        Ok(Self { id, layout, stores, sha256, sums, source })
    }

    /// Parses the text of a map.
    ///
    /// # Errors
    ///
    /// The text is too long, no JSON of that form, or a value is out of its limits.
    pub fn parse(text: &[u8]) -> Result<Self, MapError> {
        if text.len() > LONGEST_MAP {
            return Err(MapError::TooLong { len: text.len() as u64 });
        }
        let written: Written =
            serde_json::from_slice(text).map_err(|error| MapError::Syntax { detail: error.to_string() })?;
        let expected = match written.format {
            WITHOUT_SUMS => written.sums.is_some().then_some("no such field in format 1"),
            WITH_SUMS => written.sums.is_none().then_some("64 hexadecimal digits in format 2"),
            found => return Err(MapError::Format { found }),
        };
        if let Some(expected) = expected {
            return Err(MapError::Field { field: "sums", expected });
        }
        let Written { id, length, unit, copies, stores, sha256, sums, source, .. } = written;
        let layout = Layout::new(length, unit, stores.len(), copies)?;
        Self::new(id, layout, stores, sha256, sums, source)
    }

    /// Returns the text of the map.
    pub fn write(&self) -> String {
        let written = Written {
            format: if self.sums.is_some() { WITH_SUMS } else { WITHOUT_SUMS },
            id: self.id.clone(),
            length: self.layout.length(),
            unit: self.layout.unit(),
            copies: self.layout.copies(),
            stores: self.stores.clone(),
            sha256: self.sha256.clone(),
            sums: self.sums().map(str::to_owned),
            source: self.source.clone(),
        };
        // Texts and numbers have no form that JSON lacks.
        let mut text = serde_json::to_string_pretty(&written).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns the identifier, which no other map has.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the sizes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the names of the stores, in the order of units.
    pub fn stores(&self) -> &[String] {
        &self.stores
    }

    /// Returns the SHA-256 of the whole object, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the SHA-256 of the head of the checksums, in hexadecimal digits; `None` for a map of format 1, which has none.
    pub fn sums(&self) -> Option<&str> {
        self.sums.as_ref().map(|root| root.sha256.as_str())
    }

    /// Returns the root of the checksums.
    pub(super) fn sum_root(&self) -> Option<&SumRoot> {
        self.sums.as_ref()
    }

    /// Returns the object that was striped.
    pub fn source(&self) -> &StripeSource {
        &self.source
    }

    /// Returns the path of a unit inside each of its stores.
    pub fn unit_path(&self, unit: u64) -> Option<ObjectPath> {
        unit_path(&self.id, unit)
    }
}

/// Returns the path of a unit of the object with this identifier.
pub(super) fn unit_path(id: &str, unit: u64) -> Option<ObjectPath> {
    ObjectPath::parse(&format!("stripe-{id}/{unit:010}")).ok()
}

/// Returns the path of the checksums of the object with this identifier, on each of its stores.
pub(super) fn sums_path(id: &str) -> Option<ObjectPath> {
    ObjectPath::parse(&format!("stripe-{id}/sums")).ok()
}

/// Returns the path of the map of an object.
pub(super) fn map_path(path: &ObjectPath) -> Option<ObjectPath> {
    if path.is_root() { None } else { ObjectPath::parse(&format!("{path}{MAP_SUFFIX}")).ok() }
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> StripeMap {
        let layout = Layout::new(10_000_000, 1 << 20, 3, 2).unwrap();
        let source = StripeSource { location: "s3://films/a.mp4".into(), version: "\"1\"".into() };
        let stores = ["a", "s3://b", "/c"].map(str::to_owned).to_vec();
        let sums = Some("5".repeat(64));
        StripeMap::new("0123456789abcdef".repeat(2), layout, stores, "f".repeat(64), sums, source).unwrap()
    }

    #[test]
    fn a_map_of_the_first_format_has_no_checksums() {
        let text = map().write().replace("\"millpond-stripe\": 2", "\"millpond-stripe\": 1");
        let text: String = text.lines().filter(|line| !line.contains("\"sums\"")).collect();
        let old = StripeMap::parse(text.as_bytes()).unwrap();
        assert_eq!((old.sums(), old.layout()), (None, map().layout()));
        assert!(old.write().contains("\"millpond-stripe\": 1") && !old.write().contains("sums"));
        assert_eq!(StripeMap::parse(old.write().as_bytes()).unwrap(), old);
    }

    #[test]
    fn a_map_is_read_as_it_is_written() {
        let text = map().write();
        assert_eq!(StripeMap::parse(text.as_bytes()).unwrap(), map());
        let unit = map().unit_path(17).unwrap();
        assert_eq!(unit.as_str(), "stripe-0123456789abcdef0123456789abcdef/0000000017");
        let sums = sums_path(map().id()).unwrap();
        assert_eq!(sums.as_str(), "stripe-0123456789abcdef0123456789abcdef/sums");
        let whole = ObjectPath::parse("films/a.mp4").unwrap();
        assert_eq!(map_path(&whole).unwrap().as_str(), "films/a.mp4.stripe");
    }

    #[test]
    fn claims_are_checked() {
        let text = map().write();
        for (old, new, expected) in [
            ("\"millpond-stripe\": 2", "\"millpond-stripe\": 3", "format 1 or 2, found 3"),
            ("\"millpond-stripe\": 2", "\"millpond-stripe\": 1", "sums: expected no such field"),
            (
                "  \"sums\": \"5555555555555555555555555555555555555555555555555555555555555555\",\n",
                "",
                "sums: expected 64",
            ),
            ("5555", "555g", "sums: expected 64"),
            ("\"length\": 10000000", "\"length\": 4398046511105", "with checksums is 4398046511105"),
            ("\"length\": 10000000", "\"length\": 18446744073709551615", "length"),
            ("\"length\": 10000000", "\"length\": -1", "stripe map"),
            ("\"unit\": 1048576", "\"unit\": 1", "unit is 1, expected 65536"),
            ("\"unit\": 1048576", "\"unit\": 99999999999", "unit"),
            ("\"copies\": 2", "\"copies\": 4", "copies is 4, expected 1 to 3"),
            ("\"a\",", "\"/c\",", "stores"),
            ("\"a\",", "\"\",", "stores"),
            ("0123456789abcdef", "../../0123456789", "id"),
            ("0123456789abcdef", "0123456789ABCDEF", "id"),
            ("ffff", "", "sha256"),
            ("\"source\"", "\"sauce\"", "stripe map"),
            ("{", "[", "stripe map"),
        ] {
            assert!(text.contains(old), "{old}");
            let error = StripeMap::parse(text.replacen(old, new, 1).as_bytes()).unwrap_err();
            assert!(error.to_string().contains(expected), "{old} {new}: {error}");
        }
        let long = format!("{text}{}", " ".repeat(LONGEST_MAP));
        assert!(matches!(StripeMap::parse(long.as_bytes()), Err(MapError::TooLong { .. })));
    }
}
