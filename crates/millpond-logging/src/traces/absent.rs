//! The export of a program that was built without the feature `traces`: there is none.

use super::{TraceError, TraceSettings};
use http::HeaderMap;
use std::net::IpAddr;
use tracing::Span;
use tracing_subscriber::{Layer, Registry};

/// Starts nothing.
///
/// # Errors
/// The configuration names a collector.
pub(crate) fn start(settings: &TraceSettings) -> Result<Option<Box<dyn Layer<Registry> + Send + Sync>>, TraceError> {
    match settings.endpoint {
        Some(_) => Err(TraceError("this program was built without the feature traces".to_owned())),
        None => Ok(None),
    }
}

pub(crate) fn flush() {}

pub(super) fn continue_parent<'a>(_: &Span, _: IpAddr, _: impl FnOnce() -> &'a HeaderMap) {}
