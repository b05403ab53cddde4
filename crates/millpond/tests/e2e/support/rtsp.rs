//! A client of RTSP that says what it is told to say, and shows what players don't.

use super::Server;
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// A client that says what it is told to say.
pub struct Client {
    pub stream: BufReader<TcpStream>,
    pub url: String,
    number: u32,
    pub session: Option<String>,
    /// Interleaved packets that came: channel and bytes.
    pub packets: Vec<(u8, Vec<u8>)>,
}

pub struct Reply {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Client {
    pub fn new(server: &Server, path: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.rtsp)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let url = format!("rtsp://127.0.0.1:{}/{path}", server.rtsp);
        Self { stream: BufReader::new(stream), url, number: 0, session: None, packets: Vec::new() }
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &str) -> Reply {
        self.number += 1;
        let session = self.session.as_ref().map_or(String::new(), |session| format!("Session: {session}\r\n"));
        let (url, number) = (&self.url, self.number);
        let text = format!("{method} {url}{path} RTSP/1.0\r\nCSeq: {number}\r\n{session}{headers}\r\n");
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        self.reply().expect("a reply")
    }

    /// The next reply; what comes on channels before it is kept. Nothing at the end of the connection.
    pub fn reply(&mut self) -> Option<Reply> {
        while let Some(first) = self.peek() {
            if first == b'$' {
                self.packet();
                continue;
            }
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            let status = line.split(' ').nth(1)?.parse().ok()?;
            let mut headers = BTreeMap::new();
            loop {
                line.clear();
                self.stream.read_line(&mut line).ok()?;
                let Some((name, value)) = line.trim_end().split_once(':') else { break };
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).ok()?;
            return Some(Reply { status, headers, body: String::from_utf8(body).unwrap() });
        }
        None
    }

    fn peek(&mut self) -> Option<u8> {
        self.stream.fill_buf().ok()?.first().copied()
    }

    /// Reads a packet.
    pub fn packet(&mut self) {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).unwrap();
        let mut packet = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
        self.stream.read_exact(&mut packet).unwrap();
        self.packets.push((head[1], packet));
    }

    /// Reads packets until `enough` says so.
    pub fn receive(&mut self, enough: impl Fn(&[(u8, Vec<u8>)]) -> bool) {
        let began = Instant::now();
        while !enough(&self.packets) {
            assert!(began.elapsed() < Duration::from_secs(60), "{} packets", self.packets.len());
            assert_eq!(self.peek(), Some(b'$'), "nothing but packets");
            self.packet();
        }
    }

    pub fn set_up(&mut self, track: &str, transport: &str) -> Reply {
        let reply = self.ask("SETUP", &format!("/{track}"), &format!("Transport: {transport}\r\n"));
        if let Some(session) = reply.headers.get("session") {
            self.session = Some(session.split(';').next().unwrap().to_owned());
        }
        reply
    }

    /// Sequence numbers and timestamps of RTP on a channel.
    pub fn rtp(&self, channel: u8) -> Vec<(u16, u32)> {
        let of = self.packets.iter().filter(|(on, _)| *on == channel);
        of.map(|(_, packet)| {
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            (word(0) as u16, word(4))
        })
        .collect()
    }
}

/// Whether the end of a source was told on a channel.
pub fn over(packets: &[(u8, Vec<u8>)], channel: u8) -> bool {
    // BYE, after the last report (RFC 3550 6.6).
    packets.iter().any(|(on, packet)| *on == channel && packet.windows(2).any(|two| two == [0x81, 203]))
}

/// Reads a reply, and returns its head: empty where the server closes the connection.
pub fn head(stream: &mut (impl Read + ?Sized)) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
        text.push(byte[0]);
    }
    let text = String::from_utf8(text).unwrap();
    let length = text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or(0)]).unwrap();
    text
}
