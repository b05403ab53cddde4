//! Metrics of the server, in the text formats of Prometheus and OpenMetrics: those of its parts, composed.
//!
//! Each part has its metrics in a file of its own: names, helps and counters. The data path touches atomics only. Figures of storage, library
//! and process are collected when they are scraped.
//!
//! Label sets are bounded: kinds of response, classes of status, transports, and the configured places. Nothing
//! a client sends becomes a label.

mod library;
mod process;
#[cfg(test)]
mod tests;
mod text;

use crate::{
    cluster::ClusterMetrics,
    events::EventMetrics,
    hooks::HookMetrics,
    http::HttpMetrics,
    intercept::InterceptMetrics,
    recordings::RecordingMetrics,
    reload::ReloadMetrics,
    rtmp::RtmpMetrics,
    rtsp::RtspMetrics,
    srt::SrtMetrics,
    statistics::StatisticsMetrics,
    storage::{self, PlaceBytes, SentBytes, StorageCollector},
    webrtc::WebRtcMetrics,
};
use library::LibraryCollector;
use millpond_access::AccessMetrics;
use millpond_connections::tls::TlsMetrics;
use millpond_library::{Library, Places};
use millpond_logging::{LogCollector, traces::TraceCollector};
use millpond_store::Store;
pub(crate) use process::Figures;
use prometheus_client::{encoding::EncodeLabelSet, encoding::text::encode, metrics::info::Info, registry::Registry};
use std::sync::Arc;
pub use text::TextFormat;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: &'static str,
}

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Metrics of HTTP.
    pub http: Arc<HttpMetrics>,
    /// Metrics of RTSP.
    pub(crate) rtsp: RtspMetrics,
    /// Metrics of RTMP.
    pub(crate) rtmp: RtmpMetrics,
    /// Metrics of WebRTC.
    pub(crate) webrtc: WebRtcMetrics,
    /// Metrics of events.
    pub(crate) events: EventMetrics,
    /// Metrics of hooks.
    pub(crate) hooks: HookMetrics,
    /// Metrics of recorded files.
    pub(crate) recordings: RecordingMetrics,
    /// Metrics of SRT.
    pub(crate) srt: SrtMetrics,
    /// Metrics of viewing.
    pub(crate) statistics: StatisticsMetrics,
    /// Metrics of interception.
    pub(crate) intercept: InterceptMetrics,
    /// Metrics of access.
    pub(crate) access: AccessMetrics,
    /// Metrics of the cluster.
    pub(crate) cluster: ClusterMetrics,
    /// Metrics of TLS.
    pub tls: TlsMetrics,
    /// Metrics of reloads.
    pub(crate) reload: ReloadMetrics,
    /// Bytes sent of each place.
    sent: SentBytes,
}

impl Metrics {
    /// Metrics of a server over this store and library. Places become labels; counts are read at each scrape.
    pub fn new(store: &Store, library: &Arc<Library>, places: &Places) -> Self {
        let places = places.iter().map(|name| name.to_string()).collect();
        let (store, library) = (store.clone(), library.clone());
        Self::with_sources(places, Box::new(move || store.stats()), Box::new(move || library.stats()))
    }

    fn with_sources(places: Vec<String>, storage: storage::ReadStats, library: library::Read) -> Self {
        let sent = SentBytes::new(places.into_iter().map(PlaceBytes::new));
        // The process has its well-known names; everything else is ours and says so.
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::ProcessCollector::new()));
        let own = registry.sub_registry_with_prefix("millpond");
        own.register_collector(Box::new(StorageCollector::new(sent.clone(), storage)));
        own.register_collector(Box::new(LibraryCollector::new(library)));
        own.register_collector(Box::new(LogCollector));
        own.register_collector(Box::new(TraceCollector));
        let rtsp = RtspMetrics::register(own);
        let rtmp = RtmpMetrics::register(own);
        let webrtc = WebRtcMetrics::register(own);
        let events = EventMetrics::register(own);
        let hooks = HookMetrics::register(own);
        let recordings = RecordingMetrics::register(own);
        let srt = SrtMetrics::register(own);
        let statistics = StatisticsMetrics::register(own);
        let http = Arc::new(HttpMetrics::register(own, sent.clone()));
        let version = Info::new(VersionLabels { version: env!("CARGO_PKG_VERSION") });
        own.register("build", "Version of the server", version);
        let intercept = InterceptMetrics::register(own);
        let access = AccessMetrics::register(own);
        let cluster = ClusterMetrics::register(own);
        let tls = TlsMetrics::register(own);
        let reload = ReloadMetrics::register(own);
        Self {
            registry,
            http,
            rtsp,
            rtmp,
            webrtc,
            srt,
            statistics,
            events,
            hooks,
            recordings,
            intercept,
            access,
            cluster,
            tls,
            reload,
            sent,
        }
    }

    /// Replaces the places, which are labels.
    pub(crate) fn set_places(&self, places: impl IntoIterator<Item = PlaceBytes>) {
        self.sent.replace(places);
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
