//! Whether packets of a live track arrive in time. Pure: timestamps and arrival times in, lateness out.

use crate::rtsp::schedule::Timing;
use millpond_rtp::reception::ExtendedTimestamps;
use std::time::Duration;

/// When each packet of a track should arrive: with the delay of the fastest packet so far.
///
/// A server may begin with media of the past, which comes at once. It is not late: the fastest packet is then always the newest one.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    clock_rate: i64,
    timeline: ExtendedTimestamps,
    /// Least difference of arrival and timestamp, in nanoseconds.
    least: Option<i64>,
    /// The frame under way: its timestamp and the arrival of its first packet.
    frame: Option<(u32, Duration)>,
}

impl Lateness {
    /// Timestamps have this many ticks a second.
    pub(crate) fn new(clock_rate: u32) -> Self {
        Self {
            clock_rate: i64::from(clock_rate.max(1)),
            timeline: ExtendedTimestamps::default(),
            least: None,
            frame: None,
        }
    }

    /// Takes a packet; `is_next` where none with a higher number came before.
    pub(crate) fn packet(&mut self, timestamp: u32, arrival: Duration, is_next: bool) -> Timing {
        let ticks = self.timeline.extend(timestamp);
        let (seconds, rest) = (ticks.div_euclid(self.clock_rate), ticks.rem_euclid(self.clock_rate));
        // Times of a run are far below the 292 years that fit.
        let arrived = arrival.as_secs() as i64 * 1_000_000_000 + i64::from(arrival.subsec_nanos());
        let delay = arrived - (seconds * 1_000_000_000 + rest * 1_000_000_000 / self.clock_rate);
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        let behind = Duration::from_nanos(u64::try_from(delay - least).unwrap_or(0));
        let begins = is_next && self.frame.is_none_or(|(current, _)| current != timestamp);
        let before = if begins { self.frame.replace((timestamp, arrival)) } else { None };
        Timing { behind, since_frame: before.map(|(_, at)| arrival.saturating_sub(at)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn the_fastest_packet_is_in_time() {
        let mut lateness = Lateness::new(90_000);
        // Timestamps wrap on the way.
        let base = u32::MAX - 4000;
        let mut packet = |frame: u32, at| lateness.packet(base.wrapping_add(frame * 3600), millis(at), true);
        assert_eq!(packet(0, 1000), Timing::default());
        assert_eq!(packet(0, 1005), Timing { behind: millis(5), since_frame: None });
        let next = packet(1, 1030);
        assert_eq!((next.behind, next.since_frame), (Duration::ZERO, Some(millis(30))), "10 ms faster");
        assert_eq!(packet(2, 1080).behind, millis(10));
        assert_eq!(packet(3, 1230).behind, millis(120));
    }

    #[test]
    fn media_of_the_past_is_not_late() {
        let mut lateness = Lateness::new(48_000);
        let behind: Vec<Duration> =
            (0..100).map(|frame| lateness.packet(frame * 960, millis(500), true).behind).collect();
        assert!(behind.iter().all(Duration::is_zero));
        assert_eq!(lateness.packet(100 * 960, millis(520), true).behind, Duration::ZERO);
        assert_eq!(lateness.packet(101 * 960, millis(670), true).behind, millis(130));
    }
}
