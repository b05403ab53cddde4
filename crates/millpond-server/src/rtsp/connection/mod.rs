//! One RTSP connection: reads its bytes, sends its replies, and performs the actions that a [`Dialogue`] gives.

mod announce;
mod describe;
mod play;
mod set_up;
mod steer;

use super::{
    Rtsp,
    inlet::Inlet,
    medium::{Medium, NoMedium},
    party::Party,
    record::End,
    reply::Reply,
    shared::SharedStream,
    signalling::{Action, Dialogue, Ended, Named, Outcome, Step, Terms, Viewer as _},
    srtp::Promises,
};
use crate::{cluster::marked, library::LibraryError, wire::Wire};
use announce::Announced;
use bytes::{Bytes, BytesMut};
use http::StatusCode as HttpStatus;
use millpond_access::Gates;
use millpond_connections::proxies::ConnectionClient;
use millpond_rtp::{
    message::{
        StatusCode,
        headers::{LOCATION, RETRY_AFTER},
    },
    setup::Mode,
};
use millpond_stream::{Full, reception::SourceErrorKind};
use std::{
    fmt::Display,
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicUsize},
    time::Instant,
};
use tokio::{
    task::{consume_budget, yield_now},
    time::timeout_at,
};

/// Seconds after which a client may ask again where nothing else is known.
const SOON: &str = "5";
/// Reason why the session of a publisher can't play.
const PUBLISHES: &str = "the session publishes a stream";

/// Serves a connection until it ends. Sessions whose packets go over it end with it, and those that never played. `input` has the
/// bytes that came already. Where the connection is for a shared stream, it is for nothing else, and admits everyone.
///
/// # Errors
/// The reason why it ended, where that was not the client.
pub(super) async fn serve(
    wire: Arc<Wire>,
    inlet: Inlet,
    (input, shared): (BytesMut, Option<SharedStream>),
    client: ConnectionClient,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
    let (own, peer) = (shared.is_none(), client.address);
    let is_of_node = inlet.is_of_node();
    let terms = Terms {
        peer,
        timeouts: rtsp.timeouts,
        is_secure: wire.is_secure() || client.kind.is_secure(),
        session_timeout: rtsp.settings.session_timeout,
        overflow: rtsp.settings.overflow.clone().filter(|_| own && !is_of_node),
        access_log: rtsp.access_log,
        passwords: rtsp.passwords.clone().filter(|_| own),
        gates: if own { rtsp.gates.clone() } else { Arc::new(Gates::none()) },
        publishers: rtsp.publishers.clone().filter(|_| own && !is_of_node),
        cluster: rtsp.cluster.clone().filter(|_| own),
        is_of_node,
    };
    let dialogue = Dialogue::new(terms, input, rtsp.now());
    let (waiting, promises) = (Arc::default(), Promises::default());
    let mut connection = Connection {
        wire: wire.clone(),
        inlet,
        peer,
        rtsp,
        dialogue,
        waiting,
        promises,
        shared,
        has_described: false,
        described: None,
        announced: None,
    };
    let ended = tokio::select! {
        ended = connection.run() => ended,
        drained = wire.drain(rtsp.timeouts.write) => drained,
    };
    wire.close();
    ended
}

struct Connection<'a> {
    wire: Arc<Wire>,
    inlet: Inlet,
    peer: SocketAddr,
    rtsp: &'a Arc<Rtsp>,
    dialogue: Dialogue,
    /// Sessions of the connection that have not played.
    waiting: Arc<AtomicUsize>,
    /// Keys that were sent on the connection.
    promises: Promises,
    /// The stream of another server that the connection is for.
    shared: Option<SharedStream>,
    /// Whether a medium was described here: its tracks are set up here.
    has_described: bool,
    /// The channel, its phases, or the live stream that was described last, until it is set up.
    described: Option<Medium>,
    /// The stream that was announced last, until it is set up.
    announced: Option<Announced>,
}

/// Sessions that can't outlive their connection end with it, on shutdown too.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.dialogue.leave(&self.rtsp.sessions, self.rtsp.is_stopping());
    }
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            let mut step = self.dialogue.next(&self.rtsp.sessions, self.rtsp.now());
            if let Step::Ask(question) = step {
                // The box keeps the task of other connections small.
                let answer = Box::pin(question.answer()).await;
                step = self.dialogue.answered(answer, &self.rtsp.sessions, self.rtsp.now());
            }
            match step {
                Step::Read { until } => {
                    let until = self.rtsp.instant(until);
                    match timeout_at(until, self.inlet.read(self.dialogue.input())).await {
                        Ok(Ok(0)) => return Ok(()),
                        Ok(read) => {
                            read?;
                        }
                        Err(_) => match self.dialogue.timed_out(&self.rtsp.sessions, self.rtsp.now()) {
                            Ok(()) => {}
                            Err(Ended::Silent) => return Ok(()),
                            Err(ended) => return Err(failure(ended)),
                        },
                    }
                }
                Step::Send(reply) => {
                    self.send(&reply);
                    self.sent()?;
                    self.take_turns().await;
                }
                Step::Perform(action) => {
                    self.perform(action).await;
                    self.sent()?;
                    self.take_turns().await;
                }
                Step::Hear { session, channel, packet } => {
                    self.hear(session, channel, packet).await?;
                    consume_budget().await;
                }
                Step::Refuse { reply, error } => {
                    self.send(reply.as_bytes());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
                // An answer leads to no other question.
                Step::Ask(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Lets other connections run before a request that is here already.
    async fn take_turns(&mut self) {
        if !self.dialogue.input().is_empty() {
            yield_now().await;
        }
    }

    /// Handles a packet of a session.
    async fn hear(&self, session: Party, channel: u8, packet: Bytes) -> io::Result<()> {
        match session {
            Party::Viewer(viewer) => {
                let mut packet = Vec::from(packet);
                viewer.session.lock().await.hear(channel, &mut packet, self.rtsp.manager.counters());
            }
            Party::Publisher(publisher) => publisher.push(channel, packet).await.map_err(io::Error::other)?,
        }
        Ok(())
    }

    /// The medium of a path with a query, and the rendition that the path's last part names, where it does.
    async fn medium(&self, path: &str, query: &str) -> Result<(Medium, Option<String>), NoMedium> {
        match &self.shared {
            None => self.rtsp.medium(path, marked(query)).await,
            Some(shared) if shared.path == path => Ok((Medium::Program(shared.program.clone()), None)),
            Some(_) => Err(NoMedium::Other),
        }
    }

    fn send(&self, reply: &[u8]) {
        self.wire.send(|pending| pending.extend_from_slice(reply));
    }

    fn sent(&mut self) -> io::Result<()> {
        self.dialogue.sent(self.wire.backlog(), self.rtsp.now()).map_err(failure)
    }

    fn finish(&mut self, outcome: Outcome<'_>) {
        let reply = self.dialogue.finish(outcome);
        self.send(&reply);
    }

    /// Performs an action, and sends the reply to its request.
    async fn perform(&mut self, action: Action<Party>) {
        let outcome = match action {
            Action::Describe { path, query, most, elsewhere, agent } => match self.steer(&path, &query).await {
                Some(location) => found(location),
                None => {
                    self.has_described = true;
                    self.describe((&path, &query), most, (elsewhere, agent.as_deref())).await
                }
            },
            Action::SetUp(set_up) if set_up.mode == Mode::Record => self.set_up_to_record(set_up).await,
            Action::SetUp(set_up) => match self.steer_set_up(&set_up).await {
                Some(location) => found(location),
                None => self.set_up(set_up).await,
            },
            Action::Announce(announce) => self.announce(announce),
            Action::Record(named) => self.record(named).await,
            Action::Play(Named { session, .. }, asked) => match session.viewer() {
                Some(viewer) => return self.play(&viewer, asked).await,
                None => refused(StatusCode::MethodNotValidInThisState, PUBLISHES),
            },
            Action::Pause(Named { session, .. }) => match session.viewer() {
                Some(viewer) => {
                    viewer.session.lock().await.pause().await;
                    Outcome::Done
                }
                None => refused(StatusCode::MethodNotValidInThisState, PUBLISHES),
            },
            Action::TearDown(Named { name, session }) => {
                session.ends(End::Teardown);
                if let Party::Viewer(viewer) = &session {
                    viewer.session.lock().await.pause().await;
                }
                self.rtsp.sessions.remove(&name);
                // It ends before the reply is sent.
                drop(session);
                Outcome::Done
            }
        };
        self.finish(outcome);
    }

    /// Counts a session that admission refuses.
    fn full(&self, full: Full) -> Outcome<'static> {
        self.rtsp.manager.counters().refuse(full);
        Outcome::Full(full)
    }
}

fn failure(ended: Ended) -> io::Error {
    let kind = match ended {
        Ended::WrongPasswords => io::ErrorKind::PermissionDenied,
        Ended::Silent | Ended::Incomplete | Ended::Unread => io::ErrorKind::TimedOut,
    };
    io::Error::new(kind, ended)
}

/// The reply that sends a client to another server (RFC 2326 11.3.2).
fn found(location: String) -> Outcome<'static> {
    Outcome::Refused(Reply::new(StatusCode::Found).with(LOCATION, location))
}

/// The outcome of a request that is refused with a status, and the reason.
fn refused(status: StatusCode, why: impl Display) -> Outcome<'static> {
    let reply = Reply::refusal(status, why);
    Outcome::Refused(if status == StatusCode::ServiceUnavailable { reply.with(RETRY_AFTER, SOON) } else { reply })
}

/// The outcome of a request for a medium that can't be opened. The log gets the whole error, the client the words of HTTP.
fn failed(path: &str, error: &NoMedium) -> Outcome<'static> {
    let status = match error {
        NoMedium::Library(error) => of_library(error),
        NoMedium::Stream(_) => StatusCode::ServiceUnavailable,
        NoMedium::Phases(_) => StatusCode::UnsupportedMediaType,
        NoMedium::Other => StatusCode::NotFound,
        NoMedium::Source(error) => match error.kind {
            SourceErrorKind::NotFound | SourceErrorKind::Unpublished => StatusCode::NotFound,
            SourceErrorKind::TimedOut => StatusCode::GatewayTimeout,
            SourceErrorKind::NotBegun { .. } => StatusCode::ServiceUnavailable,
            _ => StatusCode::BadGateway,
        },
    };
    match status {
        StatusCode::UnsupportedMediaType => tracing::warn!(path, %error, "RTSP request failed"),
        StatusCode::InternalServerError | StatusCode::BadGateway | StatusCode::GatewayTimeout => {
            tracing::error!(path, %error, "RTSP request failed");
        }
        _ => tracing::debug!(path, %error, "RTSP request failed"),
    }
    let reply = Reply::refusal(status, error).telling(error.for_viewers(path));
    let known = match error {
        NoMedium::Source(error) => error.kind.retry_after(Instant::now()),
        _ => None,
    };
    let again = known.map(|seconds| seconds.to_string());
    Outcome::Refused(match again.or_else(|| (status == StatusCode::ServiceUnavailable).then(|| SOON.to_owned())) {
        Some(seconds) => reply.with(RETRY_AFTER, seconds),
        None => reply,
    })
}

fn of_library(error: &LibraryError) -> StatusCode {
    match crate::problem::status(error) {
        HttpStatus::NOT_FOUND => StatusCode::NotFound,
        HttpStatus::BAD_REQUEST => StatusCode::BadRequest,
        HttpStatus::FORBIDDEN => StatusCode::Forbidden,
        HttpStatus::UNPROCESSABLE_ENTITY => StatusCode::UnsupportedMediaType,
        HttpStatus::SERVICE_UNAVAILABLE => StatusCode::ServiceUnavailable,
        HttpStatus::GATEWAY_TIMEOUT => StatusCode::GatewayTimeout,
        HttpStatus::BAD_GATEWAY => StatusCode::BadGateway,
        _ => StatusCode::InternalServerError,
    }
}
