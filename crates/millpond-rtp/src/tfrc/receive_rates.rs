//! The last receive rates that limit the sender (X_recv_set, RFC 5348 4.3).

use std::{collections::VecDeque, time::Duration};

/// Most rates that are kept: those of two round trips, whose feedback comes four times in each.
const MOST: usize = 8;

/// X_recv_set. The first measured rate replaces the initial infinite rate at once, not two round trips later. Rates are measured
/// over at least 0.1 s, so the first measured rate does not depend on a few packets.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiveRates {
    /// Times and bytes per second. Empty is the initial set, whose only rate is infinite.
    rates: VecDeque<(Duration, f64)>,
}

impl ReceiveRates {
    /// The largest rate; infinite before the first rate.
    pub(super) fn largest(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).reduce(f64::max).unwrap_or(f64::INFINITY)
    }

    /// Adds a rate, and removes rates that are older than two round trips.
    pub(super) fn update(&mut self, rate: f64, round_trip: Duration, now: Duration) {
        self.rates.retain(|(at, _)| now.saturating_sub(*at) <= 2 * round_trip);
        if self.rates.len() == MOST {
            self.rates.pop_front();
        }
        self.rates.push_back((now, rate));
    }

    /// Adds a rate and keeps only the largest.
    pub(super) fn maximize(&mut self, rate: f64, now: Duration) {
        let known = self.rates.iter().map(|(_, rate)| *rate).fold(rate, f64::max);
        self.replace(known, now);
    }

    /// Halves all rates.
    pub(super) fn halve(&mut self) {
        self.rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
    }

    /// Keeps nothing but one rate.
    pub(super) fn replace(&mut self, rate: f64, now: Duration) {
        self.rates.clear();
        self.rates.push_back((now, rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rates_of_two_round_trips_count() {
        let mut rates = ReceiveRates::default();
        assert_eq!(rates.largest(), f64::INFINITY);
        rates.update(500.0, 10 * MS, Duration::ZERO);
        rates.update(100.0, 10 * MS, 15 * MS);
        assert_eq!(rates.largest(), 500.0);
        rates.update(90.0, 10 * MS, 21 * MS);
        assert_eq!(rates.largest(), 100.0, "the first one is too old");
        rates.maximize(50.0, 30 * MS);
        assert_eq!(rates.largest(), 100.0);
        rates.halve();
        assert_eq!(rates.largest(), 50.0);
        for at in 31..100 {
            rates.update(1.0, 1000 * MS, at * MS);
        }
        assert_eq!((rates.rates.len(), rates.largest()), (MOST, 1.0));
    }
}
