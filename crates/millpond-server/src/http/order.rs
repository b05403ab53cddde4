//! The order of the folders: each imports only those after it.

use std::{collections::BTreeSet, fs, path::Path};

/// The folders, in the order of imports.
const ORDER: [&str; 5] = ["wire", "answer", "render", "body", "request"];

/// Returns the folders of `http` that a source names in paths.
fn imports(source: &str) -> BTreeSet<&'static str> {
    // Without white space, `http::{` and its folders are next to each other.
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code: String = code.split_whitespace().collect();
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices("http::") {
        let rest = &code[at + prefix.len()..];
        // Only paths of this crate: `crate::http::` or `http::` inside `use crate::{`.
        let before = &code[..at];
        let in_crate = before.ends_with("crate::") || open_use(before) == Some("crate::");
        if in_crate {
            found.extend(ORDER.into_iter().filter(|folder| members(rest).any(|member| member == *folder)));
        }
    }
    for (at, prefix) in code.match_indices("super::super::") {
        found.extend(ORDER.into_iter().filter(|folder| members(&code[at + prefix.len()..]).any(|m| m == *folder)));
    }
    found
}

/// Returns the path of the `use` group that is open at the end of `before`.
fn open_use(before: &str) -> Option<&str> {
    let statement = before.rsplit(';').next()?;
    let group = statement.rfind("use")?;
    let (path, _) = statement[group + 3..].split_once('{')?;
    let depth = statement[group..].matches('{').count() - statement[group..].matches('}').count();
    (depth == 1).then_some(path)
}

/// Returns the first names of a path: one, or those of a group.
fn members(rest: &str) -> impl Iterator<Item = &str> {
    let (group, rest) = match rest.strip_prefix('{') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut depth = 0_i32;
    let parts = rest.split_inclusive([',', '{', '}', ';']);
    let mut names = Vec::new();
    for part in parts {
        if depth == 0 {
            names.push(part.split("::").next().unwrap_or_default().trim_end_matches([',', '{', '}', ';']));
        }
        match part.chars().last() {
            Some('{') => depth += 1,
            Some('}') => depth -= 1,
            _ => {}
        }
        if !group || depth < 0 || part.ends_with(';') {
            break;
        }
    }
    names.into_iter()
}

#[test]
fn folders_import_only_those_after_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let mut wrong = Vec::new();
    let mut right = 0;
    for (at, folder) in ORDER.into_iter().enumerate() {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(path.is_file(), "{}: add sub-folders to this test", path.display());
            for import in imports(&fs::read_to_string(&path).unwrap()) {
                match ORDER.into_iter().position(|folder| folder == import) {
                    Some(of) if of < at => wrong.push(format!("{} imports {import}", path.display())),
                    _ => right += 1,
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(right > 10, "{right} imports found: does the search still match the sources?");
}

#[test]
fn imports_are_found_in_every_form() {
    for (source, folders) in [
        ("use crate::http::body::Body;", &["body"][..]),
        (
            "use crate::{\n    http::{\n        body::{Body, Chunk},\n        wire::Service,\n    },\n    tls,\n};",
            &["body", "wire"],
        ),
        ("use crate::{library::A, http::answer::Front};", &["answer"]),
        ("fn f() -> crate::http::render::Renderer {}", &["render"]),
        ("use super::super::wire;", &["wire"]),
        ("use http::request::Parts;", &[]),
        ("// crate::http::wire is not an import", &[]),
    ] {
        assert_eq!(imports(source).into_iter().collect::<Vec<_>>(), folders, "{source}");
    }
}
