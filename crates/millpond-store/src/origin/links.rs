//! Symbolic links that the list of a folder leaves out.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Stat, stat};

use crate::path::ObjectPath;

/// Most links that are remembered as told.
const MOST_TOLD: usize = 256;

/// Links that the log has named. A lock: several listings of a place may run at once.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOutLinks(Arc<Mutex<HashSet<String>>>);

impl LeftOutLinks {
    /// Logs once that a link leads out of the place. `folder` is the folder of the place, and `link` a path in it.
    pub(super) fn tell_outside(&self, folder: &str, link: &str) {
        if self.is_new(link) {
            tracing::warn!(
                folder,
                link,
                "a symbolic link leads out of the place and is left out: serve its target as a place of its own, or as part of a \
                 folder that contains both, or mount it here (mount --bind)"
            );
        }
    }

    /// Logs once that a link leads to a folder above it.
    pub(super) fn tell_back(&self, folder: &str, link: &str) {
        if self.is_new(link) {
            tracing::info!(
                folder,
                link,
                "a symbolic link leads to a folder above it, which is listed once: the link is left out"
            );
        }
    }

    fn is_new(&self, link: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MOST_TOLD && told.insert(link.to_owned())
    }
}

/// A folder and the folders above it, on the path that viewers take and on the real path. A listed link to one of these folders would
/// repeat the folder without end.
pub(super) struct FoldersAbove(Vec<Stat>);

impl FoldersAbove {
    /// Finds the folders above `folder`, and `folder`. `top` is the real path of the place.
    pub(super) fn of(top: &Path, folder: &ObjectPath) -> Self {
        let taken = top.join(folder.as_str());
        let real = taken.canonicalize().unwrap_or_default();
        let all = taken.ancestors().chain(real.ancestors()).filter(|path| path.starts_with(top));
        Self(all.filter_map(|path| stat(path).ok()).collect())
    }

    /// Whether the target of a link is one of the folders.
    pub(super) fn contain(&self, target: &Stat) -> bool {
        self.0.iter().any(|one| (one.st_dev, one.st_ino) == (target.st_dev, target.st_ino))
    }
}
