//! A publisher by WebRTC (WHIP), and the sender that a WHEP endpoint has too: str0m, which is somebody else's ICE, DTLS, SRTP and
//! packetizers.

use super::{
    Server,
    webrtc::{Offered, Packet, SDP, offered, packets, send},
};
use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use str0m::{
    Event, Input, Output, Rtc,
    change::SdpAnswer,
    format::Codec,
    media::{Direction, Frequency, MediaTime, Mid},
    net::{Protocol, Receive},
};

/// A publisher of a clip.
pub struct Publisher {
    /// Path of the session.
    pub session: String,
    pub answer: String,
    sending: Sending,
}

/// A clip that is sent round and round, in real time, on a thread of its own.
pub struct Sending {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

/// Observations of a sender.
#[derive(Default)]
struct Seen {
    stops: AtomicBool,
    is_closed: AtomicBool,
    /// Requests for key frames.
    asked: AtomicUsize,
    lost: AtomicUsize,
}

/// A track of the clip, and its section.
struct Track {
    mid: Mid,
    rate: Frequency,
    packets: Vec<Packet>,
    /// Number of the next packet, rounds included.
    next: usize,
}

/// Turns units with lengths of four bytes into units with start codes.
fn with_start_codes(mut rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (unit, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
        bytes.extend_from_slice(&[0, 0, 0, 1]);
        bytes.extend_from_slice(unit);
        rest = behind;
    }
    bytes
}

impl Publisher {
    /// Publishes the pictures and the sound of a clip, whose key frames have their parameter sets. One of `loss` packets is lost when
    /// it is first sent; 0 is none.
    pub fn start(server: &Server, path: &str, (clip, length): (&Path, f64), loss: usize) -> Self {
        let Offered { mut rtc, socket, pending, text, mids: [video, sound] } = offered(Direction::SendOnly);
        let reply = send(server.port, "POST", &format!("/{path}/whip"), &[SDP], &text);
        let answer = reply.text();
        assert_eq!((reply.status, reply.header("content-type")), (201, Some("application/sdp")), "{answer}");
        let location = reply.header("location").unwrap();
        let id = location.strip_prefix("whip/").unwrap_or_else(|| panic!("{location}"));
        rtc.sdp_api().accept_answer(pending, SdpAnswer::from_sdp_string(&answer).unwrap()).unwrap();
        let sending = Sending::start((rtc, socket), [video, sound], (clip, length), loss);
        Self { session: format!("/{path}/whip/{id}"), answer, sending }
    }

    /// Requests for key frames that came.
    pub fn asked(&self) -> usize {
        self.sending.asked()
    }

    /// Packets that were lost.
    pub fn lost(&self) -> usize {
        self.sending.lost()
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.sending.is_closed()
    }
}

impl Sending {
    /// Sends the pictures and the sound of a clip in two sections, once the peer has connected.
    pub fn start(
        (rtc, socket): (Rtc, UdpSocket),
        [video, sound]: [Mid; 2],
        (clip, length): (&Path, f64),
        loss: usize,
    ) -> Self {
        let mut pictures = packets(clip, "v:0");
        pictures.iter_mut().for_each(|packet| packet.bytes = with_start_codes(&packet.bytes));
        let tracks = vec![
            Track { mid: video, rate: Frequency::NINETY_KHZ, packets: pictures, next: 0 },
            Track { mid: sound, rate: Frequency::FORTY_EIGHT_KHZ, packets: packets(clip, "a:0"), next: 0 },
        ];
        let seen = Arc::<Seen>::default();
        let address = socket.local_addr().unwrap();
        let sender = Sender { rtc, socket, address, tracks, length, loss, count: 0, begun: None, seen: seen.clone() };
        let thread = Some(std::thread::spawn(move || sender.run()));
        Self { seen, thread }
    }

    /// Requests for key frames that came.
    pub fn asked(&self) -> usize {
        self.seen.asked.load(Ordering::Relaxed)
    }

    /// Packets that were lost.
    pub fn lost(&self) -> usize {
        self.seen.lost.load(Ordering::Relaxed)
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.seen.is_closed.load(Ordering::Relaxed)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.seen.stops.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the thread of a sender.
struct Sender {
    rtc: Rtc,
    socket: UdpSocket,
    address: SocketAddr,
    tracks: Vec<Track>,
    /// Seconds of the clip.
    length: f64,
    loss: usize,
    /// Packets of media that were sent.
    count: usize,
    begun: Option<Instant>,
    seen: Arc<Seen>,
}

impl Sender {
    fn run(mut self) {
        while !self.seen.stops.load(Ordering::Relaxed) && !self.seen.is_closed.load(Ordering::Relaxed) {
            let due = self.drain().min(Instant::now() + Duration::from_millis(5));
            let wait = due.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(wait)).unwrap();
            let mut datagram = [0; 2048];
            if let Ok((length, from)) = self.socket.recv_from(&mut datagram) {
                let received = Receive::new(Protocol::Udp, from, self.address, &datagram[..length]).unwrap();
                self.rtc.handle_input(Input::Receive(Instant::now(), received)).unwrap();
            }
            self.rtc.handle_input(Input::Timeout(Instant::now())).unwrap();
            self.write();
        }
    }

    /// Writes the packets that are due.
    fn write(&mut self) {
        let Some(begun) = self.begun else { return };
        for track in &mut self.tracks {
            loop {
                let (round, at) = (track.next / track.packets.len(), track.next % track.packets.len());
                let packet = &track.packets[at];
                let time = packet.time + round as f64 * self.length;
                if begun.elapsed().as_secs_f64() < time {
                    break;
                }
                let Some(writer) = self.rtc.writer(track.mid) else { break };
                // A peer may take other formats too.
                let is_own = |codec: Codec| matches!(codec, Codec::H264 | Codec::Opus);
                let number = writer.payload_params().find(|format| is_own(format.spec().codec)).unwrap().pt();
                let ticks = (time * f64::from(track.rate.get())).round() as u64;
                writer.write(number, Instant::now(), MediaTime::new(ticks, track.rate), packet.bytes.clone()).unwrap();
                track.next += 1;
                // str0m takes one at a time.
                drain(&mut self.rtc, &self.socket, &self.seen, (self.loss, &mut self.count), &mut self.begun);
            }
        }
    }

    fn drain(&mut self) -> Instant {
        drain(&mut self.rtc, &self.socket, &self.seen, (self.loss, &mut self.count), &mut self.begun)
    }
}

/// Takes all that str0m has for others. Returns the time at which it wants to be called.
fn drain(
    rtc: &mut Rtc,
    socket: &UdpSocket,
    seen: &Seen,
    (loss, count): (usize, &mut usize),
    begun: &mut Option<Instant>,
) -> Instant {
    loop {
        match rtc.poll_output().unwrap() {
            Output::Timeout(at) => return at,
            Output::Transmit(datagram) => {
                // RTP, and neither RTCP nor what was asked for again.
                let is_media = matches!(&*datagram.contents, [128..=191, second, ..] if !(192..=223).contains(second));
                *count += usize::from(is_media);
                if is_media && loss > 0 && count.is_multiple_of(loss) {
                    seen.lost.fetch_add(1, Ordering::Relaxed);
                } else {
                    let _ = socket.send_to(&datagram.contents, datagram.destination);
                }
            }
            Output::Event(Event::Connected) => _ = begun.get_or_insert_with(Instant::now),
            Output::Event(Event::Closed) => seen.is_closed.store(true, Ordering::Relaxed),
            Output::Event(Event::KeyframeRequest(_)) => _ = seen.asked.fetch_add(1, Ordering::Relaxed),
            Output::Event(_) => {}
        }
    }
}
