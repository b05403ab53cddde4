//! Viewers of a ladder by one long response and RTSP: down to the lower stream where their link is too narrow, and up again.

use crate::{
    live::slow::byte_stream,
    support::{Running, Server, get, rtsp::Client},
};
use millpond_rtp::rtcp::{ReportBlock, receiver_report};
use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Bytes per second of a slow reader: more than the lower stream has, and less than half of the upper one.
const SLOW: f64 = 800_000.0 / 8.0;
/// Longest time for a change.
const LIMIT: Duration = Duration::from_secs(60);
/// Widths of the pictures of both streams.
const HI: u32 = 640;
const LO: u32 = 320;

/// Pushes one picture with sound as two streams: about 2 Mbit/s and 0.3 Mbit/s, with key frames each second at the same times.
fn push(server: &Server) -> Running {
    let mut command = Command::new("ffmpeg");
    let picture = "testsrc2=size=640x360:rate=25,noise=alls=20:allf=t";
    command.args(["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", picture]);
    command.args(["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    for (name, size, rate) in [("hi", "640x360", "2000k"), ("lo", "320x180", "250k")] {
        command.args(["-map", "0:v", "-map", "1:a", "-s", size, "-c:v", "libx264", "-preset", "ultrafast"]);
        command.args(["-tune", "zerolatency", "-g", "25", "-sc_threshold", "0", "-pix_fmt", "yuv420p"]);
        command.args(["-b:v", rate, "-maxrate", rate, "-bufsize", rate, "-c:a", "aac", "-b:a", "48k"]);
        let url = format!("rtsp://127.0.0.1:{}/live/door/{name}", server.rtsp);
        command.args(["-f", "rtsp", "-rtsp_transport", "tcp", &url]);
    }
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn serve() -> (Server, Running) {
    let server = Server::start(&["live=publish:", "--viewer-queue", "6s"]);
    let publisher = push(&server);
    let began = Instant::now();
    while get(server.port, "/live/door/index.m3u8", &[]).text().matches("#EXT-X-STREAM-INF").count() < 2 {
        assert!(began.elapsed() < LIMIT, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
    (server, publisher)
}

/// Times and widths of the decoded pictures of a file.
fn pictures(file: &Path) -> Vec<(f64, u32)> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "fatal", "-select_streams", "v", "-show_entries", "frame=pts_time,width", "-of", "csv=p=0"]);
    let text = String::from_utf8(command.arg(file).output().unwrap().stdout).unwrap();
    let picture = |line: &str| {
        let mut fields = line.split(',');
        let time = fields.next()?.parse().unwrap_or(f64::NAN);
        Some((time, fields.next()?.parse().ok()?))
    };
    text.lines().filter_map(picture).collect()
}

/// Widths in the order in which they follow each other.
fn changes(pictures: &[(f64, u32)]) -> Vec<u32> {
    let mut widths: Vec<u32> = pictures.iter().map(|(_, width)| *width).collect();
    widths.dedup();
    widths
}

/// Bytes that were received, and the sequence parameter sets in them as they follow each other: those of both streams differ.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    sets: Vec<[u8; 16]>,
}

impl Received {
    fn push(&mut self, bytes: &[u8]) {
        let from = self.bytes.len().saturating_sub(15);
        self.bytes.extend(bytes);
        for of in self.bytes[from..].windows(16) {
            let is_set = of[..3] == [0x67, 0x42, 0xc0] && of[3] < 0x34;
            let set: [u8; 16] = of.try_into().unwrap();
            if is_set && self.sets.last() != Some(&set) {
                self.sets.push(set);
            }
        }
    }

    /// Reads the body of a response at `rate`, until `enough` says so.
    fn read(&mut self, stream: &mut TcpStream, rate: f64, enough: impl Fn(&Self, Duration) -> bool) {
        let (began, mut count, mut buffer) = (Instant::now(), 0, [0; 4096]);
        while !enough(self, began.elapsed()) {
            assert!(began.elapsed() < LIMIT, "{} bytes, {:?}", self.bytes.len(), self.sets);
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the response ended");
            self.push(&buffer[..read]);
            count += read;
            std::thread::sleep(Duration::from_secs_f64(count as f64 / rate).saturating_sub(began.elapsed()));
        }
    }
}

/// Checks that pictures and sound go on over the changes of a viewer by HTTP.
fn by_http(server: &Server, folder: &Path) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 16 << 10).unwrap();
    write!(stream, "GET /live/door/stream.mp4 HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut body = Received::default();
    body.read(&mut stream, SLOW, |body, _| body.sets.len() > 1);
    body.read(&mut stream, SLOW, |_, time| time > Duration::from_secs(4));
    // Nothing is dropped from here on.
    body.read(&mut stream, 1e9, |body, _| body.sets.len() > 2);
    body.read(&mut stream, 1e9, |_, time| time > Duration::from_secs(2));
    let body = body.bytes;
    let head = body.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let file = folder.join("http.mp4");
    std::fs::write(&file, &body[head..]).unwrap();
    let pictures = pictures(&file);
    assert_eq!(changes(&pictures), [HI, LO, HI], "{pictures:?}");
    assert!(pictures.windows(2).all(|two| two[1].0 > two[0].0), "{pictures:?}");
    // At the way up no picture is missing or repeated.
    let place = pictures.iter().rposition(|(_, width)| *width == LO).unwrap();
    let around = &pictures[place - 20..(place + 20).min(pictures.len())];
    let steady = around.windows(2).all(|two| (two[1].0 - two[0].0 - 0.04).abs() < 0.015);
    assert!(steady, "{around:?}");
}

/// Checks that a viewer by RTSP over TCP gets both streams.
fn by_tcp(server: &Server, folder: &Path) {
    let mut client = Client::new(server, "live/door");
    rustix::net::sockopt::set_socket_recv_buffer_size(client.stream.get_ref(), 16 << 10).unwrap();
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200, "{}", server.log_text());
    assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200, "{}", server.log_text());
    assert_eq!(client.ask("PLAY", "/", "").status, 200);
    let (began, mut bytes, mut seen, mut rest) = (Instant::now(), 0, Received::default(), 100);
    while rest > 0 {
        assert!(began.elapsed() < LIMIT, "{}", server.log_text());
        client.packet();
        let (channel, packet) = client.packets.last().unwrap();
        bytes += packet.len() + 4;
        if *channel == 0 {
            seen.push(packet);
            rest -= usize::from(seen.sets.len() > 1);
        }
        std::thread::sleep(Duration::from_secs_f64(bytes as f64 / SLOW).saturating_sub(began.elapsed()));
    }
    let numbers = client.rtp(0);
    assert!(numbers.windows(2).all(|pair| pair[1].0 == pair[0].0.wrapping_add(1)), "no packet is missing");
    let media = client.packets.iter().filter(|(channel, _)| *channel == 0).map(|(_, packet)| &packet[..]);
    let file = folder.join("tcp.h264");
    std::fs::write(&file, byte_stream(media)).unwrap();
    assert_eq!(changes(&pictures(&file)), [HI, LO]);
}

/// Checks that a viewer by RTSP over UDP who tells of lost packets gets the lower stream.
fn by_udp(server: &Server) {
    let [rtp, rtcp] = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    rtp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let ports = [&rtp, &rtcp].map(|socket| socket.local_addr().unwrap().port());
    let mut client = Client::new(server, "live/door");
    let reply = client.set_up("v1", &format!("RTP/AVP;unicast;client_port={}-{}", ports[0], ports[1]));
    let transport = &reply.headers["transport"];
    let field = |name: &str| transport.split(';').find_map(|field| field.strip_prefix(name)).unwrap().to_owned();
    let port: u16 = field("server_port=").split_once('-').unwrap().1.parse().unwrap();
    let ssrc = u32::from_str_radix(&field("ssrc="), 16).unwrap();
    assert_eq!(client.ask("PLAY", "/", "").status, 200);
    let (began, mut seen, mut packet, mut has_told) = (Instant::now(), Received::default(), [0; 2048], false);
    while seen.sets.len() < 2 {
        assert!(began.elapsed() < LIMIT, "{}", server.log_text());
        let count = rtp.recv(&mut packet).unwrap();
        seen.push(&packet[..count]);
        assert!(has_told || seen.sets.len() < 2, "nobody has told of losses");
        if began.elapsed() > Duration::from_secs(2) && !has_told {
            let fraction_lost = 40;
            let report = ReportBlock { ssrc, fraction_lost, lost: 20, highest: 1, jitter: 0, last_report: 0, delay: 0 };
            rtcp.send_to(&receiver_report(7, &[report], "a client"), ("127.0.0.1", port)).unwrap();
            has_told = true;
        }
    }
}

#[test]
fn viewers_of_a_ladder_get_what_their_link_carries() {
    let (server, _publisher) = serve();
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let tcp = scope.spawn(|| by_tcp(&server, folder.path()));
        let udp = scope.spawn(|| by_udp(&server));
        by_http(&server, folder.path());
        tcp.join().unwrap();
        udp.join().unwrap();
    });
    assert!(!server.log_text().contains("stream ends early"), "{}", server.log_text());
}
