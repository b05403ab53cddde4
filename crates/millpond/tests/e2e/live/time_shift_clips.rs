//! Clips of the past of live streams: as one file, as playlists, while their streams run and after they ended.

use crate::{
    live::publish::{CLIP, hashes, reader},
    support::{Response, Running, Server, clips, get, have},
};
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// A server whose publishers' streams are kept in a folder.
fn serve(folder: &Path, more: &[&str]) -> Server {
    let folder = folder.to_str().unwrap();
    let shift = ["live=publish:", "--time-shift", "1h", "--time-shift-size", "64MiB", "--time-shift-folder", folder];
    Server::start(&[&shift[..], more].concat())
}

/// Pushes a clip once.
fn push(server: &Server) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-i"]).arg(clips::folder().join(CLIP));
    command.args(["-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "mpegts", "-method", "PUT"]);
    command.arg(server.url("live/cam"));
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Waits for the end of a publisher.
fn ends(mut publisher: Running) {
    assert!(publisher.0.wait().unwrap().success());
}

/// Hashes of the decoded pictures.
fn pictures(input: &str) -> Vec<String> {
    hashes(reader(&["-i", input], "0:v", 100_000))
}

/// Hashes of the clip's pictures.
fn source() -> Vec<String> {
    pictures(clips::folder().join(CLIP).to_str().unwrap())
}

fn ask(server: &Server, path: &str) -> Response {
    get(server.port, path, &[])
}

fn playlist(server: &Server, query: &str) -> String {
    let path = format!("/live/cam/v1/index.m3u8{query}");
    let reply = ask(server, &path);
    assert_eq!(reply.status, 200, "{path}: {} {}", reply.text(), server.log_text());
    reply.text()
}

/// Wall times of the segments of a playlist.
fn dates(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:")).map(str::to_owned).collect()
}

fn export(server: &Server, (start, end): (&str, &str), file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(["export", "live/cam", "--start", start, "--end", end, "--server", &server.url("")]);
    command.arg("-o").arg(file).output().unwrap()
}

fn probe(file: &str) -> Value {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_format", "-show_streams", "-of", "json", file]);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

fn seconds(value: &Value) -> f64 {
    value.as_str().unwrap().parse().unwrap()
}

/// Plays a file with other players than ffmpeg.
fn play_by_others(file: &str) {
    if have("mpv") {
        let mut mpv = Command::new("mpv");
        mpv.args(["--no-config", "--vo=null", "--ao=null", "--untimed", "--no-terminal", file]);
        assert!(mpv.stdout(Stdio::null()).status().unwrap().success(), "mpv plays {file}");
    }
    if have("gst-launch-1.0") {
        let decode = ["-q", "filesrc", &format!("location={file}"), "!", "decodebin", "!", "fakesink", "sync=false"];
        let output = Command::new("gst-launch-1.0").args(decode).output().unwrap();
        assert!(output.status.success(), "GStreamer plays {file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn clips_are_files_frame_for_frame_also_after_their_stream_ended() {
    let (source, folder) = (source(), tempfile::tempdir().unwrap());
    let mut server = serve(folder.path(), &[]);
    let publisher = push(&server);
    let began = Instant::now();
    let times = loop {
        let reply = ask(&server, "/live/cam/v1/index.m3u8?dvr");
        let times = dates(&reply.text());
        if times.len() >= 4 {
            break times;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{} {}", reply.text(), server.log_text());
        std::thread::sleep(Duration::from_millis(100));
    };
    let clip = |start: &str, end: &str| format!("live/cam/stream.mp4?start={start}&end={end}");
    // While it runs, from the second key frame to the fourth one.
    let path = clip(&times[1], &times[3]);
    assert_eq!(pictures(&server.url(&path)), source[50..150]);
    ends(publisher);

    // Key frames are 50 pictures apart. The clip begins with the one before, and ends with the picture before the end.
    let later = |time: &str, millis: u64| {
        let (head, seconds) = time.trim_end_matches('Z').rsplit_once(':').unwrap();
        let seconds: f64 = seconds.parse().unwrap();
        // Tests that begin at the end of a minute go on with the time itself.
        let sum = seconds + millis as f64 / 1000.0;
        (sum < 60.0).then(|| format!("{head}:{sum:06.3}Z"))
    };
    if let Some((start, end)) = later(&times[1], 900).zip(later(&times[1], 1201)) {
        // Pictures that are presented in the first 1.2 s, and at most two that these need.
        let found = pictures(&server.url(&clip(&start, &end)));
        assert!((30..=34).contains(&found.len()), "{}", found.len());
        let mut expected = source[50..50 + found.len()].to_vec();
        expected.truncate(31);
        assert_eq!(found[..31], expected);
    }

    let file = folder.path().join("out.mp4");
    let told = export(&server, (&times[0], &times[2]), &file);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let file = file.to_str().unwrap();
    assert_eq!(pictures(file), source[..100]);
    let probed = probe(file);
    assert!((seconds(&probed["format"]["duration"]) - 4.0).abs() < 0.1, "{probed}");
    assert_eq!(probed["streams"].as_array().unwrap().len(), 2, "{probed}");
    play_by_others(file);
    let again = export(&server, (&times[0], &times[2]), Path::new(file));
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("exists"));

    // The server is killed and started: nobody publishes, and the past is there.
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();
    let server = serve(folder.path(), &[]);
    let began = Instant::now();
    let all = playlist(&server, "?dvr");
    assert!(began.elapsed() < Duration::from_secs(10), "no publisher is waited for");
    assert!(all.contains("#EXT-X-PLAYLIST-TYPE:VOD") && all.ends_with("#EXT-X-ENDLIST\n"), "{all}");
    assert_eq!(dates(&all)[..4], times[..4]);
    // The part that was being made is lost, and with it pictures that are shown before the last ones.
    let kept = pictures(&server.url("live/cam/index.m3u8?dvr"));
    assert!(kept.len() >= 210 && source.starts_with(&kept[..kept.len() - 4]), "{}", kept.len());
    assert_eq!(pictures(&server.url(&path)), source[50..150]);
    let query = format!("?start={}&end={}", times[1], times[3]);
    assert_eq!(dates(&playlist(&server, &query)), times[1..3]);
    assert_eq!(pictures(&server.url(&format!("live/cam/index.m3u8{query}"))), source[50..150]);
    let mpd = ask(&server, &format!("/live/cam/index.mpd{query}")).text();
    assert!(mpd.contains("type=\"static\"") && mpd.contains("mediaPresentationDuration=\"PT4"), "{mpd}");
    assert_eq!(pictures(&server.url(&format!("live/cam/index.mpd{query}"))), source[50..150]);

    for (query, status) in [
        (format!("?start={}", times[1]), 400),
        (format!("?end={}", times[1]), 400),
        (format!("?start={}&end=2100-01-01T00:00:00Z", times[1]), 400),
        ("?start=2001-01-01T00:00:00Z&end=2001-01-01T00:01:00Z".to_owned(), 404),
        ("?start=2020-01-01T00:00:00Z&end=".to_owned() + &times[1], 200),
    ] {
        let reply = ask(&server, &format!("/live/cam/stream.mp4{query}"));
        assert_eq!(reply.status, status, "{query}: {}", if status == 200 { String::new() } else { reply.text() });
    }
    assert_eq!(ask(&server, &format!("/live/cam/stream.ts{query}")).status, 400);
    assert_eq!(ask(&server, &format!("/live/other/stream.mp4{query}")).status, 404);

    // Nobody has written for longer than the past is kept. What is not a stream's stays.
    drop(server);
    let ours = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().path().is_dir();
    let count = || std::fs::read_dir(folder.path()).unwrap().filter_map(|of| ours(of).then_some(())).count();
    assert_eq!(count(), 1);
    let ring = std::fs::read_dir(folder.path()).unwrap().map(|of| of.unwrap().path()).find(|of| of.is_dir()).unwrap();
    for file in std::fs::read_dir(ring).unwrap() {
        let old = Command::new("touch").args(["-d", "3 hours ago"]).arg(file.unwrap().path()).status().unwrap();
        assert!(old.success());
    }
    let server = serve(folder.path(), &[]);
    let began = Instant::now();
    while count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(Path::new(file).exists());
    assert_eq!(ask(&server, &format!("/live/cam/stream.mp4{query}")).status, 404);
}

#[test]
fn the_past_of_a_source_that_is_down_is_served() {
    let (mut origin, folder) =
        (Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]), tempfile::tempdir().unwrap());
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let path = folder.path().to_str().unwrap();
    let args = [&place, "--time-shift", "1h", "--time-shift-folder", path, "--source-transport", "tcp"];
    let mut first = Server::start(&args);
    let video = format!("/cams/{CLIP}/v1/index.m3u8");
    let began = Instant::now();
    let times = loop {
        let times = dates(&ask(&first, &format!("{video}?dvr")).text());
        if times.len() >= 4 {
            break times;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", first.log_text());
        std::thread::sleep(Duration::from_millis(100));
    };
    for server in [&mut origin, &mut first] {
        server.process.0.kill().unwrap();
        server.process.0.wait().unwrap();
    }
    let second = Server::start(&args);
    let all = ask(&second, &format!("{video}?dvr"));
    assert!(all.text().ends_with("#EXT-X-ENDLIST\n"), "{} {}", all.text(), second.log_text());
    assert!(dates(&all.text()).starts_with(&times[..3]));
    assert!(pictures(&second.url(&format!("cams/{CLIP}/index.m3u8?dvr"))).len() >= 150);
    let clip = format!("cams/{CLIP}/stream.mp4?start={}&end={}", times[0], times[2]);
    assert_eq!(pictures(&second.url(&clip)).len(), 100);
    // The live edge is not there.
    assert_eq!(ask(&second, &video).status, 502);
}
