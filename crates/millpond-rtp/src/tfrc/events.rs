//! Loss events: losses of one round trip count as one (RFC 5348 5.2).

use super::intervals::LossIntervals;
use std::time::Duration;

/// The loss events of a flow, and their rate.
#[derive(Clone, Debug, Default)]
pub struct LossEvents {
    intervals: LossIntervals,
    /// Time of the first loss of the last event.
    began: Duration,
    events: u64,
}

impl LossEvents {
    /// Counts packets of the sequence, whether they arrived or not. An interval has all packets from the first packet of its loss
    /// event to the last packet before the next event (RFC 5348 5.3).
    pub fn count_packets(&mut self, packets: u64) {
        self.intervals.add(packets);
    }

    /// Notes that a packet, which was counted already, is lost. `at` is the time at which it would have arrived; callers may use
    /// sending times instead, for all packets. `tail` is the number of counted packets from this one to the newest. Returns
    /// whether a loss event begins with it. `first_interval` gives the length of the interval before the first event (RFC 5348
    /// 6.3.1).
    pub fn lost(
        &mut self,
        at: Duration,
        round_trip: Duration,
        tail: u64,
        first_interval: impl FnOnce() -> f64,
    ) -> bool {
        let is_new = if !self.intervals.has_loss() {
            self.intervals.close_with(first_interval(), tail);
            true
        } else if at > self.began + round_trip {
            self.intervals.close(tail);
            true
        } else {
            false
        };
        if is_new {
            self.began = at;
            self.events += 1;
        }
        is_new
    }

    /// Loss event rate p: 0 before the first loss, else up to 1.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.intervals.loss_event_rate()
    }

    /// Number of loss events.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut events = LossEvents::default();
        assert_eq!(events.rate(), 0.0);
        events.count_packets(1000);
        assert!(events.lost(MS * 500, MS * 100, 1, || 50.0));
        assert!((events.rate() - 0.02).abs() < 1e-9, "the first interval is the computed one");
        for time in [510, 550, 600] {
            events.count_packets(1);
            assert!(!events.lost(MS * time, MS * 100, 1, || 0.0));
        }
        events.count_packets(1);
        assert!(!events.lost(MS * 400, MS * 100, 1, || 0.0), "a report that came late");
        // The last four of these are a lost packet and three after it, by which the loss is known.
        events.count_packets(44);
        assert!(events.lost(MS * 601, MS * 100, 4, || 0.0));
        assert_eq!(events.number(), 2);
        // 5 lost and 40 received packets from one event to the next.
        let mean = (45.0 + 50.0) / 2.0;
        assert!((events.rate() - 1.0 / mean).abs() < 1e-9, "{}", events.rate());
    }
}
