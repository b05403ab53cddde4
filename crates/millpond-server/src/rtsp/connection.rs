//! One RTSP connection: requests in, replies out, and interleaved data beside them.

use super::{
    Rtsp, TIMEOUT,
    inlet::Inlet,
    listen::IDLE,
    reply::{self, PUBLIC, Reply},
    session::{self, Asked, CannotPlay, Session},
    track::Sink,
    wire::{Room, Wire},
};
use crate::library::{Asset, LibraryError};
use bytes::BytesMut;
use http::StatusCode as HttpStatus;
use millpond_package::{Kind, PresentedTrack};
use millpond_rtp::{
    description::{self, Described, FIRST_PAYLOAD_TYPE},
    digest::Refusal,
    framing::{self, Incoming},
    message::{
        HeaderName, Method, Request, StatusCode,
        headers::{
            CONTENT_BASE, CONTENT_TYPE, PUBLIC as PUBLIC_HEADER, RANGE, RTP_INFO, SCALE, SESSION, SPEED, TRANSPORT,
        },
    },
    payload::Packetizer,
    play::{self, Part},
    setup::{self, Offer, Transport},
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
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
    let mut connection = Connection { wire: wire.clone(), inlet, peer, rtsp, own: Vec::new(), wrong: 0 };
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
                // Receiver reports on the connection, for one: whoever sends them is there.
                Ok(Some(Incoming::Data(..))) => self.hear_all().await,
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

    async fn hear_all(&self) {
        for session in self.own.iter().filter_map(|name| self.rtsp.session(name)) {
            session.lock().await.progress.heard.store(self.rtsp.now(), Ordering::Relaxed);
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

    async fn describe(&self, request: &Request<Vec<u8>>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let (asset, rendition) = match self.open(&path).await {
            Ok(found) => found,
            Err(error) => return failed(&path, &error),
        };
        let chosen = chosen(&asset, rendition.as_deref());
        let described: Vec<_> = chosen.iter().filter_map(|(number, track)| describe(*number, track)).collect();
        if described.is_empty() {
            return Reply::new(StatusCode::UnsupportedMediaType);
        }
        let text = description::describe(&asset.path, asset.id, asset.presentation.duration(), &described);
        let base = request.request_uri().map(|url| format!("{}/", url.as_str().trim_end_matches('/')));
        let mut reply = Reply::ok().with(CONTENT_TYPE, "application/sdp");
        reply.headers.extend(base.map(|base| (CONTENT_BASE, base)));
        reply.body = text.into_bytes();
        reply
    }

    async fn set_up(&mut self, request: &Request<Vec<u8>>, session: Option<String>) -> Reply {
        let Some(path) = path(request) else { return Reply::new(StatusCode::BadRequest) };
        let Some((base, track)) = path.rsplit_once('/') else { return Reply::new(StatusCode::NotFound) };
        let offers = setup::offers(request.header(&TRANSPORT).map_or("", |value| value.as_str()));
        let (asset, _) = match self.open(base).await {
            Ok(found) => found,
            Err(error) => return failed(&path, &error),
        };
        let tracks = asset.presentation.tracks();
        let Some(number) = tracks.iter().position(|known| known.name() == track) else {
            return Reply::new(StatusCode::NotFound);
        };
        let Some(described) = describe(number, &tracks[number]) else {
            return Reply::new(StatusCode::UnsupportedMediaType);
        };
        let (name, session) = match session.and_then(|name| Some((name.clone(), self.rtsp.session(&name)?))) {
            Some(known) => known,
            None => {
                let make = |id, place, sender| Session::new(id, base.to_owned(), asset.clone(), place, sender);
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
        let Some((transport, sink)) = offers.iter().find_map(|offer| self.accept(*offer, &session)) else {
            let is_new = session.tracks.is_empty();
            drop(session);
            if is_new {
                self.rtsp.remove(&name);
            }
            return Reply::new(StatusCode::UnsupportedTransport);
        };
        session.set_up(number, described.packetizer, described.payload_type, sink, transport);
        drop(session);
        if !self.own.contains(&name) {
            self.own.push(name.clone());
        }
        let named = format!("{name};timeout={}", TIMEOUT.as_secs());
        Reply::ok().with(SESSION, named).with(TRANSPORT, transport.to_string())
    }

    /// Takes an offer, where it can be. Media goes only to who asks for it.
    fn accept(&self, offer: Offer, session: &Session) -> Option<(Transport, Sink)> {
        let ssrc = fastrand::u32(..);
        match offer {
            Offer::Interleaved(channels) => {
                let next = (session.tracks.len() * 2) as u8;
                let channels = channels.unwrap_or((next, next + 1));
                let sink = Sink::Tcp { wire: self.wire.clone(), channels };
                Some((Transport::Interleaved { channels, ssrc }, sink))
            }
            Offer::Unicast { ports, destination } => {
                let address = self.peer.ip();
                if !self.inlet.takes_udp() {
                    return None;
                }
                if destination.is_some_and(|elsewhere| elsewhere != address) || ports.0 == 0 || ports.1 == 0 {
                    return None;
                }
                let to = |port| SocketAddr::new(address, port);
                let sink = Sink::Udp { rtp: to(ports.0), rtcp: to(ports.1) };
                Some((Transport::Unicast { client: ports, server: session.ports(), ssrc }, sink))
            }
            Offer::Multicast => None,
        }
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
        if session.tracks.is_empty() {
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
            let mut reply =
                Reply::ok().with(SESSION, name).with(RANGE, session::range(played)).with(RTP_INFO, info.join(","));
            if scale.is_some() {
                reply = reply.with(SCALE, format!("{}", played.scale));
            }
            if told_speed {
                reply = reply.with(SPEED, format!("{speed}"));
            }
            self.send(request, &reply);
        });
        match started.await {
            Ok(()) => None,
            Err(CannotPlay::OutOfRange) => Some(Reply::new(StatusCode::InvalidRange)),
            Err(CannotPlay::Full) => Some(Reply::new(StatusCode::NotEnoughBandwidth)),
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

/// The tracks that are described: pictures of the rendition that is named or the best one, sound of the default language.
fn chosen<'a>(asset: &'a Asset, rendition: Option<&str>) -> Vec<(usize, &'a PresentedTrack)> {
    let tracks: Vec<_> = asset.presentation.tracks().iter().enumerate().collect();
    let fits = |track: &PresentedTrack| track.source_track().and_then(Packetizer::of).is_some();
    let of = |kind| tracks.iter().copied().filter(move |(_, track)| track.kind() == kind && fits(track));
    let named = rendition.and_then(|name| tracks.iter().copied().find(|(_, track)| track.name() == name));
    let video = named.filter(|(_, track)| track.kind() == Kind::Video);
    let audio = named.filter(|(_, track)| track.kind() == Kind::Audio);
    if audio.is_some() {
        return audio.into_iter().collect();
    }
    let video = video.or_else(|| of(Kind::Video).next_back());
    let audio = of(Kind::Audio).find(|(_, track)| track.is_default()).or_else(|| of(Kind::Audio).next());
    video.into_iter().chain(audio).collect()
}

fn describe(number: usize, track: &PresentedTrack) -> Option<Described<'_>> {
    let source = track.source_track()?;
    let packetizer = Packetizer::of(source)?;
    // MPEG audio has a type of its own (RFC 3551 6), and clients that don't know it by another.
    let payload_type = match packetizer {
        Packetizer::Mpa => 14,
        _ => FIRST_PAYLOAD_TYPE + (number % 32) as u8,
    };
    Some(Described {
        name: track.name(),
        track: source,
        packetizer,
        bandwidth: track.bandwidth().average,
        payload_type,
    })
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
