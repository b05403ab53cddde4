//! Parts of a schedule that may be on the air.

use super::timetable::{Content, Slot, Timetable};
use std::time::Duration;

/// An entry at its time, or the filler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An entry. Where the file changes and these stay, it plays on.
    Entry {
        /// Beginning, since the Unix epoch.
        at: Duration,
        content: Content,
        /// Time of the asset at which it begins.
        from: Duration,
        /// Whether the asset plays again and again.
        repeats: bool,
    },
    /// The asset or stream that plays while no entry does.
    Filler(String),
}

impl Part {
    /// The part that plays in a slot.
    pub(super) fn of(timetable: &Timetable, slot: &Slot) -> Self {
        match timetable.entry(slot) {
            Some(entry) => {
                let (content, from, repeats) = (entry.content.clone(), entry.from, entry.repeats);
                Self::Entry { at: slot.at, content, from, repeats }
            }
            None => Self::filler(timetable),
        }
    }

    /// The filler.
    pub(super) fn filler(timetable: &Timetable) -> Self {
        Self::Filler(timetable.filler.clone())
    }

    /// Path of what it plays.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Entry { content, .. } => content.path(),
            Self::Filler(path) => path,
        }
    }
}
