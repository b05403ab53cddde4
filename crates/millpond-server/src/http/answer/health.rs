//! Health for balancers, on the port of viewers.

use super::{Context, Reply};
use crate::cluster::CLOCK_HEADER;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::body::Body;

/// Answers a request for the server's health; `None` for all other requests. 503 tells a balancer to send new viewers elsewhere. Viewers
/// who are here are served on.
///
/// Limits and rules of access do not hold: a balancer has no token, and asks for all of its clients. These requests are not logged and
/// not counted.
pub(super) fn reply(context: &Context<'_>) -> Option<Reply> {
    let Context { front, request, target, .. } = *context;
    if !target.is_health() || !matches!(request.method, Method::GET | Method::HEAD) {
        return None;
    }
    let is_draining = front.is_stopping() || front.cluster().is_some_and(|cluster| cluster.is_draining());
    let (status, text) = match is_draining {
        true => (StatusCode::SERVICE_UNAVAILABLE, b"draining\n".as_slice()),
        false => (StatusCode::OK, b"ok\n".as_slice()),
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let times = front.cluster().and_then(|cluster| HeaderValue::try_from(cluster.stated_times()).ok());
    if let Some(times) = times {
        headers.insert(CLOCK_HEADER, times);
    }
    Some(Reply::new(status, headers, Body::bytes(Bytes::from_static(text))))
}
