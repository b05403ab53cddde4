//! WebRTC: viewers in browsers with the least delay, and publishers: browsers and encoders.
//!
//! Signalling is a request of HTTP (WHEP, WHIP), which `http` answers; [`WebRtc::play`] and [`WebRtc::publish`] make the session of an
//! offer. All sessions share one UDP port ([`port`]); peers that no datagrams reach connect by TCP ([`tcp`]). A [`viewer`] is a task that owns its [`connection`] with the state machine of the
//! peer ([`millpond_webrtc::RtcPeer`]); once that has keys, the engine's sending threads send to it as to viewers of RTSP
//! ([`millpond_stream::SharedPort`]). A [`publisher`] decrypts packets and gives them to the engine, as a publisher of RTSP does.

mod acceptance;
mod connection;
mod end;
mod metrics;
mod negotiation;
mod outlet;
mod port;
mod publisher;
mod record;
mod report;
mod sessions;
mod settings;
mod tcp;
mod traffic;
mod viewed;
mod viewer;

pub(crate) use acceptance::NoReception;
pub(crate) use metrics::WebRtcMetrics;
pub(crate) use negotiation::NoAnswer;
pub(crate) use port::open as open_port;
pub(crate) use report::SessionReport;
pub use settings::WebRtcSettings;
pub(crate) use tcp::accept;

use crate::interfaces;
use acceptance::Acceptance;
use arc_swap::ArcSwapOption;
use connection::Connection;
use millpond_access::{ClientHold, Pass, random};
use millpond_connections::Slots;
use millpond_stream::{Admitted, Conflict, Full, LiveRequest, Manager, Program};
use millpond_webrtc::{
    Identity, RtcPeer,
    sdp::{AnsweredSection, IceCandidate, IceCredentials, PeerAnswer, PeerOffer},
};
use negotiation::Negotiated;
use publisher::Publisher;
use record::Record;
use sessions::Sessions;
use std::{
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use traffic::Traffic;
use viewed::{Sounds, Viewed};
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
    /// Connections by TCP, and the address that takes them, if any.
    connections: Arc<Slots>,
    tcp: ArcSwapOption<SocketAddr>,
    /// Hosts that answers tell beside the machine's own addresses.
    hosts: Vec<IpAddr>,
    identity: Identity,
    sessions: Arc<Sessions>,
    metrics: WebRtcMetrics,
    sounds: Sounds,
    access_log: bool,
    stop: watch::Sender<bool>,
}

/// The client of a session.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) agent: Option<String>,
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
    /// No track of the client can be received.
    #[error(transparent)]
    NoReception(#[from] NoReception),
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
        (access_log, most_connections): (bool, usize),
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(address) = settings.address else { return Ok(None) };
        let socket = port::open(address)?;
        let sounds = Sounds::new(settings.opus, &manager);
        Ok(Some(Arc::new(Self {
            manager,
            sounds,
            address: socket.local_addr()?,
            socket: Arc::new(socket),
            connections: Slots::of_connections(most_connections),
            tcp: ArcSwapOption::empty(),
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

    /// Returns what a viewer with an offer gets of a stream. Waits for sound that is transcoded for it.
    pub(crate) async fn viewed(&self, program: Program, offer: &PeerOffer) -> Viewed {
        self.sounds.viewed(program, offer).await
    }

    /// Begins the session of a viewer, whose rights are given, and plays a stream once it has connected.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn play(
        &self,
        (client, pass, hold): (Client, Pass, ClientHold),
        Viewed { program, path, sound }: Viewed,
        offer: &PeerOffer,
    ) -> Result<Begun, CannotBegin> {
        let Negotiated { tracks, sections, note } = negotiation::negotiate(&program, &path, offer)?;
        let names = Names::new()?;
        let answer = self.answer(&names, offer, &negotiation::answered(&sections), note.as_deref());
        let admitted = self.admit(client.address.ip())?;
        let new = |number| Record::new((number, &path), client, self.access_log);
        let mut record = None;
        let subscriber = self.manager.subscribe(|number| {
            let new = record.insert(Arc::new(new(number)));
            Some(new.clone())
        });
        let Some(record) = record else { return Err(Full::Sending.into()) };
        let traffic = Traffic::Sent(subscriber.progress().clone());
        let viewer = Viewer {
            manager: self.manager.clone(),
            connection: self.connect(&names, offer, (record.clone(), traffic)),
            program,
            _sound: sound,
            tracks,
            subscriber,
            admitted,
            record,
            metrics: self.metrics.clone(),
            rights: (pass, hold),
        };
        self.metrics.begin();
        tokio::spawn(viewer.run(self.stop.subscribe()));
        Ok(names.begun(answer))
    }

    /// Begins the session of a publisher, and receives its stream once it has connected. `patience` is the longest time without media.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn publish(
        &self,
        client: Client,
        (stream, conflict, patience): (LiveRequest, Conflict, Duration),
        offer: &PeerOffer,
    ) -> Result<Begun, CannotBegin> {
        let Acceptance { tracks, media, sections, arrivals, note } = acceptance::accept(&stream.path, offer)?;
        let names = Names::new()?;
        let answer = self.answer(&names, offer, &sections, note.as_deref());
        let admitted = self.admit(client.address.ip())?;
        let record = Arc::new(Record::new((fastrand::u64(..), &stream.path), client, self.access_log));
        let received = Arc::default();
        let traffic = Traffic::Received(Arc::clone(&received));
        let publisher = Publisher {
            manager: self.manager.clone(),
            connection: self.connect(&names, offer, (record.clone(), traffic)),
            stream,
            conflict,
            patience,
            tracks,
            arrivals,
            media: Some(media),
            admitted,
            record,
            metrics: self.metrics.clone(),
            received,
        };
        self.metrics.begin();
        tokio::spawn(publisher.run(self.stop.subscribe()));
        Ok(names.begun(answer))
    }

    fn admit(&self, client: IpAddr) -> Result<Admitted, Full> {
        self.manager
            .admission()
            .admit(client, &Arc::default())
            .inspect_err(|full| self.manager.counters().refuse(*full))
    }

    /// Makes the connection of an offer.
    fn connect(&self, names: &Names, offer: &PeerOffer, (record, traffic): (Arc<Record>, Traffic)) -> Connection {
        let peer = RtcPeer::new(names.local.clone(), &self.identity, offer, Instant::now());
        let entry = self.sessions.add((&names.id, &names.local.ufrag), record, traffic);
        Connection::new(self.socket.clone(), peer, entry)
    }

    /// Writes the answer to an offer.
    fn answer(&self, names: &Names, offer: &PeerOffer, sections: &[AnsweredSection<'_>], note: Option<&str>) -> String {
        let reached =
            |port: SocketAddr| addresses(&self.hosts, port).into_iter().map(move |ip| SocketAddr::new(ip, port.port()));
        let tcp = self.tcp.load();
        let by_tcp = tcp.iter().flat_map(|address| reached(**address)).map(IceCandidate::tcp);
        let candidates: Vec<IceCandidate> = reached(self.address).map(IceCandidate::udp).chain(by_tcp).collect();
        let answer = PeerAnswer {
            session: fastrand::u64(..) >> 1,
            local: &names.local,
            fingerprint: self.identity.fingerprint(),
            begins_dtls: !offer.begins_dtls,
            candidates: &candidates,
            sections,
            note,
        };
        answer.write()
    }

    /// Ends the session of a name, of the stream at `path`. Returns whether there was one.
    pub(crate) fn end(&self, id: &str, path: &str) -> bool {
        self.sessions.end(id, path)
    }

    /// The entity tag of a session of the stream at `path` (RFC 9725 4.3.1); `None` where there is none.
    pub(crate) fn tag(&self, id: &str, path: &str) -> Option<String> {
        self.sessions.fragment(id, path).map(|fragment| tag(&fragment))
    }
}

/// The entity tag of a session with a user fragment: another one would follow a restart of ICE.
fn tag(fragment: &str) -> String {
    format!("\"{fragment}\"")
}

/// Random names of a session, which only its client may know.
struct Names {
    id: String,
    local: IceCredentials,
}

impl Names {
    fn new() -> io::Result<Self> {
        Ok(Self {
            id: text(&random::bytes::<ID>()?),
            local: IceCredentials {
                ufrag: text(&random::bytes::<FRAGMENT>()?),
                password: text(&random::bytes::<PASSWORD>()?),
            },
        })
    }

    fn begun(self, answer: String) -> Begun {
        Begun { tag: tag(&self.local.ufrag), id: self.id, answer }
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
