//! Stored titles of RTSP servers: playlists and manifests of the whole title, and segments that the store keeps.

use super::{
    super::{
        Context, Front, Reply, ReplyInfo,
        reply::{Negotiation, SelectedRepresentation, etag},
        target::LiveTarget,
    },
    segment::OfRun,
};
use crate::{
    http::{AnswerError, Kind, render::TitleStream},
    library::{LiveMedia, LiveResource, fingerprint},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::body::Body;
use millpond_package::hls::Container;
use millpond_store::Permission;
use millpond_stream::{
    live::LiveText,
    remote::{RemoteTitle, TitleListing},
};
use std::sync::Arc;

/// Seconds for which a playlist is fresh: the title may be found to be shorter.
const FRESH: u64 = 10;

/// Asks the server of a stream for its stored title, so that it is known.
///
/// # Errors
/// The server has nothing there, or does not answer.
pub(super) async fn ask(front: &Front, live: &LiveTarget) -> Result<(), AnswerError> {
    known(front, live, true).await.map(drop)
}

async fn known(front: &Front, live: &LiveTarget, asks: bool) -> Result<Option<Arc<RemoteTitle>>, AnswerError> {
    front.sources.title(&live.stream, asks).await.map_err(|error| AnswerError::of_title(&live.stream, error))
}

/// Tells whether a path, or a folder above it, is known to have a stored title of a server.
pub(super) async fn is_known(front: &Front, live: &LiveTarget) -> bool {
    live.is_source && front.sources.manager().remote_titles().known_above(&live.stream).await.is_some()
}

/// Answers a request for something of a stored title of a server; `None` where the path is that of a live stream, and for transport streams,
/// which are made of titles as of live streams. Only for segments is the server asked:
/// others were told by a live stream that [there is a title](ask).
///
/// # Errors
/// The title has no such resource, or its server failed.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Option<Reply>, AnswerError> {
    let front = context.front;
    let resource = match &live.resource {
        Some(
            resource @ (LiveResource::Mpd
            | LiveResource::Multivariant(Container::Fmp4)
            | LiveResource::Media(Container::Fmp4, _)
            | LiveResource::Long(Container::Fmp4)
            | LiveResource::OfRun {
                media: LiveMedia::Init(_) | LiveMedia::Segment(_) | LiveMedia::SegmentAt(_),
                ..
            }),
        ) => resource,
        _ => return Ok(None),
    };
    // Segments of before are known by the name of their version: nothing else is asked for them.
    let is_of_run = matches!(resource, LiveResource::OfRun { .. }) && !front.sources.manager().is_running(&live.stream);
    // As of a live stream, HEAD opens nothing.
    let asks = is_of_run && context.request.method != Method::HEAD;
    let Some(title) = known(front, live, asks).await? else { return Ok(None) };
    // Segments that can be played are still served to those who have begun.
    if let Some(error) = title.unplayable().filter(|_| !matches!(resource, LiveResource::OfRun { .. })) {
        return Err(AnswerError::Source { path: live.stream.to_string(), error });
    }
    let listing = title.listing();
    let unlisted = || live.without("the title has no track that a playlist can list");
    Ok(match resource {
        LiveResource::Mpd => {
            info.kind = Kind::Dash;
            let text = listing.mpd(title.version()).ok_or_else(unlisted)?;
            Some(text_reply(context, "application/dash+xml", text))
        }
        LiveResource::Multivariant(_) => {
            info.kind = Kind::Hls;
            let text = listing.multivariant().ok_or_else(unlisted)?;
            Some(text_reply(context, "application/vnd.apple.mpegurl", text))
        }
        LiveResource::Media(_, name) => {
            info.kind = Kind::Hls;
            let text = listing.media(track(live, &listing, name)?, title.version()).ok_or_else(unlisted)?;
            Some(text_reply(context, "application/vnd.apple.mpegurl", text))
        }
        LiveResource::Long(_) => Some(long(front, &context.request.method, &title, &listing)),
        // Only running streams have snapshots, and only those that are published have schedules.
        LiveResource::Snapshot | LiveResource::Copy | LiveResource::Guide(_) | LiveResource::WebRtc(..) => None,
        LiveResource::OfRun { run, .. } if run != title.version() => None,
        LiveResource::OfRun { run, track, media } => {
            info.kind = Kind::Segment;
            let of_run = OfRun { run, track, media: *media };
            Some(segment(front, context, live, (&title, &listing), of_run).await?)
        }
    })
}

/// Returns the index of a track.
fn track(live: &LiveTarget, listing: &TitleListing, name: &str) -> Result<usize, AnswerError> {
    listing.track(name).ok_or_else(|| live.without(format!("the title has no track {name}")))
}

/// Makes the reply of a playlist or manifest.
fn text_reply(context: &Context<'_>, content_type: &'static str, text: LiveText) -> Reply {
    let cache_control = HeaderValue::from_str(&format!("public, max-age={FRESH}"));
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(content_type),
        // Digits are always valid.
        cache_control: cache_control.unwrap_or(HeaderValue::from_static("no-store")),
        etag: etag(text.hash),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Fixed,
        body: Body::bytes(text.bytes),
    };
    selected.reply(context.request)
}

/// Makes the reply of an init segment or segment.
async fn segment(
    front: &Front,
    context: &Context<'_>,
    live: &LiveTarget,
    (title, listing): (&Arc<RemoteTitle>, &TitleListing),
    OfRun { run, track: name, media }: OfRun<'_>,
) -> Result<Reply, AnswerError> {
    let track = track(live, listing, name)?;
    let (identity, body) = match media {
        LiveMedia::Init(epoch) => {
            let init = listing.init(track, epoch);
            let init = init.ok_or_else(|| live.without(format!("the title has no epoch {epoch}")))?;
            (format!("{run}/{name}/init"), Body::bytes(init))
        }
        LiveMedia::Segment(number) if number > 0 => {
            let segment = title.segment(&front.store, number - 1).await?;
            let range = segment.track(&front.store, track).await?;
            let version = &segment.object.meta().version;
            (format!("{name}/{version}"), Body::object(&front.store, &segment.object, range))
        }
        _ => return Err(live.without("no playlist of the title lists this")),
    };
    let content_type = if listing.is_video(track) { "video/mp4" } else { "audio/mp4" };
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(content_type),
        cache_control: front.cache_control(live.place).made(true, &Permission::default()),
        etag: etag(fingerprint(identity.as_bytes())),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Fixed,
        body,
    };
    Ok(selected.reply(context.request))
}

/// Makes the reply with the whole title in one response, whose length is not known before all of it was fetched.
pub(super) fn long(front: &Front, method: &Method, title: &Arc<RemoteTitle>, listing: &TitleListing) -> Reply {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("video/mp4"));
    let body = match *method == Method::HEAD {
        true => Body::unmade(),
        false => {
            let stream = TitleStream::new(front.store.clone(), title.clone(), listing.long_init());
            Body::stream(Box::new(stream))
        }
    };
    Reply::new(StatusCode::OK, headers, body)
}
