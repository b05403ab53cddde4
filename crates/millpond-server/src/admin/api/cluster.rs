//! The cluster: its nodes, the assignment of a path, and draining.

use super::{
    super::AdminState,
    Outcome, Reply, absent, bad,
    cache::{PurgeRequest, purge_of},
    request::ApiRequest,
    show,
};
use crate::{
    cluster::{Cluster, ClusterStatus, Explained, PurgeFailure, PurgeReport, Start},
    http::{Target, asset_key, demand_of},
    problem::Problem,
};
use http::StatusCode;
use millpond_cluster::{NodeName, PurgeEntry, PurgedObjects};
use millpond_store::Selection;
use serde::{Deserialize, Serialize};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::{IntoParams, ToSchema};

/// The path whose assignment is explained.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AssignQuery {
    /// Path of an asset, stream or manifest, as in URLs.
    path: String,
}

/// Whether a node drains.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Draining {
    /// Name of the node.
    node: String,
    /// Whether the node drains.
    drain: bool,
}

/// The cluster of this node.
///
/// # Errors
/// 404: the server is no node of one.
pub(super) fn cluster(state: &AdminState) -> Result<&Arc<Cluster>, Problem> {
    let why =
        "this server is no node of a cluster: set cluster, the addresses of etcd, or cluster-nodes, those of the nodes";
    state.cluster.as_ref().ok_or_else(|| absent(why))
}

/// Shows the nodes of the cluster. `node` is null where the server is none.
#[utoipa::path(get, path = "/api/v1/cluster", tag = "cluster", responses((status = 200, body = ClusterStatus)))]
pub(super) fn get_cluster(state: &AdminState) -> Reply {
    show(&state.cluster.as_ref().map(|cluster| cluster.status()).unwrap_or_default())
}

/// Explains which nodes serve a path.
#[utoipa::path(get, path = "/api/v1/cluster/assign", tag = "cluster", params(AssignQuery), responses((status = 200, body = Explained)))]
pub(super) async fn assign(request: &ApiRequest, state: &AdminState) -> Outcome {
    cluster(state)?;
    let AssignQuery { path } = request.query()?;
    let explained = explained(state, &path).await;
    if explained.is_none() && state.sources.find(path.trim_start_matches('/')).place().is_none() {
        return Err(absent(state.front.without_place(&path).to_string()));
    }
    explained.map(|explained| show(&explained)).ok_or_else(|| absent("each node serves that path itself"))
}

/// The nodes that serve a path, and the bandwidth that is booked of them; `None` where the server is no node of a cluster, and for paths that
/// each node serves itself.
pub(super) async fn explained(state: &AdminState, path: &str) -> Option<Explained> {
    let cluster = state.cluster.as_ref()?;
    let path = path.trim_start_matches('/');
    let target = Target::of_media(&state.front, path);
    let (key, start) =
        asset_key(&state.front, &target).or_else(|| state.sources.object_key(&state.sources.find(path)))?;
    // The index of a title may have to be read from its storage. As for viewers, that is done only where the rate decides.
    let demand = match start {
        Start::Stored | Start::Follows if cluster.books() => demand_of(&state.front, &target).await,
        _ => None,
    };
    Some(cluster.explain(&key, start, demand.as_ref()))
}

/// Drains a node: it finishes its sessions, and gets no new viewers.
#[utoipa::path(put, path = "/api/v1/cluster/nodes/{name}/drain", tag = "cluster",
    params(("name" = String, Path, description = "Name of the node")), responses((status = 200, body = Draining)))]
pub(super) async fn drain(request: &ApiRequest, state: &AdminState) -> Outcome {
    set(request, state, true).await
}

/// Makes a node take work again.
#[utoipa::path(delete, path = "/api/v1/cluster/nodes/{name}/drain", tag = "cluster",
    params(("name" = String, Path, description = "Name of the node")), responses((status = 200, body = Draining)))]
pub(super) async fn undrain(request: &ApiRequest, state: &AdminState) -> Outcome {
    set(request, state, false).await
}

/// Removes the cached slices of files from all nodes. The answer waits at most two seconds for the nodes.
#[utoipa::path(post, path = "/api/v1/cluster/purge", tag = "cluster", request_body = PurgeRequest,
    responses((status = 200, body = PurgeReport)))]
pub(super) async fn purge_cluster(request: &ApiRequest, state: &AdminState) -> Outcome {
    let (purge, object) = purge_of(request, state)?;
    let cluster = cluster(state)?;
    let (place, objects) = match purge.selection {
        Selection::Below { place, path } => (Some(place), PurgedObjects::Path(path)),
        Selection::Matching { place, glob } => (Some(place), PurgedObjects::Pattern(glob.as_str().to_owned())),
        Selection::Tagged { place, tag } => (place, PurgedObjects::Tag(tag.as_str().to_owned())),
        Selection::Everything => return Err(bad("expected a path, a pattern or a tag")),
    };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let entry = PurgeEntry { place, objects, is_soft: purge.is_soft, at };
    let report = cluster.purge(&entry).await.map_err(|error| match error {
        PurgeFailure::Entry(_) => bad(error.to_string()),
        PurgeFailure::Full => Problem::new(StatusCode::TOO_MANY_REQUESTS).detail(error.to_string()),
        PurgeFailure::Outside(_) => Problem::new(StatusCode::CONFLICT).detail(error.to_string()),
        PurgeFailure::Unregistered(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE).detail(error.to_string()),
        PurgeFailure::Refused(_) | PurgeFailure::Unsure { .. } => {
            Problem::new(StatusCode::BAD_GATEWAY).detail(error.to_string())
        }
    })?;
    tracing::info!(object, epoch = report.epoch, missing = report.missing.len(), "purged the cluster");
    Ok(show(&report))
}

async fn set(request: &ApiRequest, state: &AdminState, drain: bool) -> Outcome {
    let cluster = cluster(state)?;
    let node: NodeName = request.parameter(0).parse().map_err(|_| bad("the path names no node of a cluster"))?;
    if drain && cluster.view().node(node.as_str()).is_none() {
        return Err(absent(format!("the cluster has no node {node}")));
    }
    match cluster.drain(&node, drain).await {
        Ok(()) => Ok(show(&Draining { node: node.to_string(), drain })),
        Err(error) => Err(Problem::new(StatusCode::BAD_GATEWAY).detail(format!("{}: {error}", error.registry()))),
    }
}
