//! A scripted RTSP server, whose connections are in memory.

use crate::reception::{Connection, ConnectionEnds, Connector, Endpoint};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use millpond_rtp::{
    framing::{self, ClientMessage},
    message::{HeaderName, Method, Request, headers},
    packet::Header,
    payload::Packetizer,
};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

/// SDP with pictures whose parameter sets are in it, and sound.
pub(crate) const SDP: &str = "v=0\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
    a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z2QADKzZQUGfnwEQAAADABAAAAMDIPFCmWA=,aO+Pyw==\r\na=control:v\r\n\
    m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/2\r\n\
    a=fmtp:97 mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1190\r\na=control:a\r\n";
/// SDP with the pictures of [`SDP`] alone.
pub(crate) const PICTURES: &str = "v=0\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
    a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z2QADKzZQUGfnwEQAAADABAAAAMDIPFCmWA=,aO+Pyw==\r\na=control:v\r\n";
/// SDP with pictures whose parameter sets are in band.
pub(crate) const IN_BAND: &str = "v=0\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
    a=fmtp:96 packetization-mode=1\r\na=control:v\r\n";
/// The parameter sets of [`SDP`].
pub(crate) const SPS: &[u8] = &[
    0x67, 0x64, 0x00, 0x0c, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9f, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
    0x03, 0x03, 0x20, 0xf1, 0x42, 0x99, 0x60,
];
pub(crate) const PPS: &[u8] = &[0x68, 0xef, 0x8f, 0xcb];

/// Connects to a [`FakeServer`].
#[derive(Debug)]
pub(crate) struct FakeConnector {
    connections: UnboundedSender<DuplexStream>,
}

/// Takes connections in memory.
pub(crate) struct FakeServer(UnboundedReceiver<DuplexStream>);

/// A connection in memory between hosts that both have the loopback address.
struct FakeConnection(DuplexStream);

impl Connection for FakeConnection {
    fn addresses(&self) -> io::Result<ConnectionEnds> {
        Ok(ConnectionEnds { local: ([127, 0, 0, 1], 1).into(), peer: ([127, 0, 0, 1], 2).into() })
    }
}

impl AsyncRead for FakeConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for FakeConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connector for FakeConnector {
    fn connect<'a>(&'a self, _: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (ours, theirs) = duplex(1 << 20);
            self.connections.send(theirs).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            Ok(Box::new(FakeConnection(ours)) as Box<dyn Connection>)
        })
    }
}

/// Returns a server, and what connects to it. Connections are refused once the server was dropped.
pub(crate) fn server() -> (FakeServer, FakeConnector) {
    let (connections, taken) = unbounded_channel();
    (FakeServer(taken), FakeConnector { connections })
}

impl FakeServer {
    pub(crate) async fn accept(&mut self) -> Peer {
        let stream = self.0.recv().await.expect("a connection");
        Peer { stream, input: BytesMut::new(), sent: [0; 2], transports: Vec::new() }
    }

    /// Accepts a session and plays.
    pub(crate) async fn play(&mut self, sdp: &str) -> Peer {
        let mut peer = self.accept().await;
        peer.play(sdp).await;
        peer
    }
}

/// The server's end of a connection.
pub(crate) struct Peer {
    stream: DuplexStream,
    input: BytesMut,
    /// Number of packets sent of each track.
    sent: [u16; 2],
    /// `Transport` of each SETUP.
    pub(crate) transports: Vec<String>,
}

impl Peer {
    /// Returns the next request; `None` once the client closed the connection.
    pub(crate) async fn request(&mut self) -> Option<Request<Vec<u8>>> {
        loop {
            if let ClientMessage::Request(request) = self.message().await? {
                return Some(request);
            }
        }
    }

    /// Returns the next interleaved packet and its channel.
    pub(crate) async fn interleaved(&mut self) -> (u8, Bytes) {
        loop {
            if let ClientMessage::Data(channel, packet) = self.message().await.expect("a packet") {
                return (channel, packet);
            }
        }
    }

    async fn message(&mut self) -> Option<ClientMessage> {
        loop {
            if let Some(message) = framing::take(&mut self.input).expect("RTSP") {
                return Some(message);
            }
            if self.stream.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Replies with a status line, and headers with their line ends.
    pub(crate) async fn reply(&mut self, request: &Request<Vec<u8>>, status: &str, headers: &str, body: &str) {
        let number = header(request, &headers::CSEQ);
        let length = body.len();
        let text = format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Answers requests until PLAY is answered.
    pub(crate) async fn play(&mut self, sdp: &str) {
        loop {
            let request = self.request().await.expect("a request");
            let (headers, body) = match request.method() {
                Method::Describe => (String::new(), sdp),
                Method::Setup => {
                    let transport = header(&request, &headers::TRANSPORT);
                    self.transports.push(transport.clone());
                    (format!("Session: 7\r\nTransport: {transport};server_port=9-9\r\n"), "")
                }
                _ => (String::new(), ""),
            };
            self.reply(&request, "200 OK", &headers, body).await;
            if matches!(request.method(), Method::Play) {
                return;
            }
        }
    }

    /// Returns the packets of a frame of track 0 (H.264) or 1 (AAC).
    pub(crate) fn packets(&mut self, track: usize, frame: &[u8], timestamp: u32) -> Vec<Bytes> {
        let packetizer = if track == 0 { Packetizer::Avc(4) } else { Packetizer::Aac };
        let mut pieces = Vec::new();
        packetizer.cut(frame, 500, &mut pieces).unwrap();
        let mut packets = Vec::new();
        for piece in pieces {
            let sequence = self.sent[track];
            self.sent[track] = sequence.wrapping_add(1);
            let (payload_type, ssrc) = (96 + track as u8, 70 + track as u32);
            let header = Header { marker: piece.marker, payload_type, sequence, timestamp, ssrc };
            packets.push([&header.to_bytes()[..], piece.head(), &frame[piece.body.clone()]].concat().into());
        }
        packets
    }

    /// Sends a packet on a channel.
    pub(crate) async fn data(&mut self, channel: u8, packet: &[u8]) {
        let [high, low] = (packet.len() as u16).to_be_bytes();
        self.stream.write_all(&[&[b'$', channel, high, low], packet].concat()).await.unwrap();
    }

    /// Sends bytes that are no message.
    pub(crate) async fn junk(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a frame on the connection.
    pub(crate) async fn frame(&mut self, track: usize, frame: &[u8], timestamp: u32) {
        for packet in self.packets(track, frame, timestamp) {
            self.data(2 * track as u8, &packet).await;
        }
    }
}

/// Returns a header of a request; empty where it is missing.
pub(crate) fn header(request: &Request<Vec<u8>>, name: &HeaderName) -> String {
    request.header(name).map_or_else(String::new, |value| value.as_str().trim().to_owned())
}

/// Returns a frame of NAL units.
pub(crate) fn units(units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
}

/// Returns a picture of several packets. `first` begins its slice: 0x65 for a key frame, 0x41 for another one.
pub(crate) fn picture(first: u8, number: u8) -> Vec<u8> {
    units(&[&[&[first, 0x88][..], &[number; 1200]].concat()])
}
