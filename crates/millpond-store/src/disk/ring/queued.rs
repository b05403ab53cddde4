//! A payload on its way to the disk.

use std::sync::{Arc, OnceLock};

use super::record::RingPlace;

/// A payload given to a ring. Clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct Queued {
    place: Arc<OnceLock<Option<RingPlace>>>,
}

/// State of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits for the disk.
    Waiting,
    /// It can be read.
    Written(RingPlace),
    /// It was not written: the queue was full, the payload too long, or the disk failed.
    Lost,
}

impl Queued {
    /// Returns the state of the payload.
    pub fn outcome(&self) -> Outcome {
        match self.place.get() {
            None => Outcome::Waiting,
            Some(None) => Outcome::Lost,
            Some(Some(place)) => Outcome::Written(*place),
        }
    }

    /// Records the state, once.
    pub(super) fn settle(&self, place: Option<RingPlace>) {
        let _ = self.place.set(place);
    }
}
