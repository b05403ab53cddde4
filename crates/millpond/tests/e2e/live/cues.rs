//! Cues (SCTE 35) of transport streams by UDP, RTP and PUT: events of playlists and manifests, at the times of the pictures.

use crate::{
    live::transport::{DATAGRAM, RATE, as_rtp, made, send_all, until_open},
    support::{Server, free_port, get},
};
use millpond_media::ts::checksum;
use serde_json::Value;
use std::{
    io::Write as _,
    net::TcpStream,
    sync::OnceLock,
    thread::JoinHandle,
    time::{Duration, Instant},
};

const PACKET: usize = 188;
/// PIDs as ffmpeg gives them, and one for cues.
const MAP: u16 = 0x1000;
const PICTURES: u16 = 0x100;
const NOTHING: u16 = 0x1fff;
const CUES: u16 = 0x1f0;
/// Bits of a time.
const CLOCK: u64 = (1 << 33) - 1;
/// Ticks of 90 kHz of a picture.
const PICTURE: u64 = 3600;

/// A stream of 20 s with a key frame each second, whose clock wraps after 8 s. Packets without use are replaced by cues.
pub(crate) fn film() -> Vec<u8> {
    // Tests of one process make the file once.
    static FILM: OnceLock<Vec<u8>> = OnceLock::new();
    FILM.get_or_init(with_cues).clone()
}

fn with_cues() -> Vec<u8> {
    let coding = "-f lavfi -i sine=sample_rate=48000:duration=20 -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p \
                  -crf 30 -c:a aac -output_ts_offset 95434";
    let path = made("wrapping.ts", "testsrc2=size=320x180:rate=25:duration=20", coding);
    let mut stream = std::fs::read(path).unwrap();
    let first = stream.chunks(PACKET).find_map(time).unwrap();
    let mut cues = cues(first).into_iter().peekable();
    let (mut passed, mut counter) = (0, 0);
    for packet in stream.chunks_mut(PACKET) {
        passed = time(packet).map_or(passed, |time| (time.wrapping_sub(first) & CLOCK) / PICTURE);
        if pid(packet) == MAP {
            add_cues(packet);
        } else if pid(packet) == NOTHING
            && let Some((_, section)) = cues.next_if(|(picture, _)| *picture <= passed)
        {
            packet.fill(0xff);
            packet[..5].copy_from_slice(&[0x47, 0x40 | (CUES >> 8) as u8, CUES as u8, 0x10 | counter, 0]);
            packet[5..5 + section.len()].copy_from_slice(&section);
            counter = (counter + 1) & 15;
        }
    }
    assert!(cues.next().is_none());
    stream
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// Presentation time of a picture that begins in a packet.
fn time(packet: &[u8]) -> Option<u64> {
    if pid(packet) != PICTURES || packet[1] & 0x40 == 0 {
        return None;
    }
    let adaptation = if packet[3] & 0x20 == 0 { 0 } else { usize::from(packet[4]) + 1 };
    let pts = &packet[4 + adaptation + 9..];
    let [a, b, c, d, e] = [pts[0], pts[1], pts[2], pts[3], pts[4]].map(u64::from);
    Some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
}

/// Adds the stream of cues to a programme's map.
fn add_cues(packet: &mut [u8]) {
    let length = usize::from(packet[7]);
    let end = 8 + length - 4;
    let [high, low] = (CUES | 0xe000).to_be_bytes();
    packet[end..end + 5].copy_from_slice(&[0x86, high, low, 0xf0, 0]);
    packet[7] += 5;
    let sum = checksum(&packet[5..end + 5]).to_be_bytes();
    packet[end + 5..end + 9].copy_from_slice(&sum);
}

/// A section with a command, its descriptors and other bits of `encrypted_packet`.
fn section(encryption: u8, command: u8, body: &[u8], descriptors: &[u8]) -> Vec<u8> {
    let head = [0, encryption, 0, 0, 0, 0, 0xff, 0xff, 0xf0, body.len() as u8, command];
    let all = [&head[..], body, &[0, descriptors.len() as u8], descriptors].concat();
    let mut section = [&[0xfc, 0x30, all.len() as u8 + 4][..], &all].concat();
    section.extend(checksum(&section).to_be_bytes());
    section
}

/// The sections, each with the picture behind which it is sent.
fn cues(first: u64) -> Vec<(u64, Vec<u8>)> {
    let time = |picture: u64| {
        let time = first.wrapping_add(picture * PICTURE) & CLOCK;
        [&[0xfe | (time >> 32) as u8][..], &(time as u32).to_be_bytes()].concat()
    };
    let insert = |event: u8, flags: u8, at: u64, duration: &[u8]| {
        section(0, 5, &[&[0, 0, 0, event, 0x7f, flags], &time(at)[..], duration, &[0; 4]].concat(), &[])
    };
    let planned = [&[0x7e], &(5 * 90_000_u32).to_be_bytes()[..]].concat();
    let (out, back) = (insert(7, 0xef, 150, &planned), insert(7, 0x4f, 250, &[]));
    let programme = [&[2, 15][..], b"CUEI", &[0, 0, 0, 33, 0x7f, 0xbf, 0, 0, 0x10, 0, 0]].concat();
    vec![
        (60, out.clone()),
        (70, section(0, 0, &[], &[])),
        (75, section(0x84, 5, &[0; 20], &[])),
        (85, out.clone()),
        (90, insert(9, 0xcf, 200, &[])),
        (110, out),
        (120, section(0, 5, &[0, 0, 0, 9, 0xff], &[])),
        (130, section(0, 6, &time(175), &programme)),
        (200, back.clone()),
        (230, back),
    ]
}

/// An attribute of a tag, without quotes.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let attributes = tag.split_once(':')?.1;
    attributes.split(',').find_map(|one| one.strip_prefix(name)?.strip_prefix('=')).map(|value| value.trim_matches('"'))
}

/// Milliseconds of the day of a date.
fn millis(date: &str) -> i64 {
    let time = date.split_once('T').unwrap().1.trim_end_matches('Z');
    let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
    ((parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]) * 1000.0).round() as i64
}

/// Waits until a playlist has the segment that begins with the return to the programme.
fn playlist(edge: &Server, path: &str) -> String {
    let began = Instant::now();
    loop {
        let text = edge.get(path).text();
        let end = tags(&text).iter().find_map(|tag| attribute(tag, "END-DATE").map(millis));
        if end.is_some_and(|end| dates(&text).iter().any(|date| date - end > 100)) {
            return text;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{path}: {text}\n{}", edge.log_text());
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn tags(playlist: &str) -> Vec<&str> {
    playlist.lines().filter(|line| line.starts_with("#EXT-X-DATERANGE:")).collect()
}

/// Times of the segments of a playlist.
fn dates(playlist: &str) -> Vec<i64> {
    playlist.lines().filter_map(|line| line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:")).map(millis).collect()
}

/// Checks the tags of a playlist: the break with its return and the programme, and nothing of the cancelled break.
fn assert_events(text: &str, path: &str) {
    let found = tags(text);
    assert_eq!(found.len(), 2, "{path}: {text}");
    let (of_break, programme) = (found[0], found[1]);
    assert!(attribute(of_break, "ID").unwrap().starts_with("insert-7-"), "{of_break}");
    assert!(attribute(programme, "ID").unwrap().starts_with("segment-10-33-"), "{programme}");
    let [out, back] = ["START-DATE", "END-DATE"].map(|name| millis(attribute(of_break, name).unwrap()));
    let duration: f64 = attribute(of_break, "DURATION").unwrap().parse().unwrap();
    assert!((duration - 4.0).abs() < 0.02, "{of_break}");
    assert_eq!(attribute(of_break, "PLANNED-DURATION"), Some("5.000"));
    assert!(attribute(of_break, "SCTE35-OUT").unwrap().starts_with("0xFC30"), "{of_break}");
    assert!(attribute(of_break, "SCTE35-IN").unwrap().starts_with("0xFC30"), "{of_break}");
    assert!(attribute(programme, "SCTE35-CMD").unwrap().starts_with("0xFC30"), "{programme}");
    let start = millis(attribute(programme, "START-DATE").unwrap());
    assert!((start - out - 1000).abs() < 20, "{text}");
    // Sound is not cut where pictures are.
    if path.contains("v1") {
        for date in [out, back] {
            assert!(dates(text).iter().any(|segment| (segment - date).abs() < 20), "{path}: {text}");
        }
    }
}

/// Checks what viewers and operators see of the cues of a stream.
fn assert_seen(edge: &Server, stream: &str) {
    assert_events(&playlist(edge, &format!("{stream}/v1/index.m3u8")), "v1");
    for path in ["a1/index.m3u8", "v1/index.m3u8?_HLS_skip=YES", "ts/v1/index.m3u8"] {
        assert_events(&playlist(edge, &format!("{stream}/{path}")), path);
    }
    let mpd = edge.get(&format!("{stream}/index.mpd")).text();
    assert_eq!(mpd.matches("<EventStream schemeIdUri=\"urn:scte:scte35:2014:xml+bin\"").count(), 1, "{mpd}");
    assert_eq!(mpd.matches("<Binary>/DA").count(), 3, "{mpd}");
    let number = |text: &str, name: &str| -> u64 {
        let value = text.split_once(&format!("{name}=\"")).unwrap().1;
        value.split_once('"').unwrap().0.parse().unwrap()
    };
    let event = mpd.split_once("<Event ").unwrap().1;
    assert!(number(event, "duration") == 5 * 90_000, "{mpd}");
    // A segment of the pictures begins there.
    let at = number(event, "presentationTime") + number(&mpd, "presentationTimeOffset");
    let pictures = mpd.split_once("</SegmentTimeline>").unwrap().0;
    let first = number(pictures, "<S t");
    assert!(at > first && (at - first) % 90_000 < 1800 || (at - first) % 90_000 > 88_200, "{mpd}");
    assert_eq!(edge.metric("millpond_live_cues_total", ""), 5.0);
    let streams: Value = crate::support::api::items(edge.admin, "streams");
    assert_eq!(streams[0]["cues"], 5, "{streams}");
    let log = edge.log_text();
    assert!(log.contains("an encrypted splice information section (DES in CBC mode)"), "{log}");
}

#[test]
fn cues_by_udp_and_rtp_are_events_of_playlists() {
    let bytes = film();
    for scheme in ["udp", "rtp"] {
        let port = free_port();
        let edge = Server::start(&[&format!("tv={scheme}://127.0.0.1:{port}"), "--live-segment", "1s"]);
        let url = edge.port;
        let first = std::thread::spawn(move || get(url, "/tv/index.m3u8", &[]));
        until_open(port);
        let datagrams = bytes.chunks(DATAGRAM).map(<[u8]>::to_vec).collect();
        let sender = send_all(if scheme == "rtp" { as_rtp(datagrams) } else { datagrams }, "127.0.0.1", port);
        assert_eq!(first.join().unwrap().status, 200);
        assert_seen(&edge, "tv");
        drop(edge);
        sender.join().unwrap();
    }
}

/// Pushes a stream at its rate, until the server takes no more.
pub(crate) fn push(port: u16, bytes: Vec<u8>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        server.write_all(b"PUT /live/tv HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        let (began, mut bits) = (Instant::now(), 0);
        for piece in bytes.chunks(DATAGRAM) {
            std::thread::sleep(Duration::from_micros(bits * 1_000_000 / RATE).saturating_sub(began.elapsed()));
            bits += piece.len() as u64 * 8;
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            if server.write_all(&chunk).is_err() {
                return;
            }
        }
    })
}

#[test]
fn cues_by_put_are_events_of_playlists() {
    let folder = tempfile::tempdir().unwrap();
    let shift = ["--time-shift", "1h", "--time-shift-size", "64MiB", "--time-shift-folder"];
    let args = [&["live=publish:", "--live-segment", "1s"][..], &shift, &[folder.path().to_str().unwrap()]].concat();
    let edge = Server::start(&args);
    let publisher = push(edge.port, film());
    assert_eq!(edge.get("live/tv/index.m3u8").status, 200);
    assert_seen(&edge, "live/tv");
    let path = "live/tv/v1/index.m3u8?dvr";
    let before = edge.get(path).text();
    assert_events(&before, path);
    // The server is killed, and nobody publishes afterwards.
    drop(edge);
    publisher.join().unwrap();
    let edge = Server::start(&args);
    let after = edge.get(path).text();
    assert_eq!(tags(&after), tags(&before), "{after}");
    assert!(after.contains("#EXT-X-ENDLIST"), "{after}");
    let start = dates(&after)[0];
    let date = |line: &str| line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:").map(str::to_owned);
    let clip: Vec<_> = after.lines().filter_map(date).take(2).collect();
    let clip = edge.get(&format!("live/tv/v1/index.m3u8?start={}&end={}", clip[0], clip[1])).text();
    assert!(tags(&clip).is_empty() && dates(&clip)[0] == start, "a clip before the first event: {clip}");
    assert_eq!(edge.get("live/tv/index.mpd?dvr").text().matches("<Binary>/DA").count(), 3);
}
