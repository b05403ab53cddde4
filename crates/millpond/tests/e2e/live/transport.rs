//! MPEG transport streams by UDP and RTP: what viewers get of what senders send, whole and damaged.

use crate::support::{Running, Server, clips, free_port};
use serde_json::Value;
use std::{
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";
/// Bytes of a datagram: seven packets.
pub(crate) const DATAGRAM: usize = 7 * 188;
/// Bits per second of streams that [`made`] makes.
pub(crate) const RATE: u64 = 2_000_000;

fn clip(name: &str) -> String {
    clips::folder().join(name).display().to_string()
}

fn serve(place: &str) -> Server {
    // Clips take longer to make than viewers wait.
    clips::folder();
    Server::start(&[place, "--linger", "0s"])
}

/// Sends what ffmpeg reads by `input`, as it is.
fn send(input: &[&str], format: &str, target: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-c", "copy", "-f", format, target]);
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Sends a clip round and round.
pub(crate) fn send_clip(format: &str, target: &str) -> Running {
    send(&["-re", "-stream_loop", "-1", "-i", &clip(CLIP)], format, target)
}

/// A reader of the hashes of the first decoded pictures.
fn reader(input: &[&str], count: usize) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", "0:v", "-fps_mode", "passthrough"]);
    command.args(["-frames:v", &count.to_string(), "-f", "framemd5", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn by_rtsp(server: &Server, path: &str, count: usize) -> Child {
    let url = format!("rtsp://127.0.0.1:{}/{path}", server.rtsp);
    reader(&["-rtsp_transport", "tcp", "-i", &url], count)
}

fn by_http(server: &Server, path: &str, count: usize) -> Child {
    reader(&["-i", &server.url(path)], count)
}

/// The hashes that a reader found, and what it complained of.
fn read(reader: Child) -> (Vec<String>, String) {
    let output = reader.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    (text.lines().filter(|line| !line.starts_with('#')).map(hash).collect(), said)
}

fn hashes(reader: Child) -> Vec<String> {
    read(reader).0
}

/// The pictures of a file.
fn pictures(path: &str) -> Vec<String> {
    hashes(reader(&["-i", path], 1000))
}

/// Checks that pictures are those of the clip round and round, from a key frame on.
fn assert_of_clip(received: &[String], name: &str, count: usize) {
    let source = pictures(&clip(name));
    assert_eq!(received.len(), count);
    let offset = source.iter().position(|hash| *hash == received[0]).expect("a picture of the clip");
    assert!(offset.is_multiple_of(50), "a key frame first, not picture {offset}");
    let same = source.iter().cycle().skip(offset).zip(received).take_while(|(a, b)| a == b).count();
    assert_eq!(same, count, "picture {same} differs");
}

/// Makes a transport stream of a constant rate, of 9 s of pictures.
pub(crate) fn made(name: &str, source: &str, coding: &str) -> PathBuf {
    let folder = clips::folder().join("transport");
    std::fs::create_dir_all(&folder).unwrap();
    let (path, part) = (folder.join(name), folder.join(format!("{name}.{}", std::process::id())));
    if !path.exists() {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", source]).args(coding.split(' '));
        command.args(["-f", "mpegts", "-muxrate", &RATE.to_string()]).arg(&part);
        assert!(command.status().unwrap().success());
        std::fs::rename(part, &path).unwrap();
    }
    path
}

/// Sends datagrams at the rate of the stream, from a port of its own. Those without bytes take their time and are lost.
pub(crate) fn send_all(datagrams: Vec<Vec<u8>>, from: &str, port: u16) -> JoinHandle<()> {
    send_beside(vec![(from, datagrams)], port)
}

/// The same for several senders, which send one after the other: where one stands still, all do.
fn send_beside(streams: Vec<(&str, Vec<Vec<u8>>)>, port: u16) -> JoinHandle<()> {
    let streams: Vec<_> = streams.into_iter().map(|(from, all)| (UdpSocket::bind((from, 0)).unwrap(), all)).collect();
    std::thread::spawn(move || {
        let (began, most) = (Instant::now(), streams.iter().map(|(_, all)| all.len()).max().unwrap_or(0));
        for at in 0..most {
            let due = Duration::from_micros((at * DATAGRAM * 8) as u64 * 1_000_000 / RATE);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            for (socket, all) in &streams {
                if let Some(datagram) = all.get(at).filter(|datagram| !datagram.is_empty()) {
                    // Nobody listens at first and at last.
                    let _ = socket.send_to(datagram, ("127.0.0.1", port));
                }
            }
        }
    })
}

fn datagrams(path: &PathBuf) -> Vec<Vec<u8>> {
    std::fs::read(path).unwrap().chunks(DATAGRAM).map(<[u8]>::to_vec).collect()
}

/// The same as RTP packets (RFC 2250).
pub(crate) fn as_rtp(datagrams: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let packet = |(number, payload): (usize, Vec<u8>)| {
        let [high, low] = (number as u16).to_be_bytes();
        [&[0x80, 33, high, low, 0, 0, 0, 0, 1, 2, 3, 4], &payload[..]].concat()
    };
    datagrams.into_iter().enumerate().map(packet).collect()
}

/// Waits until somebody receives at the port.
pub(crate) fn until_open(port: u16) {
    let began = Instant::now();
    while UdpSocket::bind(("127.0.0.1", port)).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody receives at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The codecs of a stream.
fn codecs(url: &str) -> Vec<String> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", url]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    text.split_whitespace().map(|codec| codec.trim_matches(',').to_owned()).collect()
}

#[test]
fn every_picture_that_is_sent_reaches_viewers() {
    for (scheme, format) in [("udp", "mpegts"), ("rtp", "rtp_mpegts")] {
        let port = free_port();
        let edge = serve(&format!("tv={scheme}://127.0.0.1:{port}"));
        // The first viewer comes before the sender.
        let early = by_http(&edge, "tv/stream.mp4", 100);
        let _sender = send_clip(format, &format!("{scheme}://127.0.0.1:{port}?pkt_size=1316"));
        assert_of_clip(&hashes(early), CLIP, 100);
        let viewers = [
            by_http(&edge, "tv/stream.mp4", 100),
            by_http(&edge, "tv/1/stream.mp4", 100),
            by_http(&edge, "tv/index.m3u8", 100),
            by_rtsp(&edge, "tv", 100),
        ];
        for viewer in viewers {
            assert_of_clip(&hashes(viewer), CLIP, 100);
        }
        for path in ["tv/9/stream.mp4", "tv/01/stream.mp4", "tv/door/stream.mp4"] {
            assert_eq!(edge.get(path).status, 404, "{path}");
        }
    }
}

#[test]
fn groups_are_joined_on_an_interface() {
    let port = free_port();
    let edge = serve(&format!("tv=udp://239.255.77.7:{port}?interface=lo&source=127.0.0.1"));
    let _sender = send_clip("mpegts", &format!("udp://239.255.77.7:{port}?localaddr=127.0.0.1&ttl=0&pkt_size=1316"));
    assert_of_clip(&hashes(by_http(&edge, "tv/stream.mp4", 100)), CLIP, 100);
}

#[test]
fn programmes_are_streams() {
    let port = free_port();
    let edge = serve(&format!("tv=udp://127.0.0.1:{port}"));
    let (first, second, sound) = (clip(CLIP), clip("hevc_hvc1.mp4"), clip("ac3.mp4"));
    let mut input = Vec::new();
    for path in [&first, &second, &sound] {
        input.extend(["-re", "-stream_loop", "-1", "-i", path]);
    }
    input.extend(["-map", "0:v", "-map", "0:a", "-map", "1:v", "-map", "2:a"]);
    input.extend(["-program", "program_num=1:title=one:st=0:st=1", "-program", "program_num=7:title=two:st=2:st=3"]);
    let _sender = send(&input, "mpegts", &format!("udp://127.0.0.1:{port}?pkt_size=1316"));
    let viewers =
        [(by_http(&edge, "tv/1/stream.mp4", 100), CLIP), (by_http(&edge, "tv/7/stream.mp4", 100), "hevc_hvc1.mp4")];
    for (viewer, name) in viewers {
        assert_of_clip(&hashes(viewer), name, 100);
    }
    assert_eq!(codecs(&edge.url("tv/7/stream.mp4")), ["hevc", "ac3"]);
    let refused = edge.get("tv/stream.mp4");
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("programmes 1, 7"), "{}", refused.text());
}

#[test]
fn viewers_stay_while_senders_come_and_go() {
    for pause in [1, 7] {
        let port = free_port();
        let edge = serve(&format!("tv=udp://127.0.0.1:{port}"));
        let target = format!("udp://127.0.0.1:{port}?pkt_size=1316");
        let sender = send_clip("mpegts", &target);
        let viewers = [by_rtsp(&edge, "tv", 250), by_http(&edge, "tv/index.m3u8", 250)];
        assert_eq!(hashes(by_http(&edge, "tv/stream.mp4", 75)).len(), 75);
        drop(sender);
        std::thread::sleep(Duration::from_secs(pause));
        let _sender = send_clip("mpegts", &target);
        let source = pictures(&clip(CLIP));
        for viewer in viewers {
            let (received, said) = read(viewer);
            assert_eq!(received.len(), 250, "{said}");
            let places = received.iter().map(|hash| source.iter().position(|known| known == hash));
            let places: Vec<usize> = places.map(|place| place.expect("a picture of the clip")).collect();
            let breaks = places.windows(2).filter(|two| two[1] != (two[0] + 1) % source.len()).count();
            // A sender may end between a picture and the B-frames that are shown before it.
            assert!(breaks <= 3, "{pause} s: {breaks} breaks of {places:?}");
        }
        let playlist = edge.get("tv/v1/index.m3u8").text();
        assert!(playlist.contains("#EXT-X-DISCONTINUITY\n"), "{playlist}");
    }
}

/// Pictures that need no other.
fn intra() -> PathBuf {
    let coding = "-c:v libx264 -preset ultrafast -g 1 -pix_fmt yuv420p -crf 30";
    made("intra.ts", "testsrc2=size=320x180:rate=25:duration=9", coding)
}

/// Checks that pictures are whole ones of the file in their order, and returns the number of those between that are missing.
fn missing(received: &[String], file: &Path) -> usize {
    let source = pictures(file.to_str().unwrap());
    let places = received.iter().map(|hash| source.iter().position(|known| known == hash));
    let places: Vec<usize> = places.map(|place| place.expect("a whole picture of the file")).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    places[places.len() - 1] + 1 - places[0] - places.len()
}

/// Waits until lost packets are counted.
fn until_lost(server: &Server) {
    let began = Instant::now();
    loop {
        let streams: Value = crate::support::api::items(server.admin, "streams");
        let count = |field: &str| streams[0][field].as_u64().unwrap_or(0);
        if count("lost-packets") > 0 && count("broken-frames") > 0 && count("packets") > count("lost-packets") {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{streams}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn lost_datagrams_break_no_other_picture() {
    for scheme in ["udp", "rtp"] {
        let (port, file) = (free_port(), intra());
        let edge = serve(&format!("tv={scheme}://127.0.0.1:{port}"));
        let viewers = [by_http(&edge, "tv/stream.mp4", 120), by_rtsp(&edge, "tv", 120)];
        until_open(port);
        let sent = datagrams(&file);
        // One of 30, and bursts. Continuity counters alone don't show 16 packets that are missing, sequence numbers do.
        let burst = if scheme == "rtp" { 5 } else { 2 };
        let is_lost = |at: usize| at % 30 == 29 || at % 200 >= 200 - burst;
        let lost = (0..sent.len()).filter(|at| is_lost(*at)).count();
        let mut sent = if scheme == "rtp" { as_rtp(sent) } else { sent };
        (0..sent.len()).filter(|at| is_lost(*at)).for_each(|at| sent[at].clear());
        if scheme == "rtp" {
            // Out of order, and twice.
            (0..sent.len() - 8).step_by(40).for_each(|at| sent.swap(at, at + 2));
            sent = sent.chunks(60).flat_map(|some| [some, &some[..1]].concat()).collect();
        }
        let sender = send_all(sent, "127.0.0.1", port);
        until_lost(&edge);
        for viewer in viewers {
            let (received, said) = read(viewer);
            assert_eq!((received.len(), &*said), (120, ""));
            let missing = missing(&received, &file);
            assert!((1..=3 * lost).contains(&missing), "{scheme}: {missing} pictures missing of {lost} datagrams");
        }
        sender.join().unwrap();
        let text = edge.log_text();
        assert!(text.contains("damage in a transport stream"), "{text}");
    }
}

#[test]
fn garbage_and_strangers_break_nothing() {
    let (port, file) = (free_port(), intra());
    let edge = serve(&format!("tv=udp://127.0.0.1:{port}"));
    let viewers = [by_http(&edge, "tv/stream.mp4", 150), by_rtsp(&edge, "tv", 150)];
    until_open(port);
    let garbage =
        |number: usize| -> Vec<u8> { (0..DATAGRAM).map(|at| (number.wrapping_mul(at * at + 7) >> 3) as u8).collect() };
    // Bytes that are nothing, from before the sender on; another stream with the same PIDs, once it sends.
    let senders = send_beside(
        vec![
            ("127.0.0.2", (0..2000).map(garbage).collect()),
            ("127.0.0.1", [vec![Vec::new(); 57], datagrams(&file)].concat()),
            ("127.0.0.3", [vec![Vec::new(); 200], datagrams(&intra())].concat()),
        ],
        port,
    );
    for viewer in viewers {
        let (received, said) = read(viewer);
        assert_eq!((received.len(), &*said, missing(&received, &file)), (150, "", 0));
    }
    senders.join().unwrap();
}

#[test]
fn streams_change_within_a_programme() {
    let port = free_port();
    let source = "testsrc2=size=320x180:rate=25:duration=9";
    let coding = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 50 -bf 2";
    let first = made("before.ts", source, coding);
    // Other pictures, other parameter sets, another PID, another clock.
    let more = "-vf negate -c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 25 -refs 2 -mpegts_start_pid 0x200 \
                -output_ts_offset 5000";
    let second = made("after.ts", source, more);
    let edge = serve(&format!("tv=udp://127.0.0.1:{port}"));
    let viewer = by_rtsp(&edge, "tv", 400);
    until_open(port);
    let sender = send_all([datagrams(&first), datagrams(&second)].concat(), "127.0.0.1", port);
    // ffmpeg's reader of HLS keeps the first init segment, so the playlist is read here.
    let began = Instant::now();
    loop {
        let playlist = String::from_utf8(edge.get("tv/v1/index.m3u8").body).unwrap();
        if playlist.contains("#EXT-X-DISCONTINUITY\n#EXT-X-MAP:") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{playlist}");
        std::thread::sleep(Duration::from_millis(500));
    }
    let all = [pictures(first.to_str().unwrap()), pictures(second.to_str().unwrap())].concat();
    let received = hashes(viewer);
    let offset = all.iter().position(|hash| *hash == received[0]).expect("a picture of the first stream");
    assert!(offset.is_multiple_of(50), "{offset}");
    let same = all[offset..].iter().zip(&received).take_while(|(a, b)| a == b).count();
    assert_eq!((same, received.len()), (400, 400), "from picture {offset}");
    sender.join().unwrap();
}

#[test]
fn streams_that_are_left_out_are_named() {
    let port = free_port();
    let edge = serve(&format!("tv=udp://127.0.0.1:{port}"));
    let target = format!("udp://127.0.0.1:{port}?pkt_size=1316");
    let path = clip(CLIP);
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", &path]);
    command.args(["-map", "0:v", "-map", "0:v", "-map", "0:a", "-c", "copy", "-c:v:1", "mpeg2video"]);
    command.args(["-f", "mpegts", "-mpegts_flags", "latm", &target]);
    let _sender = Running(command.stdout(Stdio::null()).spawn().unwrap());
    assert_eq!(codecs(&edge.url("tv/stream.mp4")), ["h264", "aac"]);
    assert_of_clip(&hashes(by_http(&edge, "tv/index.m3u8", 60)), CLIP, 60);
    let text = edge.log_text();
    assert!(text.contains("left out") && text.contains("MPEG-2 video"), "{text}");
}

#[test]
fn silence_and_garbage_are_told() {
    let port = free_port();
    clips::folder();
    let edge = Server::start(&[&format!("tv=udp://127.0.0.1:{port}"), "--source-timeout", "2s", "--linger", "0s"]);
    assert_eq!(edge.get("tv/stream.mp4").status, 504);
    std::thread::sleep(Duration::from_millis(1100));
    let garbage = |number: usize| -> Vec<u8> { vec![number as u8; DATAGRAM] };
    let sender = send_all((0..1500).map(garbage).collect(), "127.0.0.1", port);
    let reply = edge.get("tv/stream.mp4");
    assert_eq!(reply.status, 504, "{}", reply.text());
    assert!(reply.text().contains("no transport stream"), "{}", reply.text());
    sender.join().unwrap();
    let _sender = send_clip("mpegts", &format!("udp://127.0.0.1:{port}?pkt_size=1316"));
    // The sender may need longer than viewers wait.
    let began = Instant::now();
    while edge.get("tv/index.m3u8").status != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", edge.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_of_clip(&hashes(by_http(&edge, "tv/stream.mp4", 60)), CLIP, 60);
}
