//! Measures the link to an origin by the transfers that use it.

use super::Seconds;
use std::collections::VecDeque;

/// Estimate of the link to an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEstimate {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Seconds from a request to its first byte.
    pub delay: Seconds,
}

/// Longest start-up of a transfer. Slow start costs no more than this, because lost packets are sent again.
const START: Seconds = 0.8;
/// Round trips until a transfer has reached the rate of the link.
const ROUNDS: f64 = 5.0;

impl LinkEstimate {
    /// Returns by how many seconds a slice of `slice` bytes must be requested earlier because its transfer starts
    /// slowly.
    /// A sender begins with ten segments and doubles them each round trip (RFC 5681 3.1): half a megabyte after five.
    pub fn start(self, round_trip: Seconds, slice: u64) -> Seconds {
        START.min(ROUNDS * round_trip + slice as f64 / self.bandwidth)
    }
}

/// The state of the link at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// Bandwidth and mean delay.
    pub estimate: LinkEstimate,
    /// Seconds for which the requested bytes keep the link busy.
    pub busy: Seconds,
    /// Seconds from a request to its first byte on an idle link.
    pub least_delay: Seconds,
    /// The stores that send objects together; `None` where one link carries all.
    pub lanes: Option<LinkLanes>,
}

/// Several stores that send one object together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLanes {
    /// Slices that may be on their way ahead of viewers.
    pub slices: usize,
    /// Bytes of a unit of each store. A unit arrives at the rate of its store, so all units together take the time of one.
    pub row: u64,
    /// Share of the bandwidth that is left without one store; 1 where units have no copies.
    pub spare: f64,
    /// Seconds after which another copy is read; 0 where units have no copies.
    pub patience: Seconds,
}

impl LinkLanes {
    /// Returns what may be expected of the link: that a unit takes the time of its store, and that a store fails whose units
    /// have copies.
    #[must_use]
    pub fn expected(&self, link: LinkEstimate) -> LinkEstimate {
        let bandwidth = link.bandwidth * self.spare.clamp(0.1, 1.0);
        LinkEstimate { bandwidth, delay: link.delay + self.patience + self.row as f64 / bandwidth }
    }
}

/// The estimate before anything was measured: 1 MB/s and 100 ms.
const UNKNOWN: LinkEstimate = LinkEstimate { bandwidth: 1e6, delay: 0.1 };
/// Length of a window of the bandwidth, in seconds with traffic, over as many transfers as necessary. A burst is shorter: what
/// gathered behind a lost packet, the last bytes of a transfer, or the credit that a shaper of rates gives first.
const WINDOW: Seconds = 1.0;
/// Fewest bytes of a window.
const LEAST: u64 = 32 * 1024;
/// Bytes that make a window, however short it is: a fast link carries them in less than a second.
const ENOUGH: u64 = 16 << 20;
/// Most windows that count.
const WINDOWS: usize = 8;
/// Time for which the link is taken to have the unknown bandwidth, until a window is full. So a short burst counts by its bytes.
const UNSEEN: Seconds = 1.0;

/// Measures a link by the bytes of all its transfers together. While at least one transfer has begun, the bytes that
/// arrive in a second are the bandwidth of the link.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Transfers in progress, from their first byte on.
    arriving: u32,
    /// Bytes requested that have not arrived.
    outstanding: u64,
    /// The window under way: its last moment, its seconds with traffic, and its bytes.
    until: Seconds,
    time: Seconds,
    bytes: u64,
    /// Bytes of all windows.
    sampled: u64,
    /// Bytes that arrived together with the first byte of their transfer, and the seconds since its request.
    at_once: (u64, Seconds),
    /// Bandwidths of the last windows, the oldest first.
    windows: VecDeque<f64>,
    /// Mean and mean deviation of the delay (RFC 6298 2).
    delay: Option<(Seconds, Seconds)>,
    /// The least delay, which contains no queueing. It rises slowly while no delay is as short.
    least: Option<Seconds>,
}

impl Meter {
    /// Returns whether a request made now measures the delay. Behind other transfers it would measure their queue.
    pub fn tells_delay(&self) -> bool {
        self.outstanding == 0 || self.delay.is_none()
    }

    /// Returns a lower bound of the bandwidth where most transfers arrive whole with their first byte, and leave too little
    /// behind it for a sample.
    fn at_once(&self) -> Option<f64> {
        let (bytes, time) = self.at_once;
        (bytes >= 8 * LEAST && bytes > 4 * self.sampled && time > 0.0).then(|| bytes as f64 / time)
    }

    /// Counts bytes that are requested.
    pub fn requested(&mut self, bytes: u64) {
        self.outstanding += bytes;
    }

    /// Counts the first bytes of a transfer. `after` is the time since its request, if that measures the delay. These
    /// bytes gathered in buffers, and do not measure the bandwidth.
    pub fn begins(&mut self, now: Seconds, after: Option<Seconds>, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        if self.arriving == 0 {
            self.until = now;
        }
        self.arriving += 1;
        let Some(after) = after else { return };
        self.at_once = (self.at_once.0 + bytes, self.at_once.1 + after);
        self.least = Some(self.least.map_or(after, |least| after.min(least + (after - least) / 64.0)));
        self.delay = Some(self.delay.map_or((after, after / 2.0), |(mean, deviation)| {
            (mean + (after - mean) / 8.0, deviation + ((after - mean).abs() - deviation) / 4.0)
        }));
    }

    /// Counts further bytes of a transfer.
    pub fn arrived(&mut self, now: Seconds, bytes: u64) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.bytes += bytes;
        self.sampled += bytes;
        self.sample(now);
    }

    /// Ends a transfer of which `rest` requested bytes will not arrive. `begun` says whether any had arrived.
    pub fn ends(&mut self, now: Seconds, rest: u64, begun: bool) {
        self.outstanding = self.outstanding.saturating_sub(rest);
        if begun {
            self.sample(now);
            self.arriving = self.arriving.saturating_sub(1);
        }
    }

    fn sample(&mut self, now: Seconds) {
        self.time += (now - self.until).max(0.0);
        self.until = now;
        let is_full = self.bytes >= ENOUGH || (self.time >= WINDOW && self.bytes >= LEAST);
        if !is_full || self.time <= 0.0 {
            return;
        }
        if self.windows.len() == WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back(self.bytes as f64 / self.time);
        (self.time, self.bytes) = (0.0, 0);
    }

    /// Returns the bandwidth that three of four windows had at least: one that a deadline can be staked on. A link that became
    /// slower is known after two windows, one that became faster after seven.
    fn sustained(&self) -> Option<f64> {
        let mut windows: Vec<f64> = self.windows.iter().copied().collect();
        windows.sort_by(f64::total_cmp);
        windows.get(windows.len().div_ceil(4).checked_sub(1)?).copied()
    }

    /// Returns the bandwidth of the first window while it is under way, with the unknown bandwidth for the time that it lacks.
    fn begun(&self) -> Option<f64> {
        let unseen = UNKNOWN.bandwidth * UNSEEN;
        (self.bytes >= LEAST).then(|| (unseen + self.bytes as f64) / (UNSEEN + self.time))
    }

    /// Returns the measured bandwidth in bytes a second; `None` before anything was measured.
    pub fn measured(&self) -> Option<f64> {
        let measured = self.sustained().or_else(|| self.at_once()).or_else(|| self.begun());
        measured.map(|bandwidth| bandwidth.max(1.0))
    }

    /// Returns a bandwidth that a start can be staked on; `None` before anything was measured. The first window counts by its own
    /// rate where that is the lower one: a link may be slower than the unknown bandwidth, and a burst is no rate.
    pub fn prudent(&self) -> Option<f64> {
        let slow = || self.begun().filter(|_| self.time > 0.0).map(|begun| begun.min(self.bytes as f64 / self.time));
        let measured = self.sustained().or_else(|| self.at_once()).or_else(slow);
        measured.map(|bandwidth| bandwidth.max(1.0))
    }

    /// Whether a window is full. Before that, what was measured is a lower bound.
    pub fn is_measured(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Returns the current estimate.
    pub fn estimate(&self) -> LinkEstimate {
        let bandwidth = self.measured().unwrap_or(UNKNOWN.bandwidth);
        let delay = self.delay.map_or(UNKNOWN.delay, |(mean, deviation)| mean + 2.0 * deviation);
        LinkEstimate { bandwidth, delay }
    }

    /// Returns the state of the link for [`Planner::plan`](super::Planner::plan).
    pub fn state(&self) -> LinkState {
        let estimate = self.estimate();
        let busy = self.outstanding as f64 / estimate.bandwidth;
        LinkState { estimate, busy, least_delay: self.least.unwrap_or(UNKNOWN.delay), lanes: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_behind_gaps_do_not_look_like_a_faster_link() {
        // 189 kB/s in bursts: no bytes for 0.4 s, then the bytes that had gathered.
        let mut meter = Meter::default();
        meter.requested(10_000_000);
        meter.begins(0.0, None, 0);
        let mut highest: f64 = 0.0;
        for gap in 1..60 {
            for chunk in 0..8 {
                meter.arrived(f64::from(gap) * 0.4 + f64::from(chunk) * 1e-4, 9_450);
                if gap > 10 {
                    highest = highest.max(meter.estimate().bandwidth);
                }
            }
        }
        assert!((100e3..220e3).contains(&highest), "{highest}");
    }

    /// Carries bytes at a rate, in chunks of ten milliseconds; returns the time afterwards.
    fn carries(meter: &mut Meter, now: Seconds, bytes: u64, rate: f64) -> Seconds {
        let chunk = (rate * 0.01) as u64;
        (1..=bytes / chunk).fold(now, |now, _| {
            meter.arrived(now + 0.01, chunk);
            now + 0.01
        })
    }

    #[test]
    fn a_burst_before_a_slow_transfer_is_no_bandwidth() {
        // 300 kB/s behind a burst: the credit of a token bucket, or the first seconds of a reply that nginx limits.
        for burst in [256 << 10, 2 << 20, 8 << 20, 15_u64 << 20] {
            let mut meter = Meter::default();
            meter.requested(1 << 30);
            meter.begins(0.0, None, 0);
            meter.arrived(burst as f64 / 259e6, burst);
            let highest = 1e6 + burst as f64;
            assert!(meter.estimate().bandwidth <= highest, "{burst}: {:?}", meter.estimate());
            let now = carries(&mut meter, burst as f64 / 259e6, 700_000, 300e3);
            let after = meter.estimate().bandwidth;
            assert!((299e3..330e3).contains(&after), "{burst}: {after} after {now} s");
        }
    }

    #[test]
    fn a_start_is_staked_on_the_lower_rate_of_the_first_window() {
        let mut meter = Meter::default();
        meter.requested(1 << 30);
        meter.begins(0.0, None, 0);
        assert_eq!(meter.prudent(), None);
        // A slow link is known by its own rate, long before the window is full.
        carries(&mut meter, 0.0, 45_000, 150e3);
        let prudent = meter.prudent().unwrap();
        assert!((140e3..160e3).contains(&prudent) && meter.estimate().bandwidth > 800e3, "{prudent}");
        // A burst counts by its bytes.
        let mut meter = Meter::default();
        meter.requested(1 << 30);
        meter.begins(0.0, None, 0);
        meter.arrived(0.001, 256 << 10);
        assert!(meter.prudent().unwrap() < 1.3e6);
    }

    #[test]
    fn bursts_behind_idle_times_do_not_raise_the_estimate() {
        let mut meter = Meter::default();
        meter.requested(1 << 30);
        meter.begins(0.0, None, 0);
        let mut now = carries(&mut meter, 0.0, 3_000_000, 300e3);
        for _ in 0..5 {
            // The link rests, and has credit again.
            now += 60.0;
            meter.ends(now, 0, true);
            meter.begins(now, None, 0);
            meter.arrived(now + 0.02, 5_000_000);
            now = carries(&mut meter, now + 0.02, 1_500_000, 300e3);
            let bandwidth = meter.estimate().bandwidth;
            assert!((290e3..330e3).contains(&bandwidth), "{bandwidth}");
        }
    }

    #[test]
    fn a_link_that_halves_is_known_after_two_seconds_and_one_that_doubles_after_seven() {
        let mut meter = Meter::default();
        meter.requested(1 << 30);
        meter.begins(0.0, None, 0);
        let now = carries(&mut meter, 0.0, 10_000_000, 1e6);
        let now = carries(&mut meter, now, 1_100_000, 500e3);
        assert!(meter.estimate().bandwidth < 520e3, "{:?}", meter.estimate());
        let now = carries(&mut meter, now, 5_000_000, 500e3);
        carries(&mut meter, now, 7_200_000, 1e6);
        assert!(meter.estimate().bandwidth > 950e3, "{:?}", meter.estimate());
    }

    #[test]
    fn transfers_that_arrive_whole_measure_a_fast_link() {
        let mut meter = Meter::default();
        for transfer in 0..8 {
            let now = f64::from(transfer);
            assert_eq!(meter.estimate().bandwidth == UNKNOWN.bandwidth, transfer < 4, "{transfer}");
            meter.requested(65_536);
            meter.begins(now, Some(0.001), 65_536);
            meter.ends(now, 0, true);
        }
        assert!((meter.estimate().bandwidth - 65.5e6).abs() < 1e6);
        // The first bytes of long transfers do not measure the bandwidth, however early they arrive.
        let mut meter = Meter::default();
        for transfer in 0..20 {
            let now = f64::from(transfer);
            meter.requested(96_000);
            meter.begins(now, Some(0.001), 16_000);
            meter.arrived(now + 0.4, 80_000);
            meter.ends(now + 0.4, 0, true);
        }
        assert!(meter.estimate().bandwidth < 250e3, "{:?}", meter.estimate());
    }

    #[test]
    fn a_slow_start_costs_round_trips_and_one_slice_but_no_more_than_its_limit() {
        let start = |bandwidth, round_trip| LinkEstimate { bandwidth, delay: 9.0 }.start(round_trip, 500_000);
        assert_eq!(start(1e5, 0.0), 0.8, "a thin link");
        assert_eq!(start(1e7, 0.05), 0.3, "a far one");
        assert!(start(1e9, 0.0002) < 0.002, "a near one");
    }

    #[test]
    fn a_link_is_measured_by_its_transfers() {
        let mut meter = Meter::default();
        assert_eq!(meter.estimate(), UNKNOWN);
        // Two transfers at once, 1 MB/s together, the first byte after 50 ms.
        assert!(meter.tells_delay());
        meter.requested(1_000_000);
        meter.requested(1_000_000);
        meter.begins(0.05, Some(0.05), 0);
        meter.begins(0.05, Some(0.05), 0);
        for step in 1..=200 {
            meter.arrived(0.05 + f64::from(step) * 0.01, 10_000);
        }
        meter.ends(2.05, 0, true);
        meter.ends(2.05, 0, true);
        let link = meter.estimate();
        assert!((link.bandwidth - 1e6).abs() < 1e4, "{link:?}");
        assert!((0.05..0.11).contains(&link.delay), "{link:?}");
        assert_eq!(meter.state().least_delay, 0.05);
        assert_eq!(meter.state().busy, 0.0);
        // An idle time measures nothing. Then the link is slower, which the estimate shows after some seconds.
        meter.requested(1_500_000);
        meter.begins(100.0, None, 0);
        for step in 1..=600 {
            meter.arrived(100.0 + f64::from(step) * 0.01, 2_000);
        }
        assert!((meter.state().busy - 300_000.0 / meter.estimate().bandwidth).abs() < 1e-9);
        assert!(!meter.tells_delay());
        meter.ends(106.0, 300_000, true);
        assert_eq!(meter.state().busy, 0.0);
        assert!(meter.estimate().bandwidth < 3e5, "{:?}", meter.estimate());
        // The last bytes of a transfer arrive in a burst: the link is not faster.
        let before = meter.estimate().bandwidth;
        for transfer in 0..5 {
            let start = 200.0 + f64::from(transfer) * 10.0;
            meter.requested(240_000);
            meter.begins(start, None, 0);
            meter.arrived(start + 0.99, 198_000);
            meter.arrived(start + 1.0, 42_000);
            meter.ends(start + 1.0, 0, true);
        }
        assert!(meter.estimate().bandwidth < before * 1.2, "{:?}", meter.estimate());
    }
}
