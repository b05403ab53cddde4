//! RTSP with real players over UDP and TCP, and a client of our own for what players don't show.

use crate::support::{
    self, Server, clips, origins,
    rtsp::{Client, over},
};
use millpond_rtp::rtcp::{ReportBlock, receiver_report};
use std::{
    io::Write as _,
    net::UdpSocket,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Arguments that make ffmpeg print only the hash of each frame.
fn hashes(args: &[&str]) -> Result<Vec<String>, String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(args).args(["-f", "framemd5", "-"]);
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let hashes: Vec<String> = lines
        .lines()
        .filter(|line| !line.starts_with('#'))
        // Behind it side data may stand.
        .filter_map(|line| Some(line.split(',').nth(5)?.trim().to_owned()))
        .collect();
    if output.status.success() && !hashes.is_empty() { Ok(hashes) } else { Err(format!("{args:?}: {errors}")) }
}

/// Clips that ffmpeg plays by RTSP: it has no depacketizer for AV1 and E-AC-3, and there is no payload format for FLAC and ALAC
/// here.
const PLAYED: &[&str] = &[
    "h264_aac.mp4",
    "h264_open_gop.mp4",
    "h264_fragmented.mp4",
    "hevc_hvc1.mp4",
    "hevc_hev1.mp4",
    "vp9_opus.mp4",
    "mp3.mp4",
    "ac3.mp4",
    "opus.mp4",
    "aac_44100.m4a",
    "h264_aac.mkv",
    "h264_aac.ts",
    "hevc_open_gop_ac3.mkv",
    "vp9_opus.webm",
];

const PICTURES: &[&str] = &["-map", "0:v", "-fps_mode", "passthrough"];
const SOUND: &[&str] = &["-map", "0:a", "-c", "copy"];
/// PCM comes in other frames and in another order of bytes than it has in the file.
const VALUES: &[&str] = &["-map", "0:a", "-af", "asetnsamples=n=960:p=0", "-c:a", "pcm_s32le"];

/// Clips with PCM, and those that have the same values where ffmpeg doesn't read them: it has no depacketizer for L8 and ipcm
/// only since version 6.
const PCM: &[(&str, &str)] = &[
    ("sowt.mov", "sowt.mov"),
    ("twos.mov", "twos.mov"),
    ("in24_le.mov", "in24_le.mov"),
    ("in24_be.mov", "in24_be.mov"),
    ("lpcm.mov", "lpcm.mov"),
    ("ulaw.mov", "ulaw.mov"),
    ("alaw.mov", "alaw.mov"),
    ("sowt_fragmented.mov", "sowt_fragmented.mov"),
    ("h264_sowt.mov", "h264_sowt.mov"),
    ("ipcm.mp4", "sowt.mov"),
];

/// Every frame of a clip comes as it is in the file: pictures decoded, sound as it is coded.
fn plays(server: &Server, clip: &str, transport: &str) -> Result<(), String> {
    let has_video = ["h264", "hevc", "vp9"].iter().any(|codec| clip.starts_with(codec));
    plays_as(server, clip, clip, transport, if has_video { PICTURES } else { SOUND })
}

/// Checks that a clip arrives as its file has it.
fn plays_as(server: &Server, clip: &str, file: &str, transport: &str, map: &[&str]) -> Result<(), String> {
    let url = format!("rtsp://127.0.0.1:{}/{clip}", server.rtsp);
    let file = clips::folder().join(file).display().to_string();
    let ours = |more: &[&str]| {
        // Enough room for what a loaded machine reads late: nothing is to be lost here.
        let input = ["-rtsp_transport", transport, "-buffer_size", "8000000", "-i", &url];
        hashes(&[&input[..], more].concat())
    };
    let theirs = |more: &[&str]| hashes(&[&["-i", &file][..], more].concat());
    let (got, expected) = (ours(map)?, theirs(map)?);
    if got == expected {
        return Ok(());
    }
    let first = got.iter().zip(&expected).position(|(a, b)| a != b);
    Err(format!("{clip} over {transport}: {} frames, expected {}, first other {first:?}", got.len(), expected.len()))
}

#[test]
fn ffmpeg_gets_every_frame_over_tcp_and_udp() {
    let server = Server::of_clips();
    for transport in ["tcp", "udp"] {
        let mut wrong: Vec<(&str, String)> = std::thread::scope(|scope| {
            let play = |clip| Some((clip, plays(&server, clip, transport).err()?));
            let clips = PLAYED.iter().chain(&["h264_sowt.mov"]);
            let all: Vec<_> = clips.map(|clip| scope.spawn(move || play(*clip))).collect();
            all.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        if transport == "udp" {
            // A player that gets no processor for seconds loses datagrams. A fault of the server shows when it plays alone too.
            wrong.retain(|(clip, _)| plays(&server, clip, transport).is_err());
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let play = |(clip, file)| plays_as(&server, clip, file, transport, VALUES);
        let mut wrong: Vec<_> = std::thread::scope(|scope| {
            let play = |pair| Some((pair, play(pair).err()?));
            let all: Vec<_> = PCM.iter().map(|pair| scope.spawn(move || play(*pair))).collect();
            all.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        if transport == "udp" {
            wrong.retain(|(pair, _)| play(*pair).is_err());
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    assert!(server.metric("millpond_rtp_frames_total", "") > 1000.0);
    assert_eq!(server.metric("millpond_rtsp_playing", ""), 0.0);
}

#[test]
fn gstreamer_gets_every_value_of_8_bits() {
    if !support::have("gst-launch-1.0") {
        return;
    }
    let server = Server::start(&[clips::folder().to_str().unwrap()]);
    let folder = tempfile::tempdir().unwrap();
    for clip in ["raw8.mov", "sowt8.mov"] {
        let got = folder.path().join(clip);
        let source = format!("location=rtsp://127.0.0.1:{}/{clip}", server.rtsp);
        let sink = format!("location={}", got.display());
        let mut command = Command::new("gst-launch-1.0");
        command.args(["-q", "rtspsrc", &source, "protocols=tcp", "!", "rtpL8depay", "!", "filesink", &sink]);
        let output = command.output().unwrap();
        let file = clips::folder().join(clip).display().to_string();
        let mut command = Command::new("ffmpeg");
        let expected = command.args(["-v", "error", "-nostdin", "-i", &file, "-f", "u8", "-"]).output().unwrap().stdout;
        let got = std::fs::read(got).unwrap_or_default();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(got == expected, "{clip}: {} bytes, expected {}: {errors}", got.len(), expected.len());
    }
}

#[test]
fn g711_and_pcm_of_8_bits_are_flac_in_hls_and_dash_and_left_out_of_ts() {
    let server = Server::start(&[clips::folder().to_str().unwrap()]);
    for (clip, codec) in [("ulaw.mov", "ulaw"), ("raw8.mov", "raw")] {
        for tail in ["index.m3u8", "index.mpd"] {
            let reply = server.get(&format!("{clip}/{tail}"));
            assert_eq!(reply.status, 200, "{tail}");
            assert!(reply.text().contains("fLaC"), "{}", reply.text());
        }
        for tail in ["a1/index.m3u8", "a1/init.mp4", "a1/1.m4s"] {
            assert_eq!(server.get(&format!("{clip}/{tail}")).status, 200, "{tail}");
        }
        let reply = server.get(&format!("{clip}/ts/index.m3u8"));
        assert_eq!(reply.status, 422);
        let told = format!("can carry none of the tracks: found {codec}");
        assert!(reply.text().contains(&told), "{}", reply.text());
        assert_eq!(server.get(&format!("{clip}/ts/a1/1.ts")).status, 404);
    }
}

#[test]
fn gstreamer_and_mpv_play_to_the_end() {
    let server = Server::of_clips();
    let url = |clip: &str| format!("rtsp://127.0.0.1:{}/{clip}", server.rtsp);
    let mut players = Vec::new();
    for clip in ["h264_aac.mp4", "hevc_hvc1.mp4", "vp9_opus.mp4", "ac3.mp4", "h264_sowt.mov", "in24_le.mov"] {
        for protocol in ["tcp", "udp"] {
            let source = format!("location={}", url(clip));
            let protocols = format!("protocols={protocol}");
            let mut command = Command::new("gst-launch-1.0");
            command.args(["rtspsrc", &source, &protocols, "!", "decodebin", "!", "fakesink", "sync=false"]);
            players.push((format!("gstreamer {clip} {protocol}"), command, "gst-launch-1.0"));
        }
    }
    for protocol in ["tcp", "udp"] {
        let mut command = Command::new("mpv");
        let transport = format!("--rtsp-transport={protocol}");
        command.args(["--no-config", "--vo=null", "--ao=null", "--untimed", &transport, &url("h264_aac.mp4")]);
        players.push((format!("mpv {protocol}"), command, "mpv"));
    }
    let mut running = Vec::new();
    for (name, mut command, program) in players {
        if support::have(program) {
            running.push((name, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()));
        }
    }
    for (name, child) in running {
        let output = child.wait_with_output().unwrap();
        // When it has played all, rtspsrc sometimes takes the PAUSE that it breaks off itself for an error.
        let has_ended = String::from_utf8_lossy(&output.stdout).contains("Got EOS from element");
        assert!(output.status.success() || has_ended, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_seek_lands_where_the_reply_says_and_a_pause_loses_nothing() {
    let server = Server::of_clips();
    let mut client = Client::new(&server, "h264_aac.mp4");
    assert_eq!(client.ask("DESCRIBE", "", "Accept: application/sdp\r\n").status, 200);
    let transport = client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").headers["transport"].clone();
    assert!(transport.contains("interleaved=0-1"), "{transport}");
    assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
    // Key frames are two seconds apart.
    let reply = client.ask("PLAY", "", "Range: npt=5-\r\n");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["range"], "npt=4.000-9.000");
    let info = reply.headers["rtp-info"].clone();
    let told = |info: &str, name: &str, field: &str| -> u32 {
        let track = info.split(',').find(|track| track.contains(name)).unwrap();
        track.split(';').find_map(|part| part.strip_prefix(field)).unwrap().parse().unwrap()
    };
    client.receive(|packets| packets.iter().filter(|(on, _)| *on == 0).count() > 20);
    let first = client.rtp(0)[0];
    // The file keeps parameter sets apart: they come before the key frame, and at its time.
    let nals = client.packets.iter().filter(|(on, _)| *on == 0).map(|(_, packet)| packet[12] & 0x1f);
    assert_eq!(nals.take(2).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(client.rtp(0)[2].1, first.1);
    assert_eq!(u32::from(first.0), told(&info, "/v1", "seq="));
    assert_eq!(first.1, told(&info, "/v1", "rtptime="), "the key frame shows where the range begins");
    assert_eq!(client.ask("PAUSE", "", "").status, 200);
    let paused = client.packets.len();
    std::thread::sleep(Duration::from_millis(300));
    let reply = client.ask("PLAY", "", "");
    assert_eq!(reply.status, 200);
    assert!(client.packets.len() - paused <= 4, "reports only, while it is paused");
    client.receive(|packets| over(packets, 1) && over(packets, 3));
    for channel in [0, 2] {
        let packets = client.rtp(channel);
        let gaps = packets.windows(2).filter(|two| two[1].0 != two[0].0.wrapping_add(1)).count();
        assert_eq!(gaps, 0, "channel {channel}");
    }
    // From 4 to 9 seconds at 25 a second, however often it paused.
    let mut times: Vec<u32> = client.rtp(0).iter().map(|packet| packet.1.wrapping_sub(first.1)).collect();
    times.sort_unstable();
    times.dedup();
    let expected: Vec<u32> = (0..125).map(|frame| frame * 3600).collect();
    assert_eq!(times, expected);
    // Behind the end there is nothing, and a seek back goes on with the numbers.
    assert_eq!(client.ask("PLAY", "", "Range: npt=100-\r\n").status, 457);
    let last = client.rtp(0).last().copied().unwrap();
    let reply = client.ask("PLAY", "", "Range: npt=0-1\r\n");
    assert_eq!((reply.status, &*reply.headers["range"]), (200, "npt=0.000-1.000"));
    let info = reply.headers["rtp-info"].clone();
    assert_eq!(told(&info, "/v1", "seq="), u32::from(last.0.wrapping_add(1)));
    let before = client.rtp(0).len();
    client.packets.retain(|(on, _)| on % 2 == 0);
    client.receive(|packets| over(packets, 1));
    let mut times: Vec<u32> = client.rtp(0)[before..].iter().map(|packet| packet.1).collect();
    times.dedup();
    assert_eq!(times.len(), 25);
    assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
    assert_eq!(client.ask("PLAY", "", "").status, 454);
}

#[test]
fn key_frames_only_where_it_goes_fast_or_backwards() {
    let server = Server::of_clips();
    // 9 seconds at 25 a second, key frames two seconds apart.
    for (headers, range, scale, at) in [
        ("Scale: 4\r\n", "npt=0.000-", "4", vec![0.0, 0.5, 1.0, 1.5, 2.0]),
        ("Range: npt=9-\r\nScale: -2\r\n", "npt=9.000-0.000", "-2", vec![0.5, 1.5, 2.5, 3.5, 4.5]),
        ("Range: npt=7-3\r\nScale: -4\r\n", "npt=7.000-3.000", "-4", vec![0.25, 0.75]),
    ] {
        let mut client = Client::new(&server, "h264_aac.mp4");
        assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
        assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
        let reply = client.ask("PLAY", "", headers);
        assert_eq!(reply.status, 200, "{headers}");
        assert!(reply.headers["range"].starts_with(range), "{headers}: {}", reply.headers["range"]);
        assert_eq!(reply.headers["scale"], scale, "{headers}");
        let info = reply.headers["rtp-info"].clone();
        let start: u32 = info.split("rtptime=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        client.receive(|packets| over(packets, 1));
        let mut times: Vec<u32> = client.rtp(0).iter().map(|packet| packet.1.wrapping_sub(start)).collect();
        times.dedup();
        times.sort_unstable();
        let expected: Vec<u32> = at.iter().map(|seconds| (seconds * 90_000.0) as u32).collect();
        assert_eq!(times, expected, "{headers}");
        assert!(client.rtp(2).is_empty(), "sound goes along at its own pace only");
    }
    let mut client = Client::new(&server, "h264_aac.mp4");
    client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(client.ask("PLAY", "", "Range: npt=0-1\r\nScale: 1.5\r\n").headers["scale"], "1", "what can be had");
    assert_eq!(client.ask("PLAY", "", "Scale: fast\r\n").status, 400);
    assert_eq!(
        client.ask("PLAY", "", "Scale: -2\r\nRange: npt=0-\r\n").status,
        457,
        "nothing lies before the beginning"
    );
    // After a pause it goes on from where it was on the way.
    let began = Instant::now();
    assert_eq!(client.ask("PLAY", "", "Range: npt=0-\r\nScale: 8\r\n").status, 200);
    client.receive(|packets| packets.iter().filter(|(on, _)| *on == 0).count() > 0);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(client.ask("PAUSE", "", "").status, 200);
    let range = client.ask("PLAY", "", "").headers["range"].clone();
    let most = 3.2 + began.elapsed().as_secs_f64() * 8.0;
    let from: f64 = range.trim_start_matches("npt=").split('-').next().unwrap().parse().unwrap();
    assert!((4.0..=most).contains(&from), "{range}, at most {most}");
}

#[test]
fn who_comes_soon_after_reads_from_memory() {
    let server = Server::of_clips();
    let mut clients: Vec<Client> = (0..10).map(|_| Client::new(&server, "h264_aac.mp4")).collect();
    for client in &mut clients {
        client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
        assert_eq!(client.ask("PLAY", "", "").status, 200);
        std::thread::sleep(Duration::from_millis(100));
    }
    for client in &mut clients {
        client.receive(|packets| over(packets, 1));
        let mut times: Vec<u32> = client.rtp(0).iter().map(|packet| packet.1).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 225);
    }
    let of = |name: &str| server.metric(name, "");
    let (hits, misses) = (of("millpond_rtsp_interval_hits_total"), of("millpond_rtsp_interval_misses_total"));
    // Nine seconds, in blocks of one at most, of each but the first.
    assert!(hits >= 81.0 && misses < hits / 100.0, "{hits} hits, {misses} misses");
}

#[test]
fn nothing_plays_to_who_did_not_ask() {
    let server = Server::of_clips();
    let mut client = Client::new(&server, "h264_aac.mp4");
    let elsewhere = client.set_up("v1", "RTP/AVP;unicast;destination=192.0.2.1;client_port=5000-5001");
    assert_eq!(elsewhere.status, 461);
    assert_eq!(client.set_up("v1", "RTP/AVP;multicast").status, 461);
    assert_eq!(client.set_up("v9", "RTP/AVP/TCP").status, 404);
    client.session = Some("0000".into());
    assert_eq!(client.ask("PLAY", "", "").status, 454);
    client.session = None;
    assert_eq!(client.ask("PLAY", "", "").status, 454);
    assert_eq!(client.ask("RECORD", "", "").status, 501);
    let mut missing = Client::new(&server, "nothing.mp4");
    assert_eq!(missing.ask("DESCRIBE", "", "").status, 404);
    let mut sound = Client::new(&server, "flac.mp4");
    assert_eq!(sound.ask("DESCRIBE", "", "").status, 415, "no payload format");
    // Bytes that are no request end the connection.
    let mut broken = Client::new(&server, "");
    broken.stream.get_mut().write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n").unwrap();
    assert_eq!(broken.reply().unwrap().status, 400);
    assert!(broken.reply().is_none(), "closed");
}

#[test]
fn sessions_end_with_their_connection_and_leave_nothing_in_the_graph() {
    let server = Server::of_clips();
    let mut clients: Vec<Client> = (0..20).map(|_| Client::new(&server, "h264_long_gop.mp4")).collect();
    for client in &mut clients {
        client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
        assert_eq!(client.ask("PLAY", "", "").status, 200);
    }
    let graph = |path: &str| support::get(server.admin, &format!("/api/v1{path}"), &[]).text();
    let modules = |graph: &str| graph.matches("\"kind\"").count();
    assert_eq!(modules(&graph("/graph")), 40, "a loader and a transmission each");
    assert!(graph("/graph.dot").starts_with("digraph"));
    // Replies go out before the first packets.
    for _ in 0..1200 {
        if server.metric("millpond_rtsp_playing", "") == 20.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.metric("millpond_rtsp_playing", ""), 20.0);
    drop(clients);
    for _ in 0..1200 {
        if modules(&graph("/graph")) == 0 && server.metric("millpond_rtsp_playing", "") == 0.0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{}", graph("/graph"));
}

#[test]
fn reports_on_the_connection_count_for_its_own_sessions() {
    let server = Server::start(&[clips::folder().to_str().unwrap()]);
    let mut clients = [Client::new(&server, "h264_aac.mp4"), Client::new(&server, "h264_aac.mp4")];
    let sources = clients.each_mut().map(|client| {
        let transport = client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").headers["transport"].clone();
        assert_eq!(client.ask("PLAY", "", "").status, 200);
        u32::from_str_radix(transport.split("ssrc=").nth(1).unwrap(), 16).unwrap()
    });
    let reception =
        |ssrc, lost| ReportBlock { ssrc, fraction_lost: 0, lost, highest: 1, jitter: 90, last_report: 0, delay: 0 };
    let own = &mut clients[0];
    for report in [reception(sources[0], 3), reception(sources[1], 100), reception(sources[0], 5)] {
        let packet = receiver_report(7, &[report], "a client");
        let mut bytes = vec![b'$', 1, 0, packet.len() as u8];
        bytes.extend_from_slice(&packet);
        own.stream.get_mut().write_all(&bytes).unwrap();
    }
    assert_eq!(own.ask("GET_PARAMETER", "", "").status, 200);
    let of = |name: &str| server.metric(name, "");
    assert_eq!((of("millpond_rtcp_reports_total"), of("millpond_rtcp_lost_packets_total")), (2.0, 5.0));
}

#[test]
fn packets_by_udp_come_from_the_ports_that_were_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("a.mp4")).unwrap();
    // From a web server, through the cache.
    let scratch = tempfile::tempdir().unwrap();
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}")]);
    let mut client = Client::new(&server, "a.mp4");
    let [rtp, rtcp] = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let ports = [&rtp, &rtcp].map(|socket| {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.local_addr().unwrap().port()
    });
    let reply = client.set_up("v1", &format!("RTP/AVP;unicast;client_port={}-{}", ports[0], ports[1]));
    let transport = reply.headers["transport"].clone();
    let told = transport.split(';').find_map(|part| part.strip_prefix("server_port=")).unwrap().to_owned();
    assert_eq!(client.ask("PLAY", "", "Range: npt=0-2\r\n").status, 200);
    let mut buffer = [0; 2000];
    let (length, from) = rtp.recv_from(&mut buffer).unwrap();
    assert!(length <= 1400 && buffer[0] == 0x80);
    let (_, reports) = rtcp.recv_from(&mut buffer).unwrap();
    assert_eq!(told, format!("{}-{}", from.port(), reports.port()));
    assert_eq!(&buffer[..2], [0x80, 200], "a sender report");
    assert_eq!(client.ask("GET_PARAMETER", "", "").status, 200);
    assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
}
