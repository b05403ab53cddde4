//! The order of the folders: each imports only those after it.

use std::{collections::BTreeSet, fs, path::Path};

/// The folders, in the order of imports.
const ORDER: [&str; 5] = ["wire", "answer", "render", "body", "request"];

/// Removes comments and white space, so that each path is one run of characters.
fn compact(source: &str) -> String {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.split_whitespace().collect()
}

/// Returns the rest of the code after each path of a module of this crate.
fn paths<'a>(code: &'a str, module: &str) -> Vec<&'a str> {
    let prefix = format!("{module}::");
    let found = code.match_indices(&prefix).filter(|(at, _)| {
        let before = &code[..*at];
        before.ends_with("crate::") || is_in_crate_group(before)
    });
    found.map(|(at, _)| &code[at + prefix.len()..]).collect()
}

/// Returns the folders of `http` that a source names in paths.
fn imports(source: &str) -> BTreeSet<&'static str> {
    let code = compact(source);
    let mut rests = paths(&code, "http");
    rests.extend(code.split("super::super::").skip(1));
    rests.into_iter().flat_map(members).filter_map(|name| ORDER.into_iter().find(|folder| *folder == name)).collect()
}

/// Tells whether the text ends directly inside the braces of `use crate::{`.
fn is_in_crate_group(before: &str) -> bool {
    const GROUP: &str = "usecrate::{";
    let Some(at) = before.rfind(GROUP) else { return false };
    let group = &before[at + GROUP.len()..];
    !group.contains(';') && group.matches('{').count() == group.matches('}').count()
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
fn the_front_ends_never_import_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (folder, other) in [("http", "rtsp"), ("rtsp", "http")] {
        let mut folders = vec![root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let code = compact(&fs::read_to_string(&path).unwrap());
                assert!(paths(&code, other).is_empty(), "{} imports {other}", path.display());
            }
        }
    }
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
