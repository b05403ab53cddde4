//! Symbolic links of a folder that lead out of it: the server leaves them out.

use super::Finding;
use std::{collections::VecDeque, fs, path::Path};

/// Most folders that are searched.
const MOST_FOLDERS: usize = 20;
/// Most entries of a folder that are checked.
const MOST_ENTRIES: usize = 1000;

/// Searches the first folders of a place for links that lead out of it.
pub(super) fn finding(area: &str, folder: &Path) -> Option<Finding> {
    let top = folder.canonicalize().ok()?;
    let (mut folders, mut outside) = (VecDeque::from([top.clone()]), Vec::new());
    for _ in 0..MOST_FOLDERS {
        let Some(folder) = folders.pop_front() else { break };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES) {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push_back(path),
                Ok(kind) if kind.is_symlink() && path.canonicalize().is_ok_and(|real| !real.starts_with(&top)) => {
                    outside.push(path);
                }
                _ => {}
            }
        }
    }
    let first = outside.iter().min()?;
    let text = match outside.len() {
        1 => format!("the symbolic link {} leads out of the place and is left out", first.display()),
        count => format!("{count} symbolic links lead out of the place and are left out, such as {}", first.display()),
    };
    let advice =
        "serve the target as a place of its own, or a folder that contains both, or mount the target (mount --bind)";
    Some(Finding::warning(area, text, advice))
}
