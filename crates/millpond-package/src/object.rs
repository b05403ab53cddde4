//! Objects of an asset.

/// Index of an object of an asset: its position in the list from which the presentation was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIndex(pub u16);
