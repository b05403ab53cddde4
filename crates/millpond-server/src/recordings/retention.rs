//! The recorded files that are deleted: the oldest ones, by age, by the bytes of all, and by the free space of the disk.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use std::time::Duration;

/// A complete file of a recording. Files that are being written are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Wall time of its first frame.
    pub(super) began: Duration,
    /// Wall time of the end of its last frame.
    pub(super) ended: Duration,
    /// Its bytes on the disk.
    pub(super) bytes: u64,
}

/// Limits of age, bytes and disk space within which recorded files are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Highest age of a file's end.
    pub(super) age: Option<Duration>,
    /// Highest bytes of all files.
    pub(super) bytes: Option<u64>,
    /// Least free bytes of the disk.
    pub(super) free: Option<u64>,
}

/// The disk at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DiskState {
    /// Wall time.
    pub(super) now: Duration,
    /// Bytes of the files that are being written.
    pub(super) written: u64,
    /// Free bytes; `None` where they are unknown.
    pub(super) free: Option<u64>,
}

/// Why a file is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is older than files are kept.
    Age,
    /// All files have too many bytes.
    Bytes,
    /// The disk has too little free space.
    Free,
}

impl Reason {
    /// Name in the log, events and metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Bytes => "size",
            Self::Free => "disk full",
        }
    }
}

/// Returns the indexes of the files to delete, the oldest first, each with its reason.
///
/// Files of the future, which a clock that was set back leaves behind, have no age. They are the last ones to be deleted by bytes.
pub(super) fn doomed(files: &[Kept], disk: DiskState, limits: Limits) -> Vec<(usize, Reason)> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| files.get(*index).map(|file| (file.began, file.ended)));
    let total: u64 = files.iter().fold(disk.written, |sum, file| sum.saturating_add(file.bytes));
    let mut above = limits.bytes.map_or(0, |most| total.saturating_sub(most));
    let mut missing = match (limits.free, disk.free) {
        (Some(least), Some(free)) => least.saturating_sub(free),
        _ => 0,
    };
    let mut doomed = Vec::new();
    for index in order {
        let Some(file) = files.get(index) else { continue };
        let is_old = limits.age.is_some_and(|age| disk.now.saturating_sub(file.ended) > age);
        let reason = match (is_old, above > 0, missing > 0) {
            (true, ..) => Reason::Age,
            (_, true, _) => Reason::Bytes,
            (.., true) => Reason::Free,
            // Files that overlap may end in another order than they begin.
            _ => continue,
        };
        above = above.saturating_sub(file.bytes);
        missing = missing.saturating_sub(file.bytes);
        doomed.push((index, reason));
    }
    doomed
}

#[cfg(test)]
mod tests;
