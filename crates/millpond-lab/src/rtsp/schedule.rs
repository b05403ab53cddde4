//! Whether packets arrive in time. Pure: timestamps and arrival times in, lateness out.

use millpond_rtp::reception::ExtendedTimestamps;
use std::time::Duration;

/// A packet that is more than this behind its time is late.
pub(crate) const LATE: Duration = Duration::from_millis(100);

/// When each packet of a track should arrive: as long after the first one as its timestamp is.
///
/// It begins anew with every PLAY. Timestamps are those of presentation, packets come in the order of decoding: where
/// pictures are reordered (B-frames) each deviates by that, some tens of milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    clock_rate: i64,
    first: Option<Duration>,
    timeline: ExtendedTimestamps,
    /// The frame under way: its timestamp and the arrival of its first packet.
    frame: Option<(u32, Duration)>,
}

/// Lateness of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How far behind its time it is; zero where it is early.
    pub(crate) behind: Duration,
    /// The time since the frame before began to arrive, where a frame begins.
    pub(crate) since_frame: Option<Duration>,
}

impl Schedule {
    /// Creates the schedule of a track whose timestamps have this many ticks a second.
    pub(crate) fn new(clock_rate: u32) -> Self {
        Self {
            clock_rate: i64::from(clock_rate.max(1)),
            first: None,
            timeline: ExtendedTimestamps::default(),
            frame: None,
        }
    }

    /// Takes a packet that arrived in order.
    pub(crate) fn next(&mut self, timestamp: u32, arrival: Duration) -> Timing {
        let behind = self.behind(timestamp, arrival);
        let begins = self.frame.is_none_or(|(current, _)| current != timestamp);
        let before = if begins { self.frame.replace((timestamp, arrival)) } else { None };
        Timing { behind, since_frame: before.map(|(_, at)| arrival.saturating_sub(at)) }
    }

    /// Returns how far behind its time a packet is, whatever its turn.
    pub(crate) fn behind(&mut self, timestamp: u32, arrival: Duration) -> Duration {
        let ticks = self.timeline.extend(timestamp);
        let first = *self.first.get_or_insert(arrival);
        let (seconds, rest) = (ticks.div_euclid(self.clock_rate), ticks.rem_euclid(self.clock_rate));
        let due = nanos(first) + seconds * 1_000_000_000 + rest * 1_000_000_000 / self.clock_rate;
        Duration::from_nanos(u64::try_from(nanos(arrival) - due).unwrap_or(0))
    }
}

/// Times of a run are far below the 292 years that fit.
fn nanos(time: Duration) -> i64 {
    time.as_secs() as i64 * 1_000_000_000 + i64::from(time.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn lateness_is_measured_from_the_first_packet() {
        let mut schedule = Schedule::new(90_000);
        // Timestamps wrap on the way.
        let base = u32::MAX - 4000;
        let at = |frame: u32| base.wrapping_add(frame * 3600);
        assert_eq!(schedule.next(at(0), millis(1000)), Timing::default());
        assert_eq!(schedule.next(at(1), millis(1040)).behind, Duration::ZERO);
        assert_eq!(schedule.next(at(2), millis(1050)).behind, Duration::ZERO, "early is not late");
        assert_eq!(schedule.next(at(3), millis(1270)).behind, millis(150));
        assert_eq!(schedule.behind(at(1), millis(1060)), millis(20), "one that was passed over");
        assert_eq!(schedule.next(at(100), millis(5000)).behind, Duration::ZERO);
    }

    #[test]
    fn times_stay_exact_over_days() {
        let mut schedule = Schedule::new(44_100);
        let mut timestamp = 7_u32;
        schedule.next(timestamp, millis(5));
        for hour in 1..=100_u64 {
            timestamp = timestamp.wrapping_add(44_100 * 3600);
            let behind = schedule.next(timestamp, millis(5 + hour * 3_600_000 + 3)).behind;
            assert_eq!(behind, millis(3), "hour {hour}");
        }
    }

    #[test]
    fn frames_are_counted_once_whatever_their_packets() {
        let mut schedule = Schedule::new(90_000);
        let since: Vec<Option<Duration>> = [(0, 0), (0, 1), (0, 2), (3600, 41), (3600, 42), (7200, 80)]
            .map(|(timestamp, at)| schedule.next(timestamp, millis(at)).since_frame)
            .to_vec();
        assert_eq!(since, [None, None, None, Some(millis(41)), None, Some(millis(39))]);
    }

    #[test]
    fn reordered_pictures_deviate_by_their_reordering() {
        // I P B B at 25 a second, sent in the order of decoding, 40 ms apart.
        let mut schedule = Schedule::new(90_000);
        let behind: Vec<Duration> = [0_u32, 3, 1, 2, 6, 4, 5]
            .iter()
            .zip(0_u64..)
            .map(|(picture, turn)| schedule.next(picture * 3600, millis(turn * 40)).behind)
            .collect();
        assert_eq!(behind.iter().max(), Some(&millis(40)));
    }
}
