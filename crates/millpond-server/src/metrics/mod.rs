//! Metrics of the server, in the text formats of Prometheus and OpenMetrics.
//!
//! The data path touches atomics only: every label set is resolved when [`Metrics`] is made, so that no request
//! looks anything up or allocates. What storage and the process know of themselves is asked at scrape time.
//!
//! Label sets are bounded: kinds of response, classes of status, transports, and the configured places. Nothing
//! a client sends becomes a label.

mod histogram;
mod library;
mod process;
mod storage;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use millpond_library::Library;
use millpond_store::Store;
use millpond_stream::{CounterCollector, Counters};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use histogram::{DURATION_SECONDS, FIRST_BYTE_SECONDS, Histogram};
use library::LibraryCollector;
use storage::StorageCollector;
pub use text::TextFormat;

/// What a response was about, as metrics tell responses apart.
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
    /// Subtitles.
    Subtitle,
    /// A page or a part of one.
    Page,
    /// Metrics and health.
    Admin,
    /// What was refused before it was clear what it is.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::File,
        Self::Hls,
        Self::HlsTs,
        Self::Dash,
        Self::Segment,
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
}

impl Unfinished {
    const ALL: [Self; 3] = [Self::ClientLeft, Self::ClientSlow, Self::Shutdown];

    /// The value of the label `reason`, and of `ended` in the log.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::ClientLeft => "client_left",
            Self::ClientSlow => "client_slow",
            Self::Shutdown => "shutdown",
        }
    }
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Plain TCP.
    Plain,
    /// TLS.
    Tls,
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
struct TransportLabels {
    transport: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: &'static str,
}

/// The handles of one kind of response.
#[derive(Debug)]
struct PerKind {
    by_class: [Counter; CLASSES.len()],
    bytes: Counter,
    duration: Histogram,
    first_byte: Histogram,
}

/// Bytes that went to clients from one place; a handle to clone and keep.
#[derive(Debug, Clone)]
pub struct PlaceBytes(Arc<PlaceOut>);

#[derive(Debug)]
struct PlaceOut {
    name: String,
    bytes: AtomicU64,
}

impl PlaceBytes {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn get(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes sent to a client.
    pub fn add(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counts one up for as long as it lives.
#[derive(Debug)]
pub struct Held(Gauge<i64, AtomicI64>);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The handles that are not by kind.
#[derive(Debug)]
struct Handles {
    in_flight: Gauge,
    plain: Gauge,
    tls: Gauge,
    accepted: Counter,
    refused: Counter,
    handshakes_failed: Counter,
    broken: Counter,
    unfinished: [Counter; Unfinished::ALL.len()],
    certificate_expiry: Gauge,
}

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    kinds: [PerKind; Kind::ALL.len()],
    handles: Handles,
    places: Vec<PlaceBytes>,
    streams: Arc<Counters>,
    rtsp_refused: Counter,
}

impl Metrics {
    /// What RTSP sessions are sent, to be counted.
    pub(crate) fn streams(&self) -> &Arc<Counters> {
        &self.streams
    }

    /// RTSP connections that were refused.
    pub(crate) fn rtsp_refused(&self) -> &Counter {
        &self.rtsp_refused
    }

    /// Metrics of a server over this store and library. Places become labels; counts are read at each scrape.
    pub fn new(store: &Store, library: &Arc<Library>) -> Self {
        let places = store.places().map(|(name, _)| name).collect();
        let (store, library) = (store.clone(), library.clone());
        Self::with_sources(places, Box::new(move || store.stats()), Box::new(move || library.stats()))
    }

    fn with_sources(places: Vec<String>, storage: storage::Read, library: library::Read) -> Self {
        let places: Vec<_> =
            places.into_iter().map(|name| PlaceBytes(Arc::new(PlaceOut { name, bytes: AtomicU64::new(0) }))).collect();
        // The process has its well-known names; everything else is ours and says so.
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::ProcessCollector::new()));
        let own = registry.sub_registry_with_prefix("millpond");
        own.register_collector(Box::new(StorageCollector::new(places.clone(), storage)));
        own.register_collector(Box::new(LibraryCollector::new(library)));
        let streams = Arc::new(Counters::default());
        own.register_collector(Box::new(CounterCollector(streams.clone())));
        let rtsp_refused = Counter::default();
        let help = "RTSP connections refused because too many were open";
        own.register("rtsp_connections_refused", help, rtsp_refused.clone());
        let kinds = per_kind(own);
        let connections = Family::<TransportLabels, Gauge>::default();
        let open = |transport| connections.get_or_create_owned(&TransportLabels { transport });
        let unfinished = Family::<ReasonLabels, Counter>::default();
        let ended = |why: Unfinished| unfinished.get_or_create_owned(&ReasonLabels { reason: why.label() });
        let handles = Handles {
            in_flight: Gauge::default(),
            plain: open("plain"),
            tls: open("tls"),
            accepted: Counter::default(),
            refused: Counter::default(),
            handshakes_failed: Counter::default(),
            broken: Counter::default(),
            unfinished: Unfinished::ALL.map(ended),
            certificate_expiry: Gauge::default(),
        };
        own.register("connections", "Client connections open", connections);
        own.register(
            "responses_unfinished",
            "Responses that did not reach their end, and requests left without one, though the storage was fine",
            unfinished,
        );
        handles.register(own);
        Self { registry, kinds, handles, places, streams, rtsp_refused }
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
        if let Some(place) = place {
            place.add(bytes);
        }
    }

    /// The handle of a place, to be looked up once an asset and not once a request.
    pub fn place(&self, name: &str) -> Option<PlaceBytes> {
        self.places.iter().find(|place| place.name() == name).cloned()
    }

    /// Counts a response as under way until the guard is dropped.
    #[must_use]
    pub fn response_in_flight(&self) -> Held {
        Held::new(&self.handles.in_flight)
    }

    /// Counts a connection as open until the guard is dropped.
    #[must_use]
    pub fn connection(&self, transport: Transport) -> Held {
        self.handles.accepted.inc();
        Held::new(match transport {
            Transport::Plain => &self.handles.plain,
            Transport::Tls => &self.handles.tls,
        })
    }

    /// Counts a connection that was closed at once because too many are open.
    pub fn connection_refused(&self) {
        self.handles.refused.inc();
    }

    /// Counts a TLS handshake that failed.
    pub fn handshake_failed(&self) {
        self.handles.handshakes_failed.inc();
    }

    /// Counts a response that could not be sent to its end though its client was there.
    pub fn response_broken(&self) {
        self.handles.broken.inc();
    }

    /// Counts a response that did not reach its end.
    pub(crate) fn response_unfinished(&self, why: Unfinished) {
        self.handles.unfinished[why as usize].inc();
    }

    /// Sets when the certificate ends to be valid, in Unix seconds.
    pub fn certificate_expiry(&self, unix_seconds: i64) {
        self.handles.certificate_expiry.set(unix_seconds);
    }

    /// All metrics in a text format.
    pub fn render(&self, format: TextFormat) -> String {
        let mut text = String::with_capacity(32 << 10);
        // Writing to a String does not fail, and the collectors make no error of their own.
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics can't be written");
        }
        match format {
            TextFormat::OpenMetrics => text,
            TextFormat::Prometheus => text::from_open_metrics(&text),
        }
    }
}

impl Handles {
    fn register(&self, registry: &mut Registry) {
        let version = Info::new(VersionLabels { version: env!("CARGO_PKG_VERSION") });
        registry.register("build", "What runs", version);
        registry.register("responses_in_flight", "Responses under way", self.in_flight.clone());
        registry.register("connections_accepted", "Client connections accepted", self.accepted.clone());
        registry.register(
            "connections_refused",
            "Client connections refused because too many were open",
            self.refused.clone(),
        );
        registry.register(
            "responses_broken",
            "Responses broken off because the storage or the media failed",
            self.broken.clone(),
        );
        registry.register(
            "tls_handshakes_failed",
            "TLS handshakes that did not complete",
            self.handshakes_failed.clone(),
        );
        registry.register(
            "tls_certificate_expiry_timestamp",
            "Unix time at which the certificate ends to be valid; 0 without TLS",
            self.certificate_expiry.clone(),
        );
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
