//! WebRTC: viewers in browsers, with the least delay.
//!
//! Signalling is a request of HTTP (WHEP), which `http` answers; [`WebRtc::begin`] makes the session of an offer. All sessions share one UDP
//! port ([`port`]). A [`viewer`] is a task that owns the state machine of its connection ([`millpond_webrtc::Peer`]); once that has
//! keys, the engine's sending threads send to it as to viewers of RTSP ([`millpond_stream::SharedPort`]).

mod metrics;
mod negotiation;
mod port;
mod record;
mod report;
mod sessions;
mod settings;
mod viewer;

pub(crate) use metrics::WebRtcMetrics;
pub(crate) use negotiation::NoAnswer;
pub(crate) use port::open as open_port;
pub(crate) use report::SessionReport;
pub use settings::WebRtcSettings;

use crate::interfaces;
use millpond_access::{ClientHold, Pass, random};
use millpond_stream::{Full, Manager, Program};
use millpond_webrtc::{
    Identity, RtcPeer,
    sdp::{IceCandidate, IceCredentials, PeerOffer},
};
use negotiation::Negotiated;
use record::Record;
use sessions::Sessions;
use std::{
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::Instant,
};
use tokio::sync::watch;
use viewer::Viewer;

/// Random bytes of a session's id, which only its client may know.
const ID: usize = 16;
/// Random bytes of a user fragment and of a password (RFC 8839 5.4: at least 24 and 128 bits).
const FRAGMENT: usize = 6;
const PASSWORD: usize = 18;

/// The WebRTC end of a server.
pub(crate) struct WebRtc {
    manager: Arc<Manager>,
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    /// Hosts that answers tell beside the machine's own addresses.
    hosts: Vec<IpAddr>,
    identity: Identity,
    sessions: Arc<Sessions>,
    metrics: WebRtcMetrics,
    access_log: bool,
    stop: watch::Sender<bool>,
}

/// The client of a session, and its rights.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) agent: Option<String>,
    pub(crate) pass: Pass,
    pub(crate) hold: ClientHold,
}

/// A session that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Its name, which nobody can guess.
    pub(crate) id: String,
    /// Names the state of ICE (RFC 9725 4.3.1).
    pub(crate) tag: String,
    /// The answer to the offer.
    pub(crate) answer: String,
}

/// Why an offer begins no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotBegin {
    /// No track can be sent to the client.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The server admits no other session.
    #[error("{0}")]
    Full(#[from] Full),
    /// The system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] io::Error),
}

impl WebRtc {
    /// Opens the port, and makes a certificate.
    ///
    /// # Errors
    /// The port is taken, or the system gives no random bytes.
    pub(crate) fn open(
        settings: &WebRtcSettings,
        manager: Arc<Manager>,
        metrics: &WebRtcMetrics,
        access_log: bool,
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(address) = settings.address else { return Ok(None) };
        let socket = port::open(address)?;
        Ok(Some(Arc::new(Self {
            manager,
            address: socket.local_addr()?,
            socket: Arc::new(socket),
            hosts: settings.hosts.clone(),
            identity: Identity::new().map_err(io::Error::other)?,
            sessions: Arc::default(),
            metrics: metrics.clone(),
            access_log,
            stop: watch::Sender::new(false),
        })))
    }

    /// The address of the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes datagrams until `stop` turns true. Then all sessions end.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = port::receive(&self.socket, &self.sessions, &self.metrics.foreign) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        self.stop.send_replace(true);
    }

    /// Begins the session of a client that made an offer, and plays a program once the client has connected.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: Client,
        program: Program,
        offer: &PeerOffer,
    ) -> Result<Begun, CannotBegin> {
        let Negotiated { tracks, sections, note } = negotiation::negotiate(&program, offer)?;
        let local = IceCredentials {
            ufrag: text(&random::bytes::<FRAGMENT>()?),
            password: text(&random::bytes::<PASSWORD>()?),
        };
        let (id, tag) = (text(&random::bytes::<ID>()?), format!("\"{}\"", local.ufrag));
        let reached = addresses(&self.hosts, self.address).into_iter();
        let candidates: Vec<IceCandidate> =
            reached.map(|ip| IceCandidate::udp(SocketAddr::new(ip, self.address.port()))).collect();
        let answer =
            negotiation::answer(&sections, (&local, self.identity.fingerprint(), &candidates), note.as_deref());
        let refused = |full| {
            self.manager.counters().refuse(full);
            full
        };
        let admitted = self.manager.admission().admit(client.address.ip(), &Arc::default()).map_err(refused)?;
        let new = |number| Record::new((number, program.path()), (client.address, client.agent), self.access_log);
        let mut record = None;
        let subscriber = self.manager.subscribe(|number| {
            let new = record.insert(Arc::new(new(number)));
            Some(new.clone())
        });
        let Some(record) = record else { return Err(Full::Sending.into()) };
        let peer =
            RtcPeer::new((local.clone(), &self.identity), (offer.remote.clone(), offer.fingerprint), Instant::now());
        let entry = self.sessions.add((&id, &local.ufrag), record.clone(), subscriber.progress().clone());
        let viewer = Viewer {
            manager: self.manager.clone(),
            socket: self.socket.clone(),
            program,
            tracks,
            peer,
            subscriber,
            admitted,
            entry,
            record,
            metrics: self.metrics.clone(),
            rights: (client.pass, client.hold),
        };
        self.metrics.begin();
        tokio::spawn(viewer.run(self.stop.subscribe()));
        Ok(Begun { id, tag, answer })
    }

    /// Ends the session of a name. Returns whether there was one.
    pub(crate) fn end(&self, id: &str) -> bool {
        self.sessions.end(id)
    }

    /// Whether there is a session of a name.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.sessions.has(id)
    }
}

/// Returns the addresses by which viewers reach a port: the given ones first, then those of the machine, each once.
pub(crate) fn addresses(given: &[IpAddr], port: SocketAddr) -> Vec<IpAddr> {
    let own = match port.ip() {
        ip if ip.is_loopback() => vec![ip],
        _ => interfaces::reachable(port),
    };
    let mut all = Vec::new();
    for ip in given.iter().copied().chain(own) {
        if !all.contains(&ip) {
            all.push(ip);
        }
    }
    if all.is_empty() {
        all.push(Ipv4Addr::LOCALHOST.into());
    }
    all
}

/// Random bytes as hexadecimal text, whose characters are those of ICE (RFC 8839 5.1).
fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_are_told_each_address_once() {
        let [public, own]: [IpAddr; 2] = ["203.0.113.7", "192.0.2.10"].map(|text| text.parse().unwrap());
        let of = |given: &[IpAddr], port: &str| addresses(given, port.parse().unwrap());
        assert_eq!(of(&[public, own, public], "192.0.2.10:8189"), [public, own]);
        assert_eq!(of(&[public], "192.0.2.10:8189"), [public, own]);
        assert_eq!(of(&[], "127.0.0.1:8189"), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    }
}
