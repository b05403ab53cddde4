//! SRTP with keys that are told over TLS: what is on the wire, and what is refused.

use crate::support::{self, Running, Server, clips, have};
use millpond_rtp::{
    key_management::{
        carriage::{self, KeyMgmt},
        mikey::MikeyMessage,
    },
    packet,
    rtcp::{self, ReportBlock, RtcpItem},
    srtp::{MasterKey, Protector, Unprotector},
};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::UdpSocket,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";

/// A client over TLS that says what it is told to say.
struct Client {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    _openssl: Running,
    session: String,
}

impl Client {
    fn new(server: &Server) -> Self {
        support::wait_for_port(server.rtsps, &server.log);
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", server.rtsps)]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut openssl = Running(child);
        let (to, from) = (openssl.0.stdin.take().unwrap(), openssl.0.stdout.take().unwrap());
        Self { to, from: BufReader::new(from), _openssl: openssl, session: String::new() }
    }

    /// Status, head and body of the reply.
    fn ask(&mut self, method: &str, path: &str, headers: &str) -> (u16, String, String) {
        let session = &self.session;
        write!(self.to, "{method} rtsps://127.0.0.1/{CLIP}{path} RTSP/1.0\r\nCSeq: 1\r\n{session}{headers}\r\n")
            .unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.from.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let of = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if let Some(session) = of("Session:") {
            self.session = format!("Session: {}\r\n", session.split(';').next().unwrap());
        }
        let mut body = vec![0; of("Content-Length:").map_or(0, |length| length.parse().unwrap())];
        self.from.read_exact(&mut body).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, String::from_utf8(body).unwrap())
    }

    /// Returns the key of the pictures from the description.
    fn describe(&mut self) -> MikeyMessage {
        let (status, _, body) = self.ask("DESCRIBE", "", "");
        assert!(status == 200 && body.contains("m=video 0 RTP/SAVP 96\r\n"), "{status} {body}");
        let told = body.lines().find_map(|line| line.strip_prefix("a=key-mgmt:")).unwrap();
        carriage::from_attribute(told).unwrap()
    }
}

fn bound() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A reader that waits for a processor loses nothing.
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

#[test]
fn packets_by_udp_are_sealed_and_reports_read() {
    if !have("openssl") {
        return;
    }
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--tls-self-signed"]);
    let mut client = Client::new(&server);
    let told = client.describe();
    let ((rtp, rtp_port), (rtcp, rtcp_port)) = (bound(), bound());
    let own = MasterKey::new(&[7; 30]);
    let header = KeyMgmt { url: String::new(), message: MikeyMessage { key: own.clone(), ..told.clone() } }.to_header();
    let transport = format!("Transport: RTP/SAVP;unicast;client_port={rtp_port}-{rtcp_port}\r\n");
    let (status, head, _) = client.ask("SETUP", "/v1", &format!("{transport}KeyMgmt: {header}\r\n"));
    assert_eq!(status, 200, "{head}");
    let ssrc = told.streams[0].ssrc;
    assert!(head.contains("Transport: RTP/SAVP;unicast;") && head.contains(&format!("ssrc={ssrc:08X}")), "{head}");
    assert_eq!(client.ask("PLAY", "", "").0, 200);
    let mut keys = Unprotector::new(&told.key, 0);
    let mut buffer = [0; 2000];
    let mut next = None;
    for place in 0..200 {
        let length = rtp.recv(&mut buffer).unwrap();
        assert!(length <= 1400, "{length}");
        let sealed = buffer[..length].to_vec();
        let (header, payload) = packet::parse(keys.rtp(&mut buffer[..length]).unwrap()).unwrap();
        assert!(header.ssrc == ssrc && next.is_none_or(|next| next == header.sequence), "{place}");
        assert_ne!(&sealed[12..16], &payload[..4]);
        next = Some(header.sequence.wrapping_add(1));
        if place == 0 {
            assert_eq!(payload[0] & 0x1f, 7, "the stream parameter set first");
        }
    }
    let length = rtcp.recv(&mut buffer).unwrap();
    let reports = rtcp::parse(keys.rtcp(&mut buffer[..length]).unwrap()).unwrap();
    assert!(matches!(&reports[0], RtcpItem::Sender(report) if report.ssrc == ssrc), "{reports:?}");
    // Reports with the key that was told count, others don't.
    let server_rtcp = head.split("server_port=").nth(1).unwrap().split(['-', ';']).nth(1).unwrap().to_owned();
    let to = format!("127.0.0.1:{}", server_rtcp);
    let reception = ReportBlock { ssrc, fraction_lost: 0, lost: 4, highest: 1, jitter: 0, last_report: 0, delay: 0 };
    let report = rtcp::receiver_report(9, &[reception], "a client");
    let mut sealed = report.clone();
    Protector::new(&own).rtcp(&mut sealed, 0).unwrap();
    let mut foreign = report.clone();
    Protector::new(&told.key).rtcp(&mut foreign, 0).unwrap();
    for packet in [&report, &foreign, &sealed, &sealed] {
        rtcp.send_to(packet, &to).unwrap();
    }
    let began = Instant::now();
    while server.metric("millpond_rtcp_reports_total", "") < 1.0 {
        assert!(began.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.metric("millpond_rtcp_reports_total", ""), 1.0);
    assert_eq!(server.metric("millpond_rtcp_lost_packets_total", ""), 4.0);
}

#[test]
fn a_key_serves_one_stream_and_is_told_to_nobody_else() {
    if !have("openssl") {
        return;
    }
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--tls-self-signed"]);
    let transport = "Transport: RTP/SAVP;unicast;client_port=5000-5001\r\n";
    let mut client = Client::new(&server);
    assert_eq!(client.ask("SETUP", "/v1", transport).0, 461, "nothing was told");
    let first = client.describe();
    assert_eq!(client.ask("SETUP", "/v1", &format!("{transport}KeyMgmt: prot=mikey;data=\"!\"\r\n")).0, 463);
    let second = client.describe();
    assert_ne!(first.key, second.key);
    assert_eq!(client.ask("SETUP", "/v1", transport).0, 200);
    assert_eq!(client.ask("SETUP", "/v1", transport).0, 461, "it protects a stream already");
    assert_eq!(Client::new(&server).ask("SETUP", "/v1", transport).0, 461, "another connection");
    let clear = "Transport: RTP/AVP;unicast;client_port=5000-5001\r\n";
    assert_eq!(Client::new(&server).ask("SETUP", "/v1", clear).0, 461);
    // Without TLS there is none.
    let mut plain = support::rtsp::Client::new(&server, CLIP);
    assert!(!plain.ask("DESCRIBE", "", "").body.contains("key-mgmt"));
    assert_eq!(plain.set_up("v1", "RTP/SAVP;unicast;client_port=5000-5001").status, 461);
}
