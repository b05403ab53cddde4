//! The interceptor of a program that was built without the feature `intercept`: there is none.

use super::{InterceptMetrics, InterceptOptions};
use crate::{http::Front, rtsp::CurrentRtsp};
use millpond_connections::Door;
use millpond_http::wire::Service;
use millpond_stream::Manager;
use std::sync::Arc;
use tokio::sync::watch;

/// An interceptor, which can't be made.
pub(crate) enum Intercept {}

impl Intercept {
    /// Creates none: the configuration refuses the address of a listener.
    pub(crate) fn new(
        _: InterceptOptions<'_>,
        _: Arc<Manager>,
        _: (Arc<Service<Front>>, CurrentRtsp),
        _: &InterceptMetrics,
    ) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn drained(&self) -> std::future::Ready<()> {
        match *self {}
    }

    pub(crate) fn cut(&self) -> std::future::Ready<()> {
        match *self {}
    }

    pub(crate) fn open(&self) -> usize {
        match *self {}
    }
}

/// Accepts nothing.
pub(crate) fn accept(_: Door, intercept: Arc<Intercept>, _: watch::Receiver<bool>) -> std::future::Ready<()> {
    match *intercept {}
}
