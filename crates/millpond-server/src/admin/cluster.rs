//! The cluster: `/cluster` shows its nodes, `/cluster/assign` explains which of them serve a path, and `/cluster/drain` makes a node
//! drain (POST) or take work again (DELETE).

use super::{AdminState, Reply, bad, refuse, show};
use crate::problem::Problem;
use http::{Method, StatusCode, header::ALLOW, header::HeaderValue};
use millpond_cluster::NodeName;
use serde_json::json;

/// Answers a request about the cluster; `None` where there is no such path.
pub(super) async fn answer(method: &Method, path: &str, query: &str, state: &AdminState) -> Option<Reply> {
    if !matches!(path, "/cluster" | "/cluster/assign" | "/cluster/drain") {
        return None;
    }
    let Some(cluster) = &state.cluster else {
        let why = "this server is no node of a cluster: the setting cluster names etcd";
        return Some(refuse(Problem::new(StatusCode::NOT_FOUND).detail(why)));
    };
    let reads = matches!(*method, Method::GET | Method::HEAD);
    Some(match path {
        "/cluster" if reads => show(&cluster.status()),
        "/cluster/assign" if reads => {
            let Some(asked) = super::parameter(query, "path") else {
                return Some(bad("?path=PATH names an asset, a stream or a manifest by its path in URLs"));
            };
            let by_url = state.front.object_key(&asked);
            match by_url.or_else(|| state.sources.object_key(&asked)) {
                Some((key, start)) => show(&cluster.explain(&key, start)),
                None => refuse(Problem::new(StatusCode::NOT_FOUND).detail("each node serves that path itself")),
            }
        }
        "/cluster/drain" if matches!(*method, Method::POST | Method::DELETE) => {
            let node: Option<Result<NodeName, _>> = super::parameter(query, "node").map(|name| name.parse());
            let Some(Ok(node)) = node else { return Some(bad("?node=NAME names a node of the cluster")) };
            let drains = *method == Method::POST;
            if drains && cluster.view().node(node.as_str()).is_none() {
                let why = format!("the cluster has no node {node}");
                return Some(refuse(Problem::new(StatusCode::NOT_FOUND).detail(why)));
            }
            match cluster.drain(&node, drains).await {
                Ok(()) => show(&json!({ "node": node.to_string(), "drain": drains })),
                Err(error) => refuse(Problem::new(StatusCode::BAD_GATEWAY).detail(format!("etcd: {error}"))),
            }
        }
        path => {
            let allowed = if path == "/cluster/drain" { "POST, DELETE" } else { "GET, HEAD" };
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail(format!("{allowed} are answered here"));
            let mut response = refuse(problem);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            response
        }
    })
}
