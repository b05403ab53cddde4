//! Playlists and manifests of running streams, and requests that are held until a stream has what they ask for.

use super::{
    super::{
        Context, Front, Reply, ReplyInfo,
        reply::{Negotiation, SelectedRepresentation, etag},
        steering::{self, Form},
        target::LiveTarget,
    },
    clock, ladder, long,
    past::Past,
    program,
};
use crate::{
    cluster::marked,
    http::{AnswerError, Kind, render::TextId},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::{
    body::Body,
    request::{Request, coding::Coding},
};
use millpond_package::{
    hls::Container,
    live::{Directives, Reload, SegmentNumber, Window},
};
use millpond_stream::{
    CannotOpen, LiveRequest, Program, Source,
    live::{LiveText, LiveWindow, is_ahead},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Longest wait for the first segments of a stream.
pub(super) const BEGINNING: Duration = Duration::from_secs(30);
/// Segments that a playlist without parts lists at least: players without low latency begin with the first one of a short
/// playlist, and stall where it is nearly over when the next one is listed.
const STEADY: u64 = 3;
/// Longest wait for them. Players wait 10 s for a playlist.
const STEADY_WAIT: Duration = Duration::from_secs(8);
/// Longest wait for the first segments of subtitles: they arrive later than pictures.
const TEXT_WAIT: Duration = Duration::from_secs(3);
/// Target durations after which a blocked request fails (rfc8216bis 6.2.5.2).
const BLOCKED: u32 = 3;
/// Target durations for which replies to blocked requests are fresh: they never change (rfc8216bis appendix B.1).
const FRESH: u64 = 6;
/// Shortest text that is compressed, in bytes. Shorter ones fit a few packets.
const COMPRESSED: usize = 4 << 10;
/// Media type of HLS playlists.
const HLS: &str = "application/vnd.apple.mpegurl";
/// Media type of DASH manifests.
const DASH: &str = "application/dash+xml";

/// Answers a request for the multivariant playlist of a stream, when each track has a segment.
///
/// # Errors
/// The stream can't be opened, has no segments for long, or no track that the container can carry.
pub(super) async fn multivariant(
    context: &Context<'_>,
    live: &LiveTarget,
    container: Container,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    info.kind = Kind::Hls;
    if request.method == Method::HEAD {
        return Ok(unopened(HLS));
    }
    let past = Past::parse(&live.stream, context.query())?;
    let ended = ended_first(front, live, past).await?;
    if container == Container::Fmp4
        && ended.is_none()
        && let Some(ladder) = ladder::find(front, live, info).await?
    {
        let text = ladder.multivariant().ok_or_else(|| stopped(live))?;
        return Ok(text_reply(front, HLS, 1, text, request).await);
    }
    let (program, window) = match container {
        Container::Fmp4 => (None, window_of(context, live, past).await?),
        Container::Ts => match copied_window(context, live, true).await {
            Some(window) => (None, window),
            None => {
                may_begin(context, live)?;
                opened_window(front, live).await.map(|(program, window)| (Some(program), window))?
            }
        },
    };
    held(front, live, &window, (None, BEGINNING), info, ready).await?;
    let unfit = || program.as_ref().map_or_else(|| stopped(live), |program| long::unfit(program, container));
    let text = window.multivariant(container, &past.query()).ok_or_else(unfit)?;
    let text = with_nodes(context, live, text, Form::Multivariant).await;
    Ok(text_reply(front, HLS, fresh(&window, false), text, request).await)
}

/// Answers a request for the MPD of a stream, when each track has a segment.
///
/// # Errors
/// The stream can't be opened, or has no segments for long.
pub(super) async fn mpd(context: &Context<'_>, live: &LiveTarget, info: &mut ReplyInfo) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    info.kind = Kind::Dash;
    if request.method == Method::HEAD {
        return Ok(unopened(DASH));
    }
    let past = Past::parse(&live.stream, context.query())?;
    let ended = ended_first(front, live, past).await?;
    if ended.is_none()
        && let Some(ladder) = ladder::find(front, live, info).await?
    {
        let text = ladder.mpd(clock::reference(request)).ok_or_else(|| stopped(live))?;
        return Ok(text_reply(front, DASH, 1, text, request).await);
    }
    let window = window_of(context, live, past).await?;
    held(front, live, &window, (None, BEGINNING), info, ready).await?;
    // Players may not look for tracks that come later. Without subtitles after this time, the MPD has none.
    let begun = |window: &Window| window.has_begun_texts().then_some(());
    let _ = held(front, live, &window, (None, TEXT_WAIT), info, begun).await;
    let text =
        window.mpd(clock::reference(request), past.extent(&live.stream, &window)?).ok_or_else(|| stopped(live))?;
    let text = with_nodes(context, live, text, Form::Mpd).await;
    // With low latency, players reload it each second.
    let has_parts = window.look(|window| window.targets().is_some_and(|targets| targets.parts.is_some()));
    let seconds = if has_parts { 1 } else { fresh(&window, false) };
    Ok(text_reply(front, DASH, seconds, text, request).await)
}

/// Answers a request for the playlist of a track. A blocked reload is held until the playlist has what it asks for.
///
/// # Errors
/// The stream can't be opened, has no such track, or no segments for long; the directives are invalid, ahead of the stream
/// by too much, or not met within three target durations.
pub(super) async fn media(
    context: &Context<'_>,
    live: &LiveTarget,
    name: &str,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    info.kind = Kind::Hls;
    let directives = Directives::parse(context.query());
    let directives = directives.map_err(|error| AnswerError::Directives { path: live.stream.to_string(), error })?;
    let past = Past::parse(&live.stream, context.query())?;
    if request.method == Method::HEAD {
        return Ok(unopened(HLS));
    }
    let window = window_of(context, live, past).await?;
    let track = live.track(&window, name)?;
    let begun = |window: &Window| window.last_closed(track).filter(|_| window.targets().is_some());
    held(front, live, &window, (Some(track), BEGINNING), info, begun).await?;
    let decide = |window: &Window| match directives.decide(window, track) {
        Reload::Now => Some(Ok(())),
        Reload::TooFar => Some(Err(AnswerError::TooFar(live.stream.to_string()))),
        Reload::Wait => None,
    };
    held(front, live, &window, (Some(track), target(&window) * BLOCKED), info, decide).await??;
    if window.look(|window| window.targets().is_some_and(|targets| targets.parts.is_none())) {
        steady(front, live, &window, info, |window| window.last_closed(track)).await;
    }
    let (extent, query) = (past.extent(&live.stream, &window)?, past.query());
    let text = window.media_of(track, directives.skip, (extent, &query)).ok_or_else(|| stopped(live))?;
    window.renew();
    Ok(text_reply(front, HLS, fresh(&window, directives.segment.is_some()), text, request).await)
}

/// Answers a request for the playlist of a track's transport stream segments.
///
/// # Errors
/// The stream can't be opened, has no such track, none with segments of its own, or no segments for long.
pub(super) async fn transport(
    context: &Context<'_>,
    live: &LiveTarget,
    name: &str,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let Context { front, request, .. } = *context;
    info.kind = Kind::Hls;
    if request.method == Method::HEAD {
        return Ok(unopened(HLS));
    }
    let window = running_window(context, live).await?;
    let track = live.track(&window, name)?;
    held(front, live, &window, (None, BEGINNING), info, ready).await?;
    let is_text = window.look(|window| window.is_text(track));
    if !is_text && !window.look(|window| window.is_transported(track)) {
        return Err(live.without(format!("track {name} has no transport stream of its own: see ts/index.m3u8")));
    }
    let last = |window: &Window| if is_text { window.last_closed(track) } else { window.last_transport(track) };
    // Of all tracks: sound is in the segments of pictures.
    held(front, live, &window, (None, BEGINNING), info, last).await?;
    steady(front, live, &window, info, last).await;
    let text = window.media(Container::Ts, track, false).ok_or_else(|| stopped(live))?;
    Ok(text_reply(front, HLS, fresh(&window, false), text, request).await)
}

/// Returns the window for a request. Where the past is asked for and the stream can't be opened, that is one of the disk.
async fn window_of(context: &Context<'_>, live: &LiveTarget, past: Past) -> Result<Arc<LiveWindow>, AnswerError> {
    let front = context.front;
    if let Some(ended) = ended_first(front, live, past).await? {
        return Ok(ended);
    }
    match (running_window(context, live).await, source_with_past(front, live, past)?) {
        (Ok(window), _) => Ok(window),
        (Err(error), Some(source)) => front.sources.manager().ended_window(&source).await.ok_or(error),
        (Err(error), None) => Err(error),
    }
}

/// Returns the window of a stream that does not run, where the request needs no source, or the source would not come soon.
async fn ended_first(front: &Front, live: &LiveTarget, past: Past) -> Result<Option<Arc<LiveWindow>>, AnswerError> {
    let manager = front.sources.manager();
    let Some(source) = source_with_past(front, live, past)? else { return Ok(None) };
    let is_over = past.clip().is_some_and(|(_, end)| !is_ahead(end));
    let is_closed = source.source == Source::Published && !manager.is_running(&live.stream);
    if manager.window_with_past(&live.stream).is_some()
        || !(is_over || is_closed || manager.failed_just_now(&live.stream))
    {
        return Ok(None);
    }
    Ok(manager.ended_window(&source).await)
}

/// Returns the source of a stream whose past is kept, where it is asked for.
fn source_with_past(front: &Front, live: &LiveTarget, past: Past) -> Result<Option<LiveRequest>, AnswerError> {
    let source = if past.is_asked() { front.sources.live(&live.stream)? } else { None };
    Ok(source.filter(|source| source.shift.is_some()))
}

/// Waits until a playlist without parts lists enough segments up to the `last` one, but not for long.
async fn steady(
    front: &Front,
    live: &LiveTarget,
    window: &LiveWindow,
    info: &mut ReplyInfo,
    last: impl Fn(&Window) -> Option<SegmentNumber>,
) {
    let is_steady = |window: &Window| (window.cut_to(last(window)?) >= STEADY).then_some(());
    // Fewer segments are listed where no more come in time.
    let _ = held(front, live, window, (None, STEADY_WAIT), info, is_steady).await;
}

/// Returns a stream and its window, with its lease renewed. The stream and its segmenter start, unless they run.
async fn opened_window(front: &Front, live: &LiveTarget) -> Result<(Program, Arc<LiveWindow>), AnswerError> {
    let program = program(front, live).await?;
    let window = front.sources.manager().window(&program, front.sources.window_options(&live.stream));
    match window {
        Ok(window) => Ok((program, window)),
        Err(CannotOpen::NoTracks) => Err(long::unfit(&program, Container::Fmp4)),
        Err(error) => Err(AnswerError::NotStarted { path: live.stream.to_string(), error }),
    }
}

/// Returns the window of a stream as [`opened_window`] does, where it runs with less work. That of another node's stream is a copy.
async fn running_window(context: &Context<'_>, live: &LiveTarget) -> Result<Arc<LiveWindow>, AnswerError> {
    match copied_window(context, live, true).await {
        Some(window) => Ok(window),
        None => {
            may_begin(context, live)?;
            own_window(context.front, live).await
        }
    }
}

/// Checks that this node may begin a run of a stream: of two runs, players would get both by turns.
///
/// # Errors
/// Another node has the stream.
fn may_begin(context: &Context<'_>, live: &LiveTarget) -> Result<(), AnswerError> {
    let copies = context.front.sources.copies().filter(|_| live.is_source);
    match copies.is_some_and(|copies| copies.forbids_run(&live.stream, marked(context.query()))) {
        true => Err(AnswerError::Moved(live.stream.to_string())),
        false => Ok(()),
    }
}

/// Returns the window of a stream that this node has itself.
///
/// # Errors
/// The stream can't be opened.
pub(super) async fn own_window(front: &Front, live: &LiveTarget) -> Result<Arc<LiveWindow>, AnswerError> {
    match known_window(front, live) {
        Some(window) => Ok(window),
        None => opened_window(front, live).await.map(|(_, window)| window),
    }
}

/// Returns the window of a stream that this node has itself, for a node that copies it. A node that has the stream from another one, or would have it
/// from there, opens nothing: two nodes with different views would each open it for the other one.
///
/// # Errors
/// The stream can't be opened, or another node has it.
pub(super) async fn own_window_for_copies(front: &Front, live: &LiveTarget) -> Result<Arc<LiveWindow>, AnswerError> {
    let is_own = front.sources.manager().window_to_copy(&live.stream).is_some();
    if !is_own && front.sources.copies().is_some_and(|copies| copies.is_elsewhere(&live.stream)) {
        return Err(AnswerError::Moved(live.stream.to_string()));
    }
    own_window(front, live).await
}

/// Returns the window of a stream that runs.
fn known_window(front: &Front, live: &LiveTarget) -> Option<Arc<LiveWindow>> {
    live.is_source.then(|| front.sources.manager().window_of_stream(&live.stream)).flatten()
}

/// Returns the window of a stream that runs, or the copy of another node's window, which begins for viewers of this node. Only where it
/// `opens` does that node open the stream.
pub(super) async fn copied_window(context: &Context<'_>, live: &LiveTarget, opens: bool) -> Option<Arc<LiveWindow>> {
    let front = context.front;
    let copies = front.sources.copies().filter(|_| live.is_source);
    match (known_window(front, live), copies) {
        (Some(known), Some(copies)) => Some(copies.in_place_of(&live.stream, known).await),
        (Some(known), None) => Some(known),
        // Also for another node: its view may be older than that of this one.
        (None, Some(copies)) => copies.watched(&live.stream, opens).await,
        (None, None) => None,
    }
}

/// Waits until `look` finds something in a window, which is asked after each change: of one track, where that is named.
///
/// # Errors
/// `look` found nothing within the time limit, or the stream or the server stopped.
pub(super) async fn held<T>(
    front: &Front,
    live: &LiveTarget,
    window: &LiveWindow,
    (track, patience): (Option<usize>, Duration),
    info: &mut ReplyInfo,
    mut look: impl FnMut(&Window) -> Option<T>,
) -> Result<T, AnswerError> {
    if let Some(found) = window.look(&mut look) {
        return Ok(found);
    }
    let (began, mut stop) = (Instant::now(), front.lasting.stop.subscribe());
    let found = tokio::select! {
        biased;
        found = async {
            match track {
                Some(track) => window.when_track(track, patience, look).await,
                None => window.when(patience, look).await,
            }
        } => found,
        _ = stop.wait_for(|stop| *stop) => None,
    };
    info.waited += began.elapsed();
    let is_stopped = window.is_over() || *front.lasting.stop.borrow();
    found.ok_or_else(|| match is_stopped {
        true => stopped(live),
        false => AnswerError::Stalled { path: live.stream.to_string(), waited: patience },
    })
}

/// Lists the nodes of the cluster in a manifest, where players go on at another one.
async fn with_nodes(context: &Context<'_>, live: &LiveTarget, text: LiveText, form: Form) -> LiveText {
    match steering::listed_live(context, live, &text.bytes, form).await {
        Some(listed) => LiveText::from(listed),
        None => text,
    }
}

/// Makes the reply of a text that is fresh for `seconds`.
async fn text_reply(
    front: &Front,
    content_type: &'static str,
    seconds: u64,
    text: LiveText,
    request: &Request,
) -> Reply {
    let LiveText { bytes: text, hash } = text;
    let cache_control = HeaderValue::from_str(&format!("public, max-age={seconds}"));
    let mut selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(content_type),
        // Digits are always valid.
        cache_control: cache_control.unwrap_or(HeaderValue::from_static("no-store")),
        etag: etag(hash),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Uncoded,
        body: Body::bytes(text.clone()),
    };
    if text.len() >= COMPRESSED
        && let Some(coding) = Coding::preferred(request)
        && let Some(coded) = front.lasting.coded_texts.get(TextId::Hash(hash), coding, &text).await
    {
        (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
    }
    selected.reply(request)
}

impl LiveTarget {
    /// Returns the index of the track of a name.
    pub(super) fn track(&self, window: &LiveWindow, name: &str) -> Result<usize, AnswerError> {
        window.track(name).ok_or_else(|| self.without(format!("the stream has no track {name}")))
    }
}

/// Returns the target duration of a window; before it is known, the greatest usual one.
pub(super) fn target(window: &LiveWindow) -> Duration {
    let target = window.look(|window| window.targets().map(|targets| targets.segment.duration()));
    target.unwrap_or(BEGINNING / BLOCKED)
}

/// Seconds for which a playlist is fresh: half a target duration, or several where the request named a segment.
fn fresh(window: &LiveWindow, is_blocked: bool) -> u64 {
    let target = target(window).as_secs();
    if is_blocked { target * FRESH } else { (target / 2).max(1) }
}

/// Whether players can begin.
fn ready(window: &Window) -> Option<()> {
    window.is_ready().then_some(())
}

pub(super) fn stopped(live: &LiveTarget) -> AnswerError {
    AnswerError::Stopped(live.stream.to_string())
}

/// Returns the reply to HEAD. It opens no stream, so only the media type is known.
fn unopened(content_type: &'static str) -> Reply {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Reply::new(StatusCode::OK, headers, Body::unmade())
}
