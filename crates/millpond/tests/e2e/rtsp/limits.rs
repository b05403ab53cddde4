//! Limits of one RTSP client, in number and time: plain, over TLS and through tunnels.

use crate::support::{
    self, Server, clips, have,
    rtsp::{Client, head},
};
use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream, UdpSocket},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";
const OVER_TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";
const OVER_UDP: &str = "RTP/AVP;unicast;client_port=45000-45001";
const GET: &str = "GET /a HTTP/1.0\r\nAccept: application/x-rtsp-tunnelled\r\nx-sessioncookie: ";
const POST: &str = "POST /a HTTP/1.0\r\nContent-Type: application/x-rtsp-tunnelled\r\nx-sessioncookie: ";

fn serve(args: &[&str]) -> Server {
    Server::start(&[&[clips::folder().to_str().unwrap()], args].concat())
}

/// Waits for something that must come, on a machine that may be busy.
fn comes(what: &str, server: &Server, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}\n{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sets sessions up on a connection, without playing them, until one is refused: how many, and the status then.
fn take(client: &mut Client, transport: &str, most: usize) -> (usize, u16) {
    for count in 0..most {
        client.session = None;
        let status = client.set_up("v1", transport).status;
        if status != 200 {
            return (count, status);
        }
    }
    (most, 200)
}

#[test]
fn one_client_takes_few_sessions_and_leaves_none() {
    let server = serve(&[]);
    for transport in [OVER_UDP, "RTP/AVP/TCP"] {
        let mut client = Client::new(&server, CLIP);
        assert_eq!(take(&mut client, transport, 100), (16, 453), "{transport}: of a connection");
        drop(client);
    }
    // By default an address has 2,048 that wait, of 128 connections; the first two may take a moment to be gone.
    let mut clients: Vec<Client> = Vec::new();
    loop {
        clients.push(Client::new(&server, CLIP));
        let (count, status) = take(clients.last_mut().unwrap(), OVER_UDP, 16);
        if count < 16 {
            assert_eq!(status, 453);
            break;
        }
    }
    assert!((126..=130).contains(&clients.len()), "{}", clients.len());
    assert!(server.metric("millpond_rtsp_refused_total", "reason=\"waiting\"") >= 3.0);
    let mut next = Client::new(&server, CLIP);
    assert_eq!(next.set_up("v1", OVER_UDP).status, 453);
    // They go with their connections, though they are of UDP.
    drop(clients);
    comes("room when the client has hung up", &server, || next.set_up("v1", OVER_UDP).status == 200);
}

#[test]
fn a_crowd_behind_one_address_plays() {
    let server = serve(&["--rtsp-waiting-per-client", "2", "--rtsp-sessions-per-client", "30"]);
    let mut viewers: Vec<Client> = Vec::new();
    for number in 0..30 {
        let mut viewer = Client::new(&server, CLIP);
        assert_eq!(viewer.set_up("v1", OVER_TCP).status, 200, "{number}");
        assert_eq!(viewer.ask("PLAY", "", "").status, 200, "{number}");
        viewers.push(viewer);
    }
    let mut more = Client::new(&server, CLIP);
    assert_eq!(more.set_up("v1", OVER_TCP).status, 453, "those that play have a bound too");
    // A session by UDP that has played outlives its connection, until it is silent.
    drop(viewers);
    comes("room", &server, || more.set_up("v1", OVER_TCP).status == 200);
}

#[test]
fn sessions_of_tunnels_and_tls_go_with_their_connections() {
    let server = serve(&["--rtsp-waiting-per-client", "1", "--tls-self-signed"]);
    support::wait_for_port(server.rtsps, &server.log);
    let request = format!("SETUP rtsp://127.0.0.1/{CLIP}/v1 RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP\r\n\r\n");
    let mut doors = vec!["plain", "tunnel"];
    if have("openssl") {
        doors.push("tls");
    }
    for door in doors {
        // The server may still hold the session of the door before, whose connection has just ended.
        let mut ask = open(&server, door);
        comes("room", &server, || ask.ask(&request) == 200);
        let mut other = open(&server, door);
        assert_eq!(other.ask(&request), 453, "{door}");
        drop(ask);
        comes("room", &server, || other.ask(&request) == 200);
        drop(other);
        comes("room again", &server, || open(&server, door).ask(&request) == 200);
    }
}

/// A way to the server: requests in, statuses out.
struct Door {
    get: Option<TcpStream>,
    stream: Option<TcpStream>,
    tls: Option<Child>,
}

fn open(server: &Server, door: &str) -> Door {
    match door {
        "plain" => Door { get: None, stream: Some(connect(server.rtsp)), tls: None },
        "tls" => {
            let mut command = Command::new("openssl");
            command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", server.rtsps)]);
            let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            Door { get: None, stream: None, tls: Some(child) }
        }
        _ => {
            static TUNNELS: AtomicU32 = AtomicU32::new(0);
            let cookie = format!("{:08x}", TUNNELS.fetch_add(1, Ordering::Relaxed));
            let mut get = connect(server.rtsp);
            get.write_all(format!("{GET}{cookie}\r\n\r\n").as_bytes()).unwrap();
            let reply = head(&mut get);
            assert!(reply.starts_with("HTTP/1.0 200"), "{reply:?}");
            let mut post = connect(server.rtsp);
            post.write_all(format!("{POST}{cookie}\r\n\r\n").as_bytes()).unwrap();
            Door { get: Some(get), stream: Some(post), tls: None }
        }
    }
}

impl Door {
    fn write(&mut self, text: &[u8]) -> std::io::Result<()> {
        match (&mut self.tls, &mut self.stream) {
            (Some(child), _) => child.stdin.as_mut().unwrap().write_all(text),
            (None, Some(post)) if self.get.is_some() => post.write_all(base64(text).as_bytes()),
            (None, Some(stream)) => stream.write_all(text),
            (None, None) => Ok(()),
        }
    }

    fn reader(&mut self) -> &mut dyn Read {
        match (&mut self.tls, &mut self.get, &mut self.stream) {
            (Some(child), ..) => child.stdout.as_mut().unwrap(),
            (None, Some(get), _) => get,
            (None, None, stream) => stream.as_mut().unwrap(),
        }
    }

    fn ask(&mut self, request: &str) -> u16 {
        self.write(request.as_bytes()).unwrap();
        let head = head(&mut self.reader());
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head:?}"))
    }

    /// Whether the server ends it: within 30 s.
    fn ends(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.reader().read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(child) = &mut self.tls {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8]| {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let letter = |place: usize| match place <= three.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// Status and headers of the reply to a whole request.
fn raw(server: &Server, request: &[u8]) -> (String, BTreeMap<String, String>) {
    let mut stream = connect(server.rtsp);
    stream.write_all(request).unwrap();
    let text = head(&mut stream);
    let mut lines = text.lines();
    let status = lines.next().unwrap_or("").split(' ').nth(1).unwrap_or("none").to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    (status, headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect())
}

#[test]
fn requests_are_checked_before_they_are_answered() {
    let server = serve(&[]);
    let url = format!("rtsp://127.0.0.1/{CLIP}");
    let setup =
        |transport: &str| format!("SETUP {url}/v1 RTSP/1.0\r\nCSeq: 1\r\nTransport: {transport}\r\n\r\n").into_bytes();
    let options = |headers: &str| format!("OPTIONS {url} RTSP/1.0\r\n{headers}\r\n").into_bytes();
    let long = "a".repeat(20_000);
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a number", options("CSeq: 7\r\n"), "200"),
        ("no CSeq", options(""), "400"),
        ("an empty CSeq", options("CSeq: \r\n"), "400"),
        ("a CSeq that is no number", options("CSeq: 1; x\r\n"), "400"),
        ("two CSeq", options("CSeq: 1\r\nCSeq: 2\r\n"), "400"),
        ("Require", options("CSeq: 1\r\nRequire: onvif-replay\r\n"), "551"),
        ("Proxy-Require", options("CSeq: 1\r\nProxy-Require: a, b\r\n"), "551"),
        ("an empty Require", options("CSeq: 1\r\nRequire: \r\n"), "200"),
        ("a session that is none", options("CSeq: 1\r\nSession: 12345678\r\n"), "454"),
        ("a long head", options(&format!("CSeq: 1\r\nX: {long}\r\n")), "413"),
        ("a long body", options("CSeq: 1\r\nContent-Length: 99999999\r\n"), "413"),
        ("two lengths", options("CSeq: 1\r\nContent-Length: 0\r\nContent-Length: 4\r\n"), "400"),
        ("no length", options("CSeq: 1\r\nContent-Length: -1\r\n"), "400"),
        ("bytes", b"\x16\x03\x01\x02\x00".to_vec(), "400"),
        ("port 0", setup("RTP/AVP;unicast;client_port=0-1"), "461"),
        ("a service's port", setup("RTP/AVP;unicast;client_port=53-54"), "461"),
        ("a service's port for reports", setup("RTP/AVP;unicast;client_port=5000-123"), "461"),
        ("another host", setup("RTP/AVP;unicast;destination=192.0.2.1;client_port=5000-5001"), "461"),
        ("a name", setup("RTP/AVP;unicast;destination=example.org;client_port=5000-5001"), "461"),
        ("this host", setup("RTP/AVP;unicast;destination=127.0.0.1;client_port=5000-5001"), "200"),
        ("a group", setup("RTP/AVP;multicast;destination=239.1.1.1;port=5000-5001"), "461"),
        ("one channel for both", setup("RTP/AVP/TCP;unicast;interleaved=3-3"), "200"),
        ("the next offer", setup("RTP/AVP;unicast;client_port=0-1,RTP/AVP/TCP;unicast;interleaved=0-1"), "200"),
    ];
    for (what, request, expected) in rows {
        let (status, headers) = raw(&server, &request);
        assert_eq!(status, expected, "{what}: {headers:?}");
    }
    let (_, headers) = raw(&server, &options("CSeq: 1\r\nRequire: onvif-replay\r\nProxy-Require: b\r\n"));
    assert_eq!((&*headers["unsupported"], &*headers["cseq"]), ("onvif-replay, b", "1"));
}

#[test]
fn a_channel_is_one_tracks() {
    let server = serve(&[]);
    let mut client = Client::new(&server, CLIP);
    let over = |channels: &str| format!("RTP/AVP/TCP;unicast;interleaved={channels}");
    assert_eq!(client.set_up("v1", &over("0-1")).status, 200);
    for taken in ["0-1", "1-2", "2-0"] {
        // Some clients ask for one pair for each track: they get the next one that is free.
        let reply = client.set_up("a1", &over(taken));
        assert!(reply.status == 200 && reply.headers["transport"].contains("interleaved=2-3"), "{taken}");
    }
    assert_eq!(client.set_up("v1", &over("0-1")).status, 200, "its own once more");
    let transport = client.set_up("a1", "RTP/AVP/TCP").headers["transport"].clone();
    assert!(transport.contains("interleaved=2-3"), "{transport}");
    let first = client.session.take();
    let transport = client.set_up("v1", &over("2-3")).headers["transport"].clone();
    assert!(transport.contains("interleaved=4-5"), "another session's: {transport}");
    client.session = first;
    assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
    client.session = None;
    assert_eq!(client.set_up("v1", &over("2-3")).status, 200, "free again");
}

#[test]
fn a_session_is_of_use_where_it_was_given_alone() {
    let server = serve(&[]);
    let mut client = Client::new(&server, CLIP);
    let sockets = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let [rtp, rtcp] = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
    assert_eq!(client.set_up("v1", &format!("RTP/AVP;unicast;client_port={rtp}-{rtcp}")).status, 200);
    let name = client.session.clone().unwrap();
    let url = format!("rtsp://127.0.0.1/{CLIP}");
    // Another address of this host.
    for method in ["PLAY", "PAUSE", "TEARDOWN", "GET_PARAMETER", "SETUP"] {
        let address = "127.0.0.2:0".parse::<std::net::SocketAddr>().unwrap();
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&address.into()).unwrap();
        let to: std::net::SocketAddr = ([127, 0, 0, 1], server.rtsp).into();
        socket.connect(&to.into()).unwrap();
        let mut stranger = TcpStream::from(socket);
        stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let text = format!("{method} {url} RTSP/1.0\r\nCSeq: 1\r\nSession: {name}\r\nTransport: {OVER_TCP}\r\n\r\n");
        stranger.write_all(text.as_bytes()).unwrap();
        assert!(head(&mut stranger).starts_with("RTSP/1.0 454"), "{method}");
    }
    // Another connection of its client may go on with media by UDP, and not with media on the first.
    let mut second = Client::new(&server, CLIP);
    second.session = Some(name);
    assert_eq!(second.ask("PLAY", "", "").status, 200);
    let mut third = Client::new(&server, CLIP);
    assert_eq!(third.set_up("v1", OVER_TCP).status, 200);
    second.session = third.session.clone();
    assert_eq!(second.ask("TEARDOWN", "", "").status, 454);
    assert_eq!(third.ask("TEARDOWN", "", "").status, 200);
}

#[test]
fn an_answer_to_a_challenge_is_taken_once() {
    use millpond_rtp::digest::{Algorithm, Qop, Secret};
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:pass\n").unwrap();
    let server = serve(&["--rtsp-users", users.to_str().unwrap()]);
    let url = format!("rtsp://127.0.0.1/{CLIP}");
    let describe = |authorization: &str| {
        raw(&server, format!("DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\n{authorization}\r\n").as_bytes())
    };
    let (_, headers) = describe("");
    let nonce = headers["www-authenticate"].split("nonce=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let answer = |count: u32| {
        let qop = Qop { count, cnonce: "x".into() };
        let secret = Secret::of(Algorithm::Md5, "ann", "millpond", "pass");
        let response = secret.response("DESCRIBE", &url, &nonce, Some(&qop));
        format!(
            "Authorization: Digest username=\"ann\", realm=\"millpond\", nonce=\"{nonce}\", uri=\"{url}\", response=\"{response}\", qop=auth, nc={count:08x}, cnonce=\"x\"\r\n"
        )
    };
    assert_eq!(describe(&answer(1)).0, "200");
    let (status, headers) = describe(&answer(1));
    assert_eq!(status, "401", "sent again from another connection");
    assert!(headers["www-authenticate"].contains("stale=true"), "{headers:?}");
    assert_eq!((describe(&answer(2)).0, describe(&answer(2)).0), ("200".into(), "401".into()));
}

/// An attempt of a client to keep a connection open. None succeeds.
type Row = (&'static str, &'static [&'static str], fn(&mut Door));

#[test]
fn connections_end_in_time_whatever_way_they_come() {
    let server =
        serve(&["--tls-self-signed", "--idle-timeout", "5s", "--request-timeout", "5s", "--write-timeout", "5s"]);
    support::wait_for_port(server.rtsps, &server.log);
    let every: &[&str] = &["plain", "tunnel", "tls"];
    let rows: &[Row] = &[
        ("nothing", every, |_| {}),
        ("a request, then nothing", every, |door| {
            door.ask("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n");
        }),
        ("a session that never plays", every, |door| {
            let url = format!("rtsp://127.0.0.1/{CLIP}/v1");
            assert_eq!(door.ask(&format!("SETUP {url} RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP\r\n\r\n")), 200);
        }),
        ("half a request", every, |door| door.write(b"OPTIONS * RTSP/1.0\r\nCSe").unwrap()),
        ("half a packet", every, |door| door.write(b"$\0\x7f\xffab").unwrap()),
        ("line ends for ever", every, |door| flood(door, b"\r\n\r\n\r\n")),
        ("packets of no channel", every, |door| flood(door, b"$\x07\0\x02ab$\x08\0\0\0")),
        ("replies to nothing", every, |door| flood(door, b"RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n")),
    ];
    std::thread::scope(|scope| {
        for (what, doors, act) in rows {
            for door in doors.iter().filter(|door| **door != "tls" || have("openssl")) {
                let server = &server;
                scope.spawn(move || {
                    let mut opened = open(server, door);
                    act(&mut opened);
                    assert!(opened.ends(), "{what}, {door}: still open\n{}", server.log_text());
                });
            }
        }
    });
}

/// Writes the same again and again, for as long as it is taken.
fn flood(door: &mut Door, bytes: &[u8]) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if door.write(bytes).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_client_that_takes_nothing_is_let_go() {
    let server = serve(&["--write-timeout", "2s", "--log", "millpond_server=debug"]);
    let mut stream = connect(server.rtsp);
    stream.set_nonblocking(true).unwrap();
    // Replies that nobody reads fill the socket slowly: what waits then would take long to be too much.
    let asks = format!("DESCRIBE rtsp://127.0.0.1/{CLIP} RTSP/1.0\r\nCSeq: 2\r\n\r\n").repeat(150);
    let began = Instant::now();
    while !server.log_text().contains("RTSP connection ended") {
        assert!(began.elapsed() < Duration::from_secs(120), "{}", server.log_text());
        let _ = stream.write(asks.as_bytes());
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(server.log_text().contains("a client that accepts no bytes"), "{}", server.log_text());
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn floods_leave_others_their_packets() {
    let server = serve(&[]);
    let mut viewer = Client::new(&server, "h264_long_gop.mp4");
    let transport = viewer.set_up("v1", OVER_TCP).headers["transport"].clone();
    assert!(transport.contains("interleaved=0-1"));
    // Reports to the ports that media is sent from.
    let mut told = Client::new(&server, CLIP);
    let transport = told.set_up("v1", OVER_UDP).headers["transport"].clone();
    let port =
        transport.split("server_port=").nth(1).unwrap().split(['-', ';']).nth(1).unwrap().parse::<u16>().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let report = millpond_rtp::rtcp::receiver_report(7, &[], "a stranger");
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Some for others: the server is to be flooded, not the machine.
                (0..100).for_each(|_| drop(socket.send_to(&report, ("127.0.0.1", port))));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        scope.spawn(|| {
            let mut stream = connect(server.rtsp);
            let many = "OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".repeat(100);
            let mut buffer = vec![0; 1 << 20];
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Who does not read all replies in time is let go, and comes again.
                if stream.write_all(many.as_bytes()).and_then(|()| stream.read(&mut buffer)).is_err() {
                    stream = connect(server.rtsp);
                }
            }
        });
        assert_eq!(viewer.ask("PLAY", "", "Range: npt=0-2\r\n").status, 200);
        viewer.receive(|packets| support::rtsp::over(packets, 1));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(viewer.rtp(0).len() > 20);
}
