//! The last purge that a node has applied, in a file beside its cached slices: a node that begins again applies those after it.

use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Most bytes of the file.
const LONGEST: u64 = 64 << 10;

/// The last purge that a node has applied. Its number counts for one node of one cluster only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PurgeRecord {
    /// Id of etcd.
    pub(super) etcd: String,
    /// Beginning of the cluster's keys.
    pub(super) prefix: String,
    /// Name of the node.
    pub(super) node: String,
    /// The epoch.
    pub(super) epoch: u64,
}

impl PurgeRecord {
    /// Reads a file; `None` where there is none. A file that can't be read counts as none: all purges are applied then.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let read = || {
            if fs::metadata(path)?.len() > LONGEST {
                return Err(io::Error::other(format!("more than {LONGEST} bytes")));
            }
            Ok(serde_json::from_slice(&fs::read(path)?)?)
        };
        match read() {
            Ok(record) => Some(record),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "the last purge can't be read: all that are known are applied");
                None
            }
        }
    }

    /// Replaces a file.
    ///
    /// # Errors
    /// The system's. The old file stays.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let new = PathBuf::from(format!("{}.new", path.display()));
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(&new, path).inspect_err(|_| _ = fs::remove_file(&new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("purged.json");
        assert_eq!(PurgeRecord::read(&path), None);
        let [etcd, prefix, node] = ["7", "/m/", "a"].map(str::to_owned);
        let record = PurgeRecord { etcd, prefix, node, epoch: 9 };
        record.write(&path).unwrap();
        assert_eq!(PurgeRecord::read(&path), Some(record));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        for text in ["", "{", "{\"epoch\": 3}", &" ".repeat(70_000)] {
            fs::write(&path, text).unwrap();
            assert_eq!(PurgeRecord::read(&path), None);
        }
    }
}
