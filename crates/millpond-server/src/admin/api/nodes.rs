//! The API of any node, by way of this one.

use super::{
    super::{AdminState, Body, CACHE_CONTROL, CONTENT_TYPE, node_api::whole},
    Outcome, answer_call, bad,
    cluster::cluster,
    request::ApiRequest,
};
use crate::{
    cluster::{ApiAnswer, ApiCall, ApiFailure, Cluster, NODE_HEADER},
    problem::Problem,
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use millpond_cluster::NodeName;
use serde::Deserialize;
use std::{sync::Arc, time::Duration};

/// Time for a request that is passed on: a purge of a large disk takes its time.
const LIMIT: Duration = Duration::from_secs(30);
/// Time in which each of many nodes must answer.
const EACH: Duration = Duration::from_secs(1);
/// Most nodes that are asked for one request, and those among them that are asked at once.
const NODES: usize = 256;
const AT_ONCE: usize = 16;

/// Asks a node: `overview` behind `api/` is `/api/v1/overview` there. Its query and its answer are passed on.
#[utoipa::path(get, path = "/api/v1/cluster/nodes/{name}/api/{rest}", tag = "cluster",
    params(("name" = String, Path, description = "Name of the node"), ("rest" = String, Path, description = "Path of the API, slashes included")),
    responses((status = 200, description = "The answer of the node", body = Object)))]
pub(super) async fn get_of_node(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    pass_on(Method::GET, request, state).await
}

/// Posts to a node.
#[utoipa::path(post, path = "/api/v1/cluster/nodes/{name}/api/{rest}", tag = "cluster", request_body = Object,
    params(("name" = String, Path, description = "Name of the node"), ("rest" = String, Path, description = "Path of the API, slashes included")),
    responses((status = 200, description = "The answer of the node", body = Object)))]
pub(super) async fn post_to_node(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    pass_on(Method::POST, request, state).await
}

/// Puts something at a node.
#[utoipa::path(put, path = "/api/v1/cluster/nodes/{name}/api/{rest}", tag = "cluster", request_body = Object,
    params(("name" = String, Path, description = "Name of the node"), ("rest" = String, Path, description = "Path of the API, slashes included")),
    responses((status = 200, description = "The answer of the node", body = Object)))]
pub(super) async fn put_at_node(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    pass_on(Method::PUT, request, state).await
}

/// Changes something at a node.
#[utoipa::path(patch, path = "/api/v1/cluster/nodes/{name}/api/{rest}", tag = "cluster", request_body = Object,
    params(("name" = String, Path, description = "Name of the node"), ("rest" = String, Path, description = "Path of the API, slashes included")),
    responses((status = 200, description = "The answer of the node", body = Object)))]
pub(super) async fn change_at_node(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    pass_on(Method::PATCH, request, state).await
}

/// Deletes something at a node.
#[utoipa::path(delete, path = "/api/v1/cluster/nodes/{name}/api/{rest}", tag = "cluster",
    params(("name" = String, Path, description = "Name of the node"), ("rest" = String, Path, description = "Path of the API, slashes included")),
    responses((status = 200, description = "The answer of the node", body = Object)))]
pub(super) async fn delete_at_node(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    pass_on(Method::DELETE, request, state).await
}

async fn pass_on(method: Method, request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    cluster(state)?;
    request.check_direct()?;
    let node: NodeName = request.parameter(0).parse().map_err(|_| bad("the path names no node of a cluster"))?;
    let mut target = format!("/api/v1/{}", request.parameter(1));
    if !request.query.is_empty() {
        target.push('?');
        target.push_str(&request.query);
    }
    let call = ApiCall { method, target, body: request.body.clone() };
    let answer = ask(state, &node, &call, LIMIT).await.map_err(|failure| problem(&failure))?;
    if call.method != Method::GET {
        let (method, path, status) = (&call.method, call.path(), answer.status.as_u16());
        tracing::info!(%node, %method, path, status, "asked a node for a change");
    }
    Ok(reply(&node, answer))
}

/// Asks a node, which may be this one.
///
/// # Errors
/// The node was not asked, or did not answer within the limit.
pub(super) async fn ask(
    state: &Arc<AdminState>,
    node: &NodeName,
    call: &ApiCall,
    limit: Duration,
) -> Result<ApiAnswer, ApiFailure> {
    match &state.cluster {
        Some(cluster) if cluster.name() != node => cluster.ask_api(node, call, limit).await,
        _ => Ok(whole(answer_call(node.clone(), call.clone(), state.clone()).await).await),
    }
}

/// The names of the nodes, this one included, and the number of those that are too many.
pub(super) fn names(cluster: &Cluster) -> (Vec<NodeName>, usize) {
    let view = cluster.view();
    let mut names: Vec<_> = view.nodes().iter().map(|node| node.name.clone()).collect();
    if !names.contains(cluster.name()) {
        names.push(cluster.name().clone());
    }
    names.sort();
    let left_out = names.len().saturating_sub(NODES);
    names.truncate(NODES);
    (names, left_out)
}

/// Asks nodes for one thing. Returns their answers by name, with errors in words.
pub(super) async fn all<T: for<'de> Deserialize<'de> + Send>(
    state: &Arc<AdminState>,
    names: Vec<NodeName>,
    target: String,
) -> Vec<(String, Result<T, String>)> {
    let call = ApiCall { method: Method::GET, target, body: Bytes::new() };
    let found = each(state, names, &call, EACH).await.into_iter().map(|(name, answer)| {
        let read = answer.map_err(|failure| failure.to_string()).and_then(|answer| {
            match serde_json::from_slice(&answer.body) {
                Ok(value) if answer.status.is_success() => Ok(value),
                _ => Err(format!("node {name} answers with status {}: its version may be older", answer.status)),
            }
        });
        (name, read)
    });
    found.collect()
}

/// Passes a request on to nodes, some at once. Each must answer within the limit. Returns their answers by name.
pub(super) async fn each(
    state: &Arc<AdminState>,
    names: Vec<NodeName>,
    call: &ApiCall,
    limit: Duration,
) -> Vec<(String, Result<ApiAnswer, ApiFailure>)> {
    let asked = names.into_iter().map(|name| {
        let (state, call) = (state.clone(), call.clone());
        async move { (name.to_string(), timely(&state, &name, &call, limit).await) }
    });
    let mut found: Vec<_> = stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// Asks a node, which may be this one, within a limit that holds for this one too.
async fn timely(
    state: &Arc<AdminState>,
    node: &NodeName,
    call: &ApiCall,
    limit: Duration,
) -> Result<ApiAnswer, ApiFailure> {
    let late = |_| ApiFailure::Late { node: node.clone(), limit };
    tokio::time::timeout(limit, ask(state, node, call, limit)).await.map_err(late)?
}

fn problem(failure: &ApiFailure) -> Problem {
    let status = match failure {
        ApiFailure::NoNode(_) => StatusCode::NOT_FOUND,
        ApiFailure::Unproven { .. } => StatusCode::CONFLICT,
        ApiFailure::Path => StatusCode::BAD_REQUEST,
        ApiFailure::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
        ApiFailure::NoAddress(_)
        | ApiFailure::Away { .. }
        | ApiFailure::Refused(_)
        | ApiFailure::Other { .. }
        | ApiFailure::Long(_) => StatusCode::BAD_GATEWAY,
    };
    Problem::new(status).detail(failure.to_string())
}

/// The answer of a node as the reply of this one.
fn reply(node: &NodeName, ApiAnswer { status, content_type, body }: ApiAnswer) -> Response<Body> {
    let mut reply = Response::new(Full::new(body).boxed_unsync());
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(content_type.map(|value| (CONTENT_TYPE, value)));
    headers.extend(HeaderValue::from_str(node.as_str()).ok().map(|name| (NODE_HEADER, name)));
    reply
}
