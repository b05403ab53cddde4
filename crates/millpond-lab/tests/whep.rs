//! The load generator of WebRTC against a server whose faults are known.

use millpond_lab::whep::{Options, Report, run_until};
use millpond_rtp::{
    packet::Header,
    rtcp::{self, RtcpItem},
    srtp::{MasterKey, Protector, Unprotector},
};
use millpond_webrtc::{
    Datagram, Identity, PeerEvent, RtcPeer, SrtpKeys,
    sdp::{AnsweredSection, IceCandidate, IceCredentials, PeerAnswer, PeerOffer},
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, UdpSocket},
};

const SSRC: u32 = 0x0102_0304;
/// Packets of a stream, 20 ms apart. One is not sent, and one has a timestamp of 200 ms before.
const PACKETS: u16 = 100;
const LOST: u16 = 30;
const LATE: u16 = 60;

/// Requests and reports that the server of the test received.
#[derive(Default)]
struct Seen {
    ended: Vec<String>,
    /// Lost packets, as receiver reports state them.
    lost: Vec<i32>,
}

#[derive(Clone)]
struct Server {
    identity: Identity,
    seen: Arc<Mutex<Seen>>,
    /// Whether it answers checks of ICE.
    is_there: bool,
}

impl Server {
    async fn start(is_there: bool) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { identity: Identity::new().unwrap(), seen: Arc::default(), is_there };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().connection(stream));
            }
        });
        (server, address)
    }

    async fn connection(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                if stream.read_until(b'\n', &mut head).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split_once("\r\n"));
            let mut body = vec![0; length.map_or(0, |(length, _)| length.parse().unwrap())];
            stream.read_exact(&mut body).await.unwrap();
            let words: Vec<&str> = head.split(' ').collect();
            let reply = match words[..2] {
                ["post", "/live/cam/whep"] => {
                    let answer = self.begin(&body).await;
                    let place = format!("/session/{}", answer.len());
                    format!("HTTP/1.1 201 X\r\nlocation: {place}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())
                }
                ["delete", path] => {
                    self.seen.lock().unwrap().ended.push(path.to_owned());
                    "HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n".to_owned()
                }
                _ => "HTTP/1.1 404 X\r\ncontent-length: 9\r\n\r\nno stream".to_owned(),
            };
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    }

    /// Begins a session with a port of its own, and answers.
    async fn begin(&self, offer: &[u8]) -> String {
        let offer = PeerOffer::read(offer).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let local = IceCredentials { ufrag: "server00".to_owned(), password: "password-of-22-bytes-x".to_owned() };
        let candidates = [IceCandidate::udp(socket.local_addr().unwrap())];
        let [video, audio] = &offer.sections[..] else { panic!("{offer:?}") };
        let sections = [
            AnsweredSection::Sends {
                section: video,
                format: &video.formats[0],
                ssrc: SSRC,
                repeat_ssrc: None,
                track: "v",
                stream: "s",
            },
            AnsweredSection::Rejected { section: audio },
        ];
        let answer = PeerAnswer {
            session: 1,
            local: &local,
            fingerprint: self.identity.fingerprint(),
            begins_dtls: false,
            candidates: &candidates,
            sections: &sections,
            note: None,
        };
        let text = answer.write();
        let payload_type = video.formats[0].payload_type;
        let peer = RtcPeer::new(local, &self.identity, &offer, Instant::now());
        if self.is_there {
            tokio::spawn(serve(Arc::new(socket), peer, payload_type, self.seen.clone()));
        }
        text
    }
}

async fn serve(socket: Arc<UdpSocket>, mut peer: RtcPeer, payload_type: u8, seen: Arc<Mutex<Seen>>) {
    let mut buffer = vec![0; 2048];
    let mut reports: Option<Unprotector> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(peer.next().into()) => peer.tick(Instant::now()).unwrap(),
            received = socket.recv_from(&mut buffer) => {
                let Ok((length, from)) = received else { return };
                let datagram = &mut buffer[..length];
                match (Datagram::of(datagram), &mut reports) {
                    (Some(Datagram::Rtcp), Some(reports)) => {
                        for item in rtcp::parse(reports.rtcp(datagram).unwrap()).unwrap() {
                            if let RtcpItem::Reception(block) = item {
                                assert_eq!(block.ssrc, SSRC);
                                seen.lock().unwrap().lost.push(block.lost);
                            }
                        }
                    }
                    _ => peer.receive(from, datagram, Instant::now()).unwrap(),
                }
            }
        }
        while let Some(event) = peer.poll() {
            match event {
                PeerEvent::Send(to, bytes) => drop(socket.send_to(&bytes, to).await),
                PeerEvent::Connected(to, keys) => {
                    let SrtpKeys { sent, received } = *keys;
                    reports = Some(Unprotector::new(&received, 0));
                    tokio::spawn(play(socket.clone(), to, sent, payload_type));
                }
            }
        }
    }
}

async fn play(socket: Arc<UdpSocket>, to: SocketAddr, key: MasterKey, payload_type: u8) {
    let mut protector = Protector::new(&key);
    let began = Instant::now();
    for sequence in (0..PACKETS).filter(|sequence| *sequence != LOST) {
        tokio::time::sleep_until((began + Duration::from_millis(20) * u32::from(sequence)).into()).await;
        let due = if sequence == LATE { sequence - 10 } else { sequence };
        let header =
            Header { payload_type, sequence, timestamp: u32::from(due) * 1800, ssrc: SSRC, ..Header::default() };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend([7; 500]);
        protector.rtp(&mut bytes, 0).unwrap();
        let _ = socket.send_to(&bytes, to).await;
    }
}

async fn load(options: Options) -> Report {
    run_until(options, |_| {}, std::future::pending()).await.unwrap()
}

fn options(address: SocketAddr, path: &str) -> Options {
    Options::new(format!("http://{address}{path}").parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_count_what_is_lost_and_late() {
    let (server, address) = Server::start(true).await;
    let length = Duration::from_secs(4);
    let options = Options { viewers: 5, rate: 50.0, length, ..options(address, "/live/cam/whep") };
    let report = load(options).await;
    let problem = format!("{report}");
    assert_eq!((report.sessions.started, report.sessions.failed), (5, 0), "{problem}");
    assert_eq!((report.media.packets, report.media.lost, report.media.foreign), (5 * 99, 5, 0), "{problem}");
    // A busy machine is late by itself.
    assert!(report.media.late >= 5 && report.media.behind.max >= 200.0, "{problem}");
    assert_eq!(report.startup.count, 5, "{problem}");
    let steps: Vec<_> = report.steps.iter().map(|step| (step.step, step.latency.count)).collect();
    assert_eq!(steps, [("answer", 5), ("check", 5), ("handshake", 5), ("packet", 5)]);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.ended.len(), 5, "each session is ended");
    assert!(seen.lost.len() >= 10 && seen.lost.contains(&1), "a report a second: {:?}", seen.lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_named() {
    let (there, there_at) = Server::start(true).await;
    let (gone, gone_at) = Server::start(false).await;
    for (address, path, kind, detail) in [
        (there_at, "/other/whep", "status 404", "no stream"),
        (gone_at, "/live/cam/whep", "no answer to checks of ICE", "127.0.0.1"),
    ] {
        let (length, timeout) = (Duration::from_secs(2), Duration::from_millis(500));
        let report = load(Options { viewers: 2, length, timeout, ..options(address, path) }).await;
        assert_eq!((report.sessions.started, report.sessions.failed), (0, 2), "{kind}: {report}");
        let [failure] = &report.failures[..] else { panic!("{report}") };
        assert_eq!((failure.kind.as_str(), failure.count), (kind, 2));
        assert!(failure.examples[0].contains(detail), "{:?}", failure.examples);
    }
    let ended = |server: &Server| server.seen.lock().unwrap().ended.len();
    assert_eq!((ended(&there), ended(&gone)), (0, 2), "sessions that began are ended");
}
