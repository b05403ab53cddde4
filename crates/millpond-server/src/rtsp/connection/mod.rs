//! One RTSP connection: requests in, replies out, and interleaved data beside them.

mod channels;
mod describe;
mod play;
mod set_up;

use super::{
    Rtsp,
    inlet::Inlet,
    record::End,
    reply::{self, PUBLIC, Reply},
    session::Session,
    srtp::Promises,
    wire::Wire,
};
use crate::library::LibraryError;
use bytes::BytesMut;
use channels::Channels;
use http::StatusCode as HttpStatus;
use millpond_rtp::{
    digest::DigestRefusal,
    framing::{self, ClientMessage, FramingError},
    message::{
        HeaderName, Method, Request, StatusCode,
        headers::{CSEQ, PROXY_REQUIRE, PUBLIC as PUBLIC_HEADER, REQUIRE, SESSION, UNSUPPORTED, USER_AGENT},
    },
};
use millpond_stream::{Full, outlet::Backlog};
use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicUsize},
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout_at},
};

/// A client that gives so many wrong answers has to connect again.
const WRONG: usize = 8;
/// Most characters of a user agent in the log.
const AGENT: usize = 200;
/// Most bytes of the options that a reply says are not supported.
const OPTIONS: usize = 256;

/// Serves a connection until it ends; the sessions whose packets go over it end with it, and those that never played. What came already is in `input`.
///
/// # Errors
/// What ended it, where that was not the client.
pub(super) async fn serve(
    wire: Arc<Wire>,
    inlet: Inlet,
    input: BytesMut,
    peer: SocketAddr,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
    let mut connection = Connection {
        wire: wire.clone(),
        inlet,
        peer,
        rtsp,
        own: Own { peer, rtsp, names: HashSet::new() },
        channels: Channels::default(),
        waiting: Arc::default(),
        promises: Promises::default(),
        wrong: 0,
        active: Instant::now(),
    };
    let ended = tokio::select! {
        ended = connection.run(input) => ended,
        drained = wire.drain(rtsp.timeouts.write) => drained,
    };
    wire.close();
    ended
}

/// Sessions that were set up on a connection. Those that can't outlive it end when this is dropped, on shutdown too.
struct Own<'a> {
    peer: SocketAddr,
    rtsp: &'a Arc<Rtsp>,
    names: HashSet<String>,
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        for name in std::mem::take(&mut self.names) {
            let Some(session) = self.rtsp.session(&name, self.peer.ip()) else { continue };
            // One that is locked is asked for something on another connection, and outlives this one.
            let ends = |session: &Session| {
                let ends = session.is_interleaved() || !session.has_played();
                if ends && !self.rtsp.is_stopping() {
                    session.record.ends(End::ConnectionLost);
                }
                ends
            };
            if session.try_lock().is_ok_and(|session| ends(&session)) {
                self.rtsp.remove(&name);
            }
        }
    }
}

struct Connection<'a> {
    wire: Arc<Wire>,
    inlet: Inlet,
    peer: SocketAddr,
    rtsp: &'a Arc<Rtsp>,
    own: Own<'a>,
    channels: Channels,
    /// Sessions of the connection that have not played.
    waiting: Arc<AtomicUsize>,
    /// Keys that were told here.
    promises: Promises,
    /// Answers that were wrong.
    wrong: usize,
    /// Time of the last request, or of the last packet on a channel that there is.
    active: Instant,
}

impl Connection<'_> {
    async fn run(&mut self, mut input: BytesMut) -> io::Result<()> {
        let mut began = None;
        loop {
            let taken = framing::take(&mut input);
            if !matches!(taken, Ok(None)) {
                began = None;
            }
            match taken {
                Ok(Some(ClientMessage::Request(request))) => {
                    self.request(&request).await?;
                    self.active = Instant::now();
                }
                Ok(Some(ClientMessage::Data(channel, packet))) => self.hear(channel, packet.into()).await,
                Ok(Some(ClientMessage::Response)) => {}
                Ok(None) => {
                    if input.is_empty() {
                        // An idle connection holds no buffer.
                        input = BytesMut::new();
                    } else {
                        began = began.or_else(|| Some(Instant::now()));
                    }
                    if !self.more(&mut input, began).await? {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let status = match error {
                        FramingError::Malformed => "400 Bad Request",
                        FramingError::TooLong { .. } => "413 Request Entity Too Large",
                    };
                    if self.rtsp.access_log {
                        tracing::info!(peer = %self.peer, status, why = %error, "RTSP request refused");
                    }
                    let reply = format!("RTSP/1.0 {status}\r\nServer: millpond\r\n\r\n");
                    self.wire.send(|pending| pending.extend_from_slice(reply.as_bytes()));
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    /// Waits for bytes, of a message that began at some time where one did; `false` at the end, and where the client is silent
    /// and has no session that has played.
    async fn more(&mut self, input: &mut BytesMut, began: Option<Instant>) -> io::Result<bool> {
        let timeouts = self.rtsp.timeouts;
        loop {
            let until = began.map_or(self.active + timeouts.idle, |began| began + timeouts.head);
            match timeout_at(until, self.inlet.read(input)).await {
                Ok(read) => return Ok(read? > 0),
                Err(_) if began.is_some() => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "a request that did not come in completely"));
                }
                Err(_) if self.is_needed() => self.active = Instant::now(),
                Err(_) => return Ok(false),
            }
        }
    }

    /// Whether a session that was set up here has played and is there still.
    fn is_needed(&mut self) -> bool {
        let (rtsp, client) = (self.rtsp, self.peer.ip());
        self.own.names.retain(|name| rtsp.session(name, client).is_some());
        let mut sessions = self.own.names.iter().filter_map(|name| rtsp.session(name, client));
        // One that is locked is being asked for something.
        sessions.any(|session| session.try_lock().map_or(true, |session| session.has_played()))
    }

    /// Receiver reports on the connection: its session's client is there. On a channel that no track has they mean nothing.
    async fn hear(&mut self, channel: u8, mut packet: Vec<u8>) {
        let Some(session) = self.channels.session(channel) else { return };
        self.active = Instant::now();
        let mut session = session.lock().await;
        session.subscriber.progress().set_heard(self.rtsp.manager.now());
        session.hear(channel, &mut packet, self.rtsp.manager.counters());
    }

    fn send(&self, request: &Request<Vec<u8>>, reply: &Reply) {
        let (peer, method, status) = (self.peer, reply::name(request.method()), u16::from(reply.status));
        tracing::debug!(%peer, method, status, "RTSP request");
        // A challenge is no refusal yet; wrong answers to one are told where they are found.
        if status >= 400 && reply.status != StatusCode::Unauthorized && self.rtsp.access_log {
            let (uri, agent) = (request.request_uri().map(|uri| uri.to_string()), agent(request));
            tracing::info!(%peer, method, uri, status, agent, why = reply.why, "RTSP request refused");
        }
        let bytes = reply.to_bytes(request);
        self.wire.send(|pending| pending.extend_from_slice(&bytes));
    }

    async fn request(&mut self, request: &Request<Vec<u8>>) -> io::Result<()> {
        let reply = match unfit(request).or_else(|| self.refusal(request)) {
            Some(reply) => Some(reply),
            None => self.answer(request).await,
        };
        if let Some(reply) = reply {
            self.send(request, &reply);
        }
        if self.wrong >= WRONG {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "too many wrong passwords"));
        }
        // Replies are no frames: none of them can be left out.
        match self.wire.backlog() {
            Backlog::Stuck => Err(io::Error::new(io::ErrorKind::TimedOut, "a client that reads no replies")),
            Backlog::Low | Backlog::High => Ok(()),
        }
    }

    /// What to reply to who may not ask.
    fn refusal(&mut self, request: &Request<Vec<u8>>) -> Option<Reply> {
        let refused = self.rtsp.access.as_ref()?.check(request, self.rtsp.clock.elapsed()).err()?;
        let (peer, why) = (self.peer, &refused.why);
        if matches!(why, DigestRefusal::Anonymous | DigestRefusal::Stale | DigestRefusal::Replayed { .. }) {
            tracing::debug!(%peer, %why, "RTSP request refused");
        } else {
            self.wrong += 1;
            tracing::warn!(%peer, %why, "RTSP request refused");
        }
        Some(refused.reply)
    }

    /// Answers a request; nothing where the reply was sent on the way.
    async fn answer(&mut self, request: &Request<Vec<u8>>) -> Option<Reply> {
        let named =
            request.header(&SESSION).map(|value| value.as_str().split(';').next().unwrap_or("").trim().to_owned());
        let known = match &named {
            Some(name) => self.find(name).await.zip(Some(name.clone())),
            None => None,
        };
        if named.is_some() && known.is_none() {
            return Some(Reply::new(StatusCode::SessionNotFound));
        }
        Some(match (request.method(), known) {
            (Method::Options, _) => Reply::ok().with(PUBLIC_HEADER, PUBLIC),
            (Method::Describe, _) => self.describe(request).await,
            (Method::Setup, known) => self.set_up(request, known.map(|(_, name)| name)).await,
            (Method::GetParameter | Method::SetParameter, _) => self.parameter(request, named),
            (Method::Play | Method::Pause | Method::Teardown, None) => Reply::new(StatusCode::SessionNotFound),
            (Method::Play, Some((session, name))) => {
                return self.play(request, &mut *session.lock().await, &name).await;
            }
            (Method::Pause, Some((session, name))) => {
                session.lock().await.pause().await;
                Reply::ok().with(SESSION, name)
            }
            (Method::Teardown, Some((session, name))) => {
                let mut session = session.lock().await;
                session.record.ends(End::Teardown);
                session.pause().await;
                drop(session);
                self.rtsp.remove(&name);
                self.own.names.remove(&name);
                Reply::ok()
            }
            _ => Reply::new(StatusCode::NotImplemented).with(PUBLIC_HEADER, PUBLIC),
        })
    }

    /// The session of a name, where it was given to this client; its client is there. One whose packets go over another
    /// connection is asked for on that one.
    async fn find(&self, name: &str) -> Option<Arc<Mutex<Session>>> {
        let found = self.rtsp.session(name, self.peer.ip())?;
        let session = found.lock().await;
        if session.is_interleaved() && !self.own.names.contains(name) {
            return None;
        }
        session.subscriber.progress().set_heard(self.rtsp.manager.now());
        drop(session);
        Some(found)
    }

    /// Refuses a session. The log names the setting that limits it.
    fn full(&self, full: Full) -> Reply {
        self.rtsp.manager.counters().refuse(full);
        let why = match full {
            Full::Sessions => "rtsp-sessions is reached",
            Full::Client => "rtsp-sessions-per-client is reached",
            Full::Waiting => "too many sessions that were set up and not played",
            Full::Bandwidth => "rtsp-mbps is reached",
            Full::Origin => "the origin is late or rtsp-origin-mbps is reached",
            Full::Memory => "sessions hold half of the memory",
            Full::Sending => "sending is late",
        };
        Reply::new(StatusCode::NotEnoughBandwidth).because(why)
    }

    /// Keeps a session alive, mostly; there are no parameters (RFC 2326 10.8).
    fn parameter(&self, request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
        let reply = match request.body().is_empty() {
            true => Reply::ok(),
            false => Reply::new(StatusCode::ParameterNotUnderstood),
        };
        session.into_iter().fold(reply, |reply, name| reply.with(SESSION, name))
    }
}

/// What to reply to a request that can't be understood: without a number (RFC 2326 12.17), or one that needs an option (12.32, 12.27),
/// of which there are none here.
fn unfit(request: &Request<Vec<u8>>) -> Option<Reply> {
    let number = request.header(&CSEQ).map_or("", |value| value.as_str());
    if number.is_empty() || number.parse::<u64>().is_err() || number.starts_with('+') {
        return Some(Reply::new(StatusCode::BadRequest));
    }
    let header = |name: &HeaderName| request.header(name).map_or("", |value| value.as_str()).to_owned();
    let options = [header(&REQUIRE), header(&PROXY_REQUIRE)];
    let mut named: Vec<&str> = options.iter().flat_map(|list| list.split(',')).map(str::trim).collect();
    named.retain(|option| !option.is_empty());
    if named.is_empty() {
        return None;
    }
    let mut unsupported = named.join(", ");
    unsupported.retain(|character| character.is_ascii_graphic() || character == ' ');
    unsupported.truncate(OPTIONS);
    Some(Reply::new(StatusCode::OptionNotSupported).with(UNSUPPORTED, unsupported))
}

/// The client's program as it calls itself, where it does.
fn agent(request: &Request<Vec<u8>>) -> Option<String> {
    Some(request.header(&USER_AGENT)?.as_str().chars().take(AGENT).collect())
}

/// The path of a request's URL, decoded.
fn path(request: &Request<Vec<u8>>) -> Option<String> {
    let path = request.request_uri()?.path().trim_matches('/').to_owned();
    let path = percent_encoding::percent_decode_str(&path).decode_utf8().ok()?.into_owned();
    (!path.contains('\0')).then_some(path)
}

fn failed(error: &LibraryError) -> Reply {
    let status = match crate::problem::status(error) {
        HttpStatus::NOT_FOUND => StatusCode::NotFound,
        HttpStatus::BAD_REQUEST => StatusCode::BadRequest,
        HttpStatus::FORBIDDEN => StatusCode::Forbidden,
        HttpStatus::UNPROCESSABLE_ENTITY => StatusCode::UnsupportedMediaType,
        HttpStatus::SERVICE_UNAVAILABLE => StatusCode::ServiceUnavailable,
        HttpStatus::GATEWAY_TIMEOUT => StatusCode::GatewayTimeout,
        HttpStatus::BAD_GATEWAY => StatusCode::BadGateway,
        _ => StatusCode::InternalServerError,
    };
    Reply::new(status).because(error)
}
