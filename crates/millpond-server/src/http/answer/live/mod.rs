//! Requests for running streams: live streams, and channels in their folder `live`.

mod clip;
mod clock;
mod copy;
mod guide;
mod ladder;
mod long;
mod past;
mod phased;
mod playlist;
mod segment;
mod snapshot;
mod title;
#[cfg(feature = "intercept")]
mod translated;

pub(super) use ladder::Openings;
#[cfg(feature = "intercept")]
pub(crate) use translated::{TranslatedMedia, answer_translated};

use super::{Context, Front, Reply, ReplyInfo, target::LiveTarget};
use crate::{
    http::{AnswerError, Kind},
    library::{LibraryError, LiveResource},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_http::request::Request;
use millpond_package::hls::Container;
use millpond_stream::{Program, SourceErrorKind};
use segment::OfRun;
use std::time::Duration;

/// Longest wait for the formats of a live stream. Its source has time limits of its own for each step before.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl LiveTarget {
    /// Returns the error of a resource that the stream doesn't have.
    pub(super) fn without(&self, what: impl Into<String>) -> AnswerError {
        LibraryError::NoResource { asset: self.stream.to_string(), what: what.into() }.into()
    }
}

/// Answers a request for something of a stream.
///
/// # Errors
/// The stream can't be opened, has no such resource, or does not get it in time.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let front = context.front;
    front.attribute(live.place, Kind::Stream, info);
    if let Some(asset) = front.sources.phased_asset(&live.stream) {
        return phased::answer(context.request, live, asset);
    }
    match of_title_or_live(context, live, info).await {
        // A server described the path as that of a stored title.
        Err(AnswerError::Source { error, .. }) if error.kind == SourceErrorKind::StoredTitle && live.is_source => {
            title::ask(front, live).await?;
            of_title_or_live(context, live, info).await
        }
        answered => answered,
    }
}

async fn of_title_or_live(
    context: &Context<'_>,
    live: &LiveTarget,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    if live.is_source
        && let Some(reply) = title::answer(context, live, info).await?
    {
        return Ok(reply);
    }
    of_live(context, live, info).await
}

/// Answers a request for something of a live stream or channel.
async fn of_live(context: &Context<'_>, live: &LiveTarget, info: &mut ReplyInfo) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    let answered = match live.resource {
        // Segments of before can be had here only.
        Some(LiveResource::OfRun { .. }) => of_stream(context, live, info).await,
        _ if is_elsewhere(front, live) => return Ok(again(request)),
        _ => of_stream(context, live, info).await,
    };
    match answered {
        Err(_) if is_elsewhere(front, live) => Ok(again(request)),
        answered => answered,
    }
}

/// Whether another process of the server has the stream, because its publishers push there now.
fn is_elsewhere(front: &Front, live: &LiveTarget) -> bool {
    front.sources.manager().has_handed_over() && front.sources.is_pushed_to(&live.stream)
}

/// Returns a reply that has the client ask again on a new connection, which another process of the server accepts.
fn again(request: &Request) -> Reply {
    let (path, query) = request.split();
    let name = path.rsplit('/').next().unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    let mut headers = HeaderMap::with_capacity(4);
    // A relative reference: a proxy may have taken a prefix off the path.
    if let Ok(same) = HeaderValue::from_str(&format!("./{name}{mark}{query}")) {
        headers.insert(header::LOCATION, same);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut reply = Reply::without_body(StatusCode::TEMPORARY_REDIRECT, headers);
    reply.is_last = true;
    reply
}

async fn of_stream(context: &Context<'_>, live: &LiveTarget, info: &mut ReplyInfo) -> Result<Reply, AnswerError> {
    match &live.resource {
        None => {
            let kind = if title::is_known(context.front, live).await { "stored title" } else { "stream" };
            Err(live.without(format!("a {kind} has no such resource: index.m3u8 is there")))
        }
        Some(LiveResource::WebRtc(end, _)) => {
            Err(live.without(format!("{} takes offers of WebRTC by POST", end.name())))
        }
        Some(LiveResource::Guide(format)) => guide::answer(context, live, *format, info),
        Some(LiveResource::Copy) => copy::answer(context, live, info).await,
        Some(LiveResource::Snapshot) => snapshot::answer(context, live, info).await,
        Some(LiveResource::Long(container)) => long::answer(context, live, *container, info).await,
        Some(LiveResource::Multivariant(container)) => playlist::multivariant(context, live, *container, info).await,
        Some(LiveResource::Mpd) => playlist::mpd(context, live, info).await,
        Some(LiveResource::Media(Container::Fmp4, track)) => playlist::media(context, live, track, info).await,
        Some(LiveResource::Media(Container::Ts, track)) => playlist::transport(context, live, track, info).await,
        Some(LiveResource::OfRun { run, track, media }) => {
            let of_run = OfRun { run, track, media: *media };
            segment::answer(context, live, of_run, info).await
        }
    }
}

/// Opens a stream for one viewer: one rendition at a time where it is a ladder.
pub(super) async fn viewed(front: &Front, live: &LiveTarget) -> Result<Program, AnswerError> {
    match long::followed(front, live).await? {
        Some(program) => Ok(program),
        None => program(front, live).await,
    }
}

/// Opens a stream. A live source is waited for until its formats are known.
pub(super) async fn program(front: &Front, live: &LiveTarget) -> Result<Program, AnswerError> {
    let named = || live.stream.to_string();
    let manager = front.sources.manager();
    let request = front.sources.stream(&live.stream).await?.ok_or_else(|| LibraryError::NoAsset(named()))?;
    let stream = manager.live(request).map_err(|error| AnswerError::NotStarted { path: named(), error })?;
    let feed = manager.live_feed(&stream, PATIENCE).await;
    Ok(Program::live(&feed.map_err(|error| AnswerError::Source { path: named(), error })?))
}
