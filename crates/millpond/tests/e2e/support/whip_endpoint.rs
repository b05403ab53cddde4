//! A WHIP endpoint: str0m, which is somebody else's ICE, DTLS, SRTP and depacketizers, behind a listener of HTTP.

use super::webrtc::PATIENCE;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use str0m::{
    Candidate, Event, Input, Output, Rtc, RtcConfig,
    change::SdpOffer,
    media::{MediaData, Mid},
    net::{Protocol, Receive},
};

/// A request of HTTP.
#[derive(Debug)]
pub struct WhipRequest {
    pub method: String,
    pub target: String,
    pub authorization: Option<String>,
    pub body: String,
}

/// A listener of HTTP that answers each request by a function, on a thread of its own.
pub struct Listener {
    pub port: u16,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens on a port. `answer` returns a whole reply.
    pub fn start(port: u16, mut answer: impl FnMut(WhipRequest) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = stops.clone();
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let Some(request) = request(&stream) else { continue };
                let _ = (&stream).write_all(answer(request).as_bytes());
                let _ = stream.shutdown(Shutdown::Write);
            }
        });
        Self { port, stops, thread: Some(thread) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn request(stream: &TcpStream) -> Option<WhipRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(WhipRequest { method, target, authorization, body: String::from_utf8(body).ok()? })
}

/// A reply with a body.
pub fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

/// Media and requests that an endpoint has received.
#[derive(Default)]
pub struct Received {
    pub pictures: Mutex<Vec<MediaData>>,
    pub sounds: Mutex<Vec<MediaData>>,
    /// Requests, as method and target.
    pub requests: Mutex<Vec<String>>,
    pub offer: Mutex<String>,
    /// Packets of media that were lost when they first came.
    pub lost: AtomicUsize,
    pub is_closed: AtomicBool,
}

/// Behaviour of an endpoint.
#[derive(Clone, Copy, Default)]
pub struct Habits {
    /// Value of `Authorization` that is demanded.
    pub authorization: Option<&'static str>,
    /// One packet of so many is lost; 0 is none.
    pub loss: usize,
    /// Whether the fingerprint of the answer is another one.
    pub lies: bool,
    /// Whether offers are answered, and nothing is received.
    pub is_deaf: bool,
}

/// An endpoint of any path.
pub struct Endpoint {
    listener: Listener,
    pub received: Arc<Received>,
    stops: Arc<AtomicBool>,
    sessions: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Endpoint {
    pub fn start(port: u16, habits: Habits) -> Self {
        let (received, stops) = (Arc::<Received>::default(), Arc::new(AtomicBool::new(false)));
        let sessions = Arc::new(Mutex::new(Vec::new()));
        let (all, stop, threads) = (received.clone(), stops.clone(), sessions.clone());
        let listener = Listener::start(port, move |request| {
            all.requests.lock().unwrap().push(format!("{} {}", request.method, request.target));
            if habits.authorization.is_some() && request.authorization.as_deref() != habits.authorization {
                return reply("401 Unauthorized", "", "");
            }
            match request.method.as_str() {
                "POST" => {
                    all.offer.lock().unwrap().clone_from(&request.body);
                    let (session, answer) = Session::answer(&request.body, habits, all.clone(), stop.clone());
                    threads.lock().unwrap().push(std::thread::spawn(move || session.run()));
                    reply("201 Created", "Location: /session/1\r\nContent-Type: application/sdp\r\n", &answer)
                }
                "DELETE" => reply("200 OK", "", ""),
                _ => reply("405 Method Not Allowed", "", ""),
            }
        });
        Self { listener, received, stops, sessions }
    }

    pub fn port(&self) -> u16 {
        self.listener.port
    }
}

impl Drop for Endpoint {
    /// It is gone without a word, as a server that was killed.
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        for session in self.sessions.lock().unwrap().drain(..) {
            let _ = session.join();
        }
    }
}

/// One session of str0m.
struct Session {
    rtc: Rtc,
    socket: UdpSocket,
    address: SocketAddr,
    habits: Habits,
    received: Arc<Received>,
    stops: Arc<AtomicBool>,
    /// Payload types of media that is not sent again.
    types: Vec<u8>,
    /// Packets of media.
    count: usize,
}

impl Session {
    fn answer(offer: &str, habits: Habits, received: Arc<Received>, stops: Arc<AtomicBool>) -> (Self, String) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        // An endpoint that waits for a processor loses nothing that it does not know of.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20);
        let address = socket.local_addr().unwrap();
        let config = RtcConfig::new().clear_codecs().enable_h264(true).enable_opus(true, false);
        let mut rtc = config.build(Instant::now());
        rtc.add_local_candidate(Candidate::host(address, Protocol::Udp).unwrap());
        let answer = rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(offer).unwrap()).unwrap();
        let mut answer = answer.to_sdp_string();
        let first = |line: &str| line.split(' ').nth(3).and_then(|number| number.parse().ok());
        let types = answer.lines().filter(|line| line.starts_with("m=")).filter_map(first).collect();
        if habits.lies {
            let at = answer.find("a=fingerprint:sha-256 ").unwrap() + "a=fingerprint:sha-256 ".len();
            let other = if answer[at..].starts_with("00") { "11" } else { "00" };
            answer.replace_range(at..at + 2, other);
        }
        (Self { rtc, socket, address, habits, received, stops, types, count: 0 }, answer)
    }

    fn run(mut self) {
        while !self.stops.load(Ordering::Relaxed) {
            if self.habits.is_deaf {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let Some(due) = self.drain() else { return };
            let wait = due.saturating_duration_since(Instant::now());
            let wait = wait.clamp(Duration::from_millis(1), Duration::from_millis(20));
            self.socket.set_read_timeout(Some(wait)).unwrap();
            let mut datagram = [0; 2048];
            if let Ok((length, from)) = self.socket.recv_from(&mut datagram)
                && !self.loses(&datagram[..length])
                && let Ok(received) = Receive::new(Protocol::Udp, from, self.address, &datagram[..length])
            {
                let _ = self.rtc.handle_input(Input::Receive(Instant::now(), received));
            }
            let _ = self.rtc.handle_input(Input::Timeout(Instant::now()));
        }
    }

    /// Whether a datagram gets lost.
    fn loses(&mut self, datagram: &[u8]) -> bool {
        let is_media = matches!(datagram, [128..=191, second, ..]
            if !(192..=223).contains(second) && self.types.contains(&(second & 0x7f)));
        self.count += usize::from(is_media);
        // The first packets tell how often numbers wrapped.
        let is_lost =
            is_media && self.habits.loss > 0 && self.count > 50 && self.count.is_multiple_of(self.habits.loss);
        self.received.lost.fetch_add(usize::from(is_lost), Ordering::Relaxed);
        is_lost
    }

    /// Takes all that str0m has for others. `None` once it is closed.
    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(at)) => return Some(at),
                Ok(Output::Transmit(datagram)) => {
                    let _ = self.socket.send_to(&datagram.contents, datagram.destination);
                }
                Ok(Output::Event(Event::MediaData(data))) => {
                    let of = if data.mid == Mid::from("0") { &self.received.pictures } else { &self.received.sounds };
                    of.lock().unwrap().push(data);
                }
                Ok(Output::Event(Event::Closed)) | Err(_) => {
                    self.received.is_closed.store(true, Ordering::Relaxed);
                    return None;
                }
                Ok(Output::Event(_)) => {}
            }
        }
    }
}
