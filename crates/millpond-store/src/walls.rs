//! The order of the modules: each imports only those of later rows, by their own paths. So no two of them import each other.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Rows of modules from the top to the ground. Modules of one row don't import each other.
const ROWS: &[&[&str]] = &[
    &["build", "contents", "scattered"],
    &["store", "stripe"],
    &["prefetch", "reader"],
    &["fetching"],
    &["object"],
    &["flight", "named_origin", "ring"],
    &["chunk", "slices", "stats"],
    &["disk_tier"],
    &["named"],
    &["slab", "striping"],
    &["intervals", "origin"],
    &["cache", "error", "hold", "layout", "location", "scheduler"],
    &["memory"],
    &["due", "freshness", "path", "policy", "schedule", "single_flight", "slice", "speculation", "trace"],
    &["url_text", "version", "waits"],
];

/// Words that no module of the store names: schemes and titles are known above it.
const STRANGERS: [&str; 4] = ["rtsp", "udp://", "publish:", "Titles"];

/// Removes comments and white space, so that each path is one run of characters.
fn compact(source: &str) -> String {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.split_whitespace().collect()
}

/// Returns the first names of a path: one, or those of a group.
fn members(rest: &str) -> Vec<&str> {
    let (is_group, rest) = match rest.strip_prefix('{') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (mut depth, mut names) = (0_i32, Vec::new());
    for part in rest.split_inclusive([',', '{', '}', ';']) {
        if depth == 0 {
            names.push(part.split("::").next().unwrap_or_default());
        }
        depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
        if !is_group || depth < 0 || part.ends_with(';') {
            break;
        }
    }
    names
}

/// Returns the names behind `crate::` in a source: of modules, and of what `lib.rs` exports.
fn imports(source: &str) -> BTreeSet<String> {
    let code = compact(source);
    let named = code.match_indices("crate::").flat_map(|(at, prefix)| members(&code[at + prefix.len()..]));
    let words = named.filter_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the sources of a module: its file, and all files of its folder. Tests stand above all modules.
fn sources(module: &str) -> Vec<PathBuf> {
    const TESTS: [&str; 5] = ["tests", "conformance", "floods", "listings", "test_server"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let file = root.join(format!("{module}.rs"));
    let mut found: Vec<_> = file.is_file().then_some(file).into_iter().collect();
    let mut left = vec![root.join(module)];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.file_stem().is_some_and(|stem| TESTS.iter().any(|test| stem == *test)) {
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

/// Returns all modules with their rows.
fn modules() -> impl Iterator<Item = (usize, &'static str)> {
    ROWS.iter().enumerate().flat_map(|(at, row)| row.iter().map(move |module| (at, *module)))
}

#[test]
fn modules_import_only_those_of_later_rows() {
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (at, module) in modules() {
        let files = sources(module);
        assert!(!files.is_empty(), "{module} has no sources");
        for path in files {
            for import in imports(&production(&path)) {
                match modules().find(|(_, name)| *name == import) {
                    Some((of, _)) if of > at => right += 1,
                    Some((_, name)) if name == module => {}
                    _ => wrong.push(format!("{} imports {import}", path.display())),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(right > 100, "{right} imports found: does the search still match the sources?");
}

#[test]
fn each_module_stands_in_a_row() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let declared = text.lines().filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    let declared: BTreeSet<_> = declared.filter(|name| *name != "walls").collect();
    assert_eq!(modules().map(|(_, module)| module).collect::<BTreeSet<_>>(), declared);
}

#[test]
fn the_store_knows_no_live_streams_and_no_titles() {
    let files = modules().flat_map(|(_, module)| sources(module));
    let known = files.flat_map(|path| {
        let code = compact(&production(&path));
        STRANGERS.into_iter().filter(move |word| code.contains(word)).map(move |word| (word, path.clone()))
    });
    assert_eq!(known.collect::<Vec<_>>(), []);
}

#[test]
fn imports_are_found_in_every_form() {
    for (source, named) in [
        ("use crate::origin::Body;", &["origin"][..]),
        (
            "use crate::{\n    origin::{\n        Body,\n        facts::Lanes,\n    },\n    path,\n};",
            &["origin", "path"],
        ),
        ("fn f() -> crate::reader::Reader {}", &["reader"]),
        ("use crate::DiskOrigin;", &["DiskOrigin"]),
        ("use super::super::origin;", &[]),
        ("// crate::store is not an import", &[]),
    ] {
        assert_eq!(imports(source).into_iter().collect::<Vec<_>>(), named, "{source}");
    }
}
