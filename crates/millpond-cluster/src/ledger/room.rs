//! Room for a stream at a node or a storage.

use crate::{Bitrate, Resource};

/// Room for a stream at a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The resource.
    pub resource: Resource,
    /// Bandwidth that the stream needs of it.
    pub wanted: Bitrate,
    /// The most that is booked of it until the stream ends.
    pub booked: Bitrate,
    /// Bandwidth that can be booked of it; `None` is unbounded.
    pub bound: Option<Bitrate>,
}

impl Room {
    /// Bandwidth that is free; `None` is unbounded.
    pub fn free(&self) -> Option<Bitrate> {
        self.bound.map(|bound| bound.minus(self.booked))
    }

    /// Whether the stream fits.
    pub fn fits(&self) -> bool {
        self.free().is_none_or(|free| self.wanted <= free)
    }
}
