//! Loss intervals and their average (RFC 5348 5.4 and 5.5).

use std::collections::VecDeque;

/// Weights of the last intervals, the newest first (RFC 5348 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Lower bound of the discount factor (RFC 5348 5.5).
const THRESHOLD: f64 = 0.25;

/// The last loss intervals: packets from one loss event to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct LossIntervals {
    /// Packets since the first one of the last loss event: I_0, the open interval.
    open: f64,
    /// Closed intervals, the newest first.
    closed: VecDeque<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    packets: f64,
    /// Discount factor DF_i.
    discount: f64,
}

impl LossIntervals {
    /// Whether a loss event has occurred.
    pub(super) fn has_loss(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Adds packets of the sequence to the open interval, lost ones too (RFC 5348 5.3).
    pub(super) fn add(&mut self, packets: u64) {
        self.open += packets as f64;
    }

    /// Closes the open interval at a loss event. `tail` is the number of packets from the lost one to the newest: they are the
    /// next interval's.
    pub(super) fn close(&mut self, tail: u64) {
        self.close_with(self.open - tail as f64, tail);
    }

    /// Closes the first interval, whose length is computed from the rate (RFC 5348 6.3.1).
    pub(super) fn close_with(&mut self, packets: f64, tail: u64) {
        let discount = self.discount();
        for interval in &mut self.closed {
            interval.discount *= discount;
        }
        self.closed.push_front(Interval { packets: packets.max(1.0), discount: 1.0 });
        self.closed.truncate(WEIGHTS.len());
        self.open = tail as f64;
    }

    /// Loss event rate p: 0 before the first loss event, else up to 1.
    pub(super) fn loss_event_rate(&self) -> f64 {
        if self.closed.is_empty() {
            return 0.0;
        }
        let discount = self.discount();
        // As many intervals as without the open one: the oldest is left out (k in RFC 5348 5.4).
        let older = self.closed.iter().take(self.closed.len() - 1).zip(&WEIGHTS[1..]);
        let with_open = older.fold((self.open, WEIGHTS[0]), |(total, weights), (interval, weight)| {
            let weight = weight * interval.discount * discount;
            (total + interval.packets * weight, weights + weight)
        });
        let (total, weights) = if self.mean(with_open) > self.mean(self.sum()) { with_open } else { self.sum() };
        (weights / total).min(1.0)
    }

    /// Weighted sum of the closed intervals, and the sum of weights.
    fn sum(&self) -> (f64, f64) {
        self.closed.iter().zip(&WEIGHTS).fold((0.0, 0.0), |(total, weights), (interval, weight)| {
            let weight = weight * interval.discount;
            (total + interval.packets * weight, weights + weight)
        })
    }

    fn mean(&self, (total, weights): (f64, f64)) -> f64 {
        total / weights
    }

    /// Discount factor DF: below 1 where the open interval is more than twice the mean of the closed ones (RFC 5348 5.5).
    fn discount(&self) -> f64 {
        let twice = 2.0 * self.mean(self.sum());
        if self.open > twice { (twice / self.open).max(THRESHOLD) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(all: &[u64]) -> LossIntervals {
        let mut intervals = LossIntervals::default();
        for packets in all {
            intervals.add(*packets);
            intervals.close(0);
        }
        intervals
    }

    #[test]
    fn equal_intervals_have_their_own_average() {
        for count in 1..20 {
            let rate = intervals(&vec![100; count]).loss_event_rate();
            assert!((rate - 0.01).abs() < 1e-9, "{count}: {rate}");
        }
        assert_eq!(LossIntervals::default().loss_event_rate(), 0.0);
    }

    #[test]
    fn older_intervals_weigh_less_and_the_ninth_nothing() {
        // The newest comes last: 0.2 * 800 + 0.4 * 100 + ... of a weight of 6.
        let rate = intervals(&[1_000_000, 800, 100, 100, 100, 100, 100, 100, 100]).loss_event_rate();
        let mean = (5.8 * 100.0 + 0.2 * 800.0) / 6.0;
        assert!((rate - 1.0 / mean).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn the_open_interval_counts_once_it_raises_the_mean() {
        let mut some = intervals(&[100; 8]);
        some.add(90);
        assert!((some.loss_event_rate() - 0.01).abs() < 1e-9);
        some.add(60);
        let mean = (150.0 + 5.0 * 100.0) / 6.0;
        assert!((some.loss_event_rate() - 1.0 / mean).abs() < 1e-9);
    }

    #[test]
    fn the_open_interval_takes_the_place_of_the_oldest_one() {
        let mut some = intervals(&[100; 2]);
        some.add(150);
        assert!((some.loss_event_rate() - 1.0 / 125.0).abs() < 1e-9);
        let mut one = intervals(&[100]);
        one.add(150);
        assert!((one.loss_event_rate() - 1.0 / 150.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_time_without_loss_discounts_the_past() {
        let mut some = intervals(&[100; 8]);
        some.add(300);
        // DF = 200 / 300.
        let mean = (300.0 + 5.0 * 100.0 * 2.0 / 3.0) / (1.0 + 5.0 * 2.0 / 3.0);
        assert!((some.loss_event_rate() - 1.0 / mean).abs() < 1e-9);
        some.add(10_000);
        // DF is at its threshold.
        let mean = (10_300.0 + 5.0 * 100.0 * 0.25) / (1.0 + 5.0 * 0.25);
        assert!((some.loss_event_rate() - 1.0 / mean).abs() < 1e-9);
        some.close(0);
        // The discount stays with the intervals that had it.
        let mean = (10_300.0 + 5.0 * 100.0 * 0.25) / (1.0 + 5.0 * 0.25);
        assert!((some.loss_event_rate() - 1.0 / mean).abs() < 1e-9);
    }

    #[test]
    fn losses_of_everything_stay_a_rate_of_one() {
        let rate = intervals(&[0, 0, 1, 1, 0]).loss_event_rate();
        assert!((rate - 1.0).abs() < 1e-9);
    }
}
