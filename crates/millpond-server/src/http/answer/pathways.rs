//! The nodes of a cluster in manifests: a player that loses its node goes on at the next one.

use super::{
    Context, Front,
    representation::{Negotiation, SelectedRepresentation, etag},
    target::STEERING,
};
use crate::{
    cluster::MARK,
    http::{
        body::Body,
        render::{AnswerError, TextId},
        request::coding::Coding,
    },
    library::{Asset, Resource, Route, fingerprint},
    uri,
};
use bytes::Bytes;
use http::HeaderValue;
use millpond_cluster::{Bitrate, Demand, NodeName, ObjectKey};
use millpond_package::{
    MediaKind,
    pathway::{self, Pathway, Pathways},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Seconds after which players ask for a steering manifest again.
const ASK_AGAIN: u32 = 10;

/// Lists the nodes of the cluster in a manifest. `selected` is the manifest without them and without a coding; `may_code` is
/// whether it may get one.
pub(super) async fn listed_in(
    context: &Context<'_>,
    (place, route): (usize, &Route),
    may_code: bool,
    mut selected: SelectedRepresentation,
) -> SelectedRepresentation {
    let Some(mut text) = selected.body.as_bytes() else { return selected };
    if let Some(listed) = listed(context, (place, route), &text).await {
        text = Bytes::from(listed);
        selected.etag = etag(fingerprint(&text));
        // The nodes change later than the asset.
        selected.modified = None;
        selected.body = Body::bytes(text.clone());
    }
    if let Some(coding) = Coding::preferred(context.request).filter(|_| may_code)
        && let Some(coded) = context.front.coded_texts.get(TextId::Hash(fingerprint(&text)), coding, &text).await
    {
        (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
    }
    selected
}

/// Books the bandwidth of a viewer who begins to play an asset.
///
/// # Errors
/// The node or the storage lacks bandwidth for all of the playback.
pub(super) async fn book(front: &Front, place: usize, asset: &Asset) -> Result<(), AnswerError> {
    let Some(cluster) = front.cluster() else { return Ok(()) };
    let booked = cluster.book_viewer(demand(front, place, asset)).await;
    booked.map_err(|shortage| AnswerError::Busy { path: asset.path.clone(), why: shortage.to_string() })
}

/// The bandwidth that a viewer of an asset needs.
pub(super) fn demand(front: &Front, place: usize, asset: &Asset) -> Demand {
    let presentation = &asset.presentation;
    let best = |kind| {
        let tracks = presentation.tracks().iter().filter(move |track| track.kind() == kind);
        tracks.map(|track| track.bandwidth().average).max().unwrap_or(0)
    };
    let is_remote = asset.objects.iter().any(|object| object.file().is_none());
    Demand {
        storage: front.places.iter().nth(place).filter(|_| is_remote).cloned(),
        stores: asset.objects.iter().flat_map(|object| object.stores()).collect(),
        rate: Bitrate::from_bps(best(MediaKind::Video).saturating_add(best(MediaKind::Audio))),
        length: Duration::try_from_secs_f64(presentation.duration()).ok(),
    }
}

/// Tells whether manifests of a route may list nodes.
pub(super) fn are_listed(front: &Front, route: &Route) -> bool {
    front.cluster().is_some() && matches!(route.resource, Resource::Multivariant(_) | Resource::Mpd)
}

/// Returns a manifest that lists the nodes; `None` where there is only this one.
async fn listed(context: &Context<'_>, (place, route): (usize, &Route), text: &[u8]) -> Option<String> {
    let Context { front, request, .. } = *context;
    let is_secure = context.is_secure();
    let cluster = front.cluster()?;
    let name: &str = front.places.iter().nth(place)?;
    let nodes = cluster.listed(&ObjectKey::new(name, &route.asset), is_secure).await;
    if nodes.len() < 2 {
        return None;
    }
    let path = request.split().0;
    let token = request.prefix();
    let folder = format!("{token}{}", path.get(..=path.rfind('/')?)?);
    // The node that gets it must not redirect it.
    let query = format!("?{MARK}={}", cluster.name());
    // dash.js reads no base URL after a relative one.
    let own = cluster.own_url(is_secure).filter(|_| route.resource == Resource::Mpd);
    let pathway = |(name, url): (NodeName, Option<Arc<str>>)| Pathway {
        id: name.to_string(),
        query: if url.is_some() { query.clone() } else { String::new() },
        base: url.or_else(|| own.clone()).map_or(String::new(), |url| format!("{url}{folder}")),
    };
    let all: Vec<_> = nodes.into_iter().map(pathway).collect();
    let asset = format!("/{}", [name, &route.asset].join("/").trim_matches('/'));
    // dash.js takes a relative address for one of its own page; that of HLS is relative to the playlist.
    let root = match own {
        Some(url) => format!("{url}{token}/"),
        None => request.root(),
    };
    let steering = format!("{root}{}?path={}", STEERING.trim_start_matches('/'), uri::encode(&asset));
    let steering = Some(steering).filter(|_| cluster.steers());
    let pathways = Pathways { all: &all, steering: steering.as_deref() };
    let text = std::str::from_utf8(text).ok()?;
    Some(match route.resource {
        Resource::Mpd => pathway::mpd(text, pathways),
        _ => pathway::multivariant(text, pathways),
    })
}

/// Returns the steering manifest of an asset (draft-pantos-hls-rfc8216bis 7.2, ETSI TS 103 998 clause 6): the nodes, the best first.
pub(super) async fn steering(context: &Context<'_>, asset: Option<&str>) -> Option<SelectedRepresentation> {
    let front = context.front;
    let cluster = front.cluster().filter(|cluster| cluster.steers())?;
    let (_, place, inside) = front.place(asset?)?;
    let order = cluster.listed(&ObjectKey::new(place, inside), context.is_secure()).await;
    let order: Vec<_> = order.iter().map(|(name, _)| name.as_str()).collect();
    let manifest = json!({ "VERSION": 1, "TTL": ASK_AGAIN, "PATHWAY-PRIORITY": order }).to_string();
    Some(SelectedRepresentation {
        content_type: HeaderValue::from_static("application/vnd.apple.steering-list"),
        cache_control: HeaderValue::from_static("no-store"),
        etag: etag(fingerprint(manifest.as_bytes())),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Fixed,
        body: Body::bytes(Bytes::from(manifest)),
    })
}
