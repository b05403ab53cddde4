//! Slices of simulated objects as entries of a ledger.

use super::workload::Visit;
use millpond_store::policy::Item;

/// Returns the hash of a slice's name.
pub(super) fn key(object: u64, index: u64) -> u64 {
    let mixed =
        (object.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ index.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Returns the entry of slice `index` of a visit's object, in slices of `slice` bytes.
pub(super) fn item(visit: &Visit, index: u64, slice: u64) -> Item {
    let start = index * slice;
    let size = (visit.len.saturating_sub(start)).min(slice);
    Item {
        key: key(visit.object, index),
        object: key(visit.object, u64::MAX),
        index: index as u32,
        of: visit.len.div_ceil(slice) as u32,
        size: u32::try_from(size).unwrap_or(u32::MAX),
    }
}
