//! Channels: what all viewers of an asset share, by UDP, TCP and multicast; and where a full server sends who comes then.

use crate::support::{self, Server, clips, rtsp::Client};
use std::{
    net::{Ipv4Addr, UdpSocket},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart.
const CLIP: &str = "h264_aac.mp4";
const FRAMES: usize = 225;
const TICKS: u32 = 3600;

/// The kinds of the modules that there are.
fn kinds(server: &Server) -> Vec<String> {
    let graph: serde_json::Value = support::api::api(server.admin, "graph");
    let modules = graph["modules"].as_array().unwrap();
    let mut kinds: Vec<String> = modules.iter().map(|module| module["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

fn until_nothing_runs(server: &Server) {
    let began = Instant::now();
    while !kinds(server).is_empty() || server.metric("millpond_rtsp_playing", "") > 0.0 {
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", kinds(server));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn watch(server: &Server) -> Client {
    let mut client = Client::new(server, CLIP);
    assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    let reply = client.ask("PLAY", "", "Range: npt=5-\r\n");
    assert_eq!((reply.status, &*reply.headers["range"]), (200, "npt=now-"));
    client
}

/// Pictures as they came: timestamp since the first one, and all payloads.
fn pictures(client: &Client) -> Vec<(u32, Vec<&[u8]>)> {
    let packets: Vec<&Vec<u8>> =
        client.packets.iter().filter(|(channel, _)| *channel == 0).map(|(_, packet)| packet).collect();
    let time = |packet: &[u8]| u32::from_be_bytes(packet[4..8].try_into().unwrap());
    let each = packets.chunk_by(|a, b| time(a) == time(b));
    each.map(|of| (time(of[0]).wrapping_sub(time(packets[0])), of.iter().map(|packet| &packet[12..]).collect()))
        .collect()
}

#[test]
fn viewers_of_a_channel_share_a_loader_and_the_moment() {
    // The second viewer reads nothing for ten seconds.
    let folder = clips::folder();
    let server = Server::start(&[folder.to_str().unwrap(), "--rtsp-channels", CLIP, "--viewer-queue", "1m"]);
    let described = Client::new(&server, CLIP).ask("DESCRIBE", "", "");
    assert!(described.body.contains("a=range:npt=now-"), "{}", described.body);
    let (mut first, played) = (watch(&server), Instant::now());
    first.receive(|packets| packets.len() > 100);
    std::thread::sleep(Duration::from_secs(3));
    let (mut second, came) = (watch(&server), played.elapsed());
    assert_eq!(kinds(&server), ["channel", "loader", "transmission", "transmission"]);
    // Into the second lap.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        first.packet();
    }
    drop(first.ask("PAUSE", "", ""));
    second.receive(|packets| packets.len() > 400);
    let (seen, later) = (pictures(&first), pictures(&second));
    assert!(seen.len() > FRAMES + 25, "{}", seen.len());
    // The second began with a key frame, a little before the moment at which it came; then it saw the same.
    let at = seen.iter().position(|(_, payloads)| payloads == &later[0].1).expect("what the first one saw");
    let latest = 25 * (came.as_secs() as usize + 1);
    assert!((50..=latest).contains(&at) && at.is_multiple_of(50), "{at} of {latest}");
    let both = later.len().min(seen.len() - at) - 1;
    let same = seen[at..].iter().zip(&later).take_while(|(a, b)| a.1 == b.1).count();
    assert!(both > 100 && same >= both, "{same} of {both}");
    // Round and round, with times that go on.
    for (place, (_, payloads)) in seen.iter().enumerate().skip(FRAMES).take(seen.len() - FRAMES - 1) {
        assert_eq!(payloads, &seen[place - FRAMES].1, "{place}");
    }
    let mut times: Vec<u32> = seen.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    assert!(times[..FRAMES + 10].windows(2).all(|two| two[1] - two[0] == TICKS), "{times:?}");
    // Who paused joins again; with the last one all is taken apart.
    let reply = first.ask("PLAY", "", "");
    assert_eq!((reply.status, &*reply.headers["range"]), (200, "npt=now-"));
    assert_eq!(first.ask("TEARDOWN", "", "").status, 200);
    drop(second);
    until_nothing_runs(&server);
}

/// Hashes of a file's pictures.
fn hashes(file: &str) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", file, "-map", "0:v", "-fps_mode", "passthrough"]);
    let output = command.args(["-f", "framemd5", "-"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect()
}

/// The pictures that GStreamer gets from the group, until it has half as many bytes as the clip.
fn seen_by_gstreamer(server: &Server) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("got.h264").display().to_string();
    let (location, target) = (format!("location=rtsp://127.0.0.1:{}/{CLIP}", server.rtsp), format!("location={file}"));
    let mut player = Command::new("gst-launch-1.0");
    player.args(["rtspsrc", &location, "protocols=udp-mcast", "name=s"]);
    player.args(["multicast-iface=lo", "s.", "!", "application/x-rtp,media=audio", "!", "fakesink", "sync=false"]);
    player.args(["s.", "!", "application/x-rtp,media=video", "!", "rtph264depay", "!", "h264parse", "!"]);
    player.args(["video/x-h264,stream-format=byte-stream,alignment=au", "!", "filesink", "buffer-mode=unbuffered"]);
    let player = player.arg(&target).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let enough = clips::folder().join(CLIP).metadata().unwrap().len() / 2;
    let began = Instant::now();
    while std::fs::metadata(&file).map_or(0, |file| file.len()) < enough && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&player), rustix::process::Signal::INT).unwrap();
    let output = player.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let seen = hashes(&file);
    assert!(!seen.is_empty(), "{said}");
    seen
}

#[test]
fn a_group_is_sent_once_for_all_who_have_it() {
    let group = Ipv4Addr::new(239, 200, std::process::id() as u8, 1);
    let port = support::free_port() & !1;
    let groups = format!("{group}:{port}/1");
    let server =
        Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP, "--rtsp-multicast", &groups]);
    let receiver = UdpSocket::bind((group, port)).unwrap();
    receiver.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    // A reader that waits for a processor loses nothing.
    rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 4 << 20).unwrap();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&server, CLIP)).collect();
    let transports: Vec<String> = clients
        .iter_mut()
        .map(|client| client.set_up("v1", "RTP/AVP;multicast").headers["transport"].clone())
        .collect();
    let expected = format!("RTP/AVP;multicast;destination={group};port={port}-{};ttl=1;ssrc=", port + 1);
    assert!(transports[0].starts_with(&expected), "{}", transports[0]);
    assert!(transports.iter().all(|transport| *transport == transports[0]), "{transports:?}");
    assert_eq!(clients[0].set_up("a1", "RTP/AVP/TCP").status, 461, "all of a session or nothing");
    for client in &mut clients {
        assert_eq!(client.ask("PLAY", "", "").status, 200);
    }
    assert_eq!(kinds(&server), ["channel", "loader", "multicast"]);
    let mut buffer = [0; 2000];
    let mut next = None;
    for _ in 0..300 {
        let length = receiver.recv(&mut buffer).unwrap();
        let sequence = u16::from_be_bytes([buffer[2], buffer[3]]);
        assert!(length <= 1400 && next.is_none_or(|next| next == sequence), "each packet once, in order");
        next = Some(sequence.wrapping_add(1));
    }
    // One leaves, the others go on; with the last one it ends.
    clients.pop();
    assert_eq!(clients[0].ask("TEARDOWN", "", "").status, 200);
    receiver.recv(&mut buffer).unwrap();
    drop(receiver);
    if support::have("gst-launch-1.0") {
        let seen = seen_by_gstreamer(&server);
        let whole = hashes(&clips::folder().join(CLIP).display().to_string());
        // It comes in at some key frame, and goes round.
        let begins = whole.iter().position(|picture| *picture == seen[0]).expect("a picture of the clip");
        let same = whole.iter().cycle().skip(begins).zip(&seen).take_while(|(a, b)| a == b).count();
        // The player is interrupted: it has a part of the last picture, and lacks some that are shown before it.
        assert!(begins.is_multiple_of(50) && seen.len() > 50 && same + 4 >= seen.len(), "{same} of {}", seen.len());
    }
    drop(clients);
    for session in 0..2 {
        let mut client = Client::new(&server, CLIP);
        client.set_up("v1", "RTP/AVP;multicast");
        assert_eq!(client.ask("PLAY", "", "").status, 200, "{session}");
        assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
    }
}

#[test]
fn an_address_has_one_rendition() {
    let groups = format!("239.201.{}.1:{}", std::process::id() as u8, support::free_port() & !1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("film")).unwrap();
    for name in ["180p.mp4", "360p.mp4"] {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");
        std::fs::copy(format!("{sample}/{name}"), folder.path().join("film").join(name)).unwrap();
    }
    let place = folder.path().to_str().unwrap();
    let server = Server::start(&[place, "--rtsp-channels", "film", "--rtsp-multicast", &groups]);
    let status = |path: &str, track: &str, transport: &str| Client::new(&server, path).set_up(track, transport).status;
    assert_eq!(status("film", "v2", "RTP/AVP;multicast"), 200);
    assert_eq!(status("film", "a1", "RTP/AVP;multicast"), 200);
    for (path, track) in [("film/v1", "v1"), ("film/v1", "a1"), ("film/a1", "a1")] {
        assert_eq!(status(path, track, "RTP/AVP;multicast"), 461, "{path}/{track}");
        assert_eq!(status(path, track, "RTP/AVP/TCP"), 200, "{path}/{track}: by itself");
    }
    assert_eq!(status("film", "v1", "RTP/AVP;multicast"), 404, "another rendition has another URL");
    // Too low a bandwidth changes nothing.
    let body = Client::new(&server, "film").ask("DESCRIBE", "", "Bandwidth: 1\r\n").body;
    assert!(body.contains("a=control:v2"), "{body}");
}

#[test]
fn who_finds_no_room_is_sent_elsewhere() {
    let folder = clips::folder().to_str().unwrap();
    let other = Server::start(&[folder]);
    let elsewhere = format!("rtsp://127.0.0.1:{}", other.rtsp);
    let server = Server::start(&[folder, "--rtsp-sessions", "1", "--rtsp-overflow", &elsewhere]);
    let mut client = Client::new(&server, CLIP);
    assert_eq!(client.ask("DESCRIBE", "", "").status, 200);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP").status, 200);
    let reply = Client::new(&server, CLIP).ask("DESCRIBE", "", "");
    assert_eq!((reply.status, &*reply.headers["location"]), (302, &*format!("{elsewhere}/{CLIP}")));
    let url = format!("rtsp://127.0.0.1:{}/{CLIP}", server.rtsp);
    let mut player = Command::new("ffmpeg");
    player.args(["-v", "error", "-nostdin", "-rtsp_transport", "tcp", "-i", &url, "-map", "0:v", "-c", "copy"]);
    let output = player.args(["-f", "framemd5", "-"]).output().unwrap();
    let frames = String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(frames, FRAMES, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(other.metric("millpond_rtp_frames_total", "") >= FRAMES as f64);
}

#[test]
fn a_client_gets_the_rendition_that_it_names_or_has_bandwidth_for() {
    let server = Server::start(&[]);
    let ask = |path: &str, headers: &str| Client::new(&server, path).ask("DESCRIBE", "", headers);
    let described = |headers: &str| ask("sample", headers).body;
    let video = |body: &str| {
        let media = body.split("m=video").nth(1).unwrap().to_owned();
        media.lines().find_map(|line| line.strip_prefix("a=control:")).unwrap().to_owned()
    };
    let (best, least) = (video(&described("")), video(&described("Bandwidth: 1\r\n")));
    assert_ne!(best, least);
    assert_eq!(video(&described("Bandwidth: 100000000\r\n")), best);
    assert_eq!(video(&described("Bandwidth: much\r\n")), best);
    for rendition in ["v1", "v2"] {
        assert_eq!(video(&ask(&format!("sample/{rendition}"), "").body), rendition);
        let mut client = Client::new(&server, &format!("sample/{rendition}"));
        assert_eq!(client.set_up(rendition, "RTP/AVP/TCP").status, 200);
        assert_eq!(client.ask("PLAY", "", "").status, 200);
    }
    assert_eq!(ask("sample/v9", "").status, 404);
}
