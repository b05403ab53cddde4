//! A choice of objects, and what is done with their cached bytes.

use std::collections::HashMap;

use crate::glob::Glob;
use crate::tags::{ObjectTags, PurgeTag};

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
    /// The objects that carry a tag.
    Tagged {
        /// The place; `None` for all places.
        place: Option<String>,
        /// The tag.
        tag: PurgeTag,
    },
}

/// An object, as selections look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) place: &'a str,
    pub(crate) path: &'a str,
    pub(crate) tags: &'a ObjectTags,
}

impl Selection {
    /// Returns whether an object is chosen.
    pub(crate) fn covers(&self, Candidate { place, path, tags }: Candidate<'_>) -> bool {
        match self {
            Self::Everything => true,
            Self::Matching { place: of, glob } => of == place && glob.matches(path),
            Self::Tagged { place: of, tag } => {
                of.as_ref().is_none_or(|of| of == place) && tags.iter().any(|other| other == tag.as_str())
            }
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

/// Several selections. Tags are looked up by their names, so that many purges by tag cost an object no more than one.
#[derive(Debug, Default)]
pub(crate) struct Selections<'a> {
    /// Those by path.
    by_path: Vec<&'a Selection>,
    /// Places of each tag; `None` is all places.
    by_tag: HashMap<&'a str, Vec<Option<&'a str>>>,
}

impl<'a> Selections<'a> {
    /// Collects selections.
    pub(crate) fn new(all: impl Iterator<Item = &'a Selection>) -> Self {
        let mut selections = Self::default();
        for selection in all {
            match selection {
                Selection::Tagged { place, tag } => {
                    selections.by_tag.entry(tag.as_str()).or_default().push(place.as_deref());
                }
                other => selections.by_path.push(other),
            }
        }
        for places in selections.by_tag.values_mut() {
            places.sort_unstable();
            places.dedup();
        }
        selections
    }

    /// Returns whether one of them chooses an object.
    pub(crate) fn covers(&self, of: Candidate<'_>) -> bool {
        let has_tag = || {
            let places = of.tags.iter().filter_map(|tag| self.by_tag.get(tag));
            places.flatten().any(|place| place.is_none_or(|place| place == of.place))
        };
        self.by_path.iter().any(|selection| selection.covers(of)) || (!self.by_tag.is_empty() && has_tag())
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

    fn covers(selection: &Selection, place: &str, path: &str, tags: &str) -> bool {
        let of = Candidate { place, path, tags: &ObjectTags::of_lines(tags) };
        let found = selection.covers(of);
        assert_eq!(Selections::new([selection].into_iter()).covers(of), found, "{selection:?} {of:?}");
        found
    }

    #[test]
    fn a_selection_is_an_object_a_folder_or_a_place() {
        let covers = |selected: &str, path: &str| {
            covers(&Selection::Below { place: "p".into(), path: selected.into() }, "p", path, "")
        };
        assert!(covers("", "a") && covers("a", "a") && covers("a", "a/b") && covers("a/", "a/b"));
        assert!(!covers("a", "ab") && !covers("a/b", "a") && !covers("a/", "a"));
        let other = Selection::Below { place: "q".into(), path: String::new() };
        assert!(!super::tests::covers(&other, "p", "a", ""));
    }

    #[test]
    fn a_selection_is_a_pattern_or_everything() {
        let glob = Glob::parse("**/*.ts").unwrap();
        let selection = Selection::Matching { place: "p".into(), glob };
        let covers = |place: &str, path: &str| covers(&selection, place, path, "");
        assert!(covers("p", "a/b.ts") && !covers("p", "a/b.mp4") && !covers("q", "b.ts"));
        assert!(super::tests::covers(&Selection::Everything, "q", "", ""));
    }

    #[test]
    fn a_selection_is_a_tag_of_a_place_or_of_all() {
        let tagged = |place: Option<&str>, tag: &str| Selection::Tagged {
            place: place.map(str::to_owned),
            tag: PurgeTag::parse(tag).unwrap(),
        };
        let everywhere = tagged(None, "film-7");
        assert!(covers(&everywhere, "p", "a", "x\nfilm-7") && covers(&everywhere, "q", "", "film-7"));
        assert!(!covers(&everywhere, "p", "a", "film-70\nfilm") && !covers(&everywhere, "p", "film-7", ""));
        let here = tagged(Some("p"), "film-7");
        assert!(covers(&here, "p", "a", "film-7") && !covers(&here, "q", "a", "film-7"));
        let all = [here, tagged(Some("q"), "film-7"), tagged(Some("q"), "b"), Selection::Everything];
        let some = Selections::new(all[..3].iter());
        let of = |place, tags: &str| some.covers(Candidate { place, path: "a", tags: &ObjectTags::of_lines(tags) });
        assert!(of("p", "film-7") && of("q", "film-7") && of("q", "b") && !of("p", "b") && !of("r", "film-7\nb"));
        assert!(Selections::new(all.iter()).covers(Candidate { place: "r", path: "", tags: &ObjectTags::default() }));
    }
}
