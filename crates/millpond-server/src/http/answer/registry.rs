//! Questions of the nodes of a cluster without etcd to each other.

use super::{Context, Reply};
use crate::cluster::GossipQuestion;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::body::Body;
use millpond_library::uri;
use std::time::Duration;

/// Answers a question of another node; `None` for all other requests. A node shows its pass, or has come by the listener of nodes.
///
/// Limits do not hold: nodes ask all the time. These requests are not logged and not counted.
pub(super) async fn reply(context: &Context<'_>) -> Option<Reply> {
    let Context { front, request, target, viewers } = *context;
    if !target.is_registry() || request.method != Method::GET {
        return None;
    }
    let cluster = front.cluster()?;
    let is_of_node = viewers.is_of_node() || request.token.as_deref().is_some_and(|token| cluster.admits_node(token));
    if !is_of_node {
        return None;
    }
    let json = cluster.gossip(question(context.query())).await?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(Reply::new(StatusCode::OK, headers, Body::bytes(json.into())))
}

/// Reads a question. What is missing or wrong has its default: all keys are told then.
fn question(query: &str) -> GossipQuestion {
    let text = |name| uri::parameter(query, name);
    GossipQuestion {
        since: text("since").parse().unwrap_or(0),
        run: u64::from_str_radix(&text("run"), 16).unwrap_or(0),
        wait: Duration::from_millis(text("wait").parse().unwrap_or(0)),
        ended: text("ended").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_defaults() {
        let asked = question("since=7&run=ff&wait=1000&ended=a/1f/2");
        assert_eq!((asked.since, asked.run, asked.wait), (7, 255, Duration::from_secs(1)));
        assert_eq!(asked.ended.unwrap().to_string(), "a/1f/2");
        let wrong = question("since=-1&run=x&wait=&ended=a");
        assert_eq!((wrong.since, wrong.run, wrong.wait, wrong.ended), (0, 0, Duration::ZERO, None));
    }
}
