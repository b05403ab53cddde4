//! Questions of the nodes of a cluster without etcd to each other.

use super::{Context, Reply};
use crate::cluster::{AskedQuestion, GossipQuestion, PASS_HEADER, PROOF_HEADER, ProvedAnswer};
use http::{HeaderMap, HeaderValue, Method, header};
use millpond_http::body::Body;
use millpond_library::uri;
use std::time::Duration;

/// Answers a question of another node; `None` for all other requests. A node shows a pass of this question, or has come by the listener of nodes.
///
/// Limits do not hold: nodes ask all the time. These requests are not logged and not counted.
pub(super) async fn reply(context: &Context<'_>) -> Option<Reply> {
    let Context { front, request, target, viewers } = *context;
    if !target.is_registry() || request.method != Method::GET {
        return None;
    }
    let (query, is_of_node, client) = (context.query(), viewers.is_of_node(), viewers.address());
    let pass = request.headers.get(PASS_HEADER).and_then(|pass| pass.to_str().ok());
    let asked = AskedQuestion { question: question(query), query, pass, is_of_node, client };
    let ProvedAnswer { status, body, proof } = front.cluster()?.answer_node(asked).await?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(proof.and_then(|proof| Some((PROOF_HEADER, HeaderValue::from_str(&proof.to_string()).ok()?))));
    Some(Reply::new(status, headers, Body::bytes(body.into())))
}

/// Reads a question. What is missing or wrong has its default: all keys are told then.
fn question(query: &str) -> GossipQuestion {
    let text = |name| uri::parameter(query, name);
    GossipQuestion {
        since: text("since").parse().unwrap_or(0),
        run: u64::from_str_radix(&text("run"), 16).unwrap_or(0),
        wait: Duration::from_millis(text("wait").parse().unwrap_or(0)),
        ended: text("ended").parse().ok(),
        by: u64::from_str_radix(&text("by"), 16).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_defaults() {
        let asked = question("since=7&run=ff&wait=1000&ended=a/1f/2&by=1f");
        assert_eq!((asked.since, asked.run, asked.wait, asked.by), (7, 255, Duration::from_secs(1), 31));
        assert_eq!(asked.ended.unwrap().to_string(), "a/1f/2");
        let wrong = question("since=-1&run=x&wait=&ended=a");
        assert_eq!((wrong.since, wrong.run, wrong.wait, wrong.ended), (0, 0, Duration::ZERO, None));
    }
}
