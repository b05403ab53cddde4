//! Running streams, each in one long response.

use super::{
    super::{Context, Front, Reply, ReplyInfo, target::LiveTarget},
    clip,
    past::Past,
    viewed,
};
use crate::{
    http::{
        AnswerError,
        render::{LongResponse, Muxer, Sent},
    },
    live::CannotFollow,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::body::Body;
use millpond_media::movie::{Track, TrackKind};
use millpond_package::{hls::Container, live::FlacUnits};
use millpond_stream::{Program, fragmenter::fits};

/// Answers a request for the long response of a stream in a container.
///
/// # Errors
/// The stream can't be opened, or no media of it can be sent.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    container: Container,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    let past = Past::parse(&live.stream, context.query())?;
    match container {
        _ if !past.is_timed() => {}
        Container::Fmp4 => return clip::answer(context, live, past, info).await,
        Container::Ts => {
            let why = "stream.ts has no clips: stream.mp4 and index.m3u8 do".to_owned();
            return Err(AnswerError::Past { path: live.stream.to_string(), why });
        }
    }
    // The media of a live source is unknown before it is opened.
    if request.method == Method::HEAD && live.is_source {
        front.sources.live(&live.stream)?;
        return Ok(Reply::new(StatusCode::OK, headers(container, []), Body::unmade()));
    }
    let program = viewed(front, live).await?;
    let muxer = Muxer::of(&program, container).ok_or_else(|| unfit(&program, container))?;
    // Nothing starts for a client that takes no media.
    if request.method == Method::HEAD {
        let headers = program_headers(&program, container);
        return Ok(Reply::new(StatusCode::OK, headers, Body::unmade()));
    }
    of_program(front, &program, (container, muxer), info).await
}

/// Returns the frames of a ladder for one viewer; `None` where the path is that of no ladder.
pub(super) async fn followed(front: &Front, live: &LiveTarget) -> Result<Option<Program>, AnswerError> {
    if !live.is_source {
        return Ok(None);
    }
    let named = || live.stream.to_string();
    front.sources.follow(&live.stream).await.map_err(|error| match error {
        CannotFollow::Library(error) => error.into(),
        CannotFollow::Stream(error) => AnswerError::NotStarted { path: named(), error },
        CannotFollow::Source(error) => AnswerError::Source { path: named(), error },
    })
}

/// Begins the long response of a program.
///
/// # Errors
/// The program has ended.
pub(super) async fn of_program(
    front: &Front,
    program: &Program,
    (container, muxer): (Container, Muxer),
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let headers = program_headers(program, container);
    let viewing = front.sources.manager().branch(program, info.id.as_str()).await;
    let viewing = viewing.map_err(|error| AnswerError::NotStarted { path: program.path().to_owned(), error })?;
    let sent = Sent::new(front.metrics.clone(), info.place.clone());
    info.counts_itself = true;
    let body = LongResponse::new(viewing, muxer, front.lasting.stop.subscribe(), sent);
    Ok(Reply::new(StatusCode::OK, headers, Body::stream(Box::new(body))))
}

/// Returns the header fields of the long response of a program.
fn program_headers(program: &Program, container: Container) -> HeaderMap {
    let sent = program.formats().map(|(_, format)| format).filter(|format| fits(format));
    headers(container, sent.map(|format| &format.track))
}

/// Returns the header fields of a long response with tracks, none of which is known yet where it has none. It has no validators
/// and no ranges: each one is another part of the stream.
pub(super) fn headers<'a>(container: Container, tracks: impl IntoIterator<Item = &'a Track>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    let tracks: Vec<&Track> = tracks.into_iter().collect();
    if container == Container::Ts || tracks.is_empty() {
        let media_type = if container == Container::Fmp4 { "video/mp4" } else { "video/mp2t" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        return headers;
    }
    let is_video = |track: &&Track| matches!(track.kind, TrackKind::Video { .. });
    let kind = if tracks.iter().any(is_video) { "video" } else { "audio" };
    // PCM and G.711 leave as FLAC.
    let sent = |track: &&Track| FlacUnits::delivered(track).as_ref().unwrap_or(track).codec.parameter();
    let codecs: Vec<_> = tracks.iter().map(sent).collect();
    // RFC 6381: players of media source extensions need it before the first byte.
    let media_type = HeaderValue::from_str(&format!("{kind}/mp4; codecs=\"{}\"", codecs.join(", ")));
    headers.insert(header::CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static("video/mp4")));
    headers
}

/// Returns the error of a stream whose leading track a container can't carry.
pub(super) fn unfit(program: &Program, container: Container) -> AnswerError {
    let codecs: Vec<_> = program.formats().map(|(_, format)| format.track.codec.parameter()).collect();
    let container = match container {
        Container::Fmp4 => "fragmented MP4",
        Container::Ts => "MPEG-2 TS",
    };
    AnswerError::Unfit { path: program.path().to_owned(), container, found: codecs.join(", ") }
}
