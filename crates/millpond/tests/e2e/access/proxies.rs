//! Trusted proxies: whose word on the address of a client counts, by HTTP/1, HTTP/2, RTSP and its tunnels.

use crate::{
    rtsp::limits::base64,
    support::{
        self, Server, clips,
        wire::{self, frames},
    },
};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

const LIST: &str = "/h264_aac.mp4/index.m3u8";
/// Clients of one network may play.
const RULES: [&str; 2] = ["--access-networks", "192.0.2.0/24"];

fn serve(more: &[&str]) -> Server {
    Server::start(&[&[clips::folder().to_str().unwrap()], &RULES[..], more].concat())
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    BufReader::new(stream)
}

/// The first line that a server sends after some bytes; empty where it closes the connection.
fn first_line(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    stream.get_mut().write_all(bytes).unwrap();
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    line.trim_end().to_owned()
}

/// The status of DESCRIBE through a tunnel whose heads have a header field.
fn through_a_tunnel(server: &Server, cookie: &str, field: &str) -> String {
    let media = "application/x-rtsp-tunnelled";
    let head = |method| {
        format!(
            "{method} /a HTTP/1.0\r\nAccept: {media}\r\nContent-Type: {media}\r\nx-sessioncookie: {cookie}\r\n{field}\r\n\r\n"
        )
    };
    let mut get = connect(server.rtsp);
    get.get_mut().write_all(head("GET").as_bytes()).unwrap();
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(get.read_line(&mut line).unwrap() > 0, "{}", server.log_text());
    }
    let request = "DESCRIBE rtsp://127.0.0.1/h264_aac.mp4 RTSP/1.0\r\nCSeq: 1\r\n\r\n";
    let mut post = connect(server.rtsp);
    let text = head("POST") + &base64(request.as_bytes());
    post.get_mut().write_all(text.as_bytes()).unwrap();
    line.clear();
    get.read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The status of a request by HTTP/2 with a header field, as the static table of HPACK has it.
fn by_http2(server: &Server, field: (&str, &str)) -> bool {
    let mut client = wire::Client::plain(server.port);
    client.write_all(&frames::hello(65_535)).unwrap();
    let pairs = [(":method", "GET"), (":scheme", "http"), (":path", LIST), (":authority", "localhost"), field];
    client.write_all(&frames::frame(frames::HEADERS, 0x5, 1, &frames::fields(&pairs))).unwrap();
    client.flush().unwrap();
    loop {
        let (kind, _, _, payload) = frames::read(&mut client).unwrap();
        if kind == frames::HEADERS {
            return payload.first() == Some(&0x88);
        }
    }
}

#[test]
fn only_trusted_proxies_name_clients() {
    let trusting = serve(&["--trusted-proxies", "127.0.0.1,10.0.0.0/24"]);
    let standard = serve(&["--trusted-proxies", "127.0.0.1", "--forwarded-by", "forwarded"]);
    let open = serve(&[]);
    let status = |server: &Server, name: &str, value: &str| support::get(server.port, LIST, &[(name, value)]).status;
    for (server, name, value, expected) in [
        (&trusting, "X-Forwarded-For", "192.0.2.7", 200),
        (&trusting, "X-Forwarded-For", "198.51.100.1, 192.0.2.7", 200),
        (&trusting, "X-Forwarded-For", "192.0.2.7, 10.0.0.9", 200),
        // The proxy appends its client's address. The client may have forged all addresses before it.
        (&trusting, "X-Forwarded-For", "192.0.2.7, 198.51.100.1", 403),
        (&trusting, "X-Forwarded-For", "192.0.2.7, unknown", 403),
        (&trusting, "X-Forwarded-For", "", 403),
        (&trusting, "Forwarded", "for=192.0.2.7", 403),
        (&trusting, "X-Real-IP", "192.0.2.7", 403),
        (&standard, "Forwarded", "for=192.0.2.7;proto=https", 200),
        (&standard, "Forwarded", "for=192.0.2.7, for=\", for=198.51.100.1", 403),
        (&standard, "X-Forwarded-For", "192.0.2.7", 403),
        (&open, "X-Forwarded-For", "192.0.2.7", 403),
        (&open, "Forwarded", "for=192.0.2.7", 403),
    ] {
        assert_eq!(status(server, name, value), expected, "{name}: {value}");
    }
    for (server, expected) in [(&trusting, true), (&open, false)] {
        assert_eq!(by_http2(server, ("x-forwarded-for", "192.0.2.7")), expected);
        assert!(!by_http2(server, ("x-forwarded-for", "198.51.100.1")));
    }
    assert_eq!(through_a_tunnel(&trusting, "a", "X-Forwarded-For: 192.0.2.7"), "200");
    assert_eq!(through_a_tunnel(&trusting, "b", "X-Forwarded-For: 192.0.2.7, 198.51.100.1"), "403");
    assert_eq!(through_a_tunnel(&open, "c", "X-Forwarded-For: 192.0.2.7"), "403");
    assert!(trusting.log_text().contains("192.0.2.7"), "the log names the client");
}

#[test]
fn the_proxy_protocol_names_clients_of_every_listener() {
    let server = serve(&["--trusted-proxies", "127.0.0.1", "--forwarded-by", "proxy-protocol", "--tls-self-signed"]);
    let http = format!("GET {LIST} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n");
    let rtsp = "DESCRIBE rtsp://127.0.0.1/h264_aac.mp4 RTSP/1.0\r\nCSeq: 1\r\n\r\n";
    let from =
        |address: &str, request: &str| format!("PROXY TCP4 {address} 10.0.0.1 4711 80\r\n{request}").into_bytes();
    for (port, request, name) in [(server.port, http.as_str(), "HTTP/1.1"), (server.rtsp, rtsp, "RTSP/1.0")] {
        assert_eq!(first_line(port, &from("192.0.2.7", request)), format!("{name} 200 OK"));
        assert_eq!(first_line(port, &from("198.51.100.1", request)), format!("{name} 403 Forbidden"));
        assert_eq!(first_line(port, request.as_bytes()), "", "without a header the connection is closed");
    }
    // Version 2 before TLS.
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend([192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb]);
    let mut secure = connect(server.rtsps);
    secure.get_mut().write_all(&header).unwrap();
    // A TLS record with an alert is the answer to bytes that are no ClientHello: the header was taken off before.
    secure.get_mut().write_all(b"\x16\x03\x01\0\x05\x02\0\0\x01\0").unwrap();
    let mut first = [0];
    secure.read_exact(&mut first).unwrap();
    assert_eq!(first, [0x15]);
}
