//! The answer that begins a session.

use super::{Context, Reply, WebRtcUse, body};
use crate::webrtc::{Begun, Client};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use millpond_http::body::Body;
use std::net::SocketAddr;

/// Most characters of a user agent in the log.
const AGENT: usize = 200;

/// The client of a request.
pub(super) fn client(context: &Context<'_>) -> Client {
    let agent = context.request.header(header::USER_AGENT).map(|agent| agent.chars().take(AGENT).collect());
    Client { address: SocketAddr::new(context.client(), 0), agent }
}

/// Returns the answer with the address of a session that has begun.
pub(super) fn reply(of: WebRtcUse, begun: Begun) -> Reply {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body::SDP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("accept-patch"), HeaderValue::from_static(body::FRAGMENT));
    // Relative to the request's address: a proxy may have taken a prefix off the path.
    let location = HeaderValue::from_str(&format!("{}/{}", of.name(), begun.id));
    headers.insert(header::LOCATION, location.unwrap_or(HeaderValue::from_static(of.name())));
    if let Ok(tag) = HeaderValue::from_str(&begun.tag) {
        headers.insert(header::ETAG, tag);
    }
    Reply::new(StatusCode::CREATED, headers, Body::bytes(begun.answer.into()))
}
