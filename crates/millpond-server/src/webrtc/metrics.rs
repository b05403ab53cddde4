//! Metrics of WebRTC. The bytes and packets of its sessions are those of the stream engine.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// Its client ended it, by DELETE or on the connection.
    Client,
    /// An operator ended it.
    Operator,
    /// No check of its client arrived for long.
    Silent,
    /// The connection failed: its handshake, its certificate or its keys.
    Failed,
    /// The stream ended, or can't be played.
    Stream,
    /// The rights of its client ended.
    Rights,
    /// The server ended.
    Shutdown,
}

impl Reason {
    const ALL: [Self; 7] =
        [Self::Client, Self::Operator, Self::Silent, Self::Failed, Self::Stream, Self::Rights, Self::Shutdown];

    /// The value of the label `reason`.
    const fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Silent => "silent",
            Self::Failed => "failed",
            Self::Stream => "stream",
            Self::Rights => "rights",
            Self::Shutdown => "shutdown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The metrics of WebRTC.
#[derive(Clone, Debug)]
pub(crate) struct WebRtcMetrics {
    open: Gauge,
    begun: Counter,
    ended: [Counter; Reason::ALL.len()],
    /// Datagrams of no session.
    pub(super) foreign: Counter,
}

impl WebRtcMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let open = Gauge::default();
        registry.register("webrtc_sessions", "WebRTC sessions that have not ended", open.clone());
        let begun = Counter::default();
        registry.register("webrtc_sessions_begun", "WebRTC sessions whose offer was answered", begun.clone());
        let reasons = Family::<ReasonLabels, Counter>::default();
        registry.register("webrtc_sessions_ended", "WebRTC sessions that have ended, by reason", reasons.clone());
        let foreign = Counter::default();
        let help = "Datagrams at the WebRTC port that belong to no session";
        registry.register("webrtc_foreign_datagrams", help, foreign.clone());
        let ended = Reason::ALL.map(|of| reasons.get_or_create(&ReasonLabels { reason: of.label() }).clone());
        Self { open, begun, ended, foreign }
    }

    /// Counts a session that begins.
    pub(super) fn begin(&self) {
        self.open.inc();
        self.begun.inc();
    }

    /// Counts a session that ends.
    pub(super) fn end(&self, reason: Reason) {
        self.open.dec();
        for (of, counter) in Reason::ALL.iter().zip(&self.ended) {
            if *of == reason {
                counter.inc();
            }
        }
    }
}
