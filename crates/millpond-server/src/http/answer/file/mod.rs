//! Requests for files that are passed through unchanged.

use super::{
    Context, Front, ReplyInfo,
    reply::{Negotiation, SelectedRepresentation, etag as etag_of},
    viewers::Client,
};
use crate::{
    cluster::Cluster,
    http::{Kind, render::AnswerError},
    library::{LibraryError, PlacePath, content_type as content_type_of, fingerprint},
};
use http::{HeaderName, HeaderValue, Method, header};
use millpond_http::{
    body::Body,
    request::range::{self, RequestedRange},
};
use millpond_store::{HOME_HEADER, HomeStep, Object, ObjectPath, PURGED_HEADER, Whence};
use std::sync::Arc;

/// Selects a file if the requested range of it is cached. No origin is asked. Sibling caches request files so.
pub(super) fn cached(context: &Context<'_>, info: &mut ReplyInfo) -> Result<SelectedRepresentation, AnswerError> {
    let Context { front, request, target, .. } = *context;
    let absent = || AnswerError::NotCached(target.path().to_owned());
    let place = front.place_of(target).ok_or_else(absent)?;
    front.attribute(place.index, Kind::File, info);
    let path = ObjectPath::parse(place.inside).ok();
    let object = path.and_then(|path| front.store.peek(place.name, &path)).ok_or_else(absent)?;
    let range = match range::parse(request.single(header::RANGE).valid(), object.meta().len) {
        RequestedRange::Bytes(range) => range,
        _ => 0..object.meta().len,
    };
    let is_cached = front.store.whence(&object, range).iter().all(|(_, whence)| *whence != Whence::Origin);
    if is_cached { Ok(unchanged(front, place.index, &object, place.inside)) } else { Err(absent()) }
}

/// Selects an object that another node asks for, because this one is its home.
pub(super) async fn of_home(
    context: &Context<'_>,
    info: &mut ReplyInfo,
) -> Result<SelectedRepresentation, AnswerError> {
    let Context { front, request, target, .. } = *context;
    let refused = |why: String| AnswerError::NoHome { path: target.path().trim_start_matches('/').to_owned(), why };
    let not_home = || refused("this node is not the home of these bytes".to_owned());
    let place = front.place_of(target).ok_or_else(not_home)?;
    front.attribute(place.index, Kind::File, info);
    let range = match range::parse(request.single(header::RANGE).valid(), u64::MAX) {
        RequestedRange::Bytes(range) => range,
        _ => return Err(not_home()),
    };
    let purged =
        request.single(HeaderName::from_static(PURGED_HEADER)).valid().map_or(0, |epoch| epoch.parse().unwrap_or(0));
    // Nodes with different views would ask each other in circles.
    let step =
        request.headers.get(HOME_HEADER).map_or(HomeStep::Cluster, |value| HomeStep::of_header(value.as_bytes()));
    let is_home = |cluster: &&Arc<Cluster>| cluster.is_home((place.name, place.inside), range.start, step);
    let cluster = front.cluster().filter(is_home).ok_or_else(not_home)?;
    if cluster.awaits((place.name, place.inside), &range, step) {
        return Err(refused("this node waits for these bytes of another home: ask the origin".to_owned()));
    }
    // A home that does not know a purge yet has bytes of before it.
    if !cluster.has_purged(purged) {
        return Err(refused(format!("this home has not applied the purge {purged} yet")));
    }
    let path = ObjectPath::parse(place.inside).map_err(|_| not_home())?;
    let object = front.store.open_for(place.name, &path, range).await?;
    Ok(unchanged(front, place.index, &object, path.file_name()))
}

/// Selects a file.
pub(super) async fn select(context: &Context<'_>, place: PlacePath<'_>) -> Result<SelectedRepresentation, AnswerError> {
    let Context { front, request, viewers, .. } = *context;
    let inside = place.inside.trim_end_matches('/');
    if inside.is_empty() {
        return Err(LibraryError::NoAsset(place.name.to_string()).into());
    }
    let path =
        ObjectPath::parse(inside).map_err(|e| LibraryError::BadPath { path: inside.to_owned(), why: e.to_string() })?;
    // HEAD needs the metadata only. So do ranges from the end, whose offsets are unknown before the length is.
    let wanted = match range::parse(request.single(header::RANGE).valid(), u64::MAX) {
        RequestedRange::Whole if request.method == Method::GET => 0..u64::MAX,
        RequestedRange::Bytes(range) if request.method == Method::GET && range.start < u64::MAX / 2 => range,
        _ => 0..1,
    };
    let object = front.store.open_for(place.name, &path, wanted.clone()).await?;
    if wanted.end > 1 && wanted.end < u64::MAX {
        viewers.range_requested(&front.store, &object, wanted, Client::of(request));
    }
    front.store.prepare(&object).await?;
    Ok(unchanged(front, place.index, &object, path.file_name()))
}

/// Selects an object with the metadata of its origin.
fn unchanged(front: &Front, place: usize, object: &Arc<Object>, name: &str) -> SelectedRepresentation {
    let meta = object.meta();
    let stated = meta.content_type.as_deref().filter(|stated| !is_unspecific(stated, name));
    let content_type = stated.and_then(|stated| HeaderValue::from_str(stated).ok());
    let etag = meta.etag.as_deref().filter(|etag| is_etag(etag)).and_then(|etag| HeaderValue::from_str(etag).ok());
    let etag = etag.unwrap_or_else(|| etag_of(fingerprint(meta.version.as_str().as_bytes())));
    let more = [
        (header::CONTENT_DISPOSITION, &meta.content_disposition),
        (header::CONTENT_LANGUAGE, &meta.content_language),
        (header::CONTENT_ENCODING, &meta.content_encoding),
    ];
    let more = more.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_str(value.as_ref()?).ok()?)));
    let content_type = content_type.unwrap_or(HeaderValue::from_static(content_type_of(name)));
    let guards = guards(&content_type);
    SelectedRepresentation {
        content_type,
        cache_control: front.cache_control(place).passed(&front.store.permission(object)),
        etag,
        modified: meta.modified,
        more: more.chain(guards).collect(),
        negotiation: Negotiation::Fixed,
        body: Body::object(&front.store, object, 0..meta.len),
    }
}

/// Returns the fields that keep a file from acting as a page of this server: browsers believe its type, and documents run no
/// scripts and have an origin of their own.
fn guards(content_type: &HeaderValue) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<> {
    let bare =
        content_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_document = bare == "text/html" || bare.ends_with("xml");
    let nosniff = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let sandbox = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    [nosniff].into_iter().chain(is_document.then_some(sandbox))
}

/// Tells whether an origin's media type is a server's default although the file's name is that of playable media.
/// Players need the specific type.
fn is_unspecific(stated: &str, name: &str) -> bool {
    let bare = stated.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let guessed = content_type_of(name);
    let is_played = guessed.starts_with("video/")
        || guessed.starts_with("audio/")
        || guessed.starts_with("text/vtt")
        || matches!(guessed, "application/vnd.apple.mpegurl" | "application/dash+xml");
    let is_default = matches!(bare.as_str(), "application/octet-stream" | "binary/octet-stream" | "text/plain");
    bare.is_empty() || (is_played && is_default)
}

/// Tells whether a text is an entity tag, strong or weak (RFC 9110 section 8.8.3).
fn is_etag(text: &str) -> bool {
    let opaque = text.strip_prefix("W/").unwrap_or(text);
    let inner = opaque.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte > b' ' && byte != b'"' && byte != 0x7f))
}
