//! The program `millpond-lab`, which loads servers and simulates caches.

use std::path::PathBuf;

/// Name of the program.
const NAME: &str = "millpond-lab";

/// Finds the program beside this one, then in `PATH`. `None` where it isn't installed.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(NAME)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(NAME));
    beside.into_iter().chain(in_path).find(|file| file.is_file())
}
