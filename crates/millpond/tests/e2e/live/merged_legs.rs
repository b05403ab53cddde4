//! One stream at two addresses, whose packets are merged (SMPTE ST 2022-7). ffmpeg sends it; what lies between loses and delays packets.

use super::{
    publish::{assert_of_clip, hashes, reader, until_logged},
    transport::send_clip,
};
use crate::support::{Running, Server, clips, free_port};
use std::{
    collections::VecDeque,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Delay of the second leg behind the first one.
const SKEW: Duration = Duration::from_millis(200);

/// Passes the datagrams of one port on to two others, the second time later. Both lose packets, in bursts of four of eleven, but no
/// packet is lost twice.
struct Legs {
    port: u16,
    /// Whether nothing reaches the first port.
    is_cut: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Legs {
    fn start(to: [u16; 2]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let port = socket.local_addr().unwrap().port();
        let (is_cut, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let words = (is_cut.clone(), is_over.clone());
        let thread = Some(std::thread::spawn(move || pass(&socket, to, &words.0, &words.1)));
        Self { port, is_cut, is_over, thread }
    }
}

impl Drop for Legs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn pass(socket: &UdpSocket, [first, second]: [u16; 2], is_cut: &AtomicBool, is_over: &AtomicBool) {
    let (mut buffer, mut later, mut number) = ([0; 2048], VecDeque::<(Instant, Vec<u8>)>::new(), 0);
    let send = |port, datagram: &[u8]| drop(socket.send_to(datagram, ("127.0.0.1", port)));
    while !is_over.load(Ordering::Relaxed) {
        // Answers of closed ports, and the time limit.
        if let Ok(length) = socket.recv(&mut buffer) {
            number += 1;
            let datagram = &buffer[..length];
            if number % 11 > 3 && !is_cut.load(Ordering::Relaxed) {
                send(first, datagram);
            }
            if !(5..9).contains(&(number % 11)) || is_cut.load(Ordering::Relaxed) {
                later.push_back((Instant::now() + SKEW, datagram.to_vec()));
            }
        }
        while later.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            send(second, &later.pop_front().unwrap().1);
        }
    }
}

#[test]
fn what_one_leg_loses_comes_from_the_other() {
    clips::folder();
    let ports = [free_port(), free_port()];
    let legs = Legs::start(ports);
    let _sender = send_clip("rtp_mpegts", &format!("rtp://127.0.0.1:{}", legs.port));
    let place = format!("tv=rtp://127.0.0.1:{},rtp://127.0.0.1:{}", ports[0], ports[1]);
    let server = Server::start(&[&place, "--linger", "0s"]);
    let by_rtsp = format!("rtsp://127.0.0.1:{}/tv", server.rtsp);
    let viewer = || reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp], "0:v", 300);
    let first = viewer();
    std::thread::sleep(Duration::from_secs(3));
    // The stream goes on where one leg has ended.
    legs.is_cut.store(true, Ordering::Relaxed);
    until_logged(&server, &["one of the addresses of a source is silent", &format!("rtp://127.0.0.1:{}", ports[0])]);
    legs.is_cut.store(false, Ordering::Relaxed);
    until_logged(&server, &["the address of a source is no longer silent"]);
    assert_of_clip(&hashes(first), 300);
    assert!(!server.log_text().contains("damage in a transport stream"), "{}", server.log_text());
}

#[test]
fn one_leg_alone_shows_what_the_merge_is_for() {
    clips::folder();
    let ports = [free_port(), free_port()];
    let legs = Legs::start(ports);
    let _sender = send_clip("rtp_mpegts", &format!("rtp://127.0.0.1:{}", legs.port));
    let server = Server::start(&[&format!("tv=rtp://127.0.0.1:{}", ports[0]), "--linger", "0s"]);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &format!("rtsp://127.0.0.1:{}/tv", server.rtsp)], "0:v", 300);
    until_logged(&server, &["damage in a transport stream"]);
    drop(Running(viewer));
}
