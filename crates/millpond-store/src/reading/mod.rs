//! Reading of objects: their slices come from memory, the disk or the origin.

pub(crate) mod fetching;
pub(crate) mod flight;
pub(crate) mod object;
pub(crate) mod prefetch;
pub(crate) mod reader;
