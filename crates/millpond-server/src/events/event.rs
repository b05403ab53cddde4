//! An event, in the JSON of CloudEvents.

use super::Kind;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// Something that happened, as readers of the log get it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    number: u64,
    at: Duration,
    id: String,
    kind: Kind,
    subject: String,
    time: String,
    source: String,
    json: Bytes,
}

/// The content of an event that is made.
pub(super) struct Emission<'a> {
    pub(super) id: &'a str,
    /// The server.
    pub(super) source: &'a str,
    pub(super) kind: Kind,
    pub(super) subject: &'a str,
    /// Time since the Unix epoch.
    pub(super) wall: Duration,
    pub(super) data: Value,
}

/// An event in the JSON format of CloudEvents 1.0.
#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    r#type: &'static str,
    /// Never empty (CloudEvents 1.0, subject). The stream of a place without a name has an empty path.
    #[serde(skip_serializing_if = "str::is_empty")]
    subject: &'a str,
    time: &'a str,
    datacontenttype: &'static str,
    data: &'a Value,
}

impl Event {
    /// Makes an event. `at` is its time on the clock of the log.
    pub(super) fn new(number: u64, at: Duration, emission: &Emission<'_>) -> Self {
        let Emission { id, source, kind, subject, wall, data } = emission;
        let mut time = String::new();
        millpond_utc::push(&mut time, *wall);
        let (specversion, datacontenttype) = ("1.0", "application/json");
        let r#type = kind.name();
        let cloud_event = CloudEvent { specversion, id, source, r#type, subject, time: &time, datacontenttype, data };
        // Texts, numbers and maps with texts as keys can be written as JSON.
        let json = serde_json::to_vec(&cloud_event).unwrap_or_default().into();
        let (id, subject, source) = ((*id).to_owned(), (*subject).to_owned(), (*source).to_owned());
        Self { number, at, id, kind: *kind, subject, time, source, json }
    }

    /// Number of the event: the events of a process are counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Time of the event on the clock of the log.
    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Id that no other event has, those of other processes included.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Kind of the event.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Subject, such as the path of a stream.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    /// Time of the event, in RFC 3339.
    pub(crate) fn time(&self) -> &str {
        &self.time
    }

    /// The server, as a URI.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// The event in the JSON format of CloudEvents, in one line.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }
}
