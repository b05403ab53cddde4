//! A request of the API: parameters and body.

use super::bad;
use crate::problem::Problem;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use millpond_cluster::NodeName;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Header field by which a client of a feed connects again (HTML, server-sent events).
const LAST_EVENT: &str = "last-event-id";
/// Largest body.
const MOST: usize = 64 << 10;

/// A request of the API.
#[derive(Debug, Default)]
pub(super) struct ApiRequest {
    /// Values of the parameters of the path, decoded.
    pub(super) parameters: Vec<String>,
    /// The query, percent-encoded.
    pub(super) query: String,
    /// The body; empty where there is none.
    pub(super) body: Bytes,
    /// Id of the last event that the client of a feed has had, where it connects again.
    pub(super) last_event: Option<String>,
    /// The node by way of which an operator asks; `None` where the operator asks this one.
    pub(super) by: Option<NodeName>,
}

impl ApiRequest {
    /// Reads the body, within a time, where the method has one.
    ///
    /// # Errors
    /// The problem to answer with.
    pub(super) async fn read(
        request: Request<Incoming>,
        parameters: Vec<String>,
        patience: Duration,
    ) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        if !matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
            let last_event = parts.headers.get(LAST_EVENT).and_then(|id| Some(id.to_str().ok()?.to_owned()));
            return Ok(Self { parameters, query, last_event, ..Self::default() });
        }
        let read = tokio::time::timeout(patience, Limited::new(body, MOST).collect()).await;
        let body = match read {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE).detail("bodies have at most 64 KiB"));
            }
            Ok(Err(_)) => return Err(bad("the body can't be read")),
            Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT).detail("the body did not arrive in time")),
        };
        check_media_type(&parts.headers, !body.is_empty())?;
        Ok(Self { parameters, query, body, ..Self::default() })
    }

    /// Checks that the request did not come by way of a node: what nodes ask is asked no further.
    ///
    /// # Errors
    /// 508: it did.
    pub(super) fn check_direct(&self) -> Result<(), Problem> {
        let Some(by) = &self.by else { return Ok(()) };
        let words = format!("this request came by way of the node {by}, and is not passed on: ask a node itself");
        Err(Problem::new(StatusCode::LOOP_DETECTED).detail(words))
    }

    /// The value of the n-th parameter of the path.
    pub(super) fn parameter(&self, number: usize) -> &str {
        self.parameters.get(number).map_or("", String::as_str)
    }

    /// The value of the path's only parameter, which is a number.
    pub(super) fn number(&self) -> Result<u64, Problem> {
        self.parameter(0).parse().map_err(|_| bad("the id is a number"))
    }

    /// The parameters of the query.
    ///
    /// # Errors
    /// 400: a parameter is unknown, missing, given twice or of another form.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_urlencoded::from_str(&self.query).map_err(|error| bad(format!("query: {error}")))
    }

    /// The body. Without one it is `{}`.
    ///
    /// # Errors
    /// 400: the body is not JSON of that shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let body: &[u8] = if self.body.is_empty() { b"{}" } else { &self.body };
        serde_json::from_slice(body).map_err(|error| bad(format!("body: {error}")))
    }
}

/// Demands JSON of bodies. Web pages can send other types to other sites without being asked.
fn check_media_type(headers: &HeaderMap, has_body: bool) -> Result<(), Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return if has_body { Err(unsupported()) } else { Ok(()) };
    };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(super::JSON) { Ok(()) } else { Err(unsupported()) }
}

fn unsupported() -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE).detail("Content-Type: application/json is needed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn bodies_are_json() {
        let check = |value: Option<&str>, has_body| {
            let headers = value.map(|value| (CONTENT_TYPE, HeaderValue::from_str(value).unwrap()));
            check_media_type(&headers.into_iter().collect(), has_body).is_ok()
        };
        for value in ["application/json", "Application/JSON; charset=utf-8"] {
            assert!(check(Some(value), true) && check(Some(value), false), "{value}");
        }
        for value in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
            assert!(!check(Some(value), true) && !check(Some(value), false), "{value}");
        }
        assert!(!check(None, true) && check(None, false));
    }
}
