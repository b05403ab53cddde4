//! A file system that is soon full.

use std::process::Command;
use tempfile::TempDir;

/// A file system of 2 MiB, until dropped.
pub struct SmallDisk(pub TempDir);

impl SmallDisk {
    /// Mounts one; `None`, noted as skipped, where mounting isn't permitted.
    pub fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            super::skip("a file system can't be mounted here");
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
