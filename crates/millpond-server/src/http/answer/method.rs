//! Requests with other methods than GET and HEAD.

use super::{Front, Reply};
use crate::{logging::RequestId, problem::Problem};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Value of `Allow`.
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

impl Front {
    /// Answers OPTIONS, CORS preflights included.
    pub(super) fn options(&self, id: RequestId) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(header::ALLOW, ALLOWED);
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED);
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("*, Range, If-Range, If-None-Match"),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        headers.insert(RequestId::HEADER, id.header_value());
        Reply::without_body(StatusCode::NO_CONTENT, headers)
    }

    /// Refuses an unsupported method.
    pub(super) fn unsupported_method(&self, id: RequestId, method: &Method) -> Reply {
        let why = format!("{method} is not supported: GET, HEAD and OPTIONS are");
        let mut reply = self.problem(id, Problem::new(refusal_status(method)).detail(why));
        reply.headers.insert(header::ALLOW, ALLOWED);
        reply
    }
}

/// Returns the status that refuses a method: 405 for a known one, 501 for others (RFC 9110 section 9.1).
fn refusal_status(method: &Method) -> StatusCode {
    let known = [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE, Method::CONNECT];
    if known.contains(method) { StatusCode::METHOD_NOT_ALLOWED } else { StatusCode::NOT_IMPLEMENTED }
}
