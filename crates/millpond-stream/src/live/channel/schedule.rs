//! What a channel plays, as its loader tells it.

use crate::Format;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// An asset's turn in a channel.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// [`Frame::epoch`](crate::Frame::epoch) of its frames on their way to the module `channel`.
    pub(crate) number: u32,
    /// Stream time of its beginning.
    pub(crate) from: Duration,
    /// Formats of the channel while it plays.
    pub(crate) formats: Arc<[Option<Format>]>,
}

/// Turns that were loaded, and have not begun yet.
#[derive(Debug, Default)]
pub(crate) struct Schedule(
    /// A lock: taken twice a turn.
    Mutex<VecDeque<Turn>>,
);

impl Schedule {
    /// Adds a turn. Its frames follow.
    pub(crate) fn add(&self, turn: Turn) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }

    /// Takes the turn of a number, and forgets those before it.
    pub(crate) fn take(&self, number: u32) -> Option<Turn> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = turns.iter().position(|turn| turn.number == number)?;
        turns.drain(..=place).next_back()
    }
}
