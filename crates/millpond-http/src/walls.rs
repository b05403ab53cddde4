//! The order of the modules: each imports only those after it.

use std::{fs, path::Path};

/// The modules, in the order of imports.
const MODULES: [&str; 3] = ["wire", "body", "request"];

#[test]
fn modules_import_only_those_after_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut right) = (Vec::new(), 0);
    for (at, module) in MODULES.into_iter().enumerate() {
        for entry in fs::read_dir(root.join(module)).unwrap() {
            let path = entry.unwrap().path();
            let source = fs::read_to_string(&path).unwrap();
            for (of, other) in MODULES.into_iter().enumerate() {
                match source.contains(&format!("crate::{other}")) || source.contains(&format!("    {other}::")) {
                    true if of < at => wrong.push(format!("{} imports {other}", path.display())),
                    true => right += 1,
                    false => {}
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(right > 8, "{right} imports found: does the search still match the sources?");
}
