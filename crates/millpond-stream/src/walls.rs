//! The order of the modules: each imports only those of later rows. A re-export is an import too, so none leads around a wall.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: &[&[&str]] = &[
    &["manager"],
    &["streams"],
    &["modules"],
    &["live", "reception"],
    &["transmission"],
    &["graph", "resources"],
    &["report", "stored"],
    &["clock", "feed", "fragmenter", "splice"],
    &["cannot_open", "counters", "epoch", "lead", "transport_stream"],
    &[
        "admission",
        "cues",
        "dropping",
        "format",
        "frame",
        "kind",
        "multicast",
        "outlet",
        "registry",
        "source",
        "strain",
        "ticks",
    ],
];

/// Names that the crate's root re-exports, and the modules that they come from.
type Root = BTreeMap<String, String>;

/// Removes comments and white space, so that each path is one run of characters.
fn compact(source: &str) -> String {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.split_whitespace().collect()
}

/// Returns the first names of a path: one, or those of a group.
fn members(rest: &str) -> Vec<&str> {
    let (is_group, rest) = rest.strip_prefix('{').map_or((false, rest), |rest| (true, rest));
    let (mut depth, mut names) = (0_i32, Vec::new());
    for part in rest.split_inclusive([',', '{', '}', ';']) {
        if depth == 0 {
            names.push(part.split("::").next().unwrap_or_default());
        }
        match part.chars().last() {
            Some('{') => depth += 1,
            Some('}') => depth -= 1,
            _ => {}
        }
        if !is_group || depth < 0 || part.ends_with(';') {
            break;
        }
    }
    names.into_iter().map(word).filter(|name| !name.is_empty()).collect()
}

/// Returns the name that a text begins with.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the modules of the crate that a source names in paths, by themselves or by what the root re-exports of them.
fn modules(source: &str, root: &Root) -> BTreeSet<String> {
    let code = compact(source);
    let named = code.match_indices("crate::").flat_map(|(at, prefix)| members(&code[at + prefix.len()..]));
    named.map(|name| root.get(name).cloned().unwrap_or_else(|| name.to_owned())).collect()
}

/// Returns what the root re-exports.
fn root() -> Root {
    let code = compact(&fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap());
    let exports = code.split(';').filter_map(|item| item.split_once("pubuse")?.1.split_once("::"));
    let of_module = exports.flat_map(|(module, rest)| members(rest).into_iter().map(move |name| (name, module)));
    of_module.map(|(name, module)| (name.to_owned(), module.to_owned())).collect()
}

/// Returns the sources of a module: its file, and all files of its folder. Tests stand above all modules.
fn sources(module: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let file = root.join(format!("{module}.rs"));
    let mut found: Vec<_> = file.is_file().then_some(file).into_iter().collect();
    let mut left = vec![root.join(module)];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.file_stem().is_some_and(|stem| stem == "tests") {
                true => {}
                false if path.is_dir() => left.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

/// Returns the production code of a source: what stands before its unit tests.
fn production(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap();
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// Returns all modules with their rows and sources.
fn walled() -> impl Iterator<Item = (usize, &'static str, Vec<PathBuf>)> {
    let modules = ROWS.iter().enumerate().flat_map(|(at, row)| row.iter().map(move |module| (at, *module)));
    modules.map(|(at, module)| (at, module, sources(module)))
}

#[test]
fn modules_import_only_those_of_later_rows() {
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let (root, mut wrong, mut right) = (root(), Vec::new(), 0);
    for (at, module, files) in walled() {
        assert!(!files.is_empty(), "{module} has no sources");
        for path in files {
            for import in modules(&production(&path), &root) {
                match row(&import) {
                    Some(of) if of > at => right += 1,
                    _ if import == module => {}
                    _ => wrong.push(format!("{} imports {import}", path.display())),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(right > 300, "{right} imports found: does the search still match the sources?");
}

#[test]
fn modules_are_named_from_the_root() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in walled().flat_map(|(_, _, files)| files) {
        let file = path.strip_prefix(&src).unwrap();
        let depth = file.components().count() - usize::from(file.ends_with("mod.rs"));
        let climb = "super::".repeat(depth);
        if production(&path).lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&climb)) {
            wrong.push(file.display().to_string());
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "these reach the root by `super`, where no row is checked");
}

#[test]
fn each_module_stands_in_a_row() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let declared = text.lines().filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    let declared: BTreeSet<_> = declared.filter(|name| *name != "walls").collect();
    assert_eq!(ROWS.iter().flat_map(|row| row.iter().copied()).collect::<BTreeSet<_>>(), declared);
}

#[test]
fn imports_are_found_in_every_form() {
    let root = Root::from([("Frame".into(), "frame".into()), ("Epoch".into(), "epoch".into())]);
    for (source, named) in [
        ("use crate::graph::Fork;", &["graph"][..]),
        (
            "use crate::{\n    Frame,\n    graph::{\n        Fork,\n        Module,\n    },\n    live,\n};",
            &["frame", "graph", "live"],
        ),
        ("use crate::{live::A, Epoch};", &["epoch", "live"]),
        ("fn f() -> crate::modules::Loader {}", &["modules"]),
        ("pub(crate) use crate::source::{A, B};", &["source"]),
        ("let run: &[crate::Frame] = &[];", &["frame"]),
        ("use super::graph;", &[]),
        ("// crate::graph::Fork is not an import", &[]),
    ] {
        assert_eq!(modules(source, &root).into_iter().collect::<Vec<_>>(), named, "{source}");
    }
}
