//! Slices on the disk, in preallocated files (slabs), and rings of live streams.

pub(crate) mod chunk;
pub(crate) mod disk_tier;
pub(crate) mod named;
pub mod ring;
pub(crate) mod slab;
