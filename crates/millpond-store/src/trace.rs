//! Spans of traces, and the header field that continues a trace at an origin.
//!
//! Spans have the target [`TARGET`]. Without a subscriber that wants them, they cost a comparison each.

use http::HeaderValue;
use std::sync::OnceLock;

/// Target of all spans of traces.
pub const TARGET: &str = "millpond_trace";

/// Returns the value of `traceparent` for the current span.
type Parent = fn() -> Option<HeaderValue>;

static PARENT: OnceLock<Parent> = OnceLock::new();

/// Sets the function that returns the value of `traceparent` (W3C Trace Context) for the current span. Requests to web
/// servers carry it from then on. The first function stays.
pub fn set_parent(parent: Parent) {
    let _ = PARENT.set(parent);
}

/// Returns the value of `traceparent` for a request to an origin, if its trace continues there.
pub(crate) fn parent() -> Option<HeaderValue> {
    PARENT.get().and_then(|parent| parent())
}
