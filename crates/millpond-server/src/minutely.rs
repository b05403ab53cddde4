//! Messages that the log has once a minute at most, however often their reason occurs.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Least time between two of them.
const MINUTE: Duration = Duration::from_secs(60);

/// A message of the log that may have many reasons. Its default was never told.
#[derive(Debug, Default)]
pub(crate) struct Minutely(
    /// Time at which it was told. A lock, held for a look.
    Mutex<Option<Instant>>,
);

impl Minutely {
    /// Tells whether the message is due, and counts it as told.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| now.saturating_duration_since(told) >= MINUTE);
        *told = if is_due { Some(now) } else { *told };
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_due_once_a_minute() {
        let (message, began) = (Minutely::default(), Instant::now());
        let due = [0, 1, 59, 60, 61, 200].map(|seconds| message.is_due_at(began + Duration::from_secs(seconds)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
