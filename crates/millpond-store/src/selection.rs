//! A choice of objects, and what is done with their cached bytes.

use crate::glob::Glob;

/// A choice of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All objects of all places.
    Everything,
    /// An object, or all below a folder.
    Below {
        /// The place.
        place: String,
        /// The path of the object or folder; empty for the whole place.
        path: String,
    },
    /// The objects whose paths match a pattern.
    Matching {
        /// The place.
        place: String,
        /// The pattern of paths inside the place.
        glob: Glob,
    },
}

impl Selection {
    /// Returns whether an object is chosen.
    pub(crate) fn covers(&self, place: &str, path: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Matching { place: of, glob } => of == place && glob.matches(path),
            Self::Below { place: of, path: selected } => {
                let below = || {
                    path.strip_prefix(selected.as_str())
                        .is_some_and(|rest| rest.starts_with('/') || selected.ends_with('/'))
                };
                of == place && (selected.is_empty() || path == selected || below())
            }
        }
    }
}

/// A purge: cached bytes are not used any more, or not before the origin confirms their version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The objects.
    pub selection: Selection,
    /// Whether bytes stay if the origin states the same version when they are needed next.
    pub is_soft: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_an_object_a_folder_or_a_place() {
        let covers = |selected: &str, path: &str| {
            Selection::Below { place: "p".into(), path: selected.into() }.covers("p", path)
        };
        assert!(covers("", "a") && covers("a", "a") && covers("a", "a/b") && covers("a/", "a/b"));
        assert!(!covers("a", "ab") && !covers("a/b", "a") && !covers("a/", "a"));
        assert!(!Selection::Below { place: "q".into(), path: String::new() }.covers("p", "a"));
    }

    #[test]
    fn a_selection_is_a_pattern_or_everything() {
        let glob = Glob::parse("**/*.ts").unwrap();
        let selection = Selection::Matching { place: "p".into(), glob };
        assert!(selection.covers("p", "a/b.ts") && !selection.covers("p", "a/b.mp4") && !selection.covers("q", "b.ts"));
        assert!(Selection::Everything.covers("q", ""));
    }
}
