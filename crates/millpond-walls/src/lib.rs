//! Walls between the modules of a crate, for its tests: each module imports only those of later rows.
//!
//! [`Walls`] reads the sources of one crate. A re-export of the crate's root counts as an import of its module, so none leads around
//! a wall. Failed checks panic, and name the file and the import.

mod paths;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Rows of modules, from the top to the ground. Modules of one row don't import each other.
pub type Rows = &'static [&'static [&'static str]];

/// The modules of a crate and their order.
#[derive(Clone, Debug)]
pub struct Walls {
    sources: PathBuf,
    rows: Rows,
    /// Names of files and folders that hold tests.
    tests: BTreeSet<&'static str>,
    /// Names that the root of the crate re-exports, with their modules; `*` for one whose names are all re-exported.
    root: BTreeMap<String, String>,
}

impl Walls {
    /// Reads the root of the crate in the folder `manifest`, which is `env!("CARGO_MANIFEST_DIR")` in a test of that crate.
    ///
    /// # Panics
    /// If the folder has no `src/lib.rs`.
    #[must_use]
    pub fn of(manifest: &str, rows: Rows) -> Self {
        let sources = Path::new(manifest).join("src");
        let root = paths::exports(&production(&sources.join("lib.rs")));
        Self { sources, rows, tests: BTreeSet::from(["tests"]), root }
    }

    /// Leaves out further files and folders that hold tests, by their names without `.rs`. Tests import what they like.
    #[must_use]
    pub fn with_tests(mut self, names: &[&'static str]) -> Self {
        self.tests.extend(names);
        self
    }

    /// Returns the sources of a module: its file, and all files of its folder except tests.
    #[must_use]
    pub fn sources(&self, module: &str) -> Vec<PathBuf> {
        let file = self.sources.join(format!("{module}.rs"));
        let mut found: Vec<_> = file.is_file().then_some(file).into_iter().collect();
        let mut left = vec![self.sources.join(module)];
        while let Some(folder) = left.pop() {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            for path in entries.filter(|path| !self.is_test(path)) {
                if path.is_dir() { left.push(path) } else { found.push(path) }
            }
        }
        found
    }

    fn is_test(&self, path: &Path) -> bool {
        path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| self.tests.contains(stem))
    }

    /// Returns all modules with the places of their rows.
    pub fn modules(&self) -> impl Iterator<Item = (usize, &'static str)> {
        self.rows.iter().enumerate().flat_map(|(at, row)| row.iter().map(move |module| (at, *module)))
    }

    /// Returns the sources of all modules.
    #[must_use]
    pub fn all_sources(&self) -> Vec<PathBuf> {
        self.modules().flat_map(|(_, module)| self.sources(module)).collect()
    }

    /// Returns the modules that a source names in paths from the root of the crate.
    #[must_use]
    pub fn imports(&self, source: &str) -> BTreeSet<String> {
        let module = |name: String| {
            let is_module = self.modules().any(|(_, module)| module == name);
            let exported = self.root.get(&name).or_else(|| self.root.get("*").filter(|_| !is_module));
            exported.cloned().unwrap_or(name)
        };
        paths::from_root(source).into_iter().map(module).collect()
    }

    /// Checks that modules import only those of later rows.
    ///
    /// # Panics
    /// If one doesn't, or if fewer than `least` imports were found: then this search no longer understands the sources.
    pub fn assert_order(&self, least: usize) {
        let row = |name: &str| self.modules().find(|(_, module)| *module == name).map(|(at, _)| at);
        let (mut wrong, mut right) = (Vec::new(), 0);
        for (at, module) in self.modules() {
            let files = self.sources(module);
            assert!(!files.is_empty(), "{module} has no sources");
            for path in files {
                for import in self.imports(&production(&path)) {
                    match row(&import) {
                        Some(of) if of > at => right += 1,
                        _ if import == module => {}
                        _ => wrong.push(format!("{} imports {import}", path.display())),
                    }
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert!(right >= least, "{right} imports found: does the search still match the sources?");
    }

    /// Checks that modules name each other from the root of the crate: by `super` they would pass all walls.
    ///
    /// # Panics
    /// If a source reaches the root by `super`.
    pub fn assert_named_from_root(&self) {
        let climbs = |path: &PathBuf| {
            let file = path.strip_prefix(&self.sources).expect("sources lie below the folder of sources");
            let depth = file.components().count() - usize::from(file.ends_with("mod.rs"));
            paths::compact(&production(path)).contains(&"super::".repeat(depth))
        };
        let wrong: Vec<_> = self.all_sources().into_iter().filter(climbs).collect();
        assert_eq!(wrong, Vec::<PathBuf>::new(), "these reach the root by `super`, where no row is checked");
    }

    /// Checks that the rows name all modules which the root of the crate declares, and no others.
    ///
    /// # Panics
    /// If a module is missing or unknown.
    pub fn assert_complete(&self) {
        let declared = paths::modules(&production(&self.sources.join("lib.rs")));
        assert_eq!(self.modules().map(|(_, module)| module.to_owned()).collect::<BTreeSet<_>>(), declared);
    }
}

/// Returns the production code of a source: what stands before its unit tests.
///
/// # Panics
/// If it can't be read.
#[must_use]
pub fn production(path: &Path) -> String {
    let source = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

pub use paths::compact;
