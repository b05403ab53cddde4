//! The export of spans by the OpenTelemetry SDK.

use super::{TraceError, TraceSettings, exporter::CollectorClient};
use http::{HeaderMap, HeaderValue};
use millpond_settings::Network;
use millpond_store::trace;
use opentelemetry::{
    propagation::{Extractor, TextMapPropagator as _},
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use std::{net::IpAddr, sync::OnceLock, time::Duration};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, Registry};

/// Longest wait for the last spans when the process ends.
const FLUSH: Duration = Duration::from_secs(1);

/// The traces of this process, where they are on.
static TRACES: OnceLock<Traces> = OnceLock::new();

struct Traces {
    provider: SdkTracerProvider,
    /// Networks of clients whose traces are continued.
    parents: Vec<Network>,
}

/// Starts the export of traces. Returns the layer that takes their spans; `None` where they are off.
///
/// # Errors
/// An endpoint that is no URL, or no threads.
pub(crate) fn start(settings: &TraceSettings) -> Result<Option<Box<dyn Layer<Registry> + Send + Sync>>, TraceError> {
    let Some(endpoint) = &settings.endpoint else { return Ok(None) };
    let wrong = |error: &dyn std::error::Error| TraceError(error.to_string());
    let client = CollectorClient::new().map_err(|error| wrong(&error))?;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_http_client(client)
        .build()
        .map_err(|error| wrong(&error))?;
    let resource = Resource::builder()
        .with_service_name("millpond")
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.ratio)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource.build())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("millpond"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false);
    if TRACES.set(Traces { provider, parents: settings.parents.clone() }).is_ok() {
        trace::set_parent(current_parent);
    }
    Ok(Some(layer.boxed()))
}

/// Sends the last spans, within a second.
pub(crate) fn flush() {
    if let Some(traces) = TRACES.get() {
        // Spans are lost while the collector is down.
        let _ = traces.provider.shutdown_with_timeout(FLUSH);
    }
}

/// Continues the trace of a trusted client in the span of its request.
pub(super) fn continue_parent<'a>(span: &Span, peer: IpAddr, headers: impl FnOnce() -> &'a HeaderMap) {
    let Some(traces) = TRACES.get().filter(|_| !span.is_disabled()) else { return };
    if traces.parents.iter().any(|network| network.contains(peer)) {
        let parent = TraceContextPropagator::new().extract(&Fields(headers()));
        if parent.span().span_context().is_valid() {
            // A span that has begun can't get a parent; this one has not.
            let _ = span.set_parent(parent);
        }
    }
}

/// Returns the value of `traceparent` of the current span (W3C Trace Context section 3.2).
fn current_parent() -> Option<HeaderValue> {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    let flags = span.trace_flags().to_u8();
    let text = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
    HeaderValue::from_str(&text).ok().filter(|_| span.is_valid())
}

/// Header fields of a request, as the propagator reads them.
struct Fields<'a>(&'a HeaderMap);

impl Extractor for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
