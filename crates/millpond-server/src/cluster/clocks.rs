//! The wall clocks of the nodes: compared by the answers to probes, shown, and corrected for.

use super::{Cluster, WallClocks, watchers::probed_address};
use futures_util::future::join_all;
use millpond_cluster::{ClockReading, Clocks, Node, SharedTime, View};
use std::{
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Field of answers to probes, with numbers of milliseconds: wall time of the machine since 1970; once the node has agreed on a time with others, that time
/// since 1970, and how long it has been shared.
pub(crate) const CLOCK_HEADER: &str = "millpond-clock";
/// Moment since which a node shares its time that does not.
pub(super) const NEVER: i64 = i64::MAX;
/// Difference from which operators are told, in milliseconds.
const TOLD: i64 = 2000;

/// The times that an answer states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatedTimes {
    wall: Duration,
    shared: Option<SharedTime>,
}

impl StatedTimes {
    /// Those of the head of an answer.
    pub(super) fn of_head(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| name.eq_ignore_ascii_case(CLOCK_HEADER))?;
        Self::parse(value)
    }

    /// Those of the field's value.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let mut times = value.split_ascii_whitespace().map(|text| text.parse().ok().map(Duration::from_millis));
        let wall = times.next()??;
        let shared = times.next().flatten().zip(times.next().flatten()).map(|(time, age)| SharedTime { time, age });
        Some(Self { wall, shared })
    }

    /// The reading of clocks that were asked at a time, and answered at another one.
    pub(super) fn read(self, asked: Duration, answered: Duration) -> ClockReading {
        ClockReading { wall: self.wall, shared: self.shared, asked, answered }
    }
}

fn signed(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Cluster {
    /// The times of this node, as other nodes compare them.
    pub(crate) fn stated_times(&self) -> String {
        let wall = milliseconds(self.wall.system.now());
        match self.shared_age() {
            Some(age) => format!("{wall} {} {}", milliseconds(self.wall.bookings.now()), milliseconds(age)),
            None => wall.to_string(),
        }
    }

    /// How long the time of bookings of this node has been shared; `None` before it has begun, or taken over that of others.
    fn shared_age(&self) -> Option<Duration> {
        let since = Some(self.shared_since.load(Ordering::Relaxed)).filter(|since| *since != NEVER)?;
        Some(Duration::from_millis(u64::try_from(signed(self.now()) - since).unwrap_or(0)))
    }

    /// Notes that this node begins to share its time, unless it has taken over that of others.
    pub(super) fn shares_its_time(&self) {
        let now = signed(self.now());
        let _ = self.shared_since.compare_exchange(NEVER, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the clocks before this node serves, so that it books by the time of the others, and numbers its live streams by it. Where none of them
    /// answers within three seconds, it goes by its own clock.
    pub(super) async fn compare_clocks_first(&self) {
        /// Most nodes that are asked at once.
        const MOST: usize = 8;
        const PATIENCE: Duration = Duration::from_secs(3);
        const PAUSE: Duration = Duration::from_millis(200);
        let end = Instant::now() + PATIENCE;
        loop {
            let view = self.view();
            let is_other = |node: &&Node| node.name != *self.name() && !node.draining;
            let others: Vec<_> = view.nodes().iter().filter(is_other).filter_map(probed_address).take(MOST).collect();
            join_all(others.iter().map(|address| self.reach.again(address))).await;
            self.compare_clocks(&view);
            if others.is_empty() || self.has_compared(&view) || Instant::now() >= end {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Whether any other node has told its clock.
    pub(super) fn has_compared(&self, view: &View) -> bool {
        view.nodes().iter().any(|node| node.name != *self.name() && self.clock_ahead(node).is_some())
    }

    /// Takes over the times that the last probes brought, and corrects the clock of this node by them.
    pub(super) fn compare_clocks(&self, view: &View) {
        let (wall, now) = (self.wall.system.now(), self.now());
        let mut clocks = self.clocks();
        clocks.keep(|name| view.node(name.as_str()).is_some());
        for node in view.nodes().iter().filter(|node| node.name != *self.name()) {
            if let Some(reading) = probed_address(node).and_then(|address| self.reach.clock(address)) {
                clocks.note(&node.name, reading);
            }
        }
        let (median, greatest) = (clocks.median(wall, now), clocks.greatest(wall, now));
        let WallClocks { bookings, runs, .. } = &self.wall;
        let own = bookings.now();
        let taken = clocks.shared((own, self.shared_age()), now);
        drop(clocks);
        if let Some(SharedTime { time, age }) = taken {
            let by = signed(time) - signed(own);
            tracing::debug!(by, ?age, "this node takes over the time of bookings of other nodes");
            bookings.correct(bookings.correction() + by);
            self.shared_since.store(signed(now) - signed(age), Ordering::Relaxed);
        }
        // Numbers of live streams rise, also after a node that was ahead is gone.
        runs.correct(greatest.max(runs.correction()));
        self.metrics.clock_offset.set(-median as f64 / 1000.0);
        self.tell_clock(-median);
    }

    /// Tells in the log where this node's clock begins to be wrong, and where it is right again. `ahead` are milliseconds.
    fn tell_clock(&self, ahead: i64) {
        let is_wrong = ahead.abs() >= TOLD;
        if self.has_wrong_clock.swap(is_wrong, Ordering::Relaxed) == is_wrong {
            return;
        }
        let seconds = ahead as f64 / 1000.0;
        match is_wrong {
            true => tracing::warn!(
                ahead = seconds,
                "the clock of this machine differs from those of most nodes, by seconds. Bookings and numbers of live segments do not suffer: set it, with NTP"
            ),
            false => tracing::info!(ahead = seconds, "the clock of this machine is as those of most nodes again"),
        }
    }

    /// Milliseconds by which a node's clock is ahead of this one's; `None` where that is not known.
    pub(super) fn clock_ahead(&self, node: &Node) -> Option<i64> {
        if node.name == *self.name() {
            return Some(0);
        }
        self.clocks().ahead(&node.name, self.wall.system.now(), self.now())
    }

    /// Milliseconds by which this node's clock is ahead of that of most nodes.
    pub(super) fn own_clock_ahead(&self) -> i64 {
        -self.clocks().median(self.wall.system.now(), self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_answer_is_read() {
        let head = |field: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n{field}\r\n\r\nok\n");
        let times = |field: &str| StatedTimes::of_head(head(field).as_bytes());
        let ms = |wall, shared: Option<(u64, u64)>| {
            let time = Duration::from_millis;
            let shared = shared.map(|(shared, age)| SharedTime { time: time(shared), age: time(age) });
            Some(StatedTimes { wall: time(wall), shared })
        };
        let all = "Millpond-Clock: 1764540000123 1764540000100 5000";
        assert_eq!(times(all), ms(1_764_540_000_123, Some((1_764_540_000_100, 5000))));
        for alone in
            ["millpond-clock:17", "millpond-clock: 17 18", "millpond-clock: 17 18 y", "millpond-clock: 17 x 18"]
        {
            assert_eq!(times(alone), ms(17, None), "{alone}");
        }
        for other in ["date: now", "millpond-clock: -1", "millpond-clock: 99999999999999999999", "millpond-clock"] {
            assert_eq!(times(other), None, "{other}");
        }
        assert_eq!(StatedTimes::of_head(b"\xff"), None);
    }
}
