//! The order of the modules: each imports only those of later rows. A re-export is an import too, so none leads around a wall.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Rows of modules from the top to the ground. Modules of one row don't import each other, but for those of the first row: they
/// assemble a server from all others, and know each other.
const ROWS: &[&[&str]] = &[
    &["admin", "config", "doctor", "doubts", "engine", "metrics", "reload", "serve", "upgrade"],
    &["intercept"],
    &["http", "rtsp", "rtmp", "srt", "recordings"],
    &["hooks", "schedule", "webrtc"],
    &["failover", "modules", "opus"],
    &["live"],
    &["cluster"],
    &["problem"],
    &["storage", "audience", "events"],
    &["announce", "limits", "priority", "statistics"],
    &["bit_rate", "interfaces", "minutely", "own_streams", "week", "wire"],
    &["lab"],
];

/// The folders of `http`, in the order of imports.
const FOLDERS: [&str; 2] = ["answer", "render"];

/// The folders of `http/answer`: those of the targets of requests, with the others that each may import. `client` and `reply` serve all.
const TARGETS: &[(&str, &[&str])] = &[
    ("asset", &["file", "reply", "steering"]),
    ("client", &["reply"]),
    ("file", &["reply"]),
    ("live", &["reply", "steering"]),
    ("operator", &["steering"]),
    ("page", &["client", "reply"]),
    ("publish", &["client", "reply"]),
    ("reply", &[]),
    ("steering", &["reply"]),
    ("webrtc", &["client", "live", "publish", "reply"]),
];

/// Crates that `lib.rs` names, so that paths to them begin as those of modules do.
const CRATES: [&str; 2] = ["library", "work"];

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

/// Returns the modules of the crate that a source names in paths.
fn modules(source: &str) -> BTreeSet<String> {
    let code = compact(source);
    let named = code.match_indices("crate::").flat_map(|(at, prefix)| members(&code[at + prefix.len()..]));
    let words = named.filter_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next());
    words.filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase())).map(str::to_owned).collect()
}

/// Returns the folders of `http` that a source names in paths.
fn folders(source: &str) -> BTreeSet<&'static str> {
    let code = compact(source);
    let mut rests = paths(&code, "http");
    rests.extend(code.split("super::super::").skip(1));
    rests.into_iter().flat_map(members).filter_map(|name| FOLDERS.into_iter().find(|folder| *folder == name)).collect()
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
fn production(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn modules_import_only_those_of_later_rows() {
    let row = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (at, module) in ROWS.iter().enumerate().flat_map(|(at, row)| row.iter().map(move |module| (at, *module))) {
        let files = sources(module);
        assert!(!files.is_empty(), "{module} has no sources");
        for path in files {
            for import in modules(production(&fs::read_to_string(&path).unwrap())) {
                let is_own = import == module || CRATES.contains(&import.as_str());
                match row(&import) {
                    Some(of) if of > at || (of == at && at == 0) => right += 1,
                    None | Some(_) if is_own => {}
                    _ => wrong.push(format!("{} imports {import}", path.display())),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(right > 150, "{right} imports found: does the search still match the sources?");
}

#[test]
fn each_module_stands_in_a_row() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let declared = text.lines().filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    let declared: BTreeSet<_> = declared.filter(|name| *name != "walls").collect();
    assert_eq!(ROWS.iter().flat_map(|row| row.iter().copied()).collect::<BTreeSet<_>>(), declared);
}

#[test]
fn folders_of_http_import_only_those_after_them() {
    let mut wrong = Vec::new();
    let mut right = 0;
    for (at, folder) in FOLDERS.into_iter().enumerate() {
        for path in sources(&format!("http/{folder}")) {
            for import in folders(&fs::read_to_string(&path).unwrap()) {
                match FOLDERS.into_iter().position(|folder| folder == import) {
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
fn handlers_of_one_target_import_none_of_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/answer");
    let folders = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let named: BTreeSet<_> = folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(named, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for (target, known) in TARGETS {
        for path in sources(&format!("http/answer/{target}")) {
            let code = compact(production(&fs::read_to_string(&path).unwrap()));
            let imports: String = code.split(';').filter(|item| item.contains("usesuper::")).collect();
            for (other, _) in TARGETS.iter().filter(|(other, _)| other != target && !known.contains(other)) {
                let mut found =
                    imports.match_indices(other).map(|(at, _)| (&imports[..at], &imports[at + other.len()..]));
                let is_named = found.any(|(before, behind)| {
                    before.ends_with([',', '{', ':']) && [":", ",", "}"].iter().any(|end| behind.starts_with(end))
                });
                assert!(!is_named, "{} imports {other}", path.display());
            }
        }
    }
}

#[test]
fn one_file_of_http_parses_paths_of_requests() {
    let parsers = ["decode_path(", "Route::parse("];
    let parses = |path: &PathBuf| {
        let code = compact(production(&fs::read_to_string(path).unwrap()));
        parsers.iter().any(|parser| code.contains(parser))
    };
    let all: Vec<_> = sources("http").into_iter().filter(parses).collect();
    assert!(matches!(&*all, [only] if only.ends_with("http/answer/target.rs")), "{all:?}");
}

#[test]
fn imports_are_found_in_every_form() {
    for (source, named, within) in [
        ("use crate::http::render::Renderer;", &["http"][..], &["render"][..]),
        (
            "use crate::{\n    http::{\n        answer::{Front, Target},\n        render::Renderer,\n    },\n    live,\n};",
            &["http", "live"],
            &["answer", "render"],
        ),
        ("use crate::{library::A, http::answer::Front};", &["http", "library"], &["answer"]),
        ("fn f() -> crate::http::render::Renderer {}", &["http"], &["render"]),
        ("pub(crate) use crate::rtsp::{Users, UsersError};", &["rtsp"], &[]),
        ("use super::super::render;", &[], &["render"]),
        ("use http::request::Parts;", &[], &[]),
        ("// crate::http::render is not an import", &[], &[]),
    ] {
        assert_eq!(modules(source).into_iter().collect::<Vec<_>>(), named, "{source}");
        assert_eq!(folders(source).into_iter().collect::<Vec<_>>(), within, "{source}");
    }
}
