//! From a GET to a live stream or a stored title of the server's RTSP port.

use super::{super::groups::SameServers, Fact, Intercept, request::container, rtsp_probe::speaks_rtsp};
use crate::http::{AnswerError, TranslatedMedia};
use crate::live::LiveSettings;
use millpond_http::{
    request::{Request, head::RequestHead},
    wire::closed,
};
use millpond_package::hls::Container;
use millpond_store::ObjectPath;
use millpond_stream::{
    Linger, LiveRequest, Program, Source,
    reception::{AfterEnd, Alternatives, RtspSource, SourceError, SourceErrorKind, SourceTransport, StoredPolicy},
    remote::RemoteTitle,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Longest wait for the formats of a stream. Its source has time limits of its own for each step before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Place of the stored titles of intercepted servers in the cache. No place of the configuration has such a name.
const TITLES: &str = "~titles";
/// Port that a URL of RTSP need not name.
const RTSP: u16 = 554;

/// How streams of intercepted servers are received.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceOptions {
    transport: SourceTransport,
    retransmission: bool,
    timeout: Duration,
    /// Least duration of the segments of stored titles.
    segment: Duration,
}

impl SourceOptions {
    pub(super) fn new(live: &LiveSettings) -> Self {
        Self {
            transport: live.transport,
            retransmission: live.retransmission,
            timeout: live.timeout,
            segment: live.segment,
        }
    }
}

/// Outcome of a GET.
pub(super) enum Translated {
    /// The server has it.
    Found(TranslatedMedia),
    /// The server has it, but it can't be played.
    Failed(AnswerError),
    /// The server has no RTSP, or not that path. With the reason where RTSP gave one just now.
    NotFound(Option<AnswerError>),
    /// The client left.
    Left,
}

/// A request whose path the server doesn't have by RTSP.
pub(super) struct Unfound {
    pub(super) head: Box<RequestHead>,
    /// Time at which the request was complete.
    pub(super) started: Instant,
    pub(super) error: AnswerError,
}

impl Intercept {
    /// Opens the stream that a GET to a server is for. `client` is the connection of the GET.
    pub(super) async fn translate(&self, client: &TcpStream, server: IpAddr, request: &Request) -> Translated {
        let servers = self.settings.groups.of(server);
        let unknown = self.no_path(servers.first, &request.target);
        if servers.iter().all(|server| self.knows(Fact::NoRtsp(server))) || self.knows(unknown) {
            return Translated::NotFound(None);
        }
        tokio::select! {
            biased;
            translated = async {
                if !self.have_rtsp(servers).await {
                    return Translated::NotFound(None);
                }
                match self.media(servers, request).await {
                    Ok(media) => Translated::Found(media),
                    Err(error) => self.failed(servers, unknown, error),
                }
            } => translated,
            () = closed(client) => Translated::Left,
        }
    }

    /// Tells whether one of the servers answers requests of RTSP.
    async fn have_rtsp(&self, servers: SameServers<'_>) -> bool {
        if servers.iter().any(|server| self.knows(Fact::HasRtsp(server))) {
            return true;
        }
        for server in servers.iter() {
            if !self.knows(Fact::NoRtsp(server)) && self.has_rtsp(server).await {
                return true;
            }
        }
        false
    }

    /// Tells whether a server answers requests of RTSP, and remembers it.
    async fn has_rtsp(&self, server: IpAddr) -> bool {
        if self.knows(Fact::HasRtsp(server)) {
            return true;
        }
        let address = SocketAddr::new(server, self.settings.rtsp_port);
        let has_rtsp = speaks_rtsp(&self.upstream, address, &self.authority(server)).await;
        self.note(if has_rtsp { Fact::HasRtsp(server) } else { Fact::NoRtsp(server) });
        has_rtsp
    }

    /// Opens the media that servers have for a request. Each client gets a stored title from its beginning; a stream is shared.
    async fn media(&self, servers: SameServers<'_>, request: &Request) -> Result<TranslatedMedia, AnswerError> {
        let target = &request.target;
        // Transport streams are made of titles as of live streams.
        let is_fmp4 = container(request.split().0, &request.headers) == Container::Fmp4;
        let path = self.title_path(servers, target);
        if is_fmp4
            && self.manager.remote_titles().known(&path).await.is_some()
            && let Some(title) = self.title(&path, servers, target).await?
        {
            return Ok(TranslatedMedia::Title(title));
        }
        match self.play(servers, target, StoredPolicy::Refuse).await {
            Err(AnswerError::Source { error, .. }) if error.kind == SourceErrorKind::StoredTitle => {}
            played => return played.map(TranslatedMedia::Stream),
        }
        let title = if is_fmp4 { self.title(&path, servers, target).await? } else { None };
        match title {
            Some(title) => Ok(TranslatedMedia::Title(title)),
            None => self.play(servers, target, StoredPolicy::Play).await.map(TranslatedMedia::Stream),
        }
    }

    /// Returns the path of a title in the cache. Targets that are no plain path have a hash: they may contain passwords, and names are
    /// shown.
    fn title_path(&self, servers: SameServers<'_>, target: &str) -> String {
        let name = |rest: &str| format!("{TITLES}/{}/{rest}", self.authority(servers.first));
        let plain = target.trim_matches('/');
        let readable = Some(name(plain)).filter(|name| {
            target.strip_prefix('/') == Some(plain) && !plain.contains('?') && ObjectPath::parse(name).is_ok()
        });
        readable.unwrap_or_else(|| name(&format!("{:016x}", self.hash(target))))
    }

    /// Opens a stored title; `None` where it can only be played as a stream.
    async fn title(
        &self,
        path: &str,
        servers: SameServers<'_>,
        target: &str,
    ) -> Result<Option<Arc<RemoteTitle>>, AnswerError> {
        let failed = |error| AnswerError::Source { path: path.to_owned(), error };
        let sources = self.sources(servers, target, StoredPolicy::Play).map_err(|error| failed(Arc::new(error)))?;
        self.manager.add_remote_place(&TITLES.into());
        self.manager.remote_titles().find((path, TITLES.len()), &sources, self.sources.segment).await.map_err(failed)
    }

    /// Opens a live stream of a server that clients of RTSP share; `None` where it has none of that path.
    pub(super) async fn share(&self, server: IpAddr, target: &str) -> Option<Program> {
        let servers = self.settings.groups.of(server);
        let unknown = Fact::NotShared(servers.first, self.hash(target));
        if self.knows(unknown) {
            return None;
        }
        let played = self.play(servers, target, StoredPolicy::Refuse).await;
        if let Err(error) = &played {
            tracing::debug!(%server, %error, "connections of RTSP for this path are passed on");
            self.note(unknown);
        }
        played.ok()
    }

    async fn play(&self, servers: SameServers<'_>, target: &str, stored: StoredPolicy) -> Result<Program, AnswerError> {
        let request = self.request(servers, target, stored)?;
        let path = request.path.clone();
        let named = || path.to_string();
        let stream = self.manager.live(request).map_err(|error| AnswerError::NotStarted { path: named(), error })?;
        let feed = self.manager.live_feed(&stream, PATIENCE).await;
        Ok(Program::live(&feed.map_err(|error| AnswerError::Source { path: named(), error })?))
    }

    /// Returns the stream of a path that servers have. All clients that ask for it share it, whichever of the servers they know.
    fn request(
        &self,
        servers: SameServers<'_>,
        target: &str,
        stored: StoredPolicy,
    ) -> Result<LiveRequest, AnswerError> {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let kind = if stored == StoredPolicy::Refuse { "~" } else { "~title~" };
        // No place has such a name. Queries may contain passwords, and names are shown.
        let query = query.map(|query| format!("?{:016x}", self.hash(query))).unwrap_or_default();
        let name: Arc<str> = format!("{kind}{}{path}{query}", self.authority(servers.first)).into();
        let sources = self.sources(servers, target, stored);
        let failed = |error| AnswerError::Source { path: name.to_string(), error: Arc::new(error) };
        let source = Source::Rtsp(sources.map_err(failed)?);
        let linger = Linger::For(Duration::ZERO);
        Ok(LiveRequest { path: name, source, relayed: None, linger, shift: None })
    }

    /// Returns a server as URLs of RTSP name it.
    fn authority(&self, server: IpAddr) -> String {
        match (SocketAddr::new(server, self.settings.rtsp_port), server) {
            (address, _) if address.port() != RTSP => address.to_string(),
            (_, IpAddr::V4(address)) => address.to_string(),
            (_, IpAddr::V6(address)) => format!("[{address}]"),
        }
    }

    /// Returns the sources of a request target, in the order of the servers.
    fn sources(
        &self,
        servers: SameServers<'_>,
        target: &str,
        stored: StoredPolicy,
    ) -> Result<Alternatives, SourceError> {
        let source = |server| self.source(server, target, stored);
        let others = servers.others.iter().map(|server| source(*server)).collect::<Result<_, _>>()?;
        Ok(Alternatives::new(source(servers.first)?, others))
    }

    /// Returns the source of a request target of a server.
    fn source(&self, server: IpAddr, target: &str, stored: StoredPolicy) -> Result<RtspSource, SourceError> {
        let address = self.authority(server);
        let mut source = RtspSource::new(&format!("rtsp://{address}{target}")).map_err(|error| {
            let words = error.to_string();
            SourceError { kind: SourceErrorKind::NotFound, address, words }
        })?;
        source.transport = self.sources.transport;
        source.retransmission = self.sources.retransmission;
        source.timeout = self.sources.timeout;
        source.policies.after_end = AfterEnd::Close;
        source.policies.stored = stored;
        Ok(source)
    }

    /// Decides whether a request whose stream can't be played is for the HTTP server.
    fn failed(&self, servers: SameServers<'_>, unknown: Fact, error: AnswerError) -> Translated {
        use SourceErrorKind::{NoMedia, NotFound, Protocol, Refused, TimedOut, Unauthorized, Unreachable};
        let AnswerError::Source { error: source, .. } = &error else { return Translated::Failed(error) };
        match source.kind {
            // Cameras demand a password before they look for the path.
            NotFound | Unauthorized | NoMedia | Refused(400 | 403 | 405 | 501) => self.note(unknown),
            // Of a group, another server may have RTSP.
            Protocol if servers.others.is_empty() => self.note(Fact::NoRtsp(servers.first)),
            Protocol => {}
            Unreachable => self.forget_rtsp(servers),
            // Where the whole port has become silent, the next request is passed on.
            TimedOut => {
                self.forget_rtsp(servers);
                return Translated::Failed(error);
            }
            _ => return Translated::Failed(error),
        }
        Translated::NotFound(Some(error))
    }

    /// Forgets that servers have RTSP, so that the next request asks them again.
    fn forget_rtsp(&self, servers: SameServers<'_>) {
        servers.iter().for_each(|server| self.knowledge().remove(Fact::HasRtsp(server)));
    }
}
