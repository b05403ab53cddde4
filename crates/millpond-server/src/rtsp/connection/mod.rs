//! One RTSP connection: requests in, replies out, and interleaved data beside them.

mod describe;
mod play;
mod set_up;

use super::{
    Rtsp,
    inlet::Inlet,
    listen::IDLE,
    reply::{self, PUBLIC, Reply},
    srtp::Promises,
    wire::{Room, Wire},
};
use crate::library::{Asset, LibraryError};
use bytes::BytesMut;
use http::StatusCode as HttpStatus;
use millpond_rtp::{
    digest::Refusal,
    framing::{self, Incoming},
    message::{
        Method, Request, StatusCode,
        headers::{PUBLIC as PUBLIC_HEADER, SESSION},
    },
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};
use tokio::time::{Instant, timeout_at};

/// A client that gives so many wrong answers has to connect again.
const WRONG: usize = 8;

/// Serves a connection until it ends; the sessions whose packets go over it end with it. What came already is in `input`.
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
    let (own, promises) = (Vec::new(), Promises::default());
    let mut connection = Connection { wire: wire.clone(), inlet, peer, rtsp, own, promises, wrong: 0 };
    let ended = tokio::select! {
        ended = connection.run(input) => ended,
        drained = wire.drain() => drained,
    };
    wire.close();
    for name in std::mem::take(&mut connection.own) {
        let Some(session) = rtsp.session(&name) else { continue };
        if session.lock().await.is_interleaved() {
            rtsp.remove(&name);
        }
    }
    ended
}

struct Connection<'a> {
    wire: Arc<Wire>,
    inlet: Inlet,
    peer: SocketAddr,
    rtsp: &'a Arc<Rtsp>,
    /// Sessions that were set up here.
    own: Vec<String>,
    /// Keys that were told here.
    promises: Promises,
    /// Answers that were wrong.
    wrong: usize,
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
                Ok(Some(Incoming::Request(request))) => self.request(&request).await?,
                Ok(Some(Incoming::Data(channel, packet))) => self.hear(channel, packet.into()).await,
                Ok(Some(Incoming::Response)) => {}
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
                    self.wire.send(|pending| pending.extend_from_slice(b"RTSP/1.0 400 Bad Request\r\n\r\n"));
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    /// Waits for bytes, of a message that began at some time where one did; `false` at the end, and where the client has
    /// no session and is silent.
    async fn more(&mut self, input: &mut BytesMut, began: Option<Instant>) -> io::Result<bool> {
        loop {
            let has_session = self.own.iter().any(|name| self.rtsp.session(name).is_some());
            let until = began.map_or_else(|| Instant::now() + IDLE, |began| began + self.rtsp.head);
            match timeout_at(until, self.inlet.read(input)).await {
                Ok(read) => return Ok(read? > 0),
                Err(_) if began.is_some() => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "a request that did not come in completely"));
                }
                Err(_) if has_session => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// Receiver reports on the connection; whoever sends anything is there.
    async fn hear(&self, channel: u8, mut packet: Vec<u8>) {
        for session in self.own.iter().filter_map(|name| self.rtsp.session(name)) {
            let mut session = session.lock().await;
            session.progress.heard.store(self.rtsp.now(), Ordering::Relaxed);
            session.hear(channel, &mut packet, &self.rtsp.counters);
        }
    }

    fn send(&self, request: &Request<Vec<u8>>, reply: &Reply) {
        tracing::debug!(peer = %self.peer, method = reply::name(request.method()), status = ?reply.status, "RTSP request");
        let bytes = reply.to_bytes(request);
        self.wire.send(|pending| pending.extend_from_slice(&bytes));
    }

    async fn request(&mut self, request: &Request<Vec<u8>>) -> io::Result<()> {
        let reply = match self.refusal(request) {
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
        match self.wire.room() {
            Room::None => Err(io::Error::new(io::ErrorKind::TimedOut, "a client that reads no replies")),
            Room::Enough | Room::Little => Ok(()),
        }
    }

    /// What to reply to who may not ask.
    fn refusal(&mut self, request: &Request<Vec<u8>>) -> Option<Reply> {
        let refused = self.rtsp.access.as_ref()?.check(request, self.rtsp.clock.elapsed()).err()?;
        let (peer, why) = (self.peer, &refused.why);
        if matches!(why, Refusal::Anonymous | Refusal::Stale) {
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
        let session = named.as_deref().and_then(|name| self.rtsp.session(name));
        if let Some(session) = &session {
            session.lock().await.progress.heard.store(self.rtsp.now(), Ordering::Relaxed);
        }
        let known = session.zip(named.clone());
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
                session.lock().await.pause().await;
                self.rtsp.remove(&name);
                self.own.retain(|own| *own != name);
                Reply::ok()
            }
            _ => Reply::new(StatusCode::NotImplemented).with(PUBLIC_HEADER, PUBLIC),
        })
    }

    /// Keeps a session alive, mostly; there are no parameters (RFC 2326 10.8).
    fn parameter(&self, request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
        let reply = match request.body().is_empty() {
            true => Reply::ok(),
            false => Reply::new(StatusCode::ParameterNotUnderstood),
        };
        session.into_iter().fold(reply, |reply, name| reply.with(SESSION, name))
    }

    /// The asset of a path, and the rendition that its last part names, where it does.
    async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let (_, place, inside) = self.rtsp.places.find(path).ok_or_else(none)?;
        let inside = inside.trim_matches('/');
        let whole = self.rtsp.library.open(place, inside).await;
        // A place may be an asset itself.
        let (asset, rendition) = inside.rsplit_once('/').unwrap_or(("", inside));
        if whole.is_err()
            && !rendition.is_empty()
            && let Ok(asset) = self.rtsp.library.open(place, asset).await
            && asset.presentation.track(rendition).is_some()
        {
            return Ok((asset, Some(rendition.to_owned())));
        }
        Ok((whole?, None))
    }
}

/// The path of a request's URL, decoded.
fn path(request: &Request<Vec<u8>>) -> Option<String> {
    let path = request.request_uri()?.path().trim_matches('/').to_owned();
    let path = percent_encoding::percent_decode_str(&path).decode_utf8().ok()?.into_owned();
    (!path.contains('\0')).then_some(path)
}

fn failed(path: &str, error: &LibraryError) -> Reply {
    tracing::debug!(path, %error, "RTSP request refused");
    Reply::new(match error.status() {
        HttpStatus::NOT_FOUND => StatusCode::NotFound,
        HttpStatus::BAD_REQUEST => StatusCode::BadRequest,
        HttpStatus::FORBIDDEN => StatusCode::Forbidden,
        HttpStatus::UNPROCESSABLE_ENTITY => StatusCode::UnsupportedMediaType,
        HttpStatus::SERVICE_UNAVAILABLE => StatusCode::ServiceUnavailable,
        HttpStatus::GATEWAY_TIMEOUT => StatusCode::GatewayTimeout,
        HttpStatus::BAD_GATEWAY => StatusCode::BadGateway,
        _ => StatusCode::InternalServerError,
    })
}
