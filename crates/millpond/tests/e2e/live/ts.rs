//! Running streams as MPEG transport streams: in one long response, and in the segments of HLS. What ffmpeg decodes equals the
//! source, and a small demultiplexer checks clock and counters.

use crate::support::{Response, Server, clips, get, request};
use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";
/// Length of a transport packet in bytes.
const PACKET: usize = 188;

/// A server whose channels are clips.
fn channels(names: &[&str]) -> Server {
    Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", &names.join(",")])
}

/// A server whose place is the RTSP of another one.
fn edge(origin: &Server) -> Server {
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    Server::start(&[&place, "--source-transport", "tcp"])
}

/// Hashes of decoded pictures, or of frames of sound as MP4 has them.
#[track_caller]
fn hashes(input: &str, track: &str, count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", track, "-fps_mode", "passthrough"]);
    let frames = if track == "0:v" { "-frames:v" } else { "-frames:a" };
    if track == "0:a" {
        command.args(["-c", "copy"]);
        if !input.ends_with(".mp4") {
            command.args(["-bsf:a", "aac_adtstoasc"]);
        }
    }
    let output = command.args([frames, &count.to_string(), "-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{input}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Columns of side data may follow.
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

fn source(name: &str, track: &str) -> Vec<String> {
    hashes(clips::folder().join(name).to_str().unwrap(), track, 1000)
}

/// Checks that frames are a part of a source that plays round and round.
#[track_caller]
fn assert_part_of(received: &[String], source: &[String], count: usize) {
    assert_eq!(received.len(), count);
    let offset = source.iter().position(|hash| *hash == received[0]).expect("a frame of the source");
    let same = source.iter().cycle().skip(offset).zip(received).take_while(|(a, b)| a == b).count();
    assert_eq!(same, count, "frames are equal up to there");
}

/// Findings of a demultiplexer in a transport stream.
#[derive(Default)]
struct Demultiplexed {
    counters: HashMap<u16, u8>,
    /// PCRs on the 90 kHz clock.
    clocks: Vec<i64>,
    /// Time stamps of presentation by stream.
    shown: HashMap<u16, Vec<i64>>,
    /// Packets with a discontinuity indicator.
    breaks: usize,
}

impl Demultiplexed {
    #[track_caller]
    fn take(&mut self, stream: &[u8]) {
        for packet in stream.as_chunks::<PACKET>().0 {
            assert_eq!(packet[0], 0x47);
            let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
            if packet[3] & 0x20 != 0 && packet[4] > 0 {
                self.breaks += usize::from(packet[5] & 0x80 != 0);
                if packet[5] & 0x10 != 0 {
                    let base = u32::from_be_bytes(packet[6..10].try_into().unwrap());
                    self.clocks.push(i64::from(base) << 1 | i64::from(packet[10] >> 7));
                }
            }
            if packet[3] & 0x10 == 0 {
                continue;
            }
            let counter = packet[3] & 0x0f;
            if let Some(before) = self.counters.insert(pid, counter) {
                assert_eq!((before + 1) & 0x0f, counter, "counter of PID {pid:#x}");
            }
            let field = if packet[3] & 0x20 != 0 { 5 + usize::from(packet[4]) } else { 4 };
            if let Some(start) = packet.get(field..field + 14).filter(|start| start.starts_with(&[0, 0, 1]))
                && packet[1] & 0x40 != 0
            {
                let bits = |place: usize| i64::from(start[place]);
                let high = (bits(9) >> 1 & 7) << 30;
                let pts = high | bits(10) << 22 | (bits(11) >> 1) << 15 | bits(12) << 7 | bits(13) >> 1;
                self.shown.entry(pid).or_default().push(pts);
            }
        }
    }

    #[track_caller]
    fn assert_clock(&self) {
        let steps = || self.clocks.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) = (steps().min().unwrap(), steps().max().unwrap());
        assert!(least > 0 && most <= 9000, "PCRs are {least} to {most} ticks apart");
    }

    /// First and last time of a stream.
    fn span(&self, pid: u16) -> (i64, i64) {
        let times = &self.shown[&pid];
        (*times.iter().min().unwrap(), *times.iter().max().unwrap())
    }
}

/// The bytes of a long response for some time.
fn listen(server: &Server, path: &str, time: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let (began, mut bytes, mut part) = (Instant::now(), Vec::new(), [0; 16_384]);
    while began.elapsed() < time {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "it has no end: {}", server.log_text());
        bytes.extend_from_slice(&part[..count]);
    }
    let body = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&bytes[..body]).to_ascii_lowercase();
    assert!(head.contains(" 200 ok") && head.contains("content-type: video/mp2t"), "{head}");
    bytes.split_off(body)
}

/// The segments that a playlist lists, by their paths.
fn segments(server: &Server, path: &str) -> Vec<String> {
    let reply = get(server.port, &format!("{path}/ts/v1/index.m3u8"), &[]);
    assert_eq!(reply.status, 200, "{} {}", reply.text(), server.log_text());
    let text = reply.text();
    assert!(text.contains("#EXT-X-PROGRAM-DATE-TIME:") && !text.contains("ENDLIST"), "{text}");
    let names = text.lines().filter_map(|line| line.strip_prefix("../"));
    names.map(|name| format!("{path}/ts/{name}")).collect()
}

#[test]
fn the_long_response_has_the_frames_of_the_source() {
    let origin = channels(&[CLIP, "hevc_hvc1.mp4"]);
    let server = edge(&origin);
    let (pictures, sound) = (source(CLIP, "0:v"), source(CLIP, "0:a"));
    let live = server.url(&format!("cams/{CLIP}/stream.ts"));
    // Into the second lap.
    assert_part_of(&hashes(&live, "0:v", 300), &pictures, 300);
    let received = hashes(&live, "0:a", 200);
    assert!(received.len() == 200 && received.iter().all(|hash| sound.contains(hash)));
    assert_part_of(&hashes(&origin.url(&format!("{CLIP}/stream.ts")), "0:v", 150), &pictures, 150);
    let hevc = source("hevc_hvc1.mp4", "0:v");
    assert_part_of(&hashes(&server.url("cams/hevc_hvc1.mp4/stream.ts"), "0:v", 100), &hevc, 100);
}

#[test]
fn hls_has_the_frames_of_the_source() {
    let origin = channels(&[CLIP, "hevc_hvc1.mp4"]);
    let server = edge(&origin);
    let (pictures, sound) = (source(CLIP, "0:v"), source(CLIP, "0:a"));
    let live = server.url(&format!("cams/{CLIP}/ts/index.m3u8"));
    assert_part_of(&hashes(&live, "0:v", 300), &pictures, 300);
    let received = hashes(&live, "0:a", 200);
    assert!(received.len() == 200 && received.iter().all(|hash| sound.contains(hash)));
    let hevc = source("hevc_hvc1.mp4", "0:v");
    assert_part_of(&hashes(&server.url("cams/hevc_hvc1.mp4/ts/index.m3u8"), "0:v", 100), &hevc, 100);
    // The channel itself, beside its asset.
    let channel = origin.url(&format!("{CLIP}/live/ts/index.m3u8"));
    assert_part_of(&hashes(&channel, "0:v", 100), &pictures, 100);
    let stored = origin.get(&format!("{CLIP}/ts/v1/index.m3u8"));
    assert!(stored.status == 200 && stored.text().contains("ENDLIST"));
}

#[test]
fn clock_and_counters_go_on() {
    let origin = channels(&[CLIP]);
    let server = edge(&origin);
    let path = format!("/cams/{CLIP}");
    let long = listen(&server, &format!("{path}/stream.ts"), Duration::from_secs(14));
    let mut stream = Demultiplexed::default();
    stream.take(&long);
    stream.assert_clock();
    assert_eq!(stream.breaks, 0);
    let ((first, last), (_, sound)) = (stream.span(0x100), stream.span(0x101));
    assert!(last - first > 6 * 90_000 && (last - sound).abs() < 90_000, "{first} {last} {sound}");
    let mut seen: Vec<String> = Vec::new();
    let mut hls = Demultiplexed::default();
    let began = Instant::now();
    while seen.len() < 8 {
        assert!(began.elapsed() < Duration::from_secs(60), "{seen:?}");
        for segment in segments(&server, &path) {
            if seen.contains(&segment) {
                continue;
            }
            let reply = get(server.port, &segment, &[]);
            assert_eq!((reply.status, reply.header("content-type")), (200, Some("video/mp2t")), "{segment}");
            assert_eq!(reply.body, get(server.port, &segment, &[]).body, "the same each time");
            hls.take(&reply.body);
            seen.push(segment);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    hls.assert_clock();
    assert_eq!(hls.breaks, 2, "the beginning of each stream");
    // Both have the stream's times.
    let (begun, _) = hls.span(0x100);
    assert!((first - 90_000 * 20..last + 90_000 * 20).contains(&begun), "{begun} beside {first} to {last}");
    assert!(hls.shown[&0x100].iter().any(|time| stream.shown[&0x100].contains(time)) || begun > last);
}

#[test]
fn a_stream_that_begins_has_segments_to_play_from_and_makes_each_once() {
    let origin = channels(&[CLIP]);
    let path = format!("/{CLIP}/live");
    let listed = segments(&origin, &path);
    assert!(listed.len() >= 3, "players without low latency begin with the first segment: {listed:?}");
    let newest = listed.last().unwrap();
    let bodies: Vec<_> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| get(origin.port, newest, &[]).body);
        let asked: Vec<_> = (0..12).map(|_| ask()).collect();
        asked.into_iter().map(|body| body.join().unwrap()).collect()
    });
    assert!(bodies[0].len() > PACKET && bodies.iter().all(|body| *body == bodies[0]), "all get the same segment");
}

#[test]
fn what_does_not_fit_is_told() {
    let origin = channels(&["vp9_opus.mp4", CLIP]);
    let problem = |reply: &Response| reply.header("content-type") == Some("application/problem+json");
    for path in ["/vp9_opus.mp4/stream.ts", "/vp9_opus.mp4/live/ts/index.m3u8"] {
        let reply = get(origin.port, path, &[]);
        assert!(reply.status == 422 && problem(&reply), "{path}: {}", reply.text());
        assert!(reply.text().contains("MPEG-2 TS") && reply.text().contains("opus"), "{}", reply.text());
    }
    for (path, status) in [
        ("/h264_aac.mp4/live/ts/a1/index.m3u8", 404),
        ("/h264_aac.mp4/live/ts/v2/index.m3u8", 404),
        ("/h264_aac.mp4/live/ts/~00/v1/12.ts", 404),
        ("/missing.mp4/stream.ts", 404),
    ] {
        let reply = get(origin.port, path, &[]);
        assert!(reply.status == status && problem(&reply), "{path}: {} {}", reply.status, reply.text());
    }
    let head = request(origin.port, "HEAD", &format!("/{CLIP}/stream.ts"), &[]);
    assert_eq!((head.status, head.header("content-type")), (200, Some("video/mp2t")));
}
