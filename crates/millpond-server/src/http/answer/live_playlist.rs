//! Playlists and manifests of running streams, and requests that are held until a stream has what they ask for.

use super::{
    Front, Reply, ReplyInfo,
    live::LivePath,
    long, page,
    past::Past,
    representation::{Negotiation, SelectedRepresentation, etag},
};
use crate::http::{
    AnswerError, Kind,
    body::Body,
    render::TextId,
    request::{Request, coding::Coding},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
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

impl Front {
    /// Answers a request for the multivariant playlist of a stream, when each track has a segment.
    ///
    /// # Errors
    /// The stream can't be opened, has no segments for long, or no track that the container can carry.
    pub(super) async fn live_multivariant(
        &self,
        path: &LivePath<'_>,
        container: Container,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        info.kind = Kind::Hls;
        if request.method == Method::HEAD {
            return Ok(unopened(HLS));
        }
        let past = Past::parse(path.stream, request.split().1)?;
        let ended = self.ended_first(path, past).await?;
        if container == Container::Fmp4
            && ended.is_none()
            && let Some(ladder) = self.ladder(path, info).await?
        {
            let text = ladder.multivariant().ok_or_else(|| stopped(path))?;
            return Ok(self.live_text(HLS, 1, text, request).await);
        }
        let (program, window) = match container {
            Container::Fmp4 => (None, self.window_of(path, past).await?),
            Container::Ts => self.live_window(path).await.map(|(program, window)| (Some(program), window))?,
        };
        self.held(path, &window, (None, BEGINNING), info, ready).await?;
        let unfit = || program.as_ref().map_or_else(|| stopped(path), |program| long::unfit(program, container));
        let text = window.multivariant(container, &past.query()).ok_or_else(unfit)?;
        Ok(self.live_text(HLS, fresh(&window, false), text, request).await)
    }

    /// Answers a request for the MPD of a stream, when each track has a segment.
    ///
    /// # Errors
    /// The stream can't be opened, or has no segments for long.
    pub(super) async fn live_mpd(
        &self,
        path: &LivePath<'_>,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        info.kind = Kind::Dash;
        if request.method == Method::HEAD {
            return Ok(unopened(DASH));
        }
        let past = Past::parse(path.stream, request.split().1)?;
        let ended = self.ended_first(path, past).await?;
        if ended.is_none()
            && let Some(ladder) = self.ladder(path, info).await?
        {
            let text = ladder.mpd(page::time(request)).ok_or_else(|| stopped(path))?;
            return Ok(self.live_text(DASH, 1, text, request).await);
        }
        let window = self.window_of(path, past).await?;
        self.held(path, &window, (None, BEGINNING), info, ready).await?;
        let text = window.mpd(page::time(request), past.extent(path.stream, &window)?).ok_or_else(|| stopped(path))?;
        // With low latency, players reload it each second.
        let has_parts = window.look(|window| window.targets().is_some_and(|targets| targets.parts.is_some()));
        let seconds = if has_parts { 1 } else { fresh(&window, false) };
        Ok(self.live_text(DASH, seconds, text, request).await)
    }

    /// Answers a request for the playlist of a track. A blocked reload is held until the playlist has what it asks for.
    ///
    /// # Errors
    /// The stream can't be opened, has no such track, or no segments for long; the directives are invalid, ahead of the stream
    /// by too much, or not met within three target durations.
    pub(super) async fn live_media(
        &self,
        path: &LivePath<'_>,
        name: &str,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        info.kind = Kind::Hls;
        let directives = Directives::parse(request.split().1);
        let directives = directives.map_err(|error| AnswerError::Directives { path: path.stream.to_owned(), error })?;
        let past = Past::parse(path.stream, request.split().1)?;
        if request.method == Method::HEAD {
            return Ok(unopened(HLS));
        }
        let window = self.window_of(path, past).await?;
        let track = path.track(&window, name)?;
        let begun = |window: &Window| window.last_closed(track).filter(|_| window.targets().is_some());
        self.held(path, &window, (Some(track), BEGINNING), info, begun).await?;
        let decide = |window: &Window| match directives.decide(window, track) {
            Reload::Now => Some(Ok(())),
            Reload::TooFar => Some(Err(AnswerError::TooFar(path.stream.to_owned()))),
            Reload::Wait => None,
        };
        self.held(path, &window, (Some(track), target(&window) * BLOCKED), info, decide).await??;
        if window.look(|window| window.targets().is_some_and(|targets| targets.parts.is_none())) {
            self.steady(path, &window, info, |window| window.last_closed(track)).await;
        }
        let (extent, query) = (past.extent(path.stream, &window)?, past.query());
        let text = window.media_of(track, directives.skip, (extent, &query)).ok_or_else(|| stopped(path))?;
        window.renew();
        Ok(self.live_text(HLS, fresh(&window, directives.segment.is_some()), text, request).await)
    }

    /// Answers a request for the playlist of a track's transport stream segments.
    ///
    /// # Errors
    /// The stream can't be opened, has no such track, none with segments of its own, or no segments for long.
    pub(super) async fn live_transport(
        &self,
        path: &LivePath<'_>,
        name: &str,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        info.kind = Kind::Hls;
        if request.method == Method::HEAD {
            return Ok(unopened(HLS));
        }
        let window = self.running_window(path).await?;
        let track = path.track(&window, name)?;
        self.held(path, &window, (None, BEGINNING), info, ready).await?;
        if !window.look(|window| window.is_transported(track)) {
            return Err(path.without(format!("track {name} has no transport stream of its own: see ts/index.m3u8")));
        }
        let last = |window: &Window| window.last_transport(track);
        // Of all tracks: sound is in the segments of pictures.
        self.held(path, &window, (None, BEGINNING), info, last).await?;
        self.steady(path, &window, info, last).await;
        let text = window.media(Container::Ts, track, false).ok_or_else(|| stopped(path))?;
        Ok(self.live_text(HLS, fresh(&window, false), text, request).await)
    }

    /// Returns the window for a request. Where the past is asked for and the stream can't be opened, that is one of the disk.
    async fn window_of(&self, path: &LivePath<'_>, past: Past) -> Result<Arc<LiveWindow>, AnswerError> {
        if let Some(ended) = self.ended_first(path, past).await? {
            return Ok(ended);
        }
        match (self.running_window(path).await, self.source_with_past(path, past)?) {
            (Ok(window), _) => Ok(window),
            (Err(error), Some(source)) => self.sources.manager().ended_window(&source).await.ok_or(error),
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the window of a stream that does not run, where the request needs no source, or the source would not come soon.
    async fn ended_first(&self, path: &LivePath<'_>, past: Past) -> Result<Option<Arc<LiveWindow>>, AnswerError> {
        let manager = self.sources.manager();
        let Some(source) = self.source_with_past(path, past)? else { return Ok(None) };
        let is_over = past.clip().is_some_and(|(_, end)| !is_ahead(end));
        let is_closed = source.source == Source::Published && !manager.is_running(path.stream);
        if manager.window_with_past(path.stream).is_some()
            || !(is_over || is_closed || manager.failed_just_now(path.stream))
        {
            return Ok(None);
        }
        Ok(manager.ended_window(&source).await)
    }

    /// Returns the source of a stream whose past is kept, where it is asked for.
    fn source_with_past(&self, path: &LivePath<'_>, past: Past) -> Result<Option<LiveRequest>, AnswerError> {
        let source = if past.is_asked() { self.sources.live(path.stream)? } else { None };
        Ok(source.filter(|source| source.shift.is_some()))
    }

    /// Waits until a playlist without parts lists enough segments up to the `last` one, but not for long.
    async fn steady(
        &self,
        path: &LivePath<'_>,
        window: &LiveWindow,
        info: &mut ReplyInfo,
        last: impl Fn(&Window) -> Option<SegmentNumber>,
    ) {
        let is_steady = |window: &Window| (window.cut_to(last(window)?) >= STEADY).then_some(());
        // Fewer segments are listed where no more come in time.
        let _ = self.held(path, window, (None, STEADY_WAIT), info, is_steady).await;
    }

    /// Returns a stream and its window, with its lease renewed. The stream and its segmenter start, unless they run.
    async fn live_window(&self, path: &LivePath<'_>) -> Result<(Program, Arc<LiveWindow>), AnswerError> {
        let program = self.live_program(path).await?;
        let window = self.sources.manager().window(&program, self.sources.window_options(path.stream));
        match window {
            Ok(window) => Ok((program, window)),
            Err(CannotOpen::NoTracks) => Err(long::unfit(&program, Container::Fmp4)),
            Err(error) => Err(AnswerError::NotStarted { path: path.stream.to_owned(), error }),
        }
    }

    /// Returns the window of a stream as [`live_window`](Self::live_window) does, where it runs with less work.
    async fn running_window(&self, path: &LivePath<'_>) -> Result<Arc<LiveWindow>, AnswerError> {
        let known = path.is_source.then(|| self.sources.manager().window_of_stream(path.stream)).flatten();
        match known {
            Some(window) => Ok(window),
            None => self.live_window(path).await.map(|(_, window)| window),
        }
    }

    /// Waits until `look` finds something in a window, which is asked after each change: of one track, where that is named.
    ///
    /// # Errors
    /// It found nothing for so long, or the stream or the server stopped.
    pub(super) async fn held<T>(
        &self,
        path: &LivePath<'_>,
        window: &LiveWindow,
        (track, patience): (Option<usize>, Duration),
        info: &mut ReplyInfo,
        mut look: impl FnMut(&Window) -> Option<T>,
    ) -> Result<T, AnswerError> {
        if let Some(found) = window.look(&mut look) {
            return Ok(found);
        }
        let (began, mut stop) = (Instant::now(), self.stop.subscribe());
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
        let is_stopped = window.is_over() || *self.stop.borrow();
        found.ok_or_else(|| match is_stopped {
            true => stopped(path),
            false => AnswerError::Stalled { path: path.stream.to_owned(), waited: patience },
        })
    }

    /// Makes the reply of a text that is fresh for `seconds`.
    async fn live_text(&self, content_type: &'static str, seconds: u64, text: LiveText, request: &Request) -> Reply {
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
            && let Some(coded) = self.coded_texts.get(TextId::Hash(hash), coding, &text).await
        {
            (selected.negotiation, selected.body) = (Negotiation::Coded(coding), Body::bytes(coded));
        }
        selected.reply(request)
    }
}

impl LivePath<'_> {
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

pub(super) fn stopped(path: &LivePath<'_>) -> AnswerError {
    AnswerError::Stopped(path.stream.to_owned())
}

/// Returns the reply to HEAD. It opens no stream, so only the media type is known.
fn unopened(content_type: &'static str) -> Reply {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Reply::new(StatusCode::OK, headers, Body::unmade())
}
