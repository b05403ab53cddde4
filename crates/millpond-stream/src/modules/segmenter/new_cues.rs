//! Cues of a feed on their way into a window.

use crate::{Cues, Feed};
use millpond_package::live::Cue;
use std::time::Duration;
use tokio::sync::watch;

/// The cues of a feed that a window has not taken.
#[derive(Debug)]
pub(super) struct NewCues {
    /// `None` where the feed has no cues.
    cues: Option<watch::Receiver<Cues>>,
    /// Number of cues that the window has taken.
    seen: u64,
}

impl NewCues {
    pub(super) fn of(feed: &dyn Feed) -> Self {
        Self { cues: feed.cues(), seen: 0 }
    }

    /// Returns those since the last call, with `shift` added to their stream times.
    pub(super) fn take(&mut self, shift: Duration) -> Vec<Cue> {
        let Some(cues) = &self.cues else { return Vec::new() };
        let cues = cues.borrow();
        let new = cues.since(std::mem::replace(&mut self.seen, cues.count()));
        new.iter().map(|cue| Cue { at: cue.at.saturating_add(shift), ..cue.clone() }).collect()
    }
}
