//! Bit rate of what passes a fork.

use std::time::{Duration, Instant};

/// Time that one measurement takes. Most groups of pictures are shorter.
const WINDOW: Duration = Duration::from_secs(4);
/// Shortest time that a first measurement is made of.
const SHORTEST: Duration = Duration::from_secs(1);

/// Measures bits per second, in windows of 4 s.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// Beginning of the window under way, and its bytes.
    window: Option<(Instant, usize)>,
    /// Bits per second of the window before.
    last: Option<u64>,
}

impl Rate {
    /// Adds bytes that arrive at `now`.
    pub(super) fn add(&mut self, bytes: usize, now: Instant) {
        match &mut self.window {
            None => self.window = Some((now, bytes)),
            Some((began, sum)) if now.duration_since(*began) < WINDOW => *sum += bytes,
            Some((began, sum)) => {
                self.last = Some(bits(*sum, now.duration_since(*began)));
                self.window = Some((now, bytes));
            }
        }
    }

    /// The rate over the last complete window; `None` before its end.
    pub(super) fn measured(&self) -> Option<u64> {
        self.last
    }

    /// The rate at `now`; `None` in the first second. It falls while nothing arrives.
    pub(super) fn bits_per_second(&self, now: Instant) -> Option<u64> {
        let (began, sum) = self.window?;
        let span = now.saturating_duration_since(began);
        match self.last {
            Some(last) if span < WINDOW => Some(last),
            None if span < SHORTEST => None,
            _ => Some(bits(sum, span)),
        }
    }
}

fn bits(bytes: usize, span: Duration) -> u64 {
    (bytes as f64 * 8.0 / span.as_secs_f64().max(0.001)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_what_arrives() {
        let (mut rate, began) = (Rate::default(), Instant::now());
        let at = |millis: u64| began + Duration::from_millis(millis);
        assert_eq!(rate.bits_per_second(began), None);
        for millis in (0..=8000).step_by(40) {
            rate.add(5000, at(millis));
            match rate.bits_per_second(at(millis)) {
                None => assert!(millis < 1000),
                Some(found) => assert!(found.abs_diff(1_000_000) < 60_000, "{found} at {millis}"),
            }
        }
        // Nothing arrives any more.
        assert!(rate.bits_per_second(at(60_000)).unwrap() < 10_000);
    }
}
