//! Names of public types: one name means one thing in all crates.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Names that several crates still give to types of their own. The list only shrinks.
const SEVERAL: &[&str] = &[
    "At",
    "Change",
    "Edge",
    "Entry",
    "Found",
    "Inputs",
    "Lateness",
    "Ledger",
    "Mode",
    "Node",
    "Options",
    "Outcome",
    "Packets",
    "Part",
    "Piece",
    "Problem",
    "Program",
    "Progress",
    "Protection",
    "Purpose",
    "Reload",
    "Report",
    "Request",
    "Resource",
    "Sample",
    "Secret",
    "Setting",
    "Slot",
    "Source",
    "Thumbnails",
    "Timeline",
    "Titles",
    "TraceError",
    "Transport",
    "Unit",
    "Watch",
    "Window",
];

/// Production sources of a crate.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("tests") => {}
            _ if path.is_dir() => sources(&path, found),
            _ if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// Names of the public types that a source declares.
fn types(source: &str) -> impl Iterator<Item = &str> {
    let production = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    production.lines().filter_map(|line| {
        let rest = line.strip_prefix("pub ")?;
        let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
        name.split(|c: char| !c.is_alphanumeric()).next()
    })
}

#[test]
fn public_types_of_several_crates_have_names_of_their_own() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            for name in types(&fs::read_to_string(file).unwrap()) {
                let owner = folder.file_name().unwrap().to_string_lossy().into_owned();
                owners.entry(name.to_owned()).or_default().insert(owner);
            }
        }
    }
    assert!(owners.len() > 500, "{} types found: does the search still match the sources?", owners.len());
    let several: BTreeSet<&str> = owners.iter().filter(|(_, of)| of.len() > 1).map(|(name, _)| name.as_str()).collect();
    let listed: BTreeSet<&str> = SEVERAL.iter().copied().collect();
    let new: Vec<_> = several.difference(&listed).map(|name| (*name, &owners[*name])).collect();
    assert!(new.is_empty(), "give these types names of their own: {new:?}");
    let gone: Vec<_> = listed.difference(&several).collect();
    assert!(gone.is_empty(), "{gone:?} have one meaning now: take them off the list");
}
