//! Pins: a slice that is being read keeps its slot.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::DiskTier;
use crate::policy::Slot;

/// Keeps bytes of the cache unchanged while it lives. Clones keep the same bytes.
#[derive(Clone)]
pub struct Pin(pub(super) Arc<Pinned>);

pub(super) struct Pinned {
    pub(super) tier: Arc<DiskTier>,
    pub(super) slot: Slot,
    pub(super) key: u64,
}

impl Pin {
    /// Drops the slice, whose bytes are damaged or missing. The next reader fetches it again.
    pub(crate) fn drop_damaged(&self) {
        self.0.tier.drop_damaged(self.0.slot, self.0.key);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.tier.unpin(self.slot);
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin")
    }
}

/// A slice on the disk, pinned.
#[derive(Clone, Debug)]
pub(crate) struct DiskSlice {
    pub(super) pin: Pin,
    pub(super) file: Arc<File>,
    pub(super) range: Range<u64>,
    pub(super) proven: bool,
}

impl DiskSlice {
    /// Returns the bytes from an offset of the slice to its end.
    pub(crate) fn rest(&self, offset: u64) -> (Arc<File>, Range<u64>, Pin) {
        let start = (self.range.start + offset).min(self.range.end);
        (self.file.clone(), start..self.range.end, self.pin.clone())
    }

    /// Returns whether the bytes may be sent from the file. Otherwise they must be copied out of it.
    pub(crate) fn is_sendable(&self) -> bool {
        self.pin.0.tier.slabs.detaches()
    }

    /// Drops the slice, whose bytes are damaged or missing.
    pub(crate) fn drop_damaged(&self) {
        self.pin.drop_damaged();
    }

    /// Returns whether the bytes match their checksum. They are compared after a start, and after a time without
    /// readers, on a thread that may block.
    pub(crate) async fn is_proven(&self) -> bool {
        if self.proven {
            return true;
        }
        let pin = self.pin.clone();
        tokio::task::spawn_blocking(move || pin.0.tier.prove(pin.0.slot)).await.unwrap_or(false)
    }
}
