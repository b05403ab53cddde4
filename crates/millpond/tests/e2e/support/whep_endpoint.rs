//! A WHEP endpoint: str0m, which is somebody else's ICE, DTLS, SRTP and packetizers, behind a listener of HTTP.

use super::{
    whip::Sending,
    whip_endpoint::{Listener, reply},
};
use std::{
    net::UdpSocket,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Instant,
};
use str0m::{Candidate, RtcConfig, change::SdpOffer, media::Mid, net::Protocol};

/// Behaviour of an endpoint.
#[derive(Clone, Copy, Default)]
pub struct WhepHabits {
    /// Value of `Authorization` that is demanded.
    pub authorization: Option<&'static str>,
    /// One packet of so many is lost when it is first sent; 0 is none.
    pub loss: usize,
    /// Whether answers name VP8 first, although H.264 is sent.
    pub prefers_vp8: bool,
}

/// An endpoint that sends a clip, whatever the path is.
pub struct WhepEndpoint {
    pub listener: Listener,
    /// Requests, as method and target.
    pub requests: Arc<Mutex<Vec<String>>>,
    /// The last offer and the answer to it.
    pub described: Arc<Mutex<(String, String)>>,
    pub sessions: Arc<Mutex<Vec<Sending>>>,
}

impl WhepEndpoint {
    pub fn start(port: u16, clip: (PathBuf, f64), habits: WhepHabits) -> Self {
        let (requests, described, sessions) =
            (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<_>>::default(), Arc::<Mutex<Vec<Sending>>>::default());
        let (asked, told, begun) = (requests.clone(), described.clone(), sessions.clone());
        let listener = Listener::start(port, move |request| {
            asked.lock().unwrap().push(format!("{} {}", request.method, request.target));
            if habits.authorization.is_some() && request.authorization.as_deref() != habits.authorization {
                return reply("401 Unauthorized", "", "");
            }
            match request.method.as_str() {
                "POST" => {
                    let (answer, sending) = answer(&request.body, &clip, habits);
                    begun.lock().unwrap().push(sending);
                    *told.lock().unwrap() = (request.body, answer.clone());
                    reply("201 Created", "Location: ../session/1\r\nContent-Type: application/sdp\r\n", &answer)
                }
                "DELETE" => reply("200 OK", "", ""),
                _ => reply("405 Method Not Allowed", "", ""),
            }
        });
        Self { listener, requests, described, sessions }
    }

    pub fn port(&self) -> u16 {
        self.listener.port
    }

    /// The sum of a count of all sessions.
    pub fn sum(&self, of: impl Fn(&Sending) -> usize) -> usize {
        self.sessions.lock().unwrap().iter().map(of).sum()
    }
}

/// Answers an offer, and sends a clip to who made it.
fn answer(offer: &str, (clip, length): &(PathBuf, f64), habits: WhepHabits) -> (String, Sending) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = RtcConfig::new().clear_codecs().enable_h264(true).enable_vp8(true).enable_opus(true, false);
    let mut rtc = config.build(Instant::now());
    rtc.add_local_candidate(Candidate::host(socket.local_addr().unwrap(), Protocol::Udp).unwrap());
    let answer = rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(offer).unwrap()).unwrap();
    let mut answer = answer.to_sdp_string();
    if habits.prefers_vp8 {
        answer = with_vp8_first(&answer);
    }
    let mids = ["0", "1"].map(Mid::from);
    let sending = Sending::start((rtc, socket), mids, (clip, *length), habits.loss);
    (answer, sending)
}

/// Moves the payload type of VP8 to the front.
fn with_vp8_first(answer: &str) -> String {
    let map = answer.lines().find(|line| line.contains(" VP8/90000")).unwrap();
    let number = map.strip_prefix("a=rtpmap:").and_then(|map| map.split(' ').next()).unwrap();
    let line = answer.lines().find(|line| line.starts_with("m=video ")).unwrap();
    let (head, types) = line.split_once(" UDP/TLS/RTP/SAVPF ").unwrap();
    let others: Vec<&str> = types.split(' ').filter(|other| *other != number).collect();
    answer.replace(line, &format!("{head} UDP/TLS/RTP/SAVPF {number} {}", others.join(" ")))
}
