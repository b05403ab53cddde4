//! Events: changes of streams, viewers, recordings, disks and nodes, for hooks and for followers of the admin API.
//!
//! A part of the server calls [`Events::emit`]. The [`Event`] gets a number and an id, and is kept in a log of bounded size. Each hook and each
//! feed reads the log at a position of its own, so that a slow one delays nobody. A reader that is behind the oldest kept event
//! has lost the events between. Emitting takes one short lock, and never waits for a reader.

mod board;
mod disks;
mod event;
mod kind;
mod log;
mod metrics;
mod viewers;

pub(crate) use disks::{DiskWatch, Low};
pub(crate) use event::Event;
pub(crate) use kind::Kind;
pub(crate) use log::Next;
pub(crate) use metrics::EventMetrics;
pub(crate) use viewers::{ViewerChange, ViewerWatch};

use event::Emission;
use log::Log;
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Most characters of a subject, and of each text in the data of an event.
const TEXT: usize = 512;

/// The events of a server.
pub(crate) struct Events {
    /// Name of the server, the source of its events.
    source: String,
    /// Beginning of the ids: the time at which the process began, in milliseconds since 1970, hexadecimal.
    run: String,
    /// Moment from which times of events count.
    clock: Instant,
    /// A lock: taken for each event, and for each step of a reader.
    log: Mutex<Log>,
    /// Number of the newest event.
    newest: watch::Sender<u64>,
    metrics: EventMetrics,
}

impl Events {
    /// Makes the events of the server `name`, of which at most `most` are kept.
    pub(crate) fn new(name: &str, most: usize, metrics: &EventMetrics) -> Arc<Self> {
        Arc::new(Self {
            source: format!("millpond://{}", millpond_library::uri::encode(name)),
            run: format!("{:x}", since_epoch().as_millis()),
            clock: Instant::now(),
            log: Mutex::new(Log::new(most)),
            newest: watch::Sender::new(0),
            metrics: metrics.clone(),
        })
    }

    /// Changes the most events that are kept.
    pub(crate) fn set_most(&self, most: usize) {
        self.lock().set_most(most);
    }

    /// Emits an event about `subject`, such as the path of a stream. `data` is a JSON object; long texts in it are cut.
    pub(crate) fn emit(&self, kind: Kind, subject: &str, mut data: Value) {
        cut_texts(&mut data);
        let mut log = self.lock();
        let number = log.newest() + 1;
        let id = format!("{}-{number}", self.run);
        let (source, subject) = (self.source.as_str(), cut(subject));
        let emission = Emission { id: &id, source, kind, subject, wall: since_epoch(), data };
        log.push(Arc::new(Event::new(number, self.now(), &emission)));
        // While the lock is held: the numbers that readers are told rise.
        self.newest.send_replace(number);
        drop(log);
        self.metrics.emitted(kind);
    }

    /// Returns the first kept event after a position, which is the number of an event.
    pub(crate) fn after(&self, position: u64) -> Option<Next> {
        self.lock().after(position)
    }

    /// Returns the number of the newest event, 0 before the first one.
    pub(crate) fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Returns the number of the newest event, with those that follow.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Returns the position of an event by its id. Ids of another process have position 0: all kept events follow.
    pub(crate) fn position(&self, id: &str) -> u64 {
        let number = id.strip_prefix(self.run.as_str()).and_then(|rest| rest.strip_prefix('-')?.parse().ok());
        number.filter(|number| *number <= self.newest()).unwrap_or(0)
    }

    /// The present moment, on the clock of [`Event::at`].
    pub(crate) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("source", &self.source).finish_non_exhaustive()
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT)]
}

/// Cuts the texts of an object.
fn cut_texts(data: &mut Value) {
    let texts = data.as_object_mut().into_iter().flat_map(|data| data.values_mut());
    for value in texts {
        if let Value::String(text) = value {
            text.truncate(text.floor_char_boundary(TEXT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    fn events(most: usize) -> Arc<Events> {
        Events::new("edge 1", most, &EventMetrics::register(&mut Registry::default()))
    }

    #[test]
    fn an_event_is_a_cloud_event() {
        let events = events(10);
        events.emit(Kind::PublisherBegan, "live/cam", json!({ "media": "rtp", "long": "é".repeat(1000) }));
        let Next { event, skipped } = events.after(0).unwrap();
        let body: Value = serde_json::from_slice(event.json()).unwrap();
        assert_eq!((skipped, event.number(), &body["id"]), (0, 1, &json!(event.id())));
        assert_eq!((&body["specversion"], &body["source"]), (&json!("1.0"), &json!("millpond://edge%201")));
        assert_eq!((&body["type"], &body["subject"]), (&json!("millpond.publisher.began"), &json!("live/cam")));
        assert_eq!((&body["datacontenttype"], &body["data"]["media"]), (&json!("application/json"), &json!("rtp")));
        assert_eq!(body["data"]["long"].as_str().unwrap().chars().count(), TEXT / 2);
        assert!(millpond_utc::parse(body["time"].as_str().unwrap()).is_some(), "{body}");
    }

    #[test]
    fn positions_are_those_of_ids() {
        let events = events(2);
        for _ in 0..3 {
            events.emit(Kind::SourceLost, "cams/door", json!({}));
        }
        let second = events.after(1).unwrap().event;
        assert_eq!((events.position(second.id()), events.newest()), (2, 3));
        for strange in ["", "x", "0-2", &second.id().replace("-2", "-9"), &second.id().replace('-', "")] {
            assert_eq!(events.position(strange), 0, "{strange:?}");
        }
        assert_eq!(events.after(0).map(|next| (next.event.number(), next.skipped)), Some((2, 1)));
    }
}
