//! Which rendition a player asks for next. No I/O and no clock: throughput samples in, rungs out.

use std::time::Duration;

use crate::options::Abr;

/// Media seconds of download after which half of an average is made of newer samples.
const FAST_HALF_LIFE: f64 = 3.0;
/// The same for the average that keeps one lucky segment from switching up.
const SLOW_HALF_LIFE: f64 = 9.0;
/// A rung is gone up to when this share of the throughput carries it.
const UP_SHARE: f64 = 0.7;
/// A rung is stayed on while this share of the throughput carries it. Between the two nothing changes.
const STAY_SHARE: f64 = 0.95;
/// Below this much media ahead there is no going up: a wrong guess would stall.
const UP_BUFFER: f64 = 4.0;
/// A transfer shorter than this says more about the clock than about the network.
const LEAST_TIME: f64 = 0.001;

/// The rung of a bandwidth ladder that a player is on, and the throughput it has seen.
///
/// Call [`Ladder::sample`] after each segment and [`Ladder::choose`] before each.
#[derive(Clone, Debug)]
pub struct Ladder {
    policy: Abr,
    /// Bits per second, ascending.
    rungs: Vec<u64>,
    current: usize,
    fast: Average,
    slow: Average,
    switches: Switches,
}

/// How often a player changed its rendition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// To a higher bandwidth.
    pub up: u64,
    /// To a lower bandwidth.
    pub down: u64,
}

/// An exponentially weighted mean, weighted by time of transfer.
#[derive(Clone, Debug)]
struct Average {
    half_life: f64,
    value: f64,
    /// Seconds of transfer seen, so that the start does not count as zero.
    weight: f64,
}

impl Average {
    fn new(half_life: f64) -> Self {
        Self { half_life, value: 0.0, weight: 0.0 }
    }

    fn add(&mut self, weight: f64, value: f64) {
        let keep = 0.5_f64.powf(weight / self.half_life);
        self.value = value * (1.0 - keep) + self.value * keep;
        self.weight += weight;
    }

    /// Zero before the first sample.
    fn mean(&self) -> f64 {
        let seen = 1.0 - 0.5_f64.powf(self.weight / self.half_life);
        if seen > 0.0 { self.value / seen } else { 0.0 }
    }
}

impl Ladder {
    /// A player at the start of a title with these bandwidths, in bits per second and ascending.
    #[must_use]
    pub fn new(policy: Abr, rungs: Vec<u64>) -> Self {
        let current = if policy == Abr::Highest { rungs.len().saturating_sub(1) } else { 0 };
        let (fast, slow) = (Average::new(FAST_HALF_LIFE), Average::new(SLOW_HALF_LIFE));
        Self { policy, rungs, current, fast, slow, switches: Switches::default() }
    }

    /// The rung the player is on.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// The switches made so far.
    #[must_use]
    pub fn switches(&self) -> Switches {
        self.switches
    }

    /// Counts a transfer of `bytes`.
    pub fn sample(&mut self, bytes: u64, took: Duration) {
        let seconds = took.as_secs_f64().max(LEAST_TIME);
        let bits_per_second = bytes as f64 * 8.0 / seconds;
        self.fast.add(seconds, bits_per_second);
        self.slow.add(seconds, bits_per_second);
    }

    /// The rung for the next segment, with `ahead` seconds of media in the buffer.
    pub fn choose(&mut self, ahead: f64) -> usize {
        let throughput = self.fast.mean().min(self.slow.mean());
        if self.policy != Abr::Switching || throughput <= 0.0 {
            return self.current;
        }
        let carried = |share: f64| {
            let fitting = self.rungs.iter().take_while(|&&rung| rung as f64 <= throughput * share).count();
            fitting.saturating_sub(1)
        };
        let (stay, up) = (carried(STAY_SHARE), carried(UP_SHARE));
        if stay < self.current {
            // Not merely to what just carries it: from there the next dip would stall.
            self.current = up;
            self.switches.down += 1;
        } else if up > self.current && ahead >= UP_BUFFER {
            self.current = up;
            self.switches.up += 1;
        }
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNGS: [u64; 3] = [500_000, 1_000_000, 2_000_000];

    fn ladder(policy: Abr) -> Ladder {
        Ladder::new(policy, RUNGS.to_vec())
    }

    /// A 4-second transfer at this many bits per second.
    fn at(ladder: &mut Ladder, bits_per_second: u64) {
        ladder.sample(bits_per_second / 2, Duration::from_secs(4));
    }

    #[test]
    fn fixed_policies_never_move() {
        for (policy, rung) in [(Abr::Lowest, 0), (Abr::Highest, 2)] {
            let mut ladder = ladder(policy);
            for speed in [100_000, 50_000_000] {
                at(&mut ladder, speed);
                assert_eq!(ladder.choose(30.0), rung);
            }
            assert_eq!(ladder.switches(), Switches::default());
        }
    }

    #[test]
    fn follows_the_throughput_with_hysteresis() {
        let mut ladder = ladder(Abr::Switching);
        assert_eq!(ladder.choose(0.0), 0, "nothing is known yet");
        at(&mut ladder, 1_200_000);
        assert_eq!(ladder.choose(20.0), 0, "0.7 of 1.2 Mbit/s does not carry 1 Mbit/s");
        for _ in 0..20 {
            at(&mut ladder, 1_500_000);
        }
        assert_eq!(ladder.choose(20.0), 1);
        for _ in 0..20 {
            at(&mut ladder, 1_100_000);
        }
        assert_eq!(ladder.choose(20.0), 1, "0.95 of 1.1 Mbit/s still carries 1 Mbit/s");
        for _ in 0..20 {
            at(&mut ladder, 900_000);
        }
        assert_eq!(ladder.choose(20.0), 0);
        assert_eq!(ladder.switches(), Switches { up: 1, down: 1 });
    }

    #[test]
    fn goes_down_fast_and_up_slowly() {
        let mut ladder = ladder(Abr::Switching);
        for _ in 0..20 {
            at(&mut ladder, 10_000_000);
        }
        assert_eq!(ladder.choose(20.0), 2);
        at(&mut ladder, 100_000);
        at(&mut ladder, 100_000);
        assert!(ladder.choose(20.0) < 2, "two slow segments are enough to go down");
        let low = ladder.choose(20.0);
        at(&mut ladder, 3_000_000);
        assert_eq!(ladder.choose(20.0), low, "one fast segment is not enough to go up");
    }

    #[test]
    fn never_goes_up_on_an_empty_buffer() {
        let mut ladder = ladder(Abr::Switching);
        at(&mut ladder, 10_000_000);
        assert_eq!(ladder.choose(1.0), 0);
        assert_eq!(ladder.choose(UP_BUFFER), 2);
    }

    #[test]
    fn empty_ladders_and_instant_transfers_are_harmless() {
        let mut empty = Ladder::new(Abr::Highest, Vec::new());
        empty.sample(u64::MAX, Duration::ZERO);
        assert_eq!(empty.choose(20.0), 0);
        let mut ladder = ladder(Abr::Switching);
        ladder.sample(0, Duration::ZERO);
        assert_eq!(ladder.choose(20.0), 0);
    }
}
