//! The cache folder, and another server that uses it.

use super::{Finding, ports};
use crate::config::Config;
use millpond_store::held_lock;
use std::{fs, os::unix::fs::MetadataExt as _};

/// Tells which process keeps slices in the cache folder. Only one can.
pub(super) fn finding(config: &Config) -> Option<Finding> {
    let path = held_lock(&config.storage.folder.join("slices"))?;
    let folder = config.storage.folder.display();
    let inode = fs::metadata(&path).ok()?.ino();
    let holder = fs::read_to_string("/proc/locks").ok().and_then(|table| holder(&table, inode));
    let ports = config.listeners().into_iter().filter_map(|(_, address)| Some(address?.port()));
    let running: Vec<u32> = ports.filter_map(|port| ports::holder(&ports::TCP, port)).map(|holder| holder.id).collect();
    match holder {
        Some(id) if running.contains(&id) => {
            Some(Finding::fine("disk", format!("cache {folder} is in use by a running Millpond (process {id})")))
        }
        holder => {
            let by = holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
            let text = format!("cache {folder} is used by {by}: a second server keeps nothing on the disk");
            Some(Finding::error("disk", text, "give each server a folder of its own: --cache PATH"))
        }
    }
}

/// Returns the process that holds a lock on a file, from the table of locks (proc_locks(5)).
fn holder(table: &str, inode: u64) -> Option<u32> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_file = fields.get(5)?.rsplit(':').next()? == inode.to_string();
        (is_file && *fields.get(1)? == "FLOCK").then(|| fields.get(4)?.parse().ok()).flatten()
    };
    table.lines().find_map(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_locks_names_the_process() {
        let table =
            "1: POSIX  ADVISORY  WRITE 17 00:2d:4711 0 EOF\n2: FLOCK  ADVISORY  WRITE 42 fe:01:4711 0 EOF\nnonsense\n";
        assert_eq!(holder(table, 4711), Some(42));
        assert_eq!(holder(table, 1), None);
    }
}
