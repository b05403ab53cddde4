//! What a channel plays, as its loader tells it.

use crate::{Format, broadcast::PhaseSeat};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
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
pub(crate) struct Schedule {
    /// A lock: taken twice a turn.
    turns: Mutex<VecDeque<Turn>>,
    /// Tells viewers where the phase is, where the channel is one. A lock: the loader sets it, and the module `channel` uses it.
    seat: Mutex<Option<PhaseSeat>>,
    /// Moment of the first frame, where that is given. A lock: the loader sets it, and the module `channel` reads it once.
    opens: Mutex<Option<Instant>>,
}

impl Schedule {
    /// Adds a turn. Its frames follow.
    pub(crate) fn add(&self, turn: Turn) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }

    /// Takes the turn of a number, and forgets those before it.
    pub(crate) fn take(&self, number: u32) -> Option<Turn> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let place = turns.iter().position(|turn| turn.number == number)?;
        turns.drain(..=place).next_back()
    }

    /// Sets the moment of the first frame. It is loaded before.
    pub(crate) fn set_opens(&self, opens: Instant) {
        *self.opens.lock().unwrap_or_else(PoisonError::into_inner) = Some(opens);
    }

    /// Moment of the first frame, where that is given.
    pub(crate) fn opens(&self) -> Option<Instant> {
        *self.opens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets or removes the seat of a phase.
    pub(crate) fn set_seat(&self, seat: Option<PhaseSeat>) {
        // The old seat tells that its phase stops, before the new one tells that it plays.
        let mut current = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        drop(current.take());
        *current = seat;
    }

    /// Whether a phase has its seat.
    pub(crate) fn has_seat(&self) -> bool {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Notes that a lap was loaded which begins at a stream time.
    pub(crate) fn begin_lap(&self, begin: Duration) {
        if let Some(seat) = &*self.seat.lock().unwrap_or_else(PoisonError::into_inner) {
            seat.begin_lap(begin);
        }
    }

    /// Notes that the frame of a stream time was given.
    pub(crate) fn reach(&self, due: Duration, at: Instant) {
        if let Some(seat) = &*self.seat.lock().unwrap_or_else(PoisonError::into_inner) {
            seat.reach(due, at);
        }
    }
}
