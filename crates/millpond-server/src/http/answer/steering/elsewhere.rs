//! Requests that another node of the cluster serves.

use super::{
    super::{Context, Front, Reply, ReplyInfo, Target, target::LiveTarget},
    pathways::demand_of,
};
use crate::{
    cluster::{MARK, PassedBytes, PassedRequest, Protocol, Start, marked},
    http::{
        Kind,
        render::{self, Role},
    },
    library::LiveResource,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_cluster::{Demand, ObjectKey};
use millpond_connections::proxies::Forwarded;
use millpond_http::{
    body::{Body, BodyError, ChunkStream},
    request::head::MAX_TARGET,
};
use millpond_library::uri;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for opening a title before its viewer is steered.
const OPENING: Duration = Duration::from_secs(1);

/// Returns the redirect to the node that serves a request; `None` where that is this one.
///
/// Manifests and long responses are redirected. All else is relative to them, and is served where it is asked for.
pub(in crate::http::answer) async fn redirect(context: &Context<'_>) -> Option<Reply> {
    let Context { front, request, target, .. } = *context;
    let cluster = front.cluster()?;
    let query = context.query();
    if marked(query) {
        return None;
    }
    let (key, start) = redirected_key(front, target)?;
    if !cluster.redirects(start, Protocol::Http) {
        return None;
    }
    let demand = demand_to_steer(context, start).await;
    let query = if query.is_empty() { String::new() } else { format!("{query}&") };
    let (token, path) = (request.prefix(), uri::encode(target.path()));
    let marked = format!("{token}{path}?{query}{MARK}={}", cluster.name());
    // The other node would refuse it: the mark makes it longer than the client's.
    if marked.len() > MAX_TARGET {
        return None;
    }
    let base = cluster.elsewhere((&key, start), demand.as_ref(), (Protocol::Http, context.is_secure())).await?;
    let location = format!("{base}{marked}");
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(Reply::without_body(StatusCode::TEMPORARY_REDIRECT, headers))
}

/// Passes a request on to the node that serves it; `None` where that is this one.
pub(in crate::http::answer) async fn pass(context: &Context<'_>, info: &mut ReplyInfo) -> Option<Reply> {
    let Context { front, request, .. } = *context;
    let cluster = front.cluster().filter(|cluster| cluster.passes())?;
    if marked(context.query()) {
        return None;
    }
    let (key, start) = passed_key(context, info)?;
    // At its listener for nodes, another node does not check the viewer's token, and does not know the tracks that it leaves.
    if start != Start::Follows && info.pass.filter().is_some() && cluster.has_node_listener() {
        return None;
    }
    let target = request.target.split('#').next().unwrap_or("");
    let target = format!("{}{target}", request.prefix());
    let client = Forwarded { address: context.client(), is_secure: context.is_secure() };
    let passed = PassedRequest { method: &request.method, target: &target, headers: &request.headers, client };
    let demand = demand_to_steer(context, start).await;
    let mut passage = cluster.passage((key, start), demand, passed)?;
    let passed = passage.begin().await?;
    let (status, headers, length) = (passed.status, passed.headers.clone(), passed.length);
    let has_body = request.method != Method::HEAD && status != StatusCode::NOT_MODIFIED;
    let body = match length {
        Some(0) => Body::empty(),
        None if !has_body => Body::unmade(),
        _ => Body::passed(Box::new(PassedBytes::new(passage, passed)), length),
    };
    Some(Reply::new(status, headers, body))
}

/// Returns the demand of the title that a viewer begins to play, where it tells which nodes have room. A title that can't be opened
/// in time is steered by an assumed demand.
async fn demand_to_steer(context: &Context<'_>, start: Start) -> Option<Demand> {
    let Context { front, target, .. } = *context;
    front.cluster().filter(|cluster| cluster.needs_demand(start))?;
    timeout(OPENING, demand_of(front, target)).await.ok().flatten()
}

/// Returns the object of a request that may be passed on. Files are served where they are asked for.
fn passed_key(context: &Context<'_>, info: &mut ReplyInfo) -> Option<(ObjectKey, Start)> {
    let Context { front, target, .. } = *context;
    if let Some(live) = target.live() {
        front.attribute(live.place, Kind::Stream, info);
        return front.sources.object_key(&live.stream);
    }
    let (place, route) = (front.place_of(target)?, target.route()?);
    let profile = render::profile(&route.resource);
    front.attribute(place.index, profile.kind(), info);
    let start = match profile.role() {
        Role::Start => Start::Stored,
        Role::TrackPlaylist | Role::Segment | Role::Other => Start::Follows,
    };
    Some((ObjectKey::new(place.name, &route.asset), start))
}

/// Returns the object that a target belongs to, also where each node serves the target itself.
pub(crate) fn asset_key(front: &Front, target: &Target) -> Option<(ObjectKey, Start)> {
    if let Some(live) = target.live() {
        return front.sources.object_key(&live.stream);
    }
    let (place, route) = (front.place_of(target)?, target.route()?);
    Some((ObjectKey::new(place.name, &route.asset), Start::Stored))
}

/// Returns the object that a request is assigned by; `None` for requests that each node serves itself.
fn redirected_key(front: &Front, target: &Target) -> Option<(ObjectKey, Start)> {
    if let Some(live) = target.live() {
        return front.sources.object_key(&live.stream).filter(|_| is_begun(live));
    }
    let (place, route) = (front.place_of(target)?, target.route()?);
    let start = match render::profile(&route.resource).role() {
        Role::Start => Start::Stored,
        Role::TrackPlaylist => Start::Follows,
        Role::Segment | Role::Other => return None,
    };
    Some((ObjectKey::new(place.name, &route.asset), start))
}

/// Whether a request begins to play a stream, or reads its playlist.
fn is_begun(live: &LiveTarget) -> bool {
    !matches!(
        live.resource,
        None | Some(
            LiveResource::OfRun { .. }
                | LiveResource::Snapshot
                | LiveResource::Copy
                | LiveResource::Guide(_)
                | LiveResource::WebRtc(..)
        )
    )
}

impl ChunkStream for PassedBytes {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Self::next(self).map(|read| read.map_err(BodyError::Node)).boxed()
    }
}
