//! Paths in sources.

use std::collections::{BTreeMap, BTreeSet};

/// Removes comments and white space, so that each path is one run of characters.
#[must_use]
pub fn compact(source: &str) -> String {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.split_whitespace().collect()
}

/// Returns the name that a text begins with.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Splits a group of paths at its own commas. The text behind the group's end is left out.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_u32, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                found.push(&group[start..at]);
                if character == '}' {
                    break;
                }
                start = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found.retain(|member| !member.is_empty());
    found
}

/// Returns the first names of all paths from the root of the crate.
pub(crate) fn from_root(source: &str) -> BTreeSet<String> {
    let code = compact(source);
    let named = code.match_indices("crate::").flat_map(|(at, prefix)| {
        let rest = &code[at + prefix.len()..];
        rest.strip_prefix('{').map_or_else(|| vec![rest], members)
    });
    named.map(|path| word(path).to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Returns the last names of a path: one, or those of a group. `self` is the name before it.
fn leaves<'a>(before: &'a str, path: &'a str) -> Vec<&'a str> {
    match (path.strip_prefix('{'), path.split_once("::")) {
        (Some(group), _) => members(group).into_iter().flat_map(|member| leaves(before, member)).collect(),
        (None, Some((first, rest))) => leaves(first, rest),
        (None, None) if path == "self" => vec![before],
        (None, None) => vec![path],
    }
}

/// Returns the names that the root of a crate re-exports, with their modules.
pub(crate) fn exports(root: &str) -> BTreeMap<String, String> {
    let code = compact(root);
    let items = code.split(';').filter_map(|item| item.split_once("pubuse")?.1.split_once("::"));
    let named = items.flat_map(|(module, rest)| leaves(module, rest).into_iter().map(move |name| (name, module)));
    named.map(|(name, module)| (name.to_owned(), module.to_owned())).collect()
}

/// Returns the modules that the root of a crate declares, except those of tests.
pub(crate) fn modules(root: &str) -> BTreeSet<String> {
    let mut before = "";
    let mut found = BTreeSet::new();
    for line in root.lines() {
        let declared = line.split_once("mod ").and_then(|(_, rest)| rest.strip_suffix(';'));
        found.extend(declared.filter(|_| before != "#[cfg(test)]").map(str::to_owned));
        before = line;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn imports_are_found_in_every_form() {
        for (source, named) in [
            ("use crate::graph::Fork;", &["graph"][..]),
            (
                "use crate::{\n    Frame,\n    graph::{\n        Fork,\n        facts::Lanes,\n    },\n    live,\n};",
                &["Frame", "graph", "live"],
            ),
            ("use crate::{live::A, Epoch};", &["Epoch", "live"]),
            ("use crate::{a::{B, c::{D}}, e};\nuse std::fs;", &["a", "e"]),
            ("fn f() -> crate::modules::Loader {}", &["modules"]),
            ("pub(crate) use crate::source::{A, B};", &["source"]),
            ("let run: &[crate::Frame] = &[];", &["Frame"]),
            ("use super::graph;", &[]),
            ("// crate::graph::Fork is not an import", &[]),
        ] {
            assert_eq!(from_root(source), set(named), "{source}");
        }
    }

    #[test]
    fn exports_are_known_by_their_last_names() {
        let root =
            "pub use a::B;\npub use c::{D, e::{F, self}, g::{self, H}};\npub use i::*;\nuse j::K;\npub use l::{m, *};";
        let named = exports(root);
        let expected = [("*", "l"), ("B", "a"), ("D", "c"), ("F", "c"), ("H", "c"), ("e", "c"), ("g", "c"), ("m", "l")];
        assert_eq!(named, expected.map(|(name, module)| (name.to_owned(), module.to_owned())).into());
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let root =
            "//! A mod of words.\nmod a;\npub mod b;\n#[cfg(test)]\npub(crate) mod fixture;\npub(crate) mod c;\n";
        assert_eq!(modules(root), set(&["a", "b", "c"]));
    }
}
