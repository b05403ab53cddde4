//! Traces of requests for OpenTelemetry: spans of a request, of its index job and of its origin requests, sent to a
//! collector by OTLP.
//!
//! Spans are those of `tracing`, with a target of their own. While traces are off, no subscriber wants them, and each costs
//! a comparison. While they are on, a thread of the SDK sends them in batches. Its queue is bounded: a collector
//! that is down or slow loses spans and delays nobody. The feature `traces` builds the export; without it, `trace-endpoint` is
//! refused.

#[cfg(not(feature = "traces"))]
#[path = "absent.rs"]
mod export;
#[cfg(feature = "traces")]
mod export;
#[cfg(feature = "traces")]
mod exporter;
mod metrics;
mod settings;

pub(crate) use export::{flush, start};
pub use metrics::TraceCollector;
pub use settings::TraceSettings;

use http::HeaderMap;
use millpond_store::trace::TARGET;
use std::{borrow::Cow, net::IpAddr};
use tracing::Span;

/// Why traces can't be sent.
#[derive(Debug, thiserror::Error)]
#[error("trace-endpoint: {0}")]
pub struct TraceError(String);

/// A request that has a span. The target is read only while traces are on.
pub trait Traced {
    /// Method.
    fn method(&self) -> &str;
    /// Path and query, without secrets.
    fn target(&self) -> Cow<'_, str>;
    /// Header fields.
    fn headers(&self) -> &HeaderMap;
}

/// Begins the span of a request. It continues the trace of a trusted client; `peer` is the address of the connection, and
/// `protocol` the name of its protocol.
pub fn of_request(request: &impl Traced, peer: IpAddr, protocol: &'static str) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.kind = "server",
        otel.name = request.method(),
        otel.status_code = tracing::field::Empty,
        http.request.method = request.method(),
        url.path = %request.target().split('?').next().unwrap_or_default(),
        network.protocol.name = protocol,
        client.address = tracing::field::Empty,
        http.response.status_code = tracing::field::Empty,
        http.response.body.size = tracing::field::Empty,
        millpond.kind = tracing::field::Empty,
        millpond.cache = tracing::field::Empty,
        millpond.ended = tracing::field::Empty,
    );
    export::continue_parent(&span, peer, || request.headers());
    span
}
