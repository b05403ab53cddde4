//! Metrics of HTTP.
//!
//! Every label set is resolved when [`HttpMetrics`] is made, so that no request looks anything up or allocates.

use super::cmcd_metrics::CmcdMetrics;
use super::histogram::{DURATION_SECONDS, FIRST_BYTE_SECONDS, Histogram};
use crate::storage::{PlaceBytes, SentBytes};
use ::http::StatusCode;
use millpond_http::{
    request::cmcd::{Cmcd, CmcdError},
    wire::{ConnectionMetrics, Held},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Kind of resource of a response, in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A stored file as it is.
    File,
    /// An HLS playlist for fragmented MP4.
    Hls,
    /// An HLS playlist for transport stream segments.
    HlsTs,
    /// A DASH manifest.
    Dash,
    /// A media or initialisation segment, of whatever format.
    Segment,
    /// A running stream in one response.
    Stream,
    /// Subtitles.
    Subtitle,
    /// A page or a part of one.
    Page,
    /// Metrics and health.
    Admin,
    /// A request that was refused before its resource was known.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::File,
        Self::Hls,
        Self::HlsTs,
        Self::Dash,
        Self::Segment,
        Self::Stream,
        Self::Subtitle,
        Self::Page,
        Self::Admin,
        Self::Other,
    ];

    /// The value of the label `kind`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Hls => "hls",
            Self::HlsTs => "hls_ts",
            Self::Dash => "dash",
            Self::Segment => "segment",
            Self::Stream => "stream",
            Self::Subtitle => "subtitle",
            Self::Page => "page",
            Self::Admin => "admin",
            Self::Other => "other",
        }
    }
}

/// Why a response did not reach its end, or a request had none, though storage and media were fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unfinished {
    /// The client closed the connection or reset the stream.
    ClientLeft,
    /// The client took too little for the write timeout.
    ClientSlow,
    /// The grace for shutting down was over.
    Shutdown,
    /// An operator ended it.
    Kicked,
    /// The token of the request ended.
    Expired,
}

impl Unfinished {
    const ALL: [Self; 5] = [Self::ClientLeft, Self::ClientSlow, Self::Shutdown, Self::Kicked, Self::Expired];

    /// The value of the label `reason`, and of `ended` in the log.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::ClientLeft => "client_left",
            Self::ClientSlow => "client_slow",
            Self::Shutdown => "shutdown",
            Self::Kicked => "kicked",
            Self::Expired => "expired",
        }
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

fn class(status: StatusCode) -> usize {
    // 100..=999 is what StatusCode can hold; what is above 5xx is counted as 5xx.
    (usize::from(status.as_u16()) / 100).clamp(1, CLASSES.len()) - 1
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    kind: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The handles of one kind of response.
#[derive(Debug)]
struct PerKind {
    by_class: [Counter; CLASSES.len()],
    bytes: Counter,
    duration: Histogram,
    first_byte: Histogram,
}

/// Sums of the metrics of HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HttpTotals {
    /// Requests answered.
    pub(crate) requests: u64,
    /// Those answered with a status of 4xx.
    pub(crate) client_errors: u64,
    /// Those answered with a status of 5xx.
    pub(crate) server_errors: u64,
    /// Responses broken off because storage or media failed.
    pub(crate) broken: u64,
    /// Responses that did not reach their end for another reason.
    pub(crate) unfinished: u64,
    /// Connections that are open.
    pub(crate) connections: u64,
}

/// The metrics of HTTP.
#[derive(Debug)]
pub struct HttpMetrics {
    kinds: [PerKind; Kind::ALL.len()],
    places: SentBytes,
    in_flight: Gauge,
    /// Bytes of all bodies.
    sent_bytes: AtomicU64,
    stream_viewers: Gauge,
    connections: ConnectionMetrics,
    broken: Counter,
    unfinished: [Counter; Unfinished::ALL.len()],
    cmcd: CmcdMetrics,
}

impl HttpMetrics {
    /// Registers the metrics. Bytes from `places` are counted by place.
    pub(crate) fn register(registry: &mut Registry, places: SentBytes) -> Self {
        let kinds = per_kind(registry);
        let unfinished = Family::<ReasonLabels, Counter>::default();
        let ended = |why: Unfinished| unfinished.get_or_create_owned(&ReasonLabels { reason: why.label() });
        let metrics = Self {
            kinds,
            places,
            in_flight: Gauge::default(),
            sent_bytes: AtomicU64::new(0),
            stream_viewers: Gauge::default(),
            broken: Counter::default(),
            unfinished: Unfinished::ALL.map(ended),
            cmcd: CmcdMetrics::register(registry),
            connections: ConnectionMetrics::register(registry),
        };
        registry.register(
            "responses_unfinished",
            "Incomplete responses, and requests without a response, for other reasons than the storage",
            unfinished,
        );
        registry.register("responses_in_flight", "Responses in progress", metrics.in_flight.clone());
        let help = "Responses in progress that send a live stream";
        registry.register("http_stream_viewers", help, metrics.stream_viewers.clone());
        let help = "Responses aborted because the storage or the media failed";
        registry.register("responses_broken", help, metrics.broken.clone());
        metrics
    }

    /// Counts a request and the time until its response was complete or given up.
    pub fn request(&self, kind: Kind, status: StatusCode, took: Duration) {
        let handles = &self.kinds[kind as usize];
        handles.by_class[class(status)].inc();
        handles.duration.observe(took);
    }

    /// Counts the time from a request's head to the first byte of its response.
    pub fn first_byte(&self, kind: Kind, took: Duration) {
        self.kinds[kind as usize].first_byte.observe(took);
    }

    /// Counts bytes of a response body; `place` where they are from one.
    pub fn sent(&self, kind: Kind, place: Option<&PlaceBytes>, bytes: u64) {
        self.kinds[kind as usize].bytes.inc_by(bytes);
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(place) = place {
            place.add(bytes);
        }
    }

    /// Returns the metrics of connections.
    pub(crate) fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }

    /// Counts bytes of the copy of a window for another node. `is_load` is whether they come at the pace of the stream: the first ones are all that the
    /// window has, and would make the node look busy.
    pub(crate) fn copied(&self, place: Option<&PlaceBytes>, bytes: u64, is_load: bool) {
        self.kinds[Kind::Other as usize].bytes.inc_by(bytes);
        if is_load {
            self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if let Some(place) = place {
            place.add(bytes);
        }
    }

    /// Bytes of all bodies sent since the start.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Sums over all kinds but those of the admin address.
    pub(crate) fn totals(&self) -> HttpTotals {
        let served = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Admin).map(|kind| &self.kinds[kind as usize]);
        let mut totals = HttpTotals {
            connections: self.connections.open(),
            broken: self.broken.get(),
            unfinished: self.unfinished.iter().map(Counter::get).sum(),
            ..HttpTotals::default()
        };
        for kind in served {
            let classes = kind.by_class.each_ref().map(Counter::get);
            totals.requests += classes.iter().sum::<u64>();
            totals.client_errors += classes[class(StatusCode::BAD_REQUEST)];
            totals.server_errors += classes[class(StatusCode::INTERNAL_SERVER_ERROR)];
        }
        totals
    }

    /// Number of responses under way.
    pub(crate) fn responses(&self) -> u32 {
        u32::try_from(self.in_flight.get()).unwrap_or(0)
    }

    /// Returns the byte counters of a place, new ones for an unknown place. A configuration looks them up once.
    pub(crate) fn place(&self, name: &str) -> PlaceBytes {
        self.places.place(name).unwrap_or_else(|| PlaceBytes::new(name.to_owned()))
    }

    /// Counts a response as under way until the guard is dropped.
    #[must_use]
    pub fn response_in_flight(&self) -> Held {
        Held::new(&self.in_flight)
    }

    /// Counts a viewer of a running stream until the guard is dropped.
    #[must_use]
    pub(crate) fn stream_viewer(&self) -> Held {
        Held::new(&self.stream_viewers)
    }

    /// Counts a response that could not be sent to its end though its client was there.
    pub fn response_broken(&self) {
        self.broken.inc();
    }

    /// Counts what a player says of itself.
    pub(crate) fn player(&self, data: &Result<Cmcd, CmcdError>) {
        self.cmcd.count(data);
    }

    /// Counts a response that did not reach its end.
    pub(crate) fn response_unfinished(&self, why: Unfinished) {
        self.unfinished[why as usize].inc();
    }
}

fn per_kind(registry: &mut Registry) -> [PerKind; Kind::ALL.len()] {
    let requests = Family::<RequestLabels, Counter>::default();
    let bytes = Family::<KindLabels, Counter>::default();
    let duration =
        Family::<KindLabels, Histogram, _>::new_with_constructor((|| Histogram::new(DURATION_SECONDS)) as fn() -> _);
    let first_byte =
        Family::<KindLabels, Histogram, _>::new_with_constructor((|| Histogram::new(FIRST_BYTE_SECONDS)) as fn() -> _);
    let handles = Kind::ALL.map(|kind| {
        let labels = KindLabels { kind: kind.label() };
        PerKind {
            by_class: CLASSES.map(|status| requests.get_or_create_owned(&RequestLabels { kind: kind.label(), status })),
            bytes: bytes.get_or_create_owned(&labels),
            duration: duration.get_or_create_owned(&labels),
            first_byte: first_byte.get_or_create_owned(&labels),
        }
    });
    registry.register("http_requests", "Requests answered", requests);
    registry.register_with_unit("http_response", "Bytes of response bodies sent", Unit::Bytes, bytes);
    registry.register_with_unit(
        "http_request_duration",
        "Time from the head of a request to the end of its response",
        Unit::Seconds,
        duration,
    );
    registry.register_with_unit(
        "http_first_byte",
        "Time from the head of a request to the first byte of its response",
        Unit::Seconds,
        first_byte,
    );
    handles
}
