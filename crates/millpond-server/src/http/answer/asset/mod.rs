//! Requests for resources of assets: playlists, manifests, segments and texts.

mod track_filter;

use super::{
    Context, Front, ReplyInfo, file,
    reply::{CacheControl, Negotiation, SelectedRepresentation, etag},
    steering,
    viewers::{Client, Receipt},
};
use crate::{
    http::{
        Kind,
        render::{self, AnswerError, ResourceProfile, Role, TextId},
    },
    library::{Asset, LibraryError, Resource, Route, is_manifest, is_media, is_playlist},
};
use http::{HeaderName, HeaderValue, Method, header};
use millpond_http::{body::Body, request::coding::Coding};
use millpond_package::TrackFilter;
use millpond_store::Permission;
use std::sync::Arc;

/// Selects the resource or file of a request.
pub(super) async fn select(context: &Context<'_>, info: &mut ReplyInfo) -> Result<SelectedRepresentation, AnswerError> {
    let Context { front, target, .. } = *context;
    let Some(place) = front.place_of(target) else {
        return Err(front.without_place(target.path()).into());
    };
    front.attribute(place.index, Kind::File, info);
    let Some(route) = target.route() else { return file::select(context, place).await };
    let name = route.asset.rsplit('/').next().unwrap_or("");
    let is_certain = is_media(name) || is_manifest(name) || is_playlist(name) || name.ends_with(".urlset");
    match front.library.open_resource(place.name, route).await {
        Ok(asset) => resource(context, place.index, &asset, route, info).await,
        // A folder that contains finished playlists is passed through.
        Err(LibraryError::NoAsset(_)) if !is_certain => file::select(context, place).await,
        Err(
            error
            @ (LibraryError::TooMany { .. } | LibraryError::NotOneTitle { .. } | LibraryError::OnlyForeign { .. }),
        ) if !is_certain => file::select(context, place).await.map_err(|_| error.into()),
        Err(error) => Err(error.into()),
    }
}

/// Makes a resource of an asset.
async fn resource(
    context: &Context<'_>,
    place: usize,
    asset: &Arc<Asset>,
    route: &Route,
    info: &mut ReplyInfo,
) -> Result<SelectedRepresentation, AnswerError> {
    let Context { front, request, .. } = *context;
    let profile = render::profile(&route.resource);
    info.kind = profile.kind();
    let filter = track_filter::of_request(context, (place, asset, profile.role()), info)?;
    front.lasting.renderer.prepare(asset, &route.resource).await?;
    if request.method == Method::GET {
        info.receipt = note_viewer(context, asset, &route.resource).await?;
    }
    // A client may insist on a reply made for it (RFC 9111 section 5.2.1.4). Such a reply bypasses the caches.
    let fresh = request.contains(header::CACHE_CONTROL, "no-cache");
    let permission = asset.permission(&front.store);
    let has_pathways = steering::are_listed(front, route);
    if request.method == Method::GET {
        match profile.role() {
            Role::Start => steering::book(context, place, asset).await?,
            Role::TrackPlaylist | Role::Segment => steering::hear(context, place, asset),
            Role::Other => {}
        }
    }
    let may_code = profile.is_text() && !permission.no_transform;
    let coding = Coding::preferred(request).filter(|_| may_code && !has_pathways);
    let wanted = (route.resource.clone(), filter.clone());
    let made = resource_body(front, asset, wanted, coding, fresh).await;
    let made = made.map_err(|error| track_filter::attributed(context, place, info, error));
    let (body, coded) = made.inspect_err(|_| {
        if request.method == Method::GET && profile.role() == Role::Start {
            steering::refuse(context, asset);
        }
    })?;
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(profile.content_type()),
        cache_control: cache_control(front.cache_control(place), asset, route, profile.role(), &permission),
        etag: etag(track_filter::identity(asset, &filter)),
        // Filters of places and tokens change later than the asset. Playlists of a file that is still scanned grow.
        modified: asset.modified.filter(|_| filter.is_empty() && !asset.is_so_far()),
        more: own_fields(&profile),
        negotiation: if profile.is_text() {
            coded.map_or(Negotiation::Uncoded, Negotiation::Coded)
        } else {
            Negotiation::Fixed
        },
        body,
    };
    Ok(match has_pathways {
        true => steering::listed_in(context, (place, route, asset), may_code, selected).await,
        false => selected,
    })
}

/// Returns the value of `Cache-Control`. Segments of a file that is still scanned are final in the beginning alone: the whole file may
/// have others under the same version. So they live as long as media without a version in their paths.
fn cache_control(
    values: &CacheControl,
    asset: &Asset,
    route: &Route,
    role: Role,
    permission: &Permission,
) -> HeaderValue {
    match (asset.is_so_far(), role) {
        (true, Role::Segment) => values.made(false, permission),
        (true, _) => values.growing(permission),
        (false, _) => values.made(route.version.is_some(), permission),
    }
}

/// Returns header fields that only some resources have. With `nosniff`, browsers take images for nothing else.
fn own_fields(profile: &ResourceProfile<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let sniffing = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Some(sniffing).filter(|_| profile.is_image()).into_iter().collect()
}

/// Tells the store which segment a viewer has reached.
async fn note_viewer(
    context: &Context<'_>,
    asset: &Asset,
    resource: &Resource,
) -> Result<Option<Receipt>, AnswerError> {
    let store = &context.front.store;
    for object in &asset.objects {
        store.prepare(object).await?;
    }
    Ok(context.viewers.segment_requested(store, asset, resource, Client::of(context.request)))
}

/// Returns the body of a resource that a filter applies to, and its coding. A text that the preferred coding does not shorten has
/// none.
async fn resource_body(
    front: &Front,
    asset: &Arc<Asset>,
    (resource, filter): (Resource, TrackFilter),
    coding: Option<Coding>,
    fresh: bool,
) -> Result<(Body, Option<Coding>), AnswerError> {
    let renderer = &front.lasting.renderer;
    let text = coding.map(|coding| (TextId::Resource(asset.id, resource.clone(), filter.clone()), coding));
    if let Some((text, coding)) = text.as_ref().filter(|_| !fresh)
        && let Some(Some(coded)) = front.lasting.coded_texts.cached(text, *coding)
    {
        return Ok((Body::bytes(coded), Some(*coding)));
    }
    let body = match filter.is_empty() {
        true => renderer.body(asset, resource, fresh).await?,
        false => renderer.filtered(asset, (resource, filter), fresh).await?,
    };
    let Some((text, coding)) = text else { return Ok((body, None)) };
    let Some(bytes) = body.as_bytes() else { return Ok((body, None)) };
    match front.lasting.coded_texts.get(text, coding, &bytes).await {
        Some(coded) => Ok((Body::bytes(coded), Some(coding))),
        None => Ok((body, None)),
    }
}
