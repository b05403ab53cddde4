//! Delays between attempts to reach a source.

use std::time::Duration;

/// Delay after the first failure.
const FIRST: Duration = Duration::from_millis(500);
/// Longest delay.
const MOST: Duration = Duration::from_secs(15);
/// Share by which a delay varies, so that the cameras of a rebooted switch are not all asked at once.
const SPREAD: f64 = 0.2;

/// Doubles the delay with each failure.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Returns the delay after a failure. `random` is from 0 to 1.
    pub(super) fn failed(&mut self, random: f64) -> Duration {
        let delay = self.next.mul_f64(1.0 + SPREAD * (2.0 * random.clamp(0.0, 1.0) - 1.0));
        self.next = MOST.min(2 * self.next);
        delay
    }

    /// Begins with the shortest delay again, after a session that worked.
    pub(super) fn succeeded(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_limit() {
        let mut backoff = Backoff::new();
        let delays: Vec<u128> = (0..7).map(|_| backoff.failed(0.5).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
        assert_eq!((backoff.failed(0.0).as_secs(), backoff.failed(1.0).as_secs()), (12, 18));
        backoff.succeeded();
        assert_eq!(backoff.failed(0.5), FIRST);
    }
}
