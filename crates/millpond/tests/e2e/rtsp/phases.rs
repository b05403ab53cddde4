//! Titles in phases: late viewers get the beginning, and then share a phase.

use crate::support::{
    Server, clips,
    rtsp::{Client, over},
};
use std::{
    net::{Ipv4Addr, UdpSocket},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart.
const CLIP: &str = "h264_aac.mp4";
const FRAMES: usize = 225;

/// A server of the clip in phases.
fn start(phases: u16, more: &[&str]) -> Server {
    let channel = format!("movie={CLIP} phases={phases}");
    Server::start(&[&[clips::folder().to_str().unwrap(), "--rtsp-channels", &channel], more].concat())
}

/// The phase that a description names: its path, the wall time at which its lap began since midnight, and the seconds that it has sent.
struct Described {
    path: String,
    began: f64,
    sent: f64,
}

/// Describes the title until a phase has sent some seconds of it.
fn wait_for(client: &mut Client, least: f64) -> Described {
    let begun = Instant::now();
    loop {
        let body = client.ask("DESCRIBE", "", "").body;
        assert!(body.contains("a=range:npt=0-"), "a title with an end: {body}");
        let phase = body.lines().find_map(|line| line.strip_prefix("a=x-phase:"));
        if let Some([path, began, sent]) = phase.map(|phase| phase.split(' ').collect::<Vec<_>>()).as_deref() {
            let sent = sent.strip_prefix("sent=").unwrap().parse().unwrap();
            let began = began.strip_prefix("began=").unwrap();
            // 20261128T031500.250Z
            let digits = |range: std::ops::Range<usize>| began[range].parse::<f64>().unwrap();
            let began = digits(9..11) * 3600.0 + digits(11..13) * 60.0 + began[13..19].parse::<f64>().unwrap();
            if sent >= least {
                return Described { path: path.trim_start_matches('/').to_owned(), began, sent };
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{body}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Times of pictures in seconds, and their hashes.
fn pictures(input: &[&str]) -> Vec<(f64, String)> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", "0:v", "-fps_mode", "passthrough"]);
    let output = command.args(["-enc_time_base", "1/1000", "-f", "framemd5", "-"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        (fields[2].parse::<f64>().unwrap() / 1000.0, fields[5].to_owned())
    };
    let rows: Vec<_> = lines.map(row).collect();
    assert!(!rows.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    rows
}

fn hashes(pictures: &[(f64, String)]) -> Vec<&str> {
    pictures.iter().map(|(_, hash)| &**hash).collect()
}

#[test]
fn a_late_viewer_gets_every_picture_once_and_then_shares_a_phase() {
    // It catches up by a second and a half or more of nine. A busy machine may delay a player by more than that.
    let caught_up = (0..3).any(|_| late_viewer() < Duration::from_millis(8500));
    assert!(caught_up, "three viewers took longer");
}

/// Plays a title of which a phase began before; returns the time that it took.
fn late_viewer() -> Duration {
    let server = start(2, &[]);
    let mut early = Client::new(&server, "movie");
    wait_for(&mut early, 3.5);
    let url = format!("rtsp://127.0.0.1:{}/movie", server.rtsp);
    let began = Instant::now();
    let seen = pictures(&["-rtsp_transport", "tcp", "-i", &url]);
    let took = began.elapsed();
    let file = clips::folder().join(CLIP);
    let whole = pictures(&["-i", file.to_str().unwrap()]);
    assert_eq!((whole.len(), hashes(&seen)), (FRAMES, hashes(&whole)));
    // Times go on across the seam, and across reports.
    // FFmpeg places the first picture before it has a report.
    let steps: Vec<f64> = seen[1..].windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(steps.iter().all(|step| (0.03..0.05).contains(step)), "{steps:?}");
    // Catching up is not being late. A busy machine may delay a few frames.
    let late = server.metric("millpond_rtp_late_frames_total", "");
    assert!(late < 60.0, "{late} late frames");
    drop(early);
    took
}

#[test]
fn a_viewer_by_udp_gets_the_title_at_its_pace() {
    let server = start(3, &[]);
    let mut early = Client::new(&server, "movie");
    wait_for(&mut early, 2.5);
    let url = format!("rtsp://127.0.0.1:{}/movie", server.rtsp);
    let began = Instant::now();
    let seen = pictures(&["-rtsp_transport", "udp", "-i", &url]);
    assert!(began.elapsed() > Duration::from_millis(8500), "{:?}", began.elapsed());
    assert_eq!(seen.len(), FRAMES);
}

/// A title of three minutes: its second phase begins after the test.
fn long_title(folder: &Path) {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-stream_loop", "19", "-i"]).arg(clips::folder().join(CLIP));
    assert!(command.args(["-c", "copy"]).arg(folder.join("long.mp4")).status().unwrap().success());
}

#[test]
fn viewers_that_joined_a_phase_read_nothing_themselves() {
    let folder = tempfile::tempdir().unwrap();
    long_title(folder.path());
    let place = folder.path().to_str().unwrap();
    let server = Server::start(&[place, "--rtsp-channels", "movie=long.mp4 phases=2", "--rtsp-window", "4s"]);
    let mut early = Client::new(&server, "movie");
    wait_for(&mut early, 7.0);
    let mut viewers: Vec<Client> = (0..2).map(|_| Client::new(&server, "movie")).collect();
    for viewer in &mut viewers {
        assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
        assert_eq!(viewer.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
        let reply = viewer.ask("PLAY", "", "");
        assert!(reply.headers["range"].starts_with("npt=0"), "{}", reply.headers["range"]);
    }
    let counts = || ["hits", "misses"].map(|of| server.metric(&format!("millpond_rtsp_interval_{of}_total"), ""));
    let watch = |viewers: &mut [Client], seconds: u64| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(seconds) {
            viewers.iter_mut().for_each(Client::packet);
        }
    };
    // About 6 s of patch, at twice the pace. A busy machine takes longer.
    watch(&mut viewers, 8);
    let reads_nothing = (0..4).any(|_| {
        let before = counts();
        watch(&mut viewers, 4);
        let after = counts();
        after[0] - before[0] >= 8.0 && after[1] == before[1]
    });
    assert!(reads_nothing, "hits and misses: {:?}", counts());
    // Both are at the phase. A busy machine may delay them for a while.
    let mut behind = Vec::new();
    let are_near = (0..4).any(|_| {
        watch(&mut viewers, 1);
        let at = wait_for(&mut early, 0.0).sent;
        behind = viewers.iter().map(|viewer| at - seconds_sent(viewer)).collect();
        behind.iter().all(|seconds| (0.5..3.5).contains(seconds))
    });
    assert!(are_near, "seconds behind the phase: {behind:?}");
}

/// Seconds of the title that a viewer got.
fn seconds_sent(viewer: &Client) -> f64 {
    let times: Vec<u32> = viewer.rtp(0).iter().map(|(_, time)| *time).collect();
    let ticks = times.iter().map(|time| time.wrapping_sub(times[0]) as i32).max();
    f64::from(ticks.unwrap_or(0)) / 90_000.0
}

/// Payloads of each picture on the channel of interleaved packets.
fn payloads(packets: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let all: Vec<Vec<u8>> = packets.collect();
    let time = |packet: &[u8]| packet[4..8].to_vec();
    all.chunk_by(|a, b| time(a) == time(b)).map(|of| of.iter().map(|packet| packet[12..].to_vec()).collect()).collect()
}

fn interleaved(client: &Client) -> Vec<Vec<Vec<u8>>> {
    payloads(client.packets.iter().filter(|(channel, _)| *channel == 0).map(|(_, packet)| packet.clone()))
}

/// Everything that a range of a path has.
fn received(server: &Server, path: &str, headers: &str) -> Vec<Vec<Vec<u8>>> {
    let mut client = Client::new(server, path);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(client.ask("PLAY", "", headers).status, 200);
    client.receive(|packets| over(packets, 1));
    interleaved(&client)
}

#[test]
fn a_receiver_of_multicast_patches_the_beginning_that_it_missed() {
    let first = Ipv4Addr::new(239, 202, std::process::id() as u8, 1);
    let port = crate::support::free_port() & !1;
    let server = start(2, &["--rtsp-multicast", &format!("{first}:{port}/1")]);
    let whole = received(&server, CLIP, "Speed: 8\r\n");
    assert_eq!(whole.len(), FRAMES);
    let mut early = Client::new(&server, "movie");
    let phase = wait_for(&mut early, 2.5);
    let number: u32 = phase.path.strip_prefix("movie/phase-").unwrap().parse().unwrap();
    let group = Ipv4Addr::from(u32::from(first) + number - 1);
    let sockets = [port, port + 1].map(|port| {
        let socket = UdpSocket::bind((group, port)).unwrap();
        socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    });
    assert_eq!(early.set_up("v1", "RTP/AVP;multicast").status, 461, "the title itself has no group");
    let mut receiver = Client::new(&server, &phase.path);
    assert!(receiver.set_up("v1", "RTP/AVP;multicast").headers["transport"].contains(&format!("destination={group}")));
    assert_eq!(receiver.ask("PLAY", "", "").status, 200);
    let mut buffer = [0; 2000];
    let mut packets = Vec::new();
    while packets.len() < 60 {
        let length = sockets[0].recv(&mut buffer).unwrap();
        packets.push(buffer[..length].to_vec());
    }
    let time = u32::from_be_bytes(packets[0][4..8].try_into().unwrap());
    let live = payloads(packets.into_iter());
    let first = whole.iter().position(|picture| *picture == live[0]).expect("a picture of the title");
    // The report maps the timestamp to a wall time, and the description maps that to the title.
    sockets[1].recv(&mut buffer).unwrap();
    let word = |at: usize| u32::from_be_bytes(buffer[at..at + 4].try_into().unwrap());
    let wall = f64::from(word(8) % 86400) + f64::from(word(12)) / 4_294_967_296.0;
    let position = wall + f64::from(time.wrapping_sub(word(16)) as i32) / 90_000.0 - phase.began;
    // The first picture of the clip shows a little after its beginning.
    assert!((position - first as f64 / 25.0).abs() < 0.2, "{position}: picture {first}");
    let patch = received(&server, "movie", &format!("Range: npt=0-{:.3}\r\n", first as f64 / 25.0));
    let joined: Vec<_> = patch[..first].iter().chain(&live[..live.len() - 1]).collect();
    let same = joined.iter().zip(&whole).take_while(|(a, b)| **a == *b).count();
    assert!(first > 0 && same == joined.len(), "{same} of {}, {first} of them patched", joined.len());
}

#[test]
fn a_viewer_by_hls_begins_at_the_beginning() {
    let server = start(4, &[]);
    let reply = server.get("movie/index.m3u8?x=1");
    assert_eq!((reply.status, reply.header("location")), (307, Some(&*format!("../{CLIP}/index.m3u8?x=1"))));
    let whole = pictures(&["-i", clips::folder().join(CLIP).to_str().unwrap()]);
    for resource in ["index.m3u8", "ts/index.m3u8"] {
        let seen = pictures(&["-i", &server.url(&format!("movie/{resource}"))]);
        assert_eq!(hashes(&seen), hashes(&whole), "{resource}");
    }
    assert_eq!(server.get("movie/index.mpd").status, 307);
    let refused = server.get("movie/stream.mp4");
    assert!(refused.status == 404 && refused.text().contains("phases"), "{}", refused.text());
    let described = server.get(".millpond/asset?path=movie");
    assert!(described.status == 200 && described.text().contains(CLIP), "{}", described.text());
}

#[test]
fn a_viewer_before_the_turn_of_a_phase_is_told_when_it_begins() {
    let server = start(2, &[]);
    let began = Instant::now();
    let reply = server.get("movie/phase-2/index.m3u8");
    // Half of 9 seconds.
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!(reply.status == 503 && (1..=5).contains(&seconds), "{}", reply.text());
    assert!(reply.text().contains("phase 2 of 2 begins in"), "{}", reply.text());
    let refused = Client::new(&server, "movie/phase-2").ask("DESCRIBE", "", "");
    assert!(refused.status == 503 && refused.headers.contains_key("retry-after"), "{}", refused.body);
    assert!(refused.body.contains("phase 2 of 2 begins in"), "{}", refused.body);
    assert!(began.elapsed() < Duration::from_secs(2), "at once");
    std::thread::sleep(Duration::from_secs(seconds));
    assert_eq!(server.get("movie/phase-2/index.m3u8").status, 200);
}

#[test]
fn phases_end_with_their_last_viewer() {
    let server = start(3, &[]);
    let modules = || {
        let graph: serde_json::Value = crate::support::api::api(server.admin, "graph");
        graph["modules"].as_array().unwrap().len()
    };
    let mut early = Client::new(&server, "movie");
    wait_for(&mut early, 0.5);
    assert_eq!(modules(), 6, "a loader and a channel for each phase");
    drop(early);
    let began = Instant::now();
    while modules() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
}
