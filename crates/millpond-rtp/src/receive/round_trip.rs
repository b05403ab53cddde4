//! Estimate of the round trip time.

use std::time::Duration;

/// Bounds of a measured time: clocks jump, and servers think.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(4);
/// Estimate before the first measurement.
const UNKNOWN: Duration = Duration::from_millis(100);

/// Smoothed round trip time to a sender, and its variation (RFC 6298 2).
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    /// Whether a repair was measured: requests only tell an upper bound.
    is_measured: bool,
    is_known: bool,
}

impl RoundTrip {
    pub(super) fn new() -> Self {
        Self { smoothed: UNKNOWN, variation: UNKNOWN / 4, is_measured: false, is_known: false }
    }

    /// Takes the time of an RTSP request and its reply. The shortest one is the estimate until a repair is measured.
    pub(super) fn requested(&mut self, took: Duration) {
        let took = took.clamp(SHORTEST, LONGEST);
        if !self.is_measured && (!self.is_known || took < self.smoothed) {
            (self.smoothed, self.variation, self.is_known) = (took, took / 8, true);
        }
    }

    /// Takes the time from a request for a packet to the packet.
    pub(super) fn repaired(&mut self, took: Duration) {
        let took = took.clamp(SHORTEST, LONGEST);
        if std::mem::replace(&mut self.is_measured, true) {
            self.variation = (self.variation * 3 + self.smoothed.abs_diff(took)) / 4;
            self.smoothed = (self.smoothed * 7 + took) / 8;
        } else {
            (self.smoothed, self.variation) = (took, took / 8);
        }
    }

    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Time within which nearly every repair arrives.
    pub(super) fn nearly_all(&self) -> Duration {
        self.smoothed + self.variation * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_until_repairs_do() {
        let at = Duration::from_millis;
        let mut trip = RoundTrip::new();
        trip.requested(at(900));
        trip.requested(at(200));
        trip.requested(at(300));
        assert_eq!((trip.smoothed(), trip.nearly_all()), (at(200), at(250)));
        trip.repaired(at(80));
        trip.requested(at(1));
        assert_eq!(trip.smoothed(), at(80));
        for _ in 0..100 {
            trip.repaired(at(160));
        }
        assert!(trip.smoothed() > at(155) && trip.nearly_all() < at(170), "{trip:?}");
        trip.repaired(Duration::ZERO);
        trip.repaired(Duration::MAX);
        assert!(trip.nearly_all() < at(5000));
    }
}
