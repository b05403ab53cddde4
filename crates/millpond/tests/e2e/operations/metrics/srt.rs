//! Sessions of SRT, good ones and bad ones, and datagrams of nobody.

use super::{By, watch::Watch};
use crate::support::{Running, Server, clips, free_port};
use millpond_srt::{
    Caller, CallerOptions, SrtConnection,
    packet::{Data, KeySlot, PacketWriter, SequenceRange, SrtBody, read},
};
use std::{
    net::{Ipv4Addr, UdpSocket},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A client of its own making.
struct Client {
    socket: UdpSocket,
    connection: SrtConnection,
    clock: Instant,
    /// The socket of the server.
    server: Option<PacketWriter>,
}

impl Client {
    fn connect(port: u16, id: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let (clock, mut random) = (Instant::now(), [7; 56]);
        random[..8].copy_from_slice(
            &u64::from(socket.local_addr().unwrap().port()).wrapping_mul(0x1_0001_0001_0001).to_be_bytes(),
        );
        let options = CallerOptions {
            listener: Ipv4Addr::LOCALHOST.into(),
            stream_id: id.to_owned(),
            encryption: None,
            latency: Duration::from_millis(20),
            timeout: Duration::from_secs(20),
        };
        let mut caller = Caller::new(options, &random, clock.elapsed()).unwrap();
        let mut buffer = [0; 2048];
        loop {
            if let Some(datagram) = caller.poll(clock.elapsed()).unwrap() {
                socket.send(&datagram).unwrap();
            }
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            if let Some(connection) = caller.receive(&buffer[..length], clock.elapsed()).unwrap() {
                return Self { socket, connection, clock, server: None };
            }
        }
    }

    /// Runs the connection for a time. Datagrams that `pass` refuses are not sent.
    fn run(&mut self, milliseconds: u64, mut pass: impl FnMut(&[u8]) -> bool) {
        let (end, mut buffer) = (Instant::now() + Duration::from_millis(milliseconds), [0; 2048]);
        while Instant::now() < end {
            let now = self.clock.elapsed();
            let _ = self.connection.tick(now);
            while let Some(datagram) = self.connection.poll(now) {
                let packet = read(&datagram).unwrap();
                self.server = Some(PacketWriter { timestamp: packet.timestamp, to: packet.to });
                if pass(&datagram) {
                    self.socket.send(&datagram).unwrap();
                }
            }
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let _ = self.connection.receive(&buffer[..length], self.clock.elapsed());
            }
            while self.connection.deliver(self.clock.elapsed()).is_some() {}
        }
    }
}

#[test]
fn sessions_of_srt() {
    let clip = clips::folder().join("h264_aac.mp4");
    let port = free_port();
    let server = Server::start(&["live=publish:", "--linger", "0s", "--srt", &format!("127.0.0.1:{port}")]);
    let watch = Watch::begin(&server);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = ("127.0.0.1", port);
    watch.until("millpond_srt_foreign_datagrams_total", || {
        _ = stranger.send_to(b"nobody's bytes, and more", to).unwrap()
    });
    let mut push = Command::new("ffmpeg");
    push.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(clip);
    push.args(["-c", "copy", "-f", "mpegts", &format!("srt://127.0.0.1:{port}?streamid=publish:live/cam")]);
    let publisher = Running(push.stdout(Stdio::null()).spawn().unwrap());
    watch.until("millpond_srt_received_bytes_total", || ());
    // A publisher whose second payload never arrives, and one with a key that nobody knows.
    let mut bad = Client::connect(port, "publish:live/bad");
    let second = bad.clock.elapsed();
    for _ in 0..3 {
        bad.connection.send(vec![0x47; 1316].into(), second);
    }
    let mut first = None;
    bad.run(500, |datagram| match read(datagram).unwrap().body {
        SrtBody::Data(data) => data.sequence != first.get_or_insert(data.sequence).plus(1),
        _ => true,
    });
    let writer = bad.server.unwrap();
    let data = Data {
        sequence: first.unwrap().plus(9),
        message: 9,
        key: Some(KeySlot::Even),
        is_again: false,
        payload: b"secret",
    };
    bad.socket.send(&writer.data(&data)).unwrap();
    watch.until("millpond_srt_undecrypted_packets_total", || bad.run(100, |_| true));
    // A viewer that asks for all packets again, and one that tells nothing of those that it has got.
    let mut viewer = Client::connect(port, "read:live/cam");
    let mut last = None;
    viewer.run(1000, |datagram| {
        if let SrtBody::Acknowledgement(of) = read(datagram).unwrap().body {
            last = Some(of.next);
        }
        true
    });
    let begun = last.unwrap();
    watch.until("millpond_srt_repeated_packets_total", || {
        viewer.run(100, |datagram| !matches!(read(datagram).unwrap().body, SrtBody::Acknowledgement(_)));
        let range = SequenceRange { first: begun, last: begun.plus(2000) };
        viewer.socket.send(&viewer.server.unwrap().losses([range])).unwrap();
    });
    let silent = |datagram: &[u8]| matches!(read(datagram).unwrap().body, SrtBody::KeepAlive);
    watch.until("millpond_srt_dropped_packets_total", || viewer.run(500, silent));
    let refused = std::panic::catch_unwind(|| Client::connect(port, "write:live/cam"));
    assert!(refused.is_err());
    let last = bad.connection.close(bad.clock.elapsed());
    bad.socket.send(&last).unwrap();
    drop(publisher);
    watch.until("millpond_srt_sessions_ended_total", || ());
    watch.end(By::Srt, &server);
}
