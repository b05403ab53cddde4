//! From a GET to a live stream of the server's RTSP port.

use super::{Fact, Intercept};
use crate::http::AnswerError;
use crate::live::LiveSettings;
use millpond_http::{
    request::{Request, head::RequestHead},
    wire::closed,
};
use millpond_stream::{
    Linger, LiveRequest, Program, Source,
    reception::{AfterEnd, RtspSource, SourceError, SourceErrorKind, SourceTransport, StoredPolicy},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Longest wait for the connection that shows whether a server has RTSP. Where a firewall drops the packets, the first request
/// waits for it.
const PROBE: Duration = Duration::from_secs(2);
/// Longest wait for the formats of a stream. Its source has time limits of its own for each step before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Port that a URL of RTSP need not name.
const RTSP: u16 = 554;

/// How streams of intercepted servers are received.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceOptions {
    transport: SourceTransport,
    retransmission: bool,
    timeout: Duration,
}

impl SourceOptions {
    pub(super) fn new(live: &LiveSettings) -> Self {
        Self { transport: live.transport, retransmission: live.retransmission, timeout: live.timeout }
    }
}

/// Outcome of a GET.
pub(super) enum Translated {
    /// The server has the stream.
    Found(Program),
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
        let unknown = self.no_path(server, &request.target);
        if self.knows(Fact::NoRtsp(server)) || self.knows(unknown) {
            return Translated::NotFound(None);
        }
        tokio::select! {
            biased;
            translated = async {
                if !self.has_rtsp(server).await {
                    return Translated::NotFound(None);
                }
                match self.play(server, &request.target, StoredPolicy::Play).await {
                    Ok(program) => Translated::Found(program),
                    Err(error) => self.failed(server, unknown, error),
                }
            } => translated,
            () = closed(client) => Translated::Left,
        }
    }

    /// Tells whether a server accepts connections of RTSP.
    async fn has_rtsp(&self, server: IpAddr) -> bool {
        if self.knows(Fact::HasRtsp(server)) {
            return true;
        }
        let address = SocketAddr::new(server, self.settings.rtsp_port);
        let limit = PROBE.min(self.upstream.limit);
        let probe = super::Upstream { limit, ..self.upstream }.connect(address, None).await;
        self.note(if probe.is_ok() { Fact::HasRtsp(server) } else { Fact::NoRtsp(server) });
        probe.is_ok()
    }

    /// Opens a live stream of a server that clients of RTSP share; `None` where it has none of that path.
    pub(super) async fn share(&self, server: IpAddr, target: &str) -> Option<Program> {
        let unknown = Fact::NotShared(server, self.hash(target));
        if self.knows(unknown) {
            return None;
        }
        let played = self.play(server, target, StoredPolicy::Refuse).await;
        if let Err(error) = &played {
            tracing::debug!(%server, %error, "connections of RTSP for this path are passed on");
            self.note(unknown);
        }
        played.ok()
    }

    async fn play(&self, server: IpAddr, target: &str, stored: StoredPolicy) -> Result<Program, AnswerError> {
        let request = self.request(server, target, stored)?;
        let path = request.path.clone();
        let named = || path.to_string();
        let stream = self.manager.live(request).map_err(|error| AnswerError::NotStarted { path: named(), error })?;
        let feed = self.manager.live_feed(&stream, PATIENCE).await;
        Ok(Program::live(&feed.map_err(|error| AnswerError::Source { path: named(), error })?))
    }

    /// Returns the stream of a server's path. All clients that ask for it share it.
    fn request(&self, server: IpAddr, target: &str, stored: StoredPolicy) -> Result<LiveRequest, AnswerError> {
        let authority = match (SocketAddr::new(server, self.settings.rtsp_port), server) {
            (address, _) if address.port() != RTSP => address.to_string(),
            (_, IpAddr::V4(address)) => address.to_string(),
            (_, IpAddr::V6(address)) => format!("[{address}]"),
        };
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        // Clients of HTTP share stored titles too, those of RTSP do not.
        let kind = if stored == StoredPolicy::Refuse { "~rtsp~" } else { "~" };
        // No place has such a name. Queries may contain passwords, and names are shown.
        let query = query.map(|query| format!("?{:016x}", self.hash(query))).unwrap_or_default();
        let name: Arc<str> = format!("{kind}{authority}{path}{query}").into();
        let mut source = RtspSource::new(&format!("rtsp://{authority}{target}")).map_err(|error| {
            let words = error.to_string();
            let error = SourceError { kind: SourceErrorKind::NotFound, address: authority, words };
            AnswerError::Source { path: name.to_string(), error: Arc::new(error) }
        })?;
        source.transport = self.sources.transport;
        source.retransmission = self.sources.retransmission;
        source.timeout = self.sources.timeout;
        source.policies.after_end = AfterEnd::Close;
        source.policies.stored = stored;
        let linger = Linger::For(Duration::ZERO);
        Ok(LiveRequest { path: name, source: Source::Rtsp(source.into()), relayed: None, linger, shift: None })
    }

    /// Decides whether a request whose stream can't be played is for the HTTP server.
    fn failed(&self, server: IpAddr, unknown: Fact, error: AnswerError) -> Translated {
        use SourceErrorKind::{NoMedia, NotFound, Protocol, Refused, Unauthorized, Unreachable};
        let AnswerError::Source { error: source, .. } = &error else { return Translated::Failed(error) };
        match source.kind {
            // Cameras demand a password before they look for the path.
            NotFound | Unauthorized | NoMedia | Refused(400 | 403 | 405 | 501) => self.note(unknown),
            Protocol => self.note(Fact::NoRtsp(server)),
            Unreachable => self.knowledge().remove(Fact::HasRtsp(server)),
            _ => return Translated::Failed(error),
        }
        Translated::NotFound(Some(error))
    }
}
