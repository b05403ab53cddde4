//! State of the front end that outlives a configuration.

use super::{live::Openings, publish::Splits, viewers::Viewers};
use crate::{
    http::render::{CodedTexts, Renderer},
    minutely::Minutely,
};
use prometheus_client::metrics::gauge::Gauge;
use std::sync::{Arc, atomic::AtomicBool};
use tokio::sync::watch;

/// State of the front end that outlives a configuration.
pub(super) struct Lasting {
    /// Maker of resources of assets, with its caches.
    pub(super) renderer: Arc<Renderer>,
    /// Texts in their codings.
    pub(super) coded_texts: CodedTexts,
    /// Viewers that the prefetcher follows.
    pub(super) viewers: Arc<Viewers>,
    /// Streams of ladders that are being opened.
    pub(super) openings: Arc<Openings>,
    /// Streams whose tracks are pushed each on its own.
    pub(super) splits: Splits,
    /// Copies of windows that are sent to clients which are not known to be nodes.
    pub(super) strange_copies: Gauge,
    /// The line of the access log about questions of nodes that are refused.
    pub(super) registry_log: Minutely,
    /// Whether the server ends responses in progress.
    pub(super) is_cut: AtomicBool,
    /// Turns true when the server stops. Streams without an end of their own end then.
    pub(super) stop: watch::Sender<bool>,
}

impl Lasting {
    /// Creates the state of a server that starts.
    pub(super) fn new(renderer: Arc<Renderer>, coded_texts: CodedTexts) -> Self {
        Self {
            renderer,
            coded_texts,
            viewers: Viewers::new(),
            openings: Arc::default(),
            splits: Splits::default(),
            strange_copies: Gauge::default(),
            registry_log: Minutely::default(),
            is_cut: AtomicBool::new(false),
            stop: watch::Sender::new(false),
        }
    }
}
