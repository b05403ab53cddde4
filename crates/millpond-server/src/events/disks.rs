//! Folders on disks with little free space.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

/// The folders that were told to have little free space.
#[derive(Debug, Default)]
pub(crate) struct DiskWatch {
    /// Settings that name them.
    low: BTreeSet<&'static str>,
}

/// A folder whose disk has less free space than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Low {
    /// Setting that names the folder.
    pub(crate) setting: &'static str,
    /// Free bytes.
    pub(crate) free: u64,
}

impl DiskWatch {
    /// Takes the free bytes of a folder, named by its setting. Returns it where it falls below the bound. It is told again after a tenth more
    /// than the bound was free meanwhile.
    pub(crate) fn look(&mut self, setting: &'static str, free: u64, bound: u64) -> Option<Low> {
        if free < bound {
            return self.low.insert(setting).then_some(Low { setting, free });
        }
        if free >= bound.saturating_add(bound / 10) {
            self.low.remove(setting);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_disk_is_told_once() {
        let mut watch = DiskWatch::default();
        let mut look = |free| watch.look("cache", free, 100).map(|low| low.free);
        assert_eq!([100, 99, 50, 100, 109, 98].map(&mut look), [None, Some(99), None, None, None, None]);
        assert_eq!([110, 99].map(&mut look), [None, Some(99)]);
        assert_eq!(watch.look("record-folder", 99, 100), Some(Low { setting: "record-folder", free: 99 }));
        assert_eq!(watch.look("cache", 0, 0), None);
    }
}
