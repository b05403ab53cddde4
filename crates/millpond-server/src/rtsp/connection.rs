//! One RTSP connection: requests in, replies out, and interleaved data beside them.

use super::{
    Rtsp, TIMEOUT,
    described::{chosen, described},
    inlet::Inlet,
    listen::IDLE,
    reply::{self, PUBLIC, Reply},
    session::{self, Asked, CannotPlay, Session},
    srtp::{Promises, Srtp},
    track::{Sink, ntp},
    wire::{Room, Wire},
};
use crate::library::{Asset, LibraryError};
use bytes::BytesMut;
use http::StatusCode as HttpStatus;
use millpond_rtp::{
    description::{self, Described},
    digest::Refusal,
    framing::{self, Incoming},
    key_management::carriage::{self, CarriageError},
    message::{
        HeaderName, Method, Request, StatusCode,
        headers::{
            BANDWIDTH, CONTENT_BASE, CONTENT_TYPE, LOCATION, PUBLIC as PUBLIC_HEADER, RANGE, RTP_INFO, SCALE, SESSION,
            SPEED, TRANSPORT,
        },
    },
    play::{self, Part},
    setup::{self, Offer, Profile, Transport},
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};
use tokio::time::{Instant, timeout_at};

/// A client that gives so many wrong answers has to connect again.
const WRONG: usize = 8;
/// Speeds that media is sent at, times its own pace.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=4.0;

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

    async fn describe(&mut self, request: &Request<Vec<u8>>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let (asset, rendition) = match self.open(&path).await {
            Ok(found) => found,
            Err(error) => return failed(&path, &error),
        };
        // What the client can take (RFC 2326 12.6).
        let most = request.header(&BANDWIDTH).and_then(|value| value.as_str().trim().parse().ok());
        let program = self.rtsp.channels.program(&asset, rendition.as_deref());
        let chosen = chosen(&asset, rendition.as_deref(), most.filter(|_| program.is_none()));
        let (numbers, mut all): (Vec<usize>, Vec<_>) =
            chosen.iter().filter_map(|(number, track)| Some((*number, described(*number, track)?))).unzip();
        if all.is_empty() {
            return Reply::new(StatusCode::UnsupportedMediaType);
        }
        if let Some(elsewhere) = self.elsewhere(&all, request) {
            return Reply::new(StatusCode::Found).with(LOCATION, elsewhere);
        }
        let keys = match self.promise(&path, &numbers) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(%error, "no keys for SRTP");
                return Reply::new(StatusCode::InternalServerError);
            }
        };
        all.iter_mut().zip(&keys).for_each(|(described, key)| described.keys = Some(key));
        let duration = program.is_none().then(|| asset.presentation.duration());
        let text = description::describe(&asset.path, asset.id, duration, &all);
        let base = request.request_uri().map(|url| format!("{}/", url.as_str().trim_end_matches('/')));
        let mut reply = Reply::ok().with(CONTENT_TYPE, "application/sdp");
        reply.headers.extend(base.map(|base| (CONTENT_BASE, base)));
        reply.body = text.into_bytes();
        reply
    }

    /// Makes keys for tracks, where they can be told here.
    fn promise(&mut self, path: &str, tracks: &[usize]) -> io::Result<Vec<String>> {
        if !self.inlet.is_secure() {
            return Ok(Vec::new());
        }
        self.promises = Promises::of(path);
        tracks.iter().map(|track| self.promises.make(*track, ntp(SystemTime::now()))).collect()
    }

    /// The URL that a client is sent to when there is no room for it here.
    fn elsewhere(&self, tracks: &[Described<'_>], request: &Request<Vec<u8>>) -> Option<String> {
        // Who came over TLS is not sent where anybody may listen.
        let mut elsewhere =
            self.rtsp.overflow.clone().filter(|url| !self.inlet.is_secure() || url.scheme() == "rtsps")?;
        let rate = tracks.iter().map(|track| track.bandwidth).sum();
        if self.rtsp.admission.has_room(self.peer.ip(), rate) {
            return None;
        }
        let url = request.request_uri()?;
        elsewhere.set_path(&format!("{}{}", elsewhere.path().trim_end_matches('/'), url.path()));
        elsewhere.set_query(url.query());
        Some(elsewhere.into())
    }

    async fn set_up(&mut self, request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let Some((base, track)) = path.rsplit_once('/') else { return Reply::new(StatusCode::NotFound) };
        let offers = setup::offers(request.header(&TRANSPORT).map_or("", |value| value.as_str()));
        let (asset, rendition) = match self.open(base).await {
            Ok(found) => found,
            Err(error) => return failed(&path, &error),
        };
        let tracks = asset.presentation.tracks();
        let Some(number) = tracks.iter().position(|known| known.name() == track) else {
            return Reply::new(StatusCode::NotFound);
        };
        let Some(described) = described(number, &tracks[number]) else {
            return Reply::new(StatusCode::UnsupportedMediaType);
        };
        let program = self.rtsp.channels.program(&asset, rendition.as_deref());
        if program.as_ref().is_some_and(|program| !program.has(number)) {
            return Reply::new(StatusCode::NotFound);
        }
        let (name, session) = match session.and_then(|name| Some((name.clone(), self.rtsp.session(&name)?))) {
            Some(known) => known,
            None => {
                let make = |id, place, sender| Session::new(id, base.to_owned(), asset.clone(), program, place, sender);
                match self.rtsp.add(self.peer.ip(), make) {
                    Some(added) => added,
                    None => return Reply::new(StatusCode::NotEnoughBandwidth),
                }
            }
        };
        let mut session = session.lock().await;
        // A file that was replaced since the first SETUP is another presentation.
        if session.path != base || session.asset.id != asset.id {
            return Reply::new(StatusCode::AggregateOperationNotAllowed);
        }
        if session.is_playing() {
            return Reply::new(StatusCode::MethodNotValidInThisState);
        }
        let key = HeaderName::try_from(carriage::HEADER).ok();
        let key = key.and_then(|name| request.header(&name)).map(|value| value.as_str());
        let mut accept = |offer: &(Profile, Offer)| {
            let taken = self.accept(*offer, &mut session, (number, &described), key)?;
            Some(taken.map(|transport| transport.header(offer.0)))
        };
        let transport = match offers.iter().find_map(&mut accept) {
            Some(Ok(transport)) => transport,
            refused => {
                let is_new = !session.is_set_up();
                drop(session);
                if is_new {
                    self.rtsp.remove(&name);
                }
                let Some(Err(error)) = refused else { return Reply::new(StatusCode::UnsupportedTransport) };
                tracing::debug!(path, %error, "no key of the client's");
                // 463: key management failure (RFC 4567 3.2), which has another name in RTSP 2.0.
                return Reply::new(StatusCode::DestinationProhibited);
            }
        };
        drop(session);
        if !self.own.contains(&name) {
            self.own.push(name.clone());
        }
        let named = format!("{name};timeout={}", TIMEOUT.as_secs());
        Reply::ok().with(SESSION, named).with(TRANSPORT, transport)
    }

    /// Sets a track up as it is offered; nothing where that can't be. Media goes only to who asks for it, and to groups that are
    /// configured.
    fn accept(
        &mut self,
        (profile, offer): (Profile, Offer),
        session: &mut Session,
        (number, described): (usize, &Described<'_>),
        key: Option<&str>,
    ) -> Option<Result<Transport, CarriageError>> {
        let is_sealed = profile == Profile::Savp;
        if offer == Offer::Multicast && self.inlet.takes_udp(Profile::Avp) && !is_sealed {
            let id = self.rtsp.number();
            return session.group(&self.rtsp.channels, id)?.transport(number).map(Ok);
        }
        if session.is_grouped() || (is_sealed && !self.inlet.is_secure()) {
            return None;
        }
        let sink = match offer {
            Offer::Interleaved(channels) => {
                let next = (session.tracks.len() * 2) as u8;
                Sink::Tcp { wire: self.wire.clone(), channels: channels.unwrap_or((next, next + 1)) }
            }
            Offer::Unicast { ports, destination } if self.inlet.takes_udp(profile) => {
                let address = self.peer.ip();
                if destination.is_some_and(|elsewhere| elsewhere != address) || ports.0 == 0 || ports.1 == 0 {
                    return None;
                }
                let to = |port| SocketAddr::new(address, port);
                Sink::Udp { rtp: to(ports.0), rtcp: to(ports.1) }
            }
            _ => return None,
        };
        let (ssrc, srtp) = if is_sealed {
            let promise = self.promises.take(&session.path, number)?;
            match Srtp::new(&promise, key) {
                Ok(srtp) => (promise.ssrc, Some(Box::new(srtp))),
                Err(error) => return Some(Err(error)),
            }
        } else {
            (fastrand::u32(..), None)
        };
        let transport = match &sink {
            Sink::Tcp { channels, .. } => Transport::Interleaved { channels: *channels, ssrc },
            Sink::Udp { rtp, rtcp } => {
                Transport::Unicast { client: (rtp.port(), rtcp.port()), server: session.ports(), ssrc }
            }
        };
        session.set_up(number, described, sink, (ssrc, srtp));
        Some(Ok(transport))
    }

    async fn play(&self, request: &Request<Vec<u8>>, session: &mut Session, name: &str) -> Option<Reply> {
        let header = |name: &HeaderName| request.header(name).map(|value| value.as_str().to_owned());
        let part = match header(&RANGE).map_or(Ok(Part::default()), |text| play::part(&text)) {
            Ok(part) => part,
            Err(play::PlayError::Units(_)) => return Some(Reply::new(StatusCode::NotImplemented)),
            Err(_) => return Some(Reply::new(StatusCode::InvalidRange)),
        };
        let speed = match header(&SPEED).map_or(Ok(1.0), |text| play::rate("Speed", &text)) {
            Ok(speed) => speed.clamp(*SPEEDS.start(), *SPEEDS.end()),
            Err(_) => return Some(Reply::new(StatusCode::BadRequest)),
        };
        if !session.is_set_up() {
            return Some(Reply::new(StatusCode::MethodNotValidInThisState));
        }
        let base = request.request_uri().map(|url| url.as_str().trim_end_matches('/').to_owned()).unwrap_or_default();
        let told_speed = header(&SPEED).is_some();
        let scale = match header(&SCALE).map(|text| play::rate("Scale", &text)).transpose() {
            Ok(scale) => scale,
            Err(_) => return Some(Reply::new(StatusCode::BadRequest)),
        };
        let asked = Asked { part, speed, scale: scale.unwrap_or(1.0) };
        let source = self.rtsp.source();
        let started = session.play(&source, asked, |played| {
            let each = played.tracks.iter();
            let info: Vec<String> = each
                .map(|(track, sequence, time)| format!("url={base}/{track};seq={sequence};rtptime={time}"))
                .collect();
            let mut reply = Reply::ok().with(SESSION, name).with(RANGE, session::range(played));
            if !info.is_empty() {
                reply = reply.with(RTP_INFO, info.join(","));
            }
            if scale.is_some() {
                reply = reply.with(SCALE, format!("{}", played.scale));
            }
            if told_speed {
                reply = reply.with(SPEED, format!("{}", played.speed));
            }
            self.send(request, &reply);
        });
        match started.await {
            Ok(()) => None,
            Err(CannotPlay::OutOfRange) => Some(Reply::new(StatusCode::InvalidRange)),
            Err(CannotPlay::Full) => Some(Reply::new(StatusCode::NotEnoughBandwidth)),
            Err(CannotPlay::Ended) => Some(Reply::new(StatusCode::ServiceUnavailable)),
        }
    }

    /// The asset of a path, and the rendition that its last part names, where it does.
    async fn open(&self, path: &str) -> Result<(Arc<Asset>, Option<String>), LibraryError> {
        let none = || LibraryError::NoAsset(path.to_owned());
        let (_, place, inside) = self.rtsp.places.find(path).ok_or_else(none)?;
        let whole = self.rtsp.library.open(place, inside.trim_matches('/')).await;
        if let (Err(_), Some((asset, rendition))) = (&whole, inside.rsplit_once('/'))
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
