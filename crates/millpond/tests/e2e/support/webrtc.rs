//! A viewer by WebRTC (WHEP): str0m, which is somebody else's ICE, DTLS, SRTP and depacketizers.

use super::{Response, Server, free_port, read_response};
use serde_json::Value;
use std::{
    io::{BufReader, ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream, UdpSocket},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use str0m::{
    Candidate, Event, Input, Output, Rtc, RtcConfig,
    change::{SdpAnswer, SdpOffer, SdpPendingOffer},
    media::{Direction, KeyframeRequestKind, MediaData, MediaKind, Mid, SenderFeedback},
    net::{Protocol, Receive, TcpType},
};

/// Time for anything that a viewer waits for: machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Media type of offers and answers.
pub const SDP: (&str, &str) = ("Content-Type", "application/sdp");

/// The transport of a viewer's datagrams.
enum Carrier {
    Udp(UdpSocket),
    /// A connection to the server, and what came of the next datagram.
    Tcp {
        stream: TcpStream,
        server: SocketAddr,
        input: Vec<u8>,
    },
}

impl Carrier {
    fn protocol(&self) -> Protocol {
        match self {
            Self::Udp(_) => Protocol::Udp,
            Self::Tcp { .. } => Protocol::Tcp,
        }
    }

    /// Sends a datagram. It is lost where that can't be done.
    fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        match self {
            Self::Udp(socket) => _ = socket.send_to(datagram, to),
            Self::Tcp { stream, .. } => {
                let framed = [&(datagram.len() as u16).to_be_bytes()[..], datagram].concat();
                stream.set_nonblocking(false).unwrap();
                let _ = stream.write_all(&framed);
            }
        }
    }

    /// Takes the datagrams that are there, or that come within a time.
    fn receive(&mut self, wait: Duration) -> Vec<(SocketAddr, Vec<u8>)> {
        let (mut all, mut buffer) = (Vec::new(), [0; 1 << 14]);
        match self {
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(wait)).unwrap();
                // Errors are those of the time, and of a server that has left.
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    all.push((from, buffer[..length].to_vec()));
                    socket.set_nonblocking(true).unwrap();
                }
                socket.set_nonblocking(false).unwrap();
            }
            Self::Tcp { stream, server, input } => {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(wait)).unwrap();
                match stream.read(&mut buffer) {
                    Ok(length) => input.extend_from_slice(&buffer[..length]),
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}")
                    }
                }
                while let Some((length, rest)) = input.split_first_chunk::<2>() {
                    let length = usize::from(u16::from_be_bytes(*length));
                    let Some(datagram) = rest.get(..length) else { break };
                    all.push((*server, datagram.to_vec()));
                    input.drain(..2 + length);
                }
            }
        }
        all
    }
}

/// A viewer of one stream.
pub struct Viewer {
    rtc: Rtc,
    carrier: Carrier,
    address: SocketAddr,
    /// Time at which str0m wants to be called.
    due: Instant,
    video: Mid,
    sound: Mid,
    pub answer: String,
    /// Path of the session.
    pub session: String,
    /// Pictures and packets of sound that came.
    pub pictures: Vec<MediaData>,
    pub sounds: Vec<MediaData>,
    pub reports: Vec<SenderFeedback>,
    /// Datagrams that it sent.
    pub sent: Vec<Vec<u8>>,
    /// One packet of so many is lost, after the first picture; 0 is none.
    pub loss: usize,
    /// Packets of pictures that came after the first picture, and those that were lost of them.
    pub packets: usize,
    pub lost: usize,
    /// Whether its datagrams are kept and not sent.
    pub is_mute: bool,
    pub is_connected: bool,
    /// Whether the server has closed the connection.
    pub is_closed: bool,
}

/// An offer, and what belongs to it.
pub struct Offered {
    pub rtc: Rtc,
    pub socket: UdpSocket,
    pub pending: SdpPendingOffer,
    pub text: String,
    /// Sections of pictures and of sound.
    pub mids: [Mid; 2],
}

/// An offer of H.264, Opus and G.711 in a direction.
pub fn offered(direction: Direction) -> Offered {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A viewer that waits for a processor loses nothing that it does not know of.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20);
    let candidate = Candidate::host(socket.local_addr().unwrap(), Protocol::Udp).unwrap();
    let (rtc, pending, text, mids) = offered_from(candidate, direction);
    Offered { rtc, socket, pending, text, mids }
}

/// The same from an address that packets are sent from.
fn offered_from(candidate: Candidate, direction: Direction) -> (Rtc, SdpPendingOffer, String, [Mid; 2]) {
    let config = RtcConfig::new().clear_codecs().enable_h264(true).enable_opus(true, false).enable_pcmu(true, false);
    // As often as those of browsers.
    let mut rtc = config.set_rtcp_report_interval_video(Duration::from_millis(200)).build(Instant::now());
    rtc.add_local_candidate(candidate);
    let mut api = rtc.sdp_api();
    let mids = [MediaKind::Video, MediaKind::Audio].map(|kind| api.add_media(kind, direction, None, None, None));
    let (offer, pending): (SdpOffer, _) = api.apply().unwrap();
    (rtc, pending, offer.to_sdp_string(), mids)
}

/// The text of a viewer's offer.
pub fn offer() -> String {
    offered(Direction::RecvOnly).text
}

/// A request with a body, on a connection of its own.
pub fn send(port: u16, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    read_response(&mut BufReader::new(stream), false)
}

/// A server with a place for publishers and the port of WebRTC.
pub fn serve(more: &[&str]) -> (Server, SocketAddr) {
    let port = SocketAddr::from(([127, 0, 0, 1], free_port()));
    (Server::start(&[&["live=publish:", "--linger", "0s", "--webrtc", &port.to_string()], more].concat()), port)
}

/// Sessions of WebRTC that a server reports.
pub fn sessions(server: &Server) -> Vec<Value> {
    let of = |kind: &str| super::api::items(server.admin, &format!("sessions?kind={kind}")).as_array().unwrap().clone();
    let mut all = [of("webrtc"), of("publish")].concat();
    // Publishers by RTSP are left out.
    all.retain(|session| session["id"].as_str().unwrap().starts_with("w-"));
    all
}

/// Waits until a server has so many sessions of WebRTC in a state.
#[track_caller]
pub fn until_sessions(server: &Server, state: &str, count: usize) {
    let began = Instant::now();
    loop {
        let all = sessions(server);
        if all.iter().filter(|session| session["state"] == state).count() == count {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "not {count} {state}: {all:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Payload types of the section of a kind.
fn payload_types(sdp: &str, kind: &str) -> Vec<u8> {
    let line = sdp.lines().find(|line| line.starts_with(&format!("m={kind} "))).unwrap_or_default();
    line.split(' ').skip(3).filter_map(|number| number.parse().ok()).collect()
}

/// Whether a datagram is a packet of RTP with one of some payload types.
fn is_rtp(datagram: &[u8], types: &[u8]) -> bool {
    matches!(datagram, [128..=191, second, ..] if !(192..=223).contains(second) && types.contains(&(second & 0x7f)))
}

impl Viewer {
    /// Begins a session. Nothing is sent by UDP before the first [`turn`](Self::turn).
    pub fn new(server: &Server, path: &str) -> Self {
        let Offered { rtc, socket, pending, text, mids } = offered(Direction::RecvOnly);
        let address = socket.local_addr().unwrap();
        Self::of((rtc, pending, text, mids), (Carrier::Udp(socket), address), server, path)
    }

    /// Begins a session of which all goes by TCP, to a port of the server.
    pub fn by_tcp(server: &Server, port: SocketAddr, path: &str) -> Self {
        let stream = TcpStream::connect(port).unwrap();
        let address = stream.local_addr().unwrap();
        let candidate = Candidate::builder().tcp().host(address).tcptype(TcpType::Active).build().unwrap();
        let offered = offered_from(candidate, Direction::RecvOnly);
        let carrier = Carrier::Tcp { stream, server: port, input: Vec::new() };
        Self::of(offered, (carrier, address), server, path)
    }

    fn of(
        (mut rtc, pending, text, [video, sound]): (Rtc, SdpPendingOffer, String, [Mid; 2]),
        (carrier, address): (Carrier, SocketAddr),
        server: &Server,
        path: &str,
    ) -> Self {
        let reply = send(server.port, "POST", &format!("/{path}/whep"), &[SDP], &text);
        let answer = reply.text();
        assert_eq!((reply.status, reply.header("content-type")), (201, Some("application/sdp")), "{answer}");
        let location = reply.header("location").unwrap();
        // Relative to the address of the request.
        let id = location.strip_prefix("whep/").unwrap_or_else(|| panic!("{location}"));
        let session = format!("/{path}/whep/{id}");
        rtc.sdp_api().accept_answer(pending, SdpAnswer::from_sdp_string(&answer).unwrap()).unwrap();
        let due = Instant::now();
        let (pictures, sounds, reports, sent) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (loss, packets, lost) = (0, 0, 0);
        Self {
            rtc,
            carrier,
            address,
            due,
            video,
            sound,
            answer,
            session,
            pictures,
            sounds,
            reports,
            sent,
            loss,
            packets,
            lost,
            is_mute: false,
            is_connected: false,
            is_closed: false,
        }
    }

    /// Takes what comes until `enough` says so.
    #[track_caller]
    pub fn receive(&mut self, enough: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !enough(self) {
            let counts = (self.pictures.len(), self.sounds.len(), self.reports.len(), self.is_connected);
            assert!(began.elapsed() < PATIENCE && !self.is_closed, "pictures, sounds, reports, connected: {counts:?}");
            self.turn();
        }
    }

    /// Takes what comes for a time.
    pub fn receive_for(&mut self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.turn();
        }
    }

    /// Sends what is due, and takes the datagrams that are there, or come soon.
    pub fn turn(&mut self) {
        self.drain();
        let wait = self.due.saturating_duration_since(Instant::now());
        let wait = wait.clamp(Duration::from_millis(1), Duration::from_millis(20));
        for (from, datagram) in self.carrier.receive(wait) {
            self.take(&datagram, from);
        }
        if Instant::now() >= self.due {
            self.rtc.handle_input(Input::Timeout(Instant::now())).unwrap();
            self.drain();
        }
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        if !self.pictures.is_empty() && is_rtp(datagram, &payload_types(&self.answer, "video")) {
            self.packets += 1;
            if self.loss > 0 && self.packets.is_multiple_of(self.loss) {
                self.lost += 1;
                return;
            }
        }
        if self.is_closed {
            return;
        }
        let received = Receive::new(self.carrier.protocol(), from, self.address, datagram).unwrap();
        self.rtc.handle_input(Input::Receive(Instant::now(), received)).unwrap();
        self.drain();
    }

    /// Takes all that str0m has for others.
    pub fn drain(&mut self) {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(at) => {
                    self.due = at;
                    return;
                }
                Output::Transmit(datagram) => {
                    if !self.is_mute {
                        self.carrier.send(&datagram.contents, datagram.destination);
                    }
                    self.sent.push(datagram.contents.to_vec());
                }
                Output::Event(Event::Connected) => self.is_connected = true,
                Output::Event(Event::Closed) => self.is_closed = true,
                Output::Event(Event::MediaData(data)) if data.mid == self.video => self.pictures.push(data),
                Output::Event(Event::MediaData(data)) if data.mid == self.sound => self.sounds.push(data),
                Output::Event(Event::SenderFeedback(report)) => self.reports.push(report),
                Output::Event(_) => {}
            }
        }
    }

    /// Asks for a key frame (PLI).
    pub fn ask_for_key_frame(&mut self) {
        let mut api = self.rtc.direct_api();
        api.stream_rx_by_mid(self.video, None).unwrap().request_keyframe(KeyframeRequestKind::Pli);
        self.rtc.handle_input(Input::Timeout(Instant::now())).unwrap();
        self.drain();
    }

    /// The time of a moment of its pictures or sound, in seconds of the sender's clock, by the sender's latest report.
    pub fn sender_time(&self, data: &MediaData) -> Option<f64> {
        let report = self.reports.iter().rfind(|report| report.mid == data.mid)?.sender_info;
        let since = (data.time.numer() as u32).wrapping_sub(report.rtp_time.numer() as u32) as i32;
        let ntp = report.ntp_time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        Some(ntp + f64::from(since) / f64::from(data.time.denom()))
    }

    /// Takes what comes until the server closes the connection.
    #[track_caller]
    pub fn receive_to_end(&mut self, server: &Server) {
        let began = Instant::now();
        while !self.is_closed {
            assert!(began.elapsed() < PATIENCE, "no end of {:?}: {}", sessions(server), server.log_text());
            self.turn();
        }
    }
}

/// Coded slices of an access unit of H.264 with start codes.
pub fn slices(picture: &[u8]) -> Vec<&[u8]> {
    // Start codes are no part of a unit (ITU-T H.264 7.4.1.1).
    let starts: Vec<usize> =
        (0..picture.len().saturating_sub(3)).filter(|at| picture[*at..].starts_with(&[0, 0, 0, 1])).collect();
    let ends = starts.iter().skip(1).copied().chain([picture.len()]);
    let units = starts.iter().zip(ends).map(|(start, end)| &picture[start + 4..end]);
    units.filter(|unit| is_slice(unit)).collect()
}

/// Whether a unit is no parameter set, no SEI and no delimiter.
fn is_slice(unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| matches!(first & 0x1f, 1..=5))
}

/// Whether a picture is a key frame.
pub fn is_key(picture: &MediaData) -> bool {
    slices(&picture.data).iter().any(|unit| unit[0] & 0x1f == 5)
}

/// A packet of a clip.
pub struct Packet {
    /// Presentation time in seconds.
    pub time: f64,
    pub bytes: Vec<u8>,
}

/// The packets of a clip's track, which ffprobe finds.
pub fn packets(clip: &Path, track: &str) -> Vec<Packet> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-select_streams", track, "-show_entries", "packet=pts_time,pos,size", "-of", "json"]);
    let found: Value = serde_json::from_slice(&command.arg(clip).output().unwrap().stdout).unwrap();
    let file = std::fs::read(clip).unwrap();
    let packet = |packet: &Value| {
        let number = |name: &str| packet[name].as_str().unwrap().parse::<usize>().unwrap();
        let (at, size) = (number("pos"), number("size"));
        Packet { time: packet["pts_time"].as_str().unwrap().parse().unwrap(), bytes: file[at..at + size].to_vec() }
    };
    found["packets"].as_array().unwrap().iter().map(packet).collect()
}

/// The slices of a picture whose units have lengths of four bytes.
fn slices_of_packet(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut units = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (unit, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
        units.extend(is_slice(unit).then_some(unit));
        rest = behind;
    }
    units
}

/// The slices of the pictures of a clip.
pub fn pictures(packets: &[Packet]) -> Vec<Vec<&[u8]>> {
    packets.iter().map(|packet| slices_of_packet(&packet.bytes)).collect()
}

/// The place in a clip from which on all that came is that of the clip, which goes round and round.
#[track_caller]
pub fn place<T: PartialEq>(received: &[T], clip: &[T]) -> usize {
    let same = |at: usize| clip.iter().cycle().skip(at).zip(received).take_while(|(a, b)| a == b).count();
    let (longest, at) =
        (0..clip.len()).map(|at| (same(at), at)).max_by_key(|(same, at)| (*same, usize::MAX - at)).unwrap();
    assert_eq!(longest, received.len(), "of {} that came from {at} on, one is not that of the clip", received.len());
    at
}
