//! The nodes of a cluster in manifests: a player that loses its node goes on at the next one.

use super::super::{
    Context, Front,
    reply::{Negotiation, SelectedRepresentation, etag},
    target::{LiveTarget, STEERING, Target},
};
use crate::{
    cluster::{Cluster, ListedNodes, MARK, Start},
    http::render::{self, AnswerError, Role, TextId},
    library::{Asset, Detail, Purpose, Resource, Route, fingerprint},
};
use bytes::Bytes;
use millpond_cluster::{Bitrate, Demand, NodeName, ObjectKey};
use millpond_http::{body::Body, request::coding::Coding};
use millpond_library::uri;
use millpond_package::{
    MediaKind,
    pathway::{self, Pathway, Pathways},
};
use std::{sync::Arc, time::Duration};

/// Lists the nodes of the cluster in a manifest. `selected` is the manifest without them and without a coding; `may_code` is
/// whether it may get one.
pub(in crate::http::answer) async fn listed_in(
    context: &Context<'_>,
    (place, route, asset): (usize, &Route, &Asset),
    may_code: bool,
    mut selected: SelectedRepresentation,
) -> SelectedRepresentation {
    let Some(mut text) = selected.body.as_bytes() else { return selected };
    if let Some(listed) = listed(context, (place, route, asset), &text).await {
        text = Bytes::from(listed);
        selected.etag = etag(fingerprint(&text));
        // The nodes change later than the asset.
        selected.modified = None;
        selected.body = Body::bytes(text.clone());
    }
    if let Some(coding) = Coding::preferred(context.request).filter(|_| may_code)
        && let Some(coded) =
            context.front.lasting.coded_texts.get(TextId::Hash(fingerprint(&text)), coding, &text).await
    {
        (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
    }
    selected
}

/// Books the bandwidth of a viewer who begins to play an asset.
///
/// # Errors
/// The node or the storage lacks bandwidth for all of the playback.
pub(in crate::http::answer) async fn book(
    context: &Context<'_>,
    place: usize,
    asset: &Asset,
) -> Result<(), AnswerError> {
    let Some(cluster) = context.front.cluster() else { return Ok(()) };
    let viewer = (context.client(), asset.path.as_str());
    let booked = cluster.book_viewer(viewer, demand(context.front, place, asset)).await;
    booked.map_err(|shortage| AnswerError::Busy { path: asset.path.clone(), why: shortage.to_string() })
}

/// Ends the booking of a viewer whose request to begin an asset failed.
pub(in crate::http::answer) fn refuse(context: &Context<'_>, asset: &Asset) {
    if let Some(cluster) = context.front.cluster() {
        cluster.refuse_viewer((context.client(), asset.path.as_str()));
    }
}

/// Notes that a viewer goes on to play an asset: its booking lasts.
pub(in crate::http::answer) fn hear(context: &Context<'_>, place: usize, asset: &Asset) {
    if let Some(cluster) = context.front.cluster() {
        cluster.hear_viewer((context.client(), asset.path.as_str()), || demand(context.front, place, asset));
    }
}

/// Returns the bandwidth that a stream of a path's asset needs; `None` where it can't be opened.
pub(crate) async fn demand_of(front: &Front, target: &Target) -> Option<Demand> {
    let place = front.place_of(target)?;
    let asset = match target.route() {
        Some(route) => front.library.open_resource(place.name, route).await,
        None => front.library.open_for(place.name, place.inside, Purpose::Playback, Detail::Outline).await,
    };
    Some(demand(front, place.index, &*asset.ok()?))
}

/// The bandwidth that a viewer of an asset needs.
pub(in crate::http::answer) fn demand(front: &Front, place: usize, asset: &Asset) -> Demand {
    let presentation = &asset.presentation;
    let best = |kind| {
        let tracks = presentation.tracks().iter().filter(move |track| track.kind() == kind);
        tracks.map(|track| track.bandwidth().sustained).max().unwrap_or(0)
    };
    let is_remote = asset.objects.iter().any(|object| object.file().is_none());
    Demand {
        storage: front.places.iter().nth(place).filter(|_| is_remote).cloned(),
        stores: asset.objects.iter().flat_map(|object| object.stores()).collect(),
        rate: Bitrate::from_bps(best(MediaKind::Video).saturating_add(best(MediaKind::Audio))),
        length: Duration::try_from_secs_f64(presentation.duration()).ok(),
        is_read_only: false,
    }
}

/// Tells whether manifests of a route may list nodes.
pub(in crate::http::answer) fn are_listed(front: &Front, route: &Route) -> bool {
    front.cluster().is_some() && render::profile(&route.resource).role() == Role::Start
}

/// Returns a manifest of a live stream that lists the nodes; `None` where there is only this one. The others have copies of the stream's window.
pub(in crate::http::answer) async fn listed_live(
    context: &Context<'_>,
    live: &LiveTarget,
    text: &[u8],
    form: Form,
) -> Option<String> {
    let cluster = context.front.cluster().filter(|_| live.is_source)?;
    let key = context.front.sources.copied_key(&live.stream)?;
    let nodes = cluster.listed((&key, Start::Live), None, context.is_secure()).await;
    with_nodes(context, cluster, (&live.stream, nodes), text, form)
}

/// Returns a manifest of an asset that lists the nodes; `None` where there is only this one.
async fn listed(context: &Context<'_>, (place, route, asset): (usize, &Route, &Asset), text: &[u8]) -> Option<String> {
    let front = context.front;
    let cluster = front.cluster()?;
    let name: &str = front.places.iter().nth(place)?;
    let demand = demand(front, place, asset);
    let key = ObjectKey::new(name, &route.asset);
    let nodes = cluster.listed((&key, Start::Stored), Some(&demand), context.is_secure()).await;
    let form = if route.resource == Resource::Mpd { Form::Mpd } else { Form::Multivariant };
    with_nodes(context, cluster, (&[name, &route.asset].join("/"), nodes), text, form)
}

/// The form of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http::answer) enum Form {
    Multivariant,
    Mpd,
}

/// Returns the manifest of a path that lists nodes; `None` where there is only this one.
fn with_nodes(
    context: &Context<'_>,
    cluster: &Cluster,
    (of, nodes): (&str, ListedNodes),
    text: &[u8],
    form: Form,
) -> Option<String> {
    if nodes.len() < 2 {
        return None;
    }
    let request = context.request;
    let path = request.split().0;
    let token = request.prefix();
    let folder = format!("{token}{}", path.get(..=path.rfind('/')?)?);
    // The node that gets it must not redirect it.
    let query = format!("?{MARK}={}", cluster.name());
    // dash.js reads no base URL after a relative one.
    let own = cluster.own_url(context.is_secure()).filter(|_| form == Form::Mpd);
    let pathway = |(name, url): (NodeName, Option<Arc<str>>)| Pathway {
        id: name.to_string(),
        query: if url.is_some() { query.clone() } else { String::new() },
        base: url.or_else(|| own.clone()).map_or(String::new(), |url| format!("{url}{folder}")),
    };
    let all: Vec<_> = nodes.into_iter().map(pathway).collect();
    let path = format!("/{}", of.trim_matches('/'));
    // dash.js takes a relative address for one of its own page; that of HLS is relative to the playlist.
    let root = match own {
        Some(url) => format!("{url}{token}/"),
        None => request.root(),
    };
    let steering = format!("{root}{}?path={}", STEERING.trim_start_matches('/'), uri::encode(&path));
    let steering = Some(steering).filter(|_| cluster.steers());
    let pathways = Pathways { all: &all, steering: steering.as_deref() };
    let text = std::str::from_utf8(text).ok()?;
    Some(match form {
        Form::Mpd => pathway::mpd(text, pathways),
        Form::Multivariant => pathway::multivariant(text, pathways),
    })
}
