//! Metrics of RTMP.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Why a viewer's session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// Its client ended it, or violated the protocol.
    Client,
    /// Its client took nothing for long.
    Slow,
    /// The stream ended, or can't be played.
    Stream,
    /// The rights of its client ended.
    Rights,
    /// An operator ended it.
    Operator,
    /// The server ended.
    Shutdown,
}

impl Reason {
    const ALL: [Self; 6] = [Self::Client, Self::Slow, Self::Stream, Self::Rights, Self::Operator, Self::Shutdown];

    /// The value of the label `reason`.
    const fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Slow => "slow",
            Self::Stream => "stream",
            Self::Rights => "rights",
            Self::Operator => "operator",
            Self::Shutdown => "shutdown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The metrics of RTMP.
#[derive(Clone, Debug)]
pub(crate) struct RtmpMetrics {
    /// Connections that were refused.
    pub(crate) refused: Counter,
    viewers: Gauge,
    begun: Counter,
    ended: [Counter; Reason::ALL.len()],
    sent: Counter,
}

/// A viewer that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct CountedViewer {
    metrics: RtmpMetrics,
    reason: Reason,
}

impl RtmpMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let viewers = Gauge::default();
        registry.register("rtmp_viewers", "Viewers by RTMP", viewers.clone());
        let reasons = Family::<ReasonLabels, Counter>::default();
        registry.register(
            "rtmp_viewers_ended",
            "Sessions of viewers by RTMP that have ended, by reason",
            reasons.clone(),
        );
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        Self {
            refused: counter("rtmp_connections_refused", "RTMP connections refused because too many were open"),
            viewers,
            begun: counter("rtmp_viewers_begun", "Sessions of viewers by RTMP that were accepted"),
            ended: Reason::ALL.map(|of| reasons.get_or_create_owned(&ReasonLabels { reason: of.label() })),
            sent: counter("rtmp_sent_bytes", "Bytes sent to viewers by RTMP"),
        }
    }

    /// Counts a viewer. It counts as ended by a shutdown, unless another reason is told.
    pub(super) fn viewer(&self) -> CountedViewer {
        self.viewers.inc();
        self.begun.inc();
        CountedViewer { metrics: self.clone(), reason: Reason::Shutdown }
    }
}

impl CountedViewer {
    /// Counts bytes that were sent.
    pub(super) fn sent(&self, bytes: u64) {
        self.metrics.sent.inc_by(bytes);
    }

    /// Tells why the session ends.
    pub(super) fn end(&mut self, reason: Reason) {
        self.reason = reason;
    }
}

impl Drop for CountedViewer {
    fn drop(&mut self) {
        self.metrics.viewers.dec();
        for (of, counter) in Reason::ALL.iter().zip(&self.metrics.ended) {
            if *of == self.reason {
                counter.inc();
            }
        }
    }
}
