//! Metrics of interception.
#![cfg_attr(not(feature = "intercept"), expect(dead_code, reason = "nothing is counted"))]

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

/// Outcome of an intercepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    /// A stream was sent in reply to its request.
    Translated,
    /// Its request was answered with an error of the RTSP server.
    Failed,
    /// It was passed on to its server.
    Passed,
    /// It was passed on to the RTSP port of its server.
    Rtsp,
    /// Its server could not be reached.
    Unreachable,
    /// Its server lies outside of `intercept-networks`.
    Outside,
    /// It was addressed to this machine, or came from it.
    Loop,
    /// Too many connections were open.
    Full,
    /// Its client of RTSP got a live stream that others share.
    Shared,
    /// Its client left before its server was known to have the stream.
    Left,
}

impl Outcome {
    const ALL: [Self; 10] = [
        Self::Translated,
        Self::Failed,
        Self::Passed,
        Self::Rtsp,
        Self::Unreachable,
        Self::Outside,
        Self::Loop,
        Self::Full,
        Self::Shared,
        Self::Left,
    ];

    /// The value of the label `outcome`.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Translated => "translated",
            Self::Failed => "failed",
            Self::Passed => "passed",
            Self::Rtsp => "rtsp",
            Self::Unreachable => "unreachable",
            Self::Outside => "outside",
            Self::Loop => "loop",
            Self::Full => "full",
            Self::Shared => "shared",
            Self::Left => "left",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

/// The metrics of interception.
#[derive(Clone, Debug)]
pub(crate) struct InterceptMetrics {
    connections: [Counter; Outcome::ALL.len()],
    /// Connections that are open.
    pub(super) open: Gauge,
    /// Connections that went to another server of their group.
    pub(super) diverted: Counter,
    /// Bytes passed on from clients to servers.
    pub(super) to_servers: Counter,
    /// Bytes passed on from servers to clients.
    pub(super) to_clients: Counter,
}

impl InterceptMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let outcomes = Family::<OutcomeLabels, Counter>::default();
        let help = "Intercepted connections by outcome";
        registry.register("intercepted_connections", help, outcomes.clone());
        let open = Gauge::default();
        registry.register("intercepted_open", "Intercepted connections that are open", open.clone());
        let diverted = Counter::default();
        let help = "Intercepted connections that were passed on to another server of their group";
        registry.register("intercepted_diverted", help, diverted.clone());
        let bytes = Family::<DirectionLabels, Counter>::default();
        let help = "Bytes of intercepted connections that were passed on unchanged";
        registry.register_with_unit("intercepted", help, Unit::Bytes, bytes.clone());
        let direction = |direction| bytes.get_or_create(&DirectionLabels { direction }).clone();
        Self {
            connections: Outcome::ALL.map(|of| outcomes.get_or_create(&OutcomeLabels { outcome: of.label() }).clone()),
            open,
            diverted,
            to_servers: direction("to_servers"),
            to_clients: direction("to_clients"),
        }
    }

    /// Counts a connection.
    pub(super) fn count(&self, outcome: Outcome) {
        for (of, counter) in Outcome::ALL.iter().zip(&self.connections) {
            if *of == outcome {
                counter.inc();
            }
        }
    }
}
