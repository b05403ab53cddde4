//! Requests for running streams: live streams, and channels in their folder `live`.

use super::{Front, Reply, ReplyInfo};
use crate::{
    http::{AnswerError, Kind, request::Request},
    library::{LibraryError, LiveResource, LiveRoute},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_package::hls::Container;
use millpond_stream::Program;
use std::time::Duration;

/// Longest wait for the formats of a live stream. Its source has time limits of its own for each step before.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Folder of a channel's live playlists, below the path of its asset. The asset keeps its own.
const CHANNEL: &str = "/live";

/// A path that names something of a stream.
pub(super) struct LivePath<'a> {
    /// Index of the place.
    pub(super) place: usize,
    /// Path of the stream or channel, with its place.
    pub(super) stream: &'a str,
    /// Whether the path is that of a stream only, and not of an asset that plays as a channel too.
    pub(super) is_source: bool,
    /// The resource of the stream; `None` where there is none of that form.
    resource: Option<LiveResource<'a>>,
}

impl LivePath<'_> {
    /// Returns the resource of the stream; `None` where there is none of that form.
    pub(super) fn resource(&self) -> Option<&LiveResource<'_>> {
        self.resource.as_ref()
    }

    /// Returns the error of a resource that the stream doesn't have.
    pub(super) fn without(&self, what: impl Into<String>) -> AnswerError {
        LibraryError::NoResource { asset: self.stream.to_owned(), what: what.into() }.into()
    }
}

impl Front {
    /// Returns the stream that a path is about; `None` for stored media.
    pub(super) fn live_path<'a>(&self, path: &'a str) -> Option<LivePath<'a>> {
        let route = LiveRoute::parse(path);
        let stream = route.map_or(path, |route| route.stream).trim_matches('/');
        if let Some(place) = self.sources.list(stream) {
            return Some(LivePath { place, stream, is_source: true, resource: route.map(|route| route.resource) });
        }
        let (place, name, _) = self.place(path)?;
        if self.sources.is_live(name) {
            return Some(LivePath { place, stream, is_source: true, resource: route.map(|route| route.resource) });
        }
        let LiveRoute { stream, resource } = route?;
        let channel = match resource {
            LiveResource::Long(_) => stream,
            _ => stream.strip_suffix(CHANNEL)?,
        };
        let path = LivePath { place, stream: channel, is_source: false, resource: Some(resource) };
        self.sources.is_channel(channel).then_some(path)
    }

    /// Answers a request for something of a stream.
    ///
    /// # Errors
    /// The stream can't be opened, has no such resource, or does not get it in time.
    pub(super) async fn live(
        &self,
        path: &LivePath<'_>,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        self.attribute(path.place, Kind::Stream, info);
        let answered = match path.resource {
            // Segments of before can be had here only.
            Some(LiveResource::OfRun { .. }) => self.of_stream(path, request, info).await,
            _ if self.is_elsewhere(path) => return Ok(Self::again(request)),
            _ => self.of_stream(path, request, info).await,
        };
        match answered {
            Err(_) if self.is_elsewhere(path) => Ok(Self::again(request)),
            answered => answered,
        }
    }

    /// Whether another process of the server has the stream, because its publishers push there now.
    fn is_elsewhere(&self, path: &LivePath<'_>) -> bool {
        self.sources.manager().has_handed_over() && self.sources.is_pushed_to(path.stream)
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

    async fn of_stream(
        &self,
        path: &LivePath<'_>,
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        match path.resource {
            None => Err(path.without("a live stream has no such resource: index.m3u8 is there")),
            Some(LiveResource::Long(container)) => self.long(path, container, request, info).await,
            Some(LiveResource::Multivariant(container)) => self.live_multivariant(path, container, request, info).await,
            Some(LiveResource::Mpd) => self.live_mpd(path, request, info).await,
            Some(LiveResource::Media(Container::Fmp4, track)) => self.live_media(path, track, request, info).await,
            Some(LiveResource::Media(Container::Ts, track)) => self.live_transport(path, track, request, info).await,
            Some(LiveResource::OfRun { run, track, media }) => {
                self.live_bytes(path, (run, track, media), request, info).await
            }
        }
    }

    /// Opens a stream. A live source is waited for until its formats are known.
    pub(super) async fn live_program(&self, path: &LivePath<'_>) -> Result<Program, AnswerError> {
        let named = || path.stream.to_owned();
        let manager = self.sources.manager();
        let request = self.sources.stream(path.stream).await?.ok_or_else(|| LibraryError::NoAsset(named()))?;
        let stream = manager.live(request).map_err(|error| AnswerError::NotStarted { path: named(), error })?;
        let feed = manager.live_feed(&stream, PATIENCE).await;
        Ok(Program::live(&feed.map_err(|error| AnswerError::Source { path: named(), error })?))
    }
}
