//! Metrics of events.

use super::Kind;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    r#type: &'static str,
}

/// The metrics of events.
#[derive(Clone, Debug)]
pub(crate) struct EventMetrics {
    emitted: Family<KindLabels, Counter>,
}

impl EventMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let emitted = Family::<KindLabels, Counter>::default();
        registry.register(
            "events",
            "Events of streams, viewers, recordings, disks and nodes, by type",
            emitted.clone(),
        );
        for kind in Kind::ALL {
            drop(emitted.get_or_create(&KindLabels { r#type: kind.name() }));
        }
        Self { emitted }
    }

    /// Counts an event.
    pub(super) fn emitted(&self, kind: Kind) {
        self.emitted.get_or_create(&KindLabels { r#type: kind.name() }).inc();
    }
}
