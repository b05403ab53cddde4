//! Requests with other methods than GET and HEAD.

use super::{Context, Reply, client::cors, reply::problem, webrtc};
use crate::problem::Problem;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_logging::RequestId;

/// Value of `Allow`.
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Answers OPTIONS, CORS preflights included.
pub(super) fn options(context: &Context<'_>, id: RequestId) -> Reply {
    let mut headers = HeaderMap::new();
    let of_webrtc = webrtc::methods(context.target);
    if of_webrtc.is_some() {
        headers.insert(header::HeaderName::from_static("accept-post"), HeaderValue::from_static("application/sdp"));
    }
    let allowed = of_webrtc.unwrap_or(ALLOWED);
    headers.insert(header::ALLOW, allowed.clone());
    cors(context).add_preflight(allowed, &mut headers);
    headers.insert(RequestId::HEADER, id.header_value());
    Reply::without_body(StatusCode::NO_CONTENT, headers)
}

/// Refuses an unsupported method. An offer of WebRTC whose path is that of no stream is told so.
pub(super) fn unsupported(context: &Context<'_>, id: RequestId) -> Reply {
    let (method, path) = (&context.request.method, context.target.path());
    if method == Method::POST && (path.ends_with("/whep") || path.ends_with("/whip")) {
        let why = format!(
            "{path}: no stream has this path: offers go to PATH/whep and PATH/whip of live streams and channels"
        );
        return problem(id, Problem::new(StatusCode::NOT_FOUND).detail(why));
    }
    let why = format!("{method} is not supported: GET, HEAD and OPTIONS are");
    let mut reply = problem(id, Problem::new(refusal_status(method)).detail(why));
    reply.headers.insert(header::ALLOW, ALLOWED);
    reply
}

/// Returns the status that refuses a method: 405 for a known one, 501 for others (RFC 9110 section 9.1).
fn refusal_status(method: &Method) -> StatusCode {
    let known = [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE, Method::CONNECT];
    if known.contains(method) { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_IMPLEMENTED }
}
