//! The parts that graphs of streams are made with.

use crate::{
    graph::LiveMemory,
    notice::NoticeBoard,
    reception::{Balance, Turns, Upstream},
    registry::Registry,
    resources::Resources,
};
use std::sync::Arc;

/// The parts from which graphs of streams are built: parts of the engine, and the parts that all receptions share.
#[derive(Debug)]
pub(crate) struct Means {
    pub(super) registry: Registry,
    pub(super) upstream: Upstream,
    pub(super) notices: Option<Arc<dyn NoticeBoard>>,
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
        (upstream, notices): (&Upstream, Option<&Arc<dyn NoticeBoard>>),
        resources: &Resources,
        memory: LiveMemory,
    ) -> Self {
        Self {
            registry: registry.clone(),
            upstream: upstream.clone(),
            notices: notices.cloned(),
            resources: resources.clone(),
            memory,
            turns: Turns::default(),
            balance: Balance::default(),
        }
    }
}
