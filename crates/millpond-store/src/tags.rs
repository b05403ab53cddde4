//! Tags of objects, by which purges choose them: `Surrogate-Key` and `Cache-Tag`.
//!
//! Tags are compared byte by byte. The bounds hold for an object, whichever fields its tags come from.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

/// Most tags of an object.
const MOST: usize = 64;
/// Most bytes of an object's tags, with one byte between two of them.
const LONGEST: usize = 1024;
/// Most tags of a reply that are looked at. Further ones are not counted.
const MOST_READ: usize = 1024;

/// Tags, separated by spaces.
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
/// Tags, separated by commas.
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

/// The tags of an object.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectTags(Arc<str>);

impl Default for ObjectTags {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl ObjectTags {
    /// Returns the tags of a text with a line for each of them, such as [`as_str`](Self::as_str) returns.
    pub(crate) fn of_lines(text: &str) -> Self {
        StatedTags::of(text.split('\n')).kept
    }

    /// Returns the tags, one a line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the tags.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split('\n').filter(|tag| !tag.is_empty())
    }
}

impl fmt::Debug for ObjectTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The tags that an origin states for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedTags {
    /// Tags within the bounds.
    pub kept: ObjectTags,
    /// Number of the other tags: purges of them do not find the object.
    pub cut: u64,
}

impl StatedTags {
    /// Reads `Surrogate-Key` and `Cache-Tag`.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        if !headers.contains_key(&SURROGATE_KEY) && !headers.contains_key(&CACHE_TAG) {
            return Self::default();
        }
        let texts = |name: &HeaderName| -> Vec<_> {
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect()
        };
        let (keys, tags) = (texts(&SURROGATE_KEY), texts(&CACHE_TAG));
        let keys = keys.iter().flat_map(|text| text.split_ascii_whitespace());
        Self::of(keys.chain(tags.iter().flat_map(|text| text.split(',').map(str::trim))))
    }

    /// Reads the same fields of an object's own metadata in a bucket.
    pub(crate) fn of_fields(surrogate_key: Option<&str>, cache_tag: Option<&str>) -> Self {
        let keys = surrogate_key.unwrap_or_default().split_ascii_whitespace();
        Self::of(keys.chain(cache_tag.unwrap_or_default().split(',').map(str::trim)))
    }

    fn of<'a>(tags: impl Iterator<Item = &'a str>) -> Self {
        let (mut text, mut seen, mut cut) = (String::new(), HashSet::new(), 0);
        for tag in tags.filter(|tag| !tag.is_empty()).take(MOST_READ) {
            if seen.contains(tag) {
                continue;
            }
            let length = text.len() + usize::from(!text.is_empty()) + tag.len();
            if seen.len() == MOST || length > LONGEST || tag.contains(char::is_control) {
                cut += 1;
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(tag);
            seen.insert(tag);
        }
        Self { kept: ObjectTags(Arc::from(text)), cut }
    }
}

/// A tag whose objects are purged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeTag(String);

/// Why a text is no tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PurgeTagError {
    /// A text without characters.
    #[error("the tag is empty: expected a name of Surrogate-Key or Cache-Tag, such as film-7")]
    Empty,
    /// A text that no object keeps as a tag.
    #[error("the tag has {found} bytes: expected at most {LONGEST}")]
    Long {
        /// Its bytes.
        found: usize,
    },
    /// A control character, or white space at an end.
    #[error("the tag {0:?} has control characters, or spaces at its ends: no object has such a tag")]
    Form(String),
}

impl PurgeTag {
    /// Parses a tag.
    ///
    /// # Errors
    /// No object can have it.
    pub fn parse(text: &str) -> Result<Self, PurgeTagError> {
        match text {
            "" => Err(PurgeTagError::Empty),
            long if long.len() > LONGEST => Err(PurgeTagError::Long { found: long.len() }),
            odd if odd.contains(char::is_control) || odd.trim() != odd => Err(PurgeTagError::Form(odd.to_owned())),
            tag => Ok(Self(tag.to_owned())),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&HeaderName, &str)]) -> StatedTags {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        StatedTags::of_headers(&map)
    }

    #[test]
    fn both_fields_are_read_and_a_tag_counts_once() {
        let both =
            of(&[(&SURROGATE_KEY, "film-7  season/2 a,b"), (&CACHE_TAG, "film-7, two words ,,"), (&CACHE_TAG, "last")]);
        assert_eq!(both.kept.iter().collect::<Vec<_>>(), ["film-7", "season/2", "a,b", "two words", "last"]);
        assert_eq!(both.cut, 0);
        assert_eq!(of(&[]), StatedTags::default());
        assert_eq!(of(&[(&CACHE_TAG, " , ")]), StatedTags::default());
        assert_eq!(ObjectTags::of_lines(both.kept.as_str()), both.kept);
        let bucket = StatedTags::of_fields(Some("film-7 b"), Some("c d"));
        assert_eq!(bucket.kept.iter().collect::<Vec<_>>(), ["film-7", "b", "c d"]);
    }

    #[test]
    fn an_object_has_at_most_64_tags_and_a_kibibyte_of_them() {
        let many = (0..70).map(|number| number.to_string()).collect::<Vec<_>>();
        let cut = of(&[(&SURROGATE_KEY, &many.join(" ")), (&CACHE_TAG, &many.join(","))]);
        assert_eq!((cut.kept.iter().count(), cut.cut), (64, 12), "six of each field");
        let long = "x".repeat(LONGEST - 4);
        let cut = of(&[(&SURROGATE_KEY, &format!("abc {long} {long}y d"))]);
        assert_eq!((cut.kept.as_str().len(), cut.cut), (LONGEST, 2));
        let endless = (0..100_000).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(of(&[(&SURROGATE_KEY, &endless)]).cut, (MOST_READ - MOST) as u64);
    }

    #[test]
    fn a_tag_that_no_object_can_have_is_refused() {
        assert_eq!(PurgeTag::parse("two words").unwrap().as_str(), "two words");
        assert_eq!(PurgeTag::parse(""), Err(PurgeTagError::Empty));
        for odd in [" a", "a ", "a\nb", "\u{7f}"] {
            assert_eq!(PurgeTag::parse(odd), Err(PurgeTagError::Form(odd.to_owned())));
        }
        assert!(PurgeTag::parse(&"x".repeat(LONGEST)).is_ok());
        let long = PurgeTag::parse(&"x".repeat(LONGEST + 1)).unwrap_err().to_string();
        assert_eq!(long, "the tag has 1025 bytes: expected at most 1024");
    }
}
