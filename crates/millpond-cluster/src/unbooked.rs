//! Traffic that no stream has booked, as told from the traffic of all.
//!
//! Streams have a variable bit rate, and players fill their buffers first. So a stream is ahead of its rate for a time, and behind it
//! later. A leaky bucket for all streams together takes what is ahead. Traffic that overflows it belongs to no stream.

use super::Bitrate;
use std::time::Duration;

/// Time at its rate for which a stream may be ahead: the buffer of its title, and that of a player.
const AHEAD: Duration = Duration::from_secs(30);
/// Time constant of the measured bandwidth.
const SMOOTHING: Duration = Duration::from_secs(4);

/// Measures the bandwidth of traffic beyond that of streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbooked {
    booked: Bitrate,
    /// Bits that streams are ahead.
    ahead: f64,
    /// Bits beyond what streams may be ahead.
    beyond: f64,
}

impl Unbooked {
    /// Takes the `bytes` of a time in which streams had `booked`. Returns the bandwidth that is not theirs.
    pub fn measure(&mut self, bytes: u64, booked: Bitrate, elapsed: Duration) -> Bitrate {
        let (seconds, rate) = (elapsed.as_secs_f64(), booked.bps() as f64);
        if booked < self.booked {
            // Streams that end take with them what they were ahead.
            self.ahead *= rate / self.booked.bps() as f64;
        }
        self.booked = booked;
        self.beyond *= 1.0 - (seconds / SMOOTHING.as_secs_f64()).min(1.0);
        let change = bytes as f64 * 8.0 - rate * seconds;
        if change > 0.0 {
            let fits = change.min((rate * AHEAD.as_secs_f64() - self.ahead).max(0.0));
            self.ahead += fits;
            self.beyond += change - fits;
        } else {
            // Bytes that overflowed the bucket are taken back first.
            let taken = self.beyond.min(-change);
            self.beyond -= taken;
            self.ahead = (self.ahead + change + taken).max(0.0);
        }
        Bitrate::from_bps((self.beyond / SMOOTHING.as_secs_f64()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the bytes that a rate in Mbit/s carries in a second.
    const fn megabits(mbps: u64) -> u64 {
        mbps * 125_000
    }

    #[test]
    fn what_streams_are_ahead_is_theirs() {
        let mut unbooked = Unbooked::default();
        let booked = Bitrate::from_mbps(20);
        // A busy scene, a quiet one, and again.
        for second in 0..600 {
            let sent = if second % 30 < 15 { megabits(34) } else { megabits(6) };
            assert_eq!(unbooked.measure(sent, booked, SECOND), Bitrate::ZERO, "{second}");
        }
        // All end at once.
        unbooked.measure(megabits(34), booked, SECOND);
        assert_eq!(unbooked.measure(0, Bitrate::ZERO, SECOND), Bitrate::ZERO);
    }

    #[test]
    fn traffic_without_streams_shows_within_seconds_and_leaves_as_fast() {
        let mut unbooked = Unbooked::default();
        let mut measured = Bitrate::ZERO;
        for _ in 0..20 {
            measured = unbooked.measure(megabits(10), Bitrate::ZERO, SECOND);
        }
        assert!((9_500_000..=10_500_000).contains(&measured.bps()), "{measured}");
        for _ in 0..20 {
            measured = unbooked.measure(0, Bitrate::ZERO, SECOND);
        }
        assert!(measured < Bitrate::from_bps(100_000), "{measured}");
    }

    #[test]
    fn more_than_streams_may_be_ahead_is_not_theirs() {
        let mut unbooked = Unbooked::default();
        let booked = Bitrate::from_mbps(10);
        let measured: Vec<_> = (0..90).map(|_| unbooked.measure(megabits(20), booked, SECOND)).collect();
        assert_eq!(measured[29], Bitrate::ZERO, "they fill their buffers");
        assert!((9_500_000..=10_500_000).contains(&measured[89].bps()), "{}", measured[89]);
        // Bytes that overflowed the bucket are taken back first.
        let measured: Vec<_> = (0..20).map(|_| unbooked.measure(0, booked, SECOND)).collect();
        assert_eq!(measured[19], Bitrate::ZERO);
    }

    #[test]
    fn a_long_pause_between_two_measurements_is_no_more_than_its_bytes() {
        let mut unbooked = Unbooked::default();
        unbooked.measure(megabits(40), Bitrate::ZERO, SECOND);
        let measured = unbooked.measure(0, Bitrate::ZERO, 100 * SECOND);
        assert_eq!(measured, Bitrate::ZERO);
    }
}
