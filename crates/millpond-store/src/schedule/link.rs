//! What the way to an origin gives, learnt from what comes over it.

use super::Seconds;

/// The way to an origin, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Seconds from a request to its first byte.
    pub delay: Seconds,
}

/// A transfer comes slowly at first, and what slow start loses comes again: never longer than so many seconds,
const START: Seconds = 0.8;
/// nor than so many round trips and one slice.
const ROUNDS: f64 = 5.0;

impl Link {
    /// By how much sooner a slice of so many bytes is sent for, as its transfer has to begin first, where a round trip takes
    /// so long (RFC 5681 3.1: from ten segments on twice as many each, which are half a megabyte after five).
    pub fn start(self, round_trip: Seconds, slice: u64) -> Seconds {
        START.min(ROUNDS * round_trip + slice as f64 / self.bandwidth)
    }
}

/// What is taken to be until something was measured: 1 MB/s and 100 ms.
const UNKNOWN: Link = Link { bandwidth: 1e6, delay: 0.1 };
/// One sample of the bandwidth takes this long, over as many transfers as that takes, where bytes come: what is left of
/// a transfer at its end comes in a burst, and says nothing alone.
const SAMPLE: Seconds = 0.2;
/// And has at least so many bytes.
const LEAST: u64 = 32 * 1024;
/// So many are enough, however soon they came.
const ENOUGH: u64 = 4 << 20;
/// In so many seconds in which bytes come, the quick average goes most of the way to what is measured, and the slow one: longer than a
/// lost packet holds up what follows, and than the burst behind it.
const QUICK: Seconds = 2.5;
const SLOW: Seconds = 8.0;

/// Measures a link by the bytes that come over it, all transfers together: while at least one of them has begun to
/// come, what comes in a second is what the link gives.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Transfers whose first bytes have come and whose last have not.
    coming: u32,
    /// Bytes that were sent for and have not come.
    outstanding: u64,
    /// Up to when the sample counts, the time in which bytes came of it, and those bytes.
    until: Seconds,
    time: Seconds,
    bytes: u64,
    /// Bytes that came in samples, and those that were there with a transfer's first byte, with the time from its request.
    sampled: u64,
    at_once: (u64, Seconds),
    /// Quick and slow moving averages: the lower one is believed.
    quick: Option<f64>,
    slow: Option<f64>,
    /// Mean and mean deviation, as TCP does it (RFC 6298 2).
    delay: Option<(Seconds, Seconds)>,
    /// The least delay, in which no queue has a part; it rises slowly where none is as short any more.
    least: Option<Seconds>,
}

impl Meter {
    /// Whether the time to the first byte of what is asked for now tells the delay: where others are on the way, it may
    /// have to wait for those.
    pub fn tells_delay(&self) -> bool {
        self.outstanding == 0 || self.delay.is_none()
    }

    /// Bytes a second where most transfers are there at once: what comes behind the first byte is then too little to be a sample. No
    /// more than a lower bound.
    fn at_once(&self) -> Option<f64> {
        let (bytes, time) = self.at_once;
        (bytes >= 8 * LEAST && bytes > 4 * self.sampled && time > 0.0).then(|| bytes as f64 / time)
    }

    /// Bytes are sent for.
    pub fn sent_for(&mut self, bytes: u64) {
        self.outstanding += bytes;
    }

    /// The first bytes of a transfer came, so long after they were sent for where that tells the delay. They had gathered
    /// somewhere, and say nothing of the bandwidth.
    pub fn begins(&mut self, now: Seconds, after: Option<Seconds>, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if self.coming == 0 {
            self.until = now;
        }
        self.coming += 1;
        let Some(after) = after else { return };
        self.at_once = (self.at_once.0 + bytes, self.at_once.1 + after);
        self.least = Some(self.least.map_or(after, |least| after.min(least + (after - least) / 64.0)));
        self.delay = Some(self.delay.map_or((after, after / 2.0), |(mean, deviation)| {
            (mean + (after - mean) / 8.0, deviation + ((after - mean).abs() - deviation) / 4.0)
        }));
    }

    /// Bytes came.
    pub fn comes(&mut self, now: Seconds, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.bytes += bytes;
        self.sampled += bytes;
        self.sample(now);
    }

    /// A transfer ended; `rest` of what was sent for will not come. `begun` says whether anything of it had.
    pub fn ends(&mut self, now: Seconds, rest: u64, begun: bool) {
        self.outstanding = self.outstanding.saturating_sub(rest);
        if begun {
            self.sample(now);
            self.coming = self.coming.saturating_sub(1);
        }
    }

    fn sample(&mut self, now: Seconds) {
        self.time += (now - self.until).max(0.0);
        self.until = now;
        // The first one can't wait: until then nothing is known.
        let is_enough = self.bytes >= if self.slow.is_none() { 8 * LEAST } else { ENOUGH };
        if self.time <= 0.0 || self.bytes < LEAST || (self.time < SAMPLE && !is_enough) {
            return;
        }
        let rate = self.bytes as f64 / self.time;
        // By time: what comes in a burst, behind a gap, counts no more than the gap.
        let towards = |old: Option<f64>, time: Seconds| {
            Some(old.map_or(rate, |old| old + (rate - old) * (1.0 - (-self.time / time).exp())))
        };
        (self.quick, self.slow) = (towards(self.quick, QUICK), towards(self.slow, SLOW));
        (self.time, self.bytes) = (0.0, 0);
    }

    /// What the link is taken to give.
    pub fn link(&self) -> Link {
        let sampled = self.quick.zip(self.slow).map(|(quick, slow)| quick.min(slow));
        let bandwidth = sampled.or_else(|| self.at_once()).unwrap_or(UNKNOWN.bandwidth);
        let delay = self.delay.map_or(UNKNOWN.delay, |(mean, deviation)| mean + 2.0 * deviation);
        Link { bandwidth: bandwidth.max(1.0), delay }
    }

    /// Seconds from a request to its first byte where nothing is in its way.
    pub fn least_delay(&self) -> Seconds {
        self.least.unwrap_or(UNKNOWN.delay)
    }

    /// Seconds for which what was sent for keeps the link busy.
    pub fn busy(&self) -> Seconds {
        self.outstanding as f64 / self.link().bandwidth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_behind_gaps_are_no_faster_link() {
        // 189 kB/s: nothing for 0.4 s, and then what had gathered, time and again.
        let mut meter = Meter::default();
        meter.sent_for(10_000_000);
        meter.begins(0.0, None, 0);
        let mut highest: f64 = 0.0;
        for gap in 1..60 {
            for chunk in 0..8 {
                meter.comes(f64::from(gap) * 0.4 + f64::from(chunk) * 1e-4, 9_450);
                if gap > 10 {
                    highest = highest.max(meter.link().bandwidth);
                }
            }
        }
        assert!((100e3..220e3).contains(&highest), "{highest}");
    }

    #[test]
    fn transfers_that_are_there_at_once_tell_a_quick_link() {
        let mut meter = Meter::default();
        for transfer in 0..8 {
            let now = f64::from(transfer);
            assert_eq!(meter.link().bandwidth == UNKNOWN.bandwidth, transfer < 4, "{transfer}");
            meter.sent_for(65_536);
            meter.begins(now, Some(0.001), 65_536);
            meter.ends(now, 0, true);
        }
        assert!((meter.link().bandwidth - 65.5e6).abs() < 1e6);
        // The first bytes of long transfers say nothing, however soon they come.
        let mut meter = Meter::default();
        for transfer in 0..20 {
            let now = f64::from(transfer);
            meter.sent_for(96_000);
            meter.begins(now, Some(0.001), 16_000);
            meter.comes(now + 0.4, 80_000);
            meter.ends(now + 0.4, 0, true);
        }
        assert!(meter.link().bandwidth < 250e3, "{:?}", meter.link());
    }

    #[test]
    fn a_start_costs_round_trips_and_a_slice_but_no_more_than_it_takes_to_lose_and_send_again() {
        let start = |bandwidth, round_trip| Link { bandwidth, delay: 9.0 }.start(round_trip, 500_000);
        assert_eq!(start(1e5, 0.0), 0.8, "a thin link");
        assert_eq!(start(1e7, 0.05), 0.3, "a far one");
        assert!(start(1e9, 0.0002) < 0.002, "a near one");
    }

    #[test]
    fn a_link_is_learnt_from_what_comes_over_it() {
        let mut meter = Meter::default();
        assert_eq!(meter.link(), UNKNOWN);
        // Two transfers at once, 1 MB/s together, the first byte after 50 ms.
        assert!(meter.tells_delay());
        meter.sent_for(1_000_000);
        meter.sent_for(1_000_000);
        meter.begins(0.05, Some(0.05), 0);
        meter.begins(0.05, Some(0.05), 0);
        for step in 1..=200 {
            meter.comes(0.05 + f64::from(step) * 0.01, 10_000);
        }
        meter.ends(2.05, 0, true);
        meter.ends(2.05, 0, true);
        let link = meter.link();
        assert!((link.bandwidth - 1e6).abs() < 1e4, "{link:?}");
        assert!((0.05..0.11).contains(&link.delay), "{link:?}");
        assert_eq!(meter.least_delay(), 0.05);
        assert_eq!(meter.busy(), 0.0);
        // Idle for long: that says nothing. Then it is slower, which is believed after some seconds.
        meter.sent_for(1_500_000);
        meter.begins(100.0, None, 0);
        for step in 1..=600 {
            meter.comes(100.0 + f64::from(step) * 0.01, 2_000);
        }
        assert!((meter.busy() - 300_000.0 / meter.link().bandwidth).abs() < 1e-9);
        assert!(!meter.tells_delay());
        meter.ends(106.0, 300_000, true);
        assert_eq!(meter.busy(), 0.0);
        assert!(meter.link().bandwidth < 3e5, "{:?}", meter.link());
        // The last bytes of a transfer come at once: no faster link.
        let before = meter.link().bandwidth;
        for transfer in 0..5 {
            let start = 200.0 + f64::from(transfer) * 10.0;
            meter.sent_for(240_000);
            meter.begins(start, None, 0);
            meter.comes(start + 0.99, 198_000);
            meter.comes(start + 1.0, 42_000);
            meter.ends(start + 1.0, 0, true);
        }
        assert!(meter.link().bandwidth < before * 1.2, "{:?}", meter.link());
    }
}
