//! The parts that graphs of streams are made with.

use crate::{
    graph::LiveMemory,
    reception::{Balance, Connector, Relay, Turns},
    registry::Registry,
    resources::Resources,
};
use std::sync::Arc;

/// The parts from which graphs of streams are built: parts of the engine, and the parts that all receptions share.
#[derive(Debug)]
pub(crate) struct Means {
    pub(super) registry: Registry,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) relay: Option<Arc<dyn Relay>>,
    pub(super) resources: Resources,
    /// Memory of the frames of all streams.
    pub(super) memory: LiveMemory,
    pub(super) turns: Turns,
    pub(super) balance: Balance,
}

impl Means {
    /// Makes those of an engine.
    pub(crate) fn new(
        registry: &Registry,
        (connector, relay): (&Arc<dyn Connector>, Option<&Arc<dyn Relay>>),
        resources: &Resources,
        memory: LiveMemory,
    ) -> Self {
        Self {
            registry: registry.clone(),
            connector: connector.clone(),
            relay: relay.cloned(),
            resources: resources.clone(),
            memory,
            turns: Turns::default(),
            balance: Balance::default(),
        }
    }
}
