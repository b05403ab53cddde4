//! Events as requests to an endpoint.

use super::{signature::HookSecret, target::Outcome};
use crate::events::Event;
use http::{HeaderName, HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use millpond_outbound::{Client, chain};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// Header fields of Standard Webhooks.
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// Media type of an event in structured mode (CloudEvents 1.0, HTTP binding 3.2).
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/cloudevents+json; charset=utf-8");

/// Most bytes of an answer that are read, and the longest time for them. A connection with an unread answer is not used again.
const ANSWER: (usize, Duration) = (64 << 10, Duration::from_secs(1));

/// Posts an event, signed where there is a secret. Only the status of the answer counts. Redirects are failures.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    (secret, limit): (Option<&HookSecret>, Duration),
    event: &Event,
) -> Outcome {
    let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut request = client
        .request(Method::POST, url.clone())
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .header(ID, event.id())
        .header(TIMESTAMP, timestamp.to_string());
    if let Some(secret) = secret {
        request = request.header(SIGNATURE, secret.sign(event.id(), timestamp, event.json()));
    }
    match tokio::time::timeout(limit, request.body(event.json().clone()).send()).await {
        Ok(Ok(reply)) => {
            let status = reply.status();
            let _ = tokio::time::timeout(ANSWER.1, read(reply)).await;
            outcome(status)
        }
        Ok(Err(error)) => Outcome::Failed(chain(&error)),
        Err(_) => Outcome::Failed(format!("no answer within {limit:?}")),
    }
}

/// Reads the body of an answer, which has no meaning.
async fn read(mut reply: reqwest::Response) {
    let mut left = ANSWER.0;
    while let Ok(Some(piece)) = reply.chunk().await {
        left = left.saturating_sub(piece.len());
        if left == 0 {
            return;
        }
    }
}

/// The meaning of a status. Only those are final that the same request always gets.
fn outcome(status: StatusCode) -> Outcome {
    match status.as_u16() {
        200..300 => Outcome::Delivered,
        410 => Outcome::Gone,
        400 | 413 | 415 | 422 => Outcome::Refused(format!("the status is {status}")),
        300..400 => Outcome::Failed(format!("the status is {status}: redirects are not followed, so correct the URL")),
        _ => Outcome::Failed(format!("the status is {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_statuses_are_final() {
        let of = |status: u16| outcome(StatusCode::from_u16(status).unwrap());
        assert!([200, 202, 204, 299].into_iter().all(|status| of(status) == Outcome::Delivered));
        assert!([400, 413, 415, 422].into_iter().all(|status| matches!(of(status), Outcome::Refused(_))));
        for status in [301, 302, 307, 401, 403, 404, 408, 429, 500, 502, 503, 504] {
            assert!(matches!(of(status), Outcome::Failed(_)), "{status}");
        }
        assert_eq!(of(410), Outcome::Gone);
    }
}
