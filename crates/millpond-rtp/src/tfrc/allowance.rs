//! Credit of bytes that may be sent now.

use std::time::Duration;

/// Shortest time for which unused credit is kept: two rounds of a sending thread. Round trips below it are those of a local
/// network, where RFC 5348 4.6 would allow bursts of less than a round.
const SHORTEST: Duration = Duration::from_millis(10);
/// Longest time for it.
const LONGEST: Duration = Duration::from_millis(100);
/// Credit that can be kept at any rate: one packet. A TFRC sender may be limited to less than one in a round trip.
const LEAST: f64 = 1500.0;

/// Credit of bytes, which grows at a rate.
///
/// Unused credit is kept for one round trip (RFC 5348 4.6), so that a large frame of a stream below its rate leaves quickly.
#[derive(Clone, Debug)]
pub struct Allowance {
    credit: f64,
    /// Time at which the credit was computed; `None` before the first time.
    at: Option<Duration>,
}

impl Allowance {
    /// No time has passed yet: the first packets may leave.
    #[must_use]
    pub fn new() -> Self {
        Self { credit: LEAST, at: None }
    }

    /// Adds the credit of the time since the last call at `rate` bytes per second.
    pub fn grow(&mut self, rate: f64, round_trip: Option<Duration>, now: Duration) {
        let (kept, most) = Self::bounds(rate, round_trip);
        let elapsed = self.at.map_or(kept, |at| now.saturating_sub(at));
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        self.credit = (self.credit + rate * elapsed.as_secs_f64()).min(most);
    }

    /// Whether a packet may leave now. The last one may exceed the credit.
    #[must_use]
    pub fn may_send(&self) -> bool {
        self.credit > 0.0
    }

    /// Uses credit.
    pub fn spend(&mut self, bytes: usize) {
        self.credit -= bytes as f64;
    }

    /// Number of packets of `size` bytes that may leave now.
    #[must_use]
    pub fn packets(&self, size: usize) -> usize {
        // The cast saturates: nothing below 0.
        (self.credit / size.max(1) as f64).ceil() as usize
    }

    /// Number of packets of `size` bytes that may leave now where the credit of a round trip ahead counts too. Unused credit does
    /// not: a burst has no more than the packets of one round trip (RFC 5348 4.6).
    #[must_use]
    pub fn ahead(&self, rate: f64, round_trip: Option<Duration>, size: usize) -> usize {
        let (_, most) = Self::bounds(rate, round_trip);
        ((self.credit.min(0.0) + most) / size.max(1) as f64).ceil() as usize
    }

    /// Time for which credit is kept, and its bytes.
    fn bounds(rate: f64, round_trip: Option<Duration>) -> (Duration, f64) {
        let kept = round_trip.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST);
        (kept, (rate * kept.as_secs_f64()).max(LEAST))
    }

    /// Time until a packet may leave at `rate` bytes per second.
    #[must_use]
    pub fn wait(&self, rate: f64) -> Duration {
        let missing = (1.0 - self.credit).max(0.0);
        Duration::try_from_secs_f64(missing / rate).unwrap_or(Duration::MAX)
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_leaves_is_the_rate() {
        let (mut allowance, mut sent) = (Allowance::new(), 0);
        for round in 0..2000 {
            allowance.grow(100_000.0, Some(20 * MS), 5 * MS * round);
            while allowance.may_send() {
                allowance.spend(1000);
                sent += 1000;
            }
        }
        assert!((1_000_000..1_010_000).contains(&sent), "{sent}");
        let wait = allowance.wait(100_000.0);
        assert!(wait > Duration::ZERO && wait <= 11 * MS, "{wait:?}");
        assert_eq!(allowance.packets(1000), 0);
    }

    #[test]
    fn credit_ahead_is_that_of_one_round_trip() {
        let mut allowance = Allowance::new();
        allowance.grow(1e6, Some(50 * MS), Duration::ZERO);
        let unused = allowance.ahead(1e6, Some(50 * MS), 1000);
        assert_eq!((allowance.packets(1000), unused), (50, 50), "unused credit makes no longer burst");
        allowance.spend(50_000);
        assert_eq!((allowance.packets(1000), allowance.ahead(1e6, Some(50 * MS), 1000)), (0, 50));
        allowance.spend(50_000);
        assert_eq!(allowance.ahead(1e6, Some(50 * MS), 1000), 0);
    }

    #[test]
    fn unused_credit_is_kept_for_one_round_trip() {
        let mut allowance = Allowance::new();
        allowance.grow(1e6, Some(50 * MS), Duration::ZERO);
        allowance.grow(1e6, Some(50 * MS), 60_000 * MS);
        assert_eq!(allowance.packets(1000), 50);
        // The clock goes back: nothing is added, then or later.
        allowance.spend(50_000);
        allowance.grow(1e6, Some(50 * MS), 50_000 * MS);
        allowance.grow(1e6, Some(50 * MS), 60_000 * MS);
        assert!(!allowance.may_send());
    }
}
