//! Reads the state of the whole server once a second: the overview, its rates and its history.

use super::{AdminState, Desk, api::overview::*};
use crate::metrics::Figures;
use millpond_store::ErrorKind;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{sync::watch, task::JoinHandle};

/// Interval between two readings of the server's state.
const INTERVAL: Duration = Duration::from_secs(1);
/// Readings that are kept.
const HISTORY: usize = 300;
/// Readings over which the hit ratio is taken.
const RATIO: usize = 60;

/// A numbered overview.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) number: u64,
    pub(super) overview: Overview,
}

/// The latest reading and the history.
#[derive(Debug)]
pub(super) struct Monitor {
    started: Instant,
    latest: watch::Sender<Arc<Look>>,
    /// Taken once a second, and by requests for the history.
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    number: u64,
    before: Option<(Instant, Counted)>,
    /// Bytes read from the cache and from origins, at each reading.
    read: VecDeque<(u64, u64)>,
    history: VecDeque<Moment>,
}

/// Counters whose rates are shown.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    http_sent: u64,
    rtsp_sent: u64,
    received: u64,
    requests: u64,
    errors: u64,
    hit: u64,
    miss: u64,
    cpu: f64,
}

/// Ends the task when it is dropped.
pub(super) struct Monitoring(JoinHandle<()>);

impl Drop for Monitoring {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Monitor {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, latest: watch::Sender::default(), inner: Mutex::default() }
    }

    /// Reads the state once a second until the result is dropped.
    pub(super) fn start(desk: &Arc<Desk>) -> Monitoring {
        let desk = desk.clone();
        Monitoring(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(INTERVAL);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                desk.monitor.look(&desk.state());
            }
        }))
    }

    /// The latest overview, with those that follow.
    pub(super) fn follow(&self) -> watch::Receiver<Arc<Look>> {
        self.latest.subscribe()
    }

    /// Reads the state where no reading was made yet, and returns the latest overview.
    pub(super) fn overview(&self, state: &AdminState) -> Overview {
        if self.latest.borrow().number == 0 {
            self.look(state);
        }
        self.latest.borrow().overview.clone()
    }

    /// The last five minutes.
    pub(super) fn history(&self) -> Vec<Moment> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.history.iter().copied().collect()
    }

    fn look(&self, state: &AdminState) {
        let now = Instant::now();
        let (mut overview, counted) = read(state);
        overview.uptime_seconds = (now - self.started).as_secs_f64();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.rates(&mut overview, counted, now);
        inner.number += 1;
        let look = Look { number: inner.number, overview };
        drop(inner);
        self.latest.send_replace(Arc::new(look));
    }
}

impl Inner {
    /// Adds rates to an overview, and the overview to the history.
    fn rates(&mut self, overview: &mut Overview, counted: Counted, now: Instant) {
        let Some((then, before)) = self.before.replace((now, counted)) else { return };
        let seconds = (now - then).as_secs_f64().max(1e-3);
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let bps = |now: u64, before: u64| (per_second(now, before) * 8.0) as u64;
        overview.http.sent_bps = bps(counted.http_sent, before.http_sent);
        overview.rtsp.sent_bps = bps(counted.rtsp_sent, before.rtsp_sent);
        overview.origins.received_bps = bps(counted.received, before.received);
        overview.http.requests_per_second = per_second(counted.requests, before.requests);
        overview.http.errors_per_second = per_second(counted.errors, before.errors);
        overview.process.cpu = (counted.cpu - before.cpu).max(0.0) / seconds;
        push(&mut self.read, RATIO, (counted.hit.saturating_sub(before.hit), counted.miss.saturating_sub(before.miss)));
        let (hit, miss) = self.read.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        overview.cache.hit_ratio = (hit + miss > 0).then(|| hit as f64 / (hit + miss) as f64);
        push(&mut self.history, HISTORY, Moment::of(overview));
    }
}

fn push<T>(queue: &mut VecDeque<T>, most: usize, item: T) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// Reads all counters, without rates.
fn read(state: &AdminState) -> (Overview, Counted) {
    let (http, stats) = (state.metrics.http.totals(), state.front.store().stats());
    let sum = |of: fn(&millpond_store::PlaceStats) -> u64| stats.places.iter().map(of).sum::<u64>();
    let (streams, figures) = (state.manager.streams(), Figures::read());
    let (sessions, publishing) = state.rtsp.counts();
    let counters = state.manager.counters();
    let counted = Counted {
        http_sent: state.metrics.http.sent_bytes(),
        rtsp_sent: counters.sent_bytes(),
        received: sum(|place| place.origin_bytes),
        requests: http.requests,
        errors: http.server_errors + http.broken,
        hit: sum(|place| place.memory_hit_bytes + place.disk_hit_bytes),
        miss: sum(|place| place.miss_bytes),
        cpu: figures.cpu_seconds,
    };
    let in_state = |name: &str| streams.iter().filter(|stream| stream.state.name() == name).count() as u64;
    let overview = Overview {
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        uptime_seconds: 0.0,
        is_ready: state.waiting_for().is_empty(),
        http: HttpOverview {
            viewers: state.front.audience().count() as u64,
            responses: u64::from(state.metrics.http.responses()),
            connections: http.connections,
            sent_bytes: counted.http_sent,
            requests: http.requests,
            client_errors: http.client_errors,
            server_errors: http.server_errors,
            broken: http.broken,
            unfinished: http.unfinished,
            ..HttpOverview::default()
        },
        rtsp: RtspOverview {
            sessions: sessions as u64,
            playing: counters.playing(),
            publishing: publishing as u64,
            sent_bytes: counted.rtsp_sent,
            sent_bps: 0,
            refused: counters.refused(),
            is_overloaded: counters.is_overloaded(),
        },
        origins: OriginsOverview {
            received_bytes: counted.received,
            received_bps: 0,
            requests: sum(|place| place.origin_requests),
            errors: sum(|place| failures(&place.errors)),
            in_flight: sum(|place| place.in_flight),
        },
        cache: CacheOverview {
            hit_bytes: counted.hit,
            miss_bytes: counted.miss,
            file_bytes: sum(|place| place.file_bytes),
            hit_ratio: None,
            memory_bytes: stats.memory_used,
            memory_limit_bytes: stats.cache.budget,
            disk_bytes: stats.disk.as_ref().map(|disk| disk.ledger.bytes),
            disk_limit_bytes: stats.disk.as_ref().map(|disk| disk.capacity),
        },
        live: LiveOverview {
            streams: streams.len() as u64,
            running: in_state("running"),
            failed: in_state("failed") + in_state("lost"),
            viewers: streams.iter().flat_map(|stream| stream.viewers.values()).sum::<usize>() as u64,
        },
        process: ProcessOverview {
            memory_bytes: figures.memory,
            cpu_seconds: figures.cpu_seconds,
            cpu: 0.0,
            open_files: figures.open_files,
            lost_log_lines: millpond_logging::lost_lines(),
        },
    };
    (overview, counted)
}

/// Number of failures of an origin. Requests for names that it does not have are none.
fn failures(errors: &[(ErrorKind, u64)]) -> u64 {
    errors.iter().filter(|(kind, _)| kind.is_failure()).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_between_two_looks_and_the_history_is_bounded() {
        let (mut inner, began) = (Inner::default(), Instant::now());
        let at = |seconds: u64| {
            let counted = Counted {
                http_sent: 1000 * seconds,
                errors: seconds,
                hit: 300 * seconds,
                miss: 100 * seconds,
                cpu: 0.5 * seconds as f64,
                ..Counted::default()
            };
            (counted, began + Duration::from_secs(seconds))
        };
        let mut overview = Overview::default();
        let (counted, now) = at(0);
        inner.rates(&mut overview, counted, now);
        assert!(inner.history.is_empty() && overview.cache.hit_ratio.is_none());
        for seconds in 1..1000 {
            let (counted, now) = at(seconds);
            inner.rates(&mut overview, counted, now);
        }
        assert_eq!((overview.http.sent_bps, overview.cache.hit_ratio), (8000, Some(0.75)));
        assert_eq!((overview.http.errors_per_second, overview.process.cpu), (1.0, 0.5));
        assert_eq!((inner.history.len(), inner.read.len()), (HISTORY, RATIO));
    }
}
