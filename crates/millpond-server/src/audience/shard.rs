//! One shard of the table of viewers.

use super::{ReadBytes, Times, ViewerKey, ViewerReport, ViewerState, Viewing, blocks::About};
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};
use tokio::sync::Notify;

/// Most viewers of a shard. Above it, the viewer that was silent for longest is forgotten. Viewers with a response under way are the
/// last: strangers with many names must not hide them.
const MOST: usize = 256;
/// Time without requests after which a viewer has left.
const LEFT: Duration = Duration::from_secs(60);
/// Time without requests after which a viewer is idle.
const IDLE: Duration = Duration::from_secs(10);
/// Time constant of the rate, in seconds.
const RATE: f64 = 10.0;

/// Viewers whose keys fall into one shard.
#[derive(Debug, Default)]
pub(super) struct Shard {
    viewers: HashMap<ViewerKey, Viewer>,
}

#[derive(Debug)]
pub(super) struct Viewer {
    about: About,
    started: Duration,
    last: Duration,
    requests: u64,
    bytes: u64,
    rate: Rate,
    /// Responses under way.
    open: Vec<Open>,
}

struct Open {
    number: u64,
    sent: ReadBytes,
    cut: Arc<Notify>,
}

/// A long response under way.
pub(super) struct LongResponse {
    pub(super) key: ViewerKey,
    pub(super) about: About,
    pub(super) cut: Arc<Notify>,
    started: Duration,
    sent: ReadBytes,
}

/// Bytes a second, averaged over about [`RATE`] seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    bytes: f64,
    at: Duration,
}

impl Rate {
    fn add(&mut self, bytes: u64, now: Duration) {
        *self = Self { bytes: self.at(now) + bytes as f64 / RATE, at: now };
    }

    fn at(&self, now: Duration) -> f64 {
        self.bytes * (-now.saturating_sub(self.at).as_secs_f64() / RATE).exp()
    }
}

impl Viewer {
    /// Adds an answered request.
    pub(super) fn add(&mut self, bytes: u64, now: Duration) {
        self.last = now;
        self.requests += 1;
        self.bytes += bytes;
        self.rate.add(bytes, now);
    }

    /// Adds a response under way.
    pub(super) fn begin(&mut self, number: u64, sent: ReadBytes, cut: Arc<Notify>) {
        self.open.push(Open { number, sent, cut });
    }

    /// Order in which viewers are forgotten.
    fn worth(&self) -> (bool, Duration) {
        (!self.open.is_empty(), self.last)
    }

    fn has_left(&self, now: Duration) -> bool {
        self.open.is_empty() && now.saturating_sub(self.last) > LEFT
    }
}

impl Shard {
    /// Returns the viewer of a key, and adds it where there is none.
    pub(super) fn viewer(&mut self, key: ViewerKey, viewing: &Viewing<'_>, now: Duration) -> &mut Viewer {
        if !self.viewers.contains_key(&key) && self.viewers.len() >= MOST {
            self.viewers.retain(|_, viewer| !viewer.has_left(now));
            let oldest = || self.viewers.iter().min_by_key(|(_, viewer)| viewer.worth()).map(|(key, _)| *key);
            if self.viewers.len() >= MOST
                && let Some(oldest) = oldest()
            {
                self.viewers.remove(&oldest);
            }
        }
        self.viewers.entry(key).or_insert_with(|| Viewer {
            about: About::new(viewing),
            started: now,
            last: now,
            requests: 0,
            bytes: 0,
            rate: Rate { bytes: 0.0, at: now },
            open: Vec::new(),
        })
    }

    /// Removes a response under way.
    pub(super) fn end(&mut self, key: ViewerKey, number: u64) {
        if let Some(viewer) = self.viewers.get_mut(&key) {
            viewer.open.retain(|open| open.number != number);
        }
    }

    /// Ends the responses of a viewer.
    pub(super) fn kick(&mut self, key: ViewerKey) -> Option<About> {
        let viewer = self.viewers.remove(&key)?;
        viewer.open.iter().for_each(|open| open.cut.notify_one());
        Some(viewer.about)
    }

    /// Number of viewers of the last minute.
    pub(super) fn count(&mut self, now: Duration) -> usize {
        self.viewers.retain(|_, viewer| !viewer.has_left(now));
        self.viewers.len()
    }

    /// Shows the number and the asset of each viewer of the last minute to `seen`.
    pub(super) fn each(&self, now: Duration, seen: &mut dyn FnMut(u64, &str)) {
        let present = self.viewers.iter().filter(|(_, viewer)| !viewer.has_left(now));
        present.for_each(|(key, viewer)| seen(key.0, &viewer.about.asset));
    }

    /// Reports the viewers of the last minute.
    pub(super) fn report(&mut self, times: Times, all: &mut Vec<ViewerReport>) {
        self.viewers.retain(|_, viewer| !viewer.has_left(times.now));
        all.extend(self.viewers.iter().map(|(key, viewer)| viewer.report(*key, times)));
    }
}

impl Viewer {
    fn report(&self, key: ViewerKey, times: Times) -> ViewerReport {
        let under_way: u64 = self.open.iter().map(|open| (open.sent)()).sum();
        let is_active = !self.open.is_empty() || times.now.saturating_sub(self.last) < IDLE;
        let last = if self.open.is_empty() { self.last } else { times.now };
        // Responses under way count with their average: only their ends are told to the rate.
        let seconds = times.now.saturating_sub(self.last).as_secs_f64().max(RATE);
        ViewerReport {
            key: (0, key.0),
            id: key.to_string(),
            is_long: false,
            about: self.about.clone(),
            state: if is_active { ViewerState::Active } else { ViewerState::Idle },
            started: times.wall(self.started),
            last: times.wall(last),
            requests: Some(self.requests + self.open.len() as u64),
            bytes: self.bytes + under_way,
            bps: ((self.rate.at(times.now) + under_way as f64 / seconds) * 8.0) as u64,
        }
    }
}

impl LongResponse {
    pub(super) fn new(
        key: ViewerKey,
        viewing: &Viewing<'_>,
        started: Duration,
        sent: ReadBytes,
        cut: Arc<Notify>,
    ) -> Self {
        Self { key, about: About::new(viewing), cut, started, sent }
    }

    pub(super) fn report(&self, number: u64, times: Times) -> ViewerReport {
        let bytes = (self.sent)();
        let seconds = times.now.saturating_sub(self.started).as_secs_f64().max(1.0);
        ViewerReport {
            key: (1, number),
            id: format!("l-{number:016x}"),
            is_long: true,
            about: self.about.clone(),
            state: ViewerState::Sending,
            started: times.wall(self.started),
            last: times.wall(times.now),
            requests: None,
            bytes,
            bps: (bytes as f64 * 8.0 / seconds) as u64,
        }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Open({})", self.number)
    }
}

impl fmt::Debug for LongResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongResponse").field("about", &self.about).finish_non_exhaustive()
    }
}
