//! Paths of objects inside a place.

use std::fmt;
use std::sync::Arc;

/// Longest path, in bytes: the limit of a path on Linux, and more than any object store permits in a key.
const MAX_LEN: usize = 4096;

/// A path of an object inside a place: components joined by `/`, relative, and already normal.
///
/// No component is empty, `.` or `..`, none contains NUL or a backslash, so a path can neither leave its place nor
/// name one object in two ways. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectPath(Arc<str>);

/// A text that is not a valid [`ObjectPath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// An empty text. The root of a place is [`ObjectPath::root`], and is no object.
    #[error("the path is empty")]
    Empty,
    /// Two slashes in a row, or a slash at either end.
    #[error("path {path:?} has an empty component")]
    EmptyComponent {
        /// The text.
        path: String,
    },
    /// A component `.` or `..`.
    #[error("path {path:?} has a component `{component}`, which is not allowed")]
    Dots {
        /// The text.
        path: String,
        /// Value that was found.
        component: String,
    },
    /// A NUL byte or a backslash.
    #[error("path {path:?} contains {character:?}, which is not allowed")]
    Character {
        /// The text.
        path: String,
        /// Value that was found.
        character: char,
    },
    /// More than 4096 bytes.
    #[error("the path has {len} bytes, and at most 4096 are allowed")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
}

impl ObjectPath {
    /// The root folder of a place: fit for listing, never an object.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    /// Parses a text that is percent-decoded already.
    ///
    /// # Errors
    ///
    /// The text is not normalized. It is not repaired, because a repaired name would be a second name of one object.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(PathError::TooLong { len: text.len() });
        }
        if let Some(character) = text.chars().find(|c| matches!(c, '\0' | '\\')) {
            let path = text.to_owned();
            return Err(PathError::Character { path, character });
        }
        for component in text.split('/') {
            if component.is_empty() {
                let path = text.to_owned();
                return Err(PathError::EmptyComponent { path });
            }
            if component == "." || component == ".." {
                let path = text.to_owned();
                let component = component.to_owned();
                return Err(PathError::Dots { path, component });
            }
        }
        Ok(Self(Arc::from(text)))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the root of the place.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components, first to last; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// Returns a path below this one.
    ///
    /// # Errors
    ///
    /// As [`ObjectPath::parse`], for `below` and for the whole.
    pub fn join(&self, below: &str) -> Result<Self, PathError> {
        let below = Self::parse(below)?;
        if self.is_root() {
            return Ok(below);
        }
        Self::parse(&format!("{}/{}", self.0, below.0))
    }

    /// The last component; empty for the root.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that holds this path; the root for a path of one component and for the root itself.
    pub fn parent(&self) -> Self {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Self(Arc::from(parent)),
            None => Self::root(),
        }
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_paths_are_taken_as_they_are() {
        for text in ["a", "a/b.mp4", "å ä/ö?#%.mp4", "..a/b..", "...", ".hidden"] {
            assert_eq!(ObjectPath::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "/a", "a/", "a//b", ".", "a/./b", "../a", "a/..", "a\\b", "a\0b"] {
            assert!(ObjectPath::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(ObjectPath::parse(&"a".repeat(4097)), Err(PathError::TooLong { len: 4097 }));
    }

    #[test]
    fn parts_of_a_path() {
        let path = ObjectPath::parse("a/b/c.tar.gz").unwrap();
        assert_eq!(path.file_name(), "c.tar.gz");
        assert_eq!(path.parent().as_str(), "a/b");
        assert_eq!(path.parent().parent().parent(), ObjectPath::root());
        assert_eq!(ObjectPath::root().parent(), ObjectPath::root());
        assert_eq!(path.components().collect::<Vec<_>>(), ["a", "b", "c.tar.gz"]);
        assert_eq!(ObjectPath::root().components().count(), 0);
    }

    #[test]
    fn joining_cannot_climb() {
        let folder = ObjectPath::parse("a").unwrap();
        assert_eq!(folder.join("b/c").unwrap().as_str(), "a/b/c");
        assert_eq!(ObjectPath::root().join("b").unwrap().as_str(), "b");
        assert!(folder.join("../b").is_err());
        assert!(folder.join("/b").is_err());
    }
}
