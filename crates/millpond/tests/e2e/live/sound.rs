//! Sound of live streams that browsers don't decode, or that has another form on its way in: MPEG audio of layer II by MPEG-TS and
//! RTSP, AAC in LATM by RTSP.

use crate::support::{Running, Server, clips, free_port};
use serde_json::Value;
use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, AAC.
const CLIP: &str = "h264_aac.mp4";
/// Frames of sound that are compared: about three seconds.
const FRAMES: usize = 130;

/// A transport stream of pictures and noise in layer II.
fn layer_2() -> PathBuf {
    let folder = clips::folder().join("sound");
    std::fs::create_dir_all(&folder).unwrap();
    let (path, part) = (folder.join("mp2.ts"), folder.join(format!("mp2.{}", std::process::id())));
    if !path.exists() {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=9"]);
        command.args(["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:seed=7:duration=9"]);
        command.args([
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-g",
            "50",
            "-c:a",
            "mp2",
            "-b:a",
            "192k",
            "-ac",
            "2",
        ]);
        assert!(command.args(["-f", "mpegts"]).arg(&part).status().unwrap().success());
        std::fs::rename(part, &path).unwrap();
    }
    path
}

/// Sends a file round and round, as it is.
fn send(file: &str, output: &[&str]) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", file, "-map", "0:v", "-map", "0:a"]);
    Running(command.args(["-c", "copy"]).args(output).stdout(Stdio::null()).spawn().unwrap())
}

/// Hashes of the first frames of sound, undecoded.
fn frames(input: &str, count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    if input.starts_with("rtsp") {
        command.args(["-rtsp_transport", "tcp"]);
    }
    command.args(["-i", input, "-map", "0:a", "-c", "copy", "-frames:a", &count.to_string(), "-f", "framemd5", "-"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{input}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that frames are those of a source that plays round and round.
#[track_caller]
fn assert_of(source: &[String], received: &[String], way: &str) {
    assert_eq!(received.len(), FRAMES, "{way}");
    let at = source.iter().position(|hash| *hash == received[0]);
    let at = at.unwrap_or_else(|| panic!("{way}: the first frame is none of the source"));
    let same = source.iter().cycle().skip(at).zip(received).take_while(|(a, b)| a == b).count();
    assert_eq!(same, FRAMES, "{way}: frame {same} differs");
}

/// The codecs that ffprobe finds.
fn codecs(url: &str) -> Vec<String> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", url]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    // Those of a programme are listed twice.
    let mut codecs: Vec<String> = text.split_whitespace().map(|codec| codec.trim_matches(',').to_owned()).collect();
    codecs.sort();
    codecs.dedup();
    codecs
}

/// Facts of the admin address about the only stream, once `field` is above 0.
fn counted(server: &Server, field: &str) -> Value {
    let began = Instant::now();
    loop {
        let streams: Value = crate::support::api::items(server.admin, "streams");
        if streams[0][field].as_u64().unwrap_or(0) > 0 {
            return streams[0].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{streams}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn layer_2_of_a_transport_stream_is_sent_on() {
    let file = layer_2().display().to_string();
    let (port, source) = (free_port(), frames(&file, 1000));
    let server = Server::start(&[&format!("tv=udp://127.0.0.1:{port}")]);
    let _sender = send(&file, &["-f", "mpegts", &format!("udp://127.0.0.1:{port}?pkt_size=1316")]);
    let rtsp = format!("rtsp://127.0.0.1:{}/tv", server.rtsp);
    let ways = [server.url("tv/stream.ts"), server.url("tv/ts/index.m3u8"), server.url("tv/stream.mp4"), rtsp];
    let received = std::thread::scope(|scope| {
        let players = ways.each_ref().map(|url| scope.spawn(|| frames(url, FRAMES)));
        players.map(|player| player.join().unwrap())
    });
    for (received, way) in received.iter().zip(&ways) {
        assert_of(&source, received, way);
    }
    assert_eq!(codecs(&ways[0]), ["h264", "mp2"]);
    let list = |path: &str| server.get(path).text();
    let transport = list("tv/ts/index.m3u8");
    assert!(transport.contains("mp4a.40.33"), "{transport}");
    // No browser decodes it: beside pictures it would stop players.
    let fragments = list("tv/index.m3u8");
    assert!(fragments.contains("avc1.") && !fragments.contains("mp4a"), "{fragments}");
    let stream = counted(&server, "packets");
    assert!(stream["packets"].as_u64() > Some(100) && stream["lost-packets"] == 0, "{stream}");
}

#[test]
fn layer_2_and_latm_are_pushed_by_rtsp() {
    let clip = clips::folder().join(CLIP).display().to_string();
    let mp2 = layer_2().display().to_string();
    let server = Server::start(&["live=publish:"]);
    let target = |name: &str| format!("rtsp://127.0.0.1:{}/live/{name}", server.rtsp);
    for (name, file, options) in [("mp2", &mp2, &[][..]), ("latm", &clip, &["-rtpflags", "latm"][..])] {
        let source = frames(file, 1000);
        let url = target(name);
        let _sender = send(file, &[options, &["-f", "rtsp", "-rtsp_transport", "tcp", &url]].concat());
        for way in [server.url(&format!("live/{name}/stream.mp4")), url.clone()] {
            assert_of(&source, &frames(&way, FRAMES), &way);
        }
    }
    let stream = counted(&server, "packets");
    assert!(stream["sessions"] == 1 && stream["lost-packets"] == 0, "{stream}");
}

#[test]
fn a_pushed_transport_stream_shows_its_packets() {
    let server = Server::start(&["live=publish:"]);
    let file = layer_2().display().to_string();
    let _sender = send(&file, &["-f", "mpegts", "-method", "PUT", &server.url("live/cam")]);
    let stream = counted(&server, "packets");
    assert!(stream["lost-packets"] == 0 && stream["broken-frames"] == 0, "{stream}");
    assert_of(&frames(&file, 1000), &frames(&server.url("live/cam/stream.ts"), FRAMES), "stream.ts");
}

/// The values of sound, mono at 8 kHz with 16 bits.
fn values(input: &str, seconds: &str) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    if input.starts_with("rtsp") {
        command.args(["-rtsp_transport", "tcp"]);
    }
    command.args(["-i", input, "-map", "0:a:0", "-t", seconds, "-f", "s16le", "-"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{input}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn g711_of_a_camera_is_flac_for_browsers_with_the_same_values() {
    for (codec, name) in [("pcm_mulaw", "mulaw"), ("pcm_alaw", "alaw")] {
        let folder = clips::folder().join("sound");
        std::fs::create_dir_all(&folder).unwrap();
        let (path, part) = (folder.join(format!("{name}.mkv")), folder.join(format!("{name}.{}", std::process::id())));
        if !path.exists() {
            let mut command = Command::new("ffmpeg");
            command.args([
                "-v",
                "error",
                "-nostdin",
                "-y",
                "-f",
                "lavfi",
                "-i",
                "testsrc2=size=160x90:rate=25:duration=8",
            ]);
            command.args(["-f", "lavfi", "-i", "anoisesrc=sample_rate=8000:seed=7:duration=8", "-c:v", "libx264"]);
            command.args(["-preset", "ultrafast", "-g", "25", "-c:a", codec, "-ac", "1", "-f", "matroska"]);
            assert!(command.arg(&part).status().unwrap().success());
            std::fs::rename(part, &path).unwrap();
        }
        let server = Server::start(&["live=publish:", "--linger", "0s"]);
        let rtsp = format!("rtsp://127.0.0.1:{}/live/door", server.rtsp);
        let _camera = send(path.to_str().unwrap(), &["-f", "rtsp", "-rtsp_transport", "tcp", &rtsp]);
        super::publish::until_published(&server, "live/door");
        let source = values(path.to_str().unwrap(), "8");
        // Two rounds: a reading may go over the end.
        let rounds = [source.clone(), source].concat();
        let codecs = |playlist: &str| crate::support::get(server.port, playlist, &[]).text();
        assert!(codecs("/live/door/index.m3u8").contains("flac"), "{}", codecs("/live/door/index.m3u8"));
        for input in [server.url("live/door/stream.mp4"), server.url("live/door/index.m3u8"), rtsp] {
            let found = values(&input, "1.5");
            // The first milliseconds may be cut by the player.
            let middle = &found[4000..20_000];
            let is_there = rounds.windows(middle.len()).step_by(2).any(|part| part == middle);
            assert!(is_there, "{input}: {codec}");
        }
    }
}
