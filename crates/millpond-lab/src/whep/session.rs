//! One viewer: its offer, its connection, and its leave.

use super::{
    checks,
    description::{self, Answer},
    failure::{Failure, FailureKind},
    handshake::{Handshake, Identity, Keys},
    media::{Connection, Intervals, Media},
    options::Options,
    receiver::{Receiver, Reception},
    tally::{Step, Tally},
};
use crate::rtsp::{
    clock::{Clock, until},
    figures::Counters,
    ports::prepare,
};
use millpond_webrtc::{Datagram, ice, sdp::IceCredentials};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{net::UdpSocket, sync::watch, time::timeout};
use url::Url;

/// Between two checks until one is answered.
const CHECK_AGAIN: Duration = Duration::from_millis(100);
/// Candidates of a server that are tried.
const CANDIDATES: usize = 8;
/// Bytes of the longest datagram before media.
const DATAGRAM: usize = 2048;
/// Characters of a user fragment and of a password (RFC 8839 5.4).
const FRAGMENT: usize = 8;
const PASSWORD: usize = 24;

/// State that all viewers share.
pub(crate) struct Common {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) http: reqwest::Client,
    pub(crate) identity: Identity,
    /// Address of this machine by which it reaches the server.
    pub(crate) local: IpAddr,
    pub(crate) receivers: Vec<Receiver>,
}

impl Common {
    /// Held over no wait.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn took(&self, step: Step, since: Duration) {
        self.tally().took(step, self.clock.elapsed().saturating_sub(since));
    }
}

/// A viewer that has connected.
struct Connected {
    /// Kept open until the server knows that the session is over, so that its packets don't meet closed ports.
    _socket: Arc<std::net::UdpSocket>,
}

/// One viewer from beginning to end. `number` is its place among all.
pub(crate) async fn visit(common: Arc<Common>, number: usize, mut stopped: watch::Receiver<bool>) {
    // Of the session, for its end.
    let mut location = None;
    let connected = tokio::select! {
        biased;
        () = stop(&mut stopped) => {
            common.tally().cut_off += 1;
            None
        }
        connected = connect(&common, number, &mut location) => match connected {
            Ok(connected) => Some(connected),
            Err(failure) => {
                common.tally().failure(failure, &common.counters);
                None
            }
        }
    };
    if connected.is_some() {
        stop(&mut stopped).await;
    }
    if let Some(location) = location {
        // The status of DELETE is not counted: the measurement has ended.
        let _ = common.http.delete(location).send().await;
    }
}

/// Ready when the run ends, or its future was dropped.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

async fn connect(common: &Arc<Common>, number: usize, location: &mut Option<Url>) -> Result<Connected, Failure> {
    let (asked, asked_clock) = (common.clock.elapsed(), common.clock.now());
    let ports = |error: io::Error| Failure::new(FailureKind::Ports, error);
    let socket = UdpSocket::bind(SocketAddr::new(common.local, 0)).await.map_err(ports)?;
    let local = IceCredentials { ufrag: characters(FRAGMENT), password: characters(PASSWORD) };
    let offer = description::offer(&local, &common.identity.fingerprint, socket.local_addr().map_err(ports)?);
    let answer = ask(common, offer, location).await?;
    common.took(Step::Answer, asked);

    let Answer { remote, fingerprint, is_active, candidates, formats } = answer;
    let is_alike = |address: &SocketAddr| address.is_ipv4() == common.local.is_ipv4();
    let candidates: Vec<SocketAddr> = candidates.into_iter().filter(is_alike).take(CANDIDATES).collect();
    let mut connection =
        Connection { local, remote, tie_breaker: fastrand::u64(..), server: SocketAddr::new(common.local, 0) };
    let (patience, began) = (common.options.timeout, common.clock.elapsed());
    match timeout(patience, check(&socket, &mut connection, &candidates)).await {
        Ok(checked) => checked.map_err(|error| Failure::new(FailureKind::Checks, error))?,
        Err(_) => return Err(Failure::new(FailureKind::Checks, format!("no answer from {candidates:?}"))),
    }
    common.took(Step::Check, began);

    let began = common.clock.elapsed();
    let mut handshake = Handshake::begin(&common.identity, fingerprint, !is_active, Instant::now());
    let keys = timeout(patience, shake_hands(&socket, &connection, &mut handshake)).await;
    let keys = keys.unwrap_or_else(|_| Err("it did not end in time".to_owned()));
    let keys = keys.map_err(|why| Failure::new(FailureKind::Handshake, why))?;
    common.took(Step::Handshake, began);

    let options = &common.options;
    let intervals = Intervals { patience: (options.timeout, options.silence), reports: options.reports };
    let media = Media::new(connection, keys, &formats, intervals, fastrand::u32(..), common.clock.now());
    let socket = socket.into_std().and_then(|socket| prepare(&socket).map(|()| Arc::new(socket))).map_err(ports)?;
    common.receivers[number % common.receivers.len()].add(Reception {
        media,
        socket: socket.clone(),
        asked: asked_clock,
    });
    Ok(Connected { _socket: socket })
}

/// Sends the offer. `location` becomes the session's, if there is one.
async fn ask(common: &Common, offer: String, location: &mut Option<Url>) -> Result<Answer, Failure> {
    let request = common.http.post(common.options.url.clone()).header(CONTENT_TYPE, "application/sdp").body(offer);
    let failed = |error: reqwest::Error| Failure::new(FailureKind::Request, cause(&error));
    let reply = request.send().await.map_err(failed)?;
    let (status, at) = (reply.status(), reply.url().clone());
    let place = reply.headers().get(LOCATION).and_then(|place| at.join(place.to_str().ok()?).ok());
    let text = reply.text().await.map_err(failed)?;
    if !status.is_success() {
        return Err(Failure::new(FailureKind::Status(status.as_u16()), text.trim()));
    }
    *location = place;
    Answer::read(&text).map_err(|why| Failure::new(FailureKind::Answer, why))
}

/// The innermost cause of an error.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Checks candidates until one answers. The socket is then connected to it.
async fn check(socket: &UdpSocket, connection: &mut Connection, candidates: &[SocketAddr]) -> io::Result<()> {
    let mut buffer = vec![0; DATAGRAM];
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = until(Some(next)) => {
                let Connection { local, remote, tie_breaker, .. } = &*connection;
                for candidate in candidates {
                    if let Some(check) = checks::request(local, remote, *tie_breaker) {
                        // One of several may be out of reach.
                        let _ = socket.send_to(&check, candidate).await;
                    }
                }
                next += CHECK_AGAIN;
            }
            received = socket.recv_from(&mut buffer) => {
                let (length, from) = received?;
                if checks::is_answer(&buffer[..length], &connection.remote) {
                    socket.connect(from).await?;
                    connection.server = from;
                    return Ok(());
                }
                if let Some(check) = ice::check(&buffer[..length], from, &connection.local, &connection.remote) {
                    let _ = socket.send_to(&check.answer, from).await;
                }
            }
        }
    }
}

/// Makes the handshake. No datagram behind its last one is read.
async fn shake_hands(socket: &UdpSocket, connection: &Connection, handshake: &mut Handshake) -> Result<Keys, String> {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        handshake.tick(Instant::now())?;
        for datagram in handshake.take_datagrams() {
            socket.send(&datagram).await.map_err(|error| error.to_string())?;
        }
        if let Some(keys) = handshake.keys() {
            return Ok(keys.clone());
        }
        tokio::select! {
            () = until(Some(handshake.next())) => {}
            received = socket.recv(&mut buffer) => {
                let length = received.map_err(|error| error.to_string())?;
                let datagram = &buffer[..length];
                match Datagram::of(datagram) {
                    Some(Datagram::Dtls) => handshake.receive(datagram, Instant::now())?,
                    Some(Datagram::Stun) => {
                        let Connection { local, remote, server, .. } = connection;
                        if let Some(check) = ice::check(datagram, *server, local, remote) {
                            let _ = socket.send(&check.answer).await;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Random characters of ICE (RFC 8839 5.1).
fn characters(count: usize) -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(count).collect()
}
