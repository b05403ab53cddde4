//! Metrics of connections.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::sync::atomic::AtomicI64;

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Plain TCP.
    Plain,
    /// TLS.
    Tls,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransportLabels {
    transport: &'static str,
}

/// Counts one up for as long as it lives.
#[derive(Debug)]
pub struct Held(Gauge<i64, AtomicI64>);

impl Held {
    /// Counts one up.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The metrics of connections.
#[derive(Debug)]
pub struct ConnectionMetrics {
    plain: Gauge,
    tls: Gauge,
    accepted: Counter,
    refused: Counter,
    handshakes_failed: Counter,
}

impl ConnectionMetrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let connections = Family::<TransportLabels, Gauge>::default();
        let open = |transport| connections.get_or_create_owned(&TransportLabels { transport });
        let metrics = Self {
            plain: open("plain"),
            tls: open("tls"),
            accepted: Counter::default(),
            refused: Counter::default(),
            handshakes_failed: Counter::default(),
        };
        registry.register("connections", "Client connections open", connections);
        registry.register("connections_accepted", "Client connections accepted", metrics.accepted.clone());
        let help = "Client connections refused because too many were open";
        registry.register("connections_refused", help, metrics.refused.clone());
        let help = "TLS handshakes that did not complete";
        registry.register("tls_handshakes_failed", help, metrics.handshakes_failed.clone());
        metrics
    }

    /// Number of connections that are open.
    pub fn open(&self) -> u64 {
        u64::try_from(self.plain.get() + self.tls.get()).unwrap_or(0)
    }

    /// Counts a connection as open until the guard is dropped.
    #[must_use]
    pub fn connection(&self, transport: Transport) -> Held {
        self.accepted.inc();
        Held::new(match transport {
            Transport::Plain => &self.plain,
            Transport::Tls => &self.tls,
        })
    }

    /// Counts a connection that was closed at once because too many are open.
    pub fn connection_refused(&self) {
        self.refused.inc();
    }

    /// Counts a TLS handshake that failed.
    pub fn handshake_failed(&self) {
        self.handshakes_failed.inc();
    }
}
