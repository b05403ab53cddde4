//! Live HLS, with low latency, and live DASH: equal to their source for ffmpeg, and as rfc8216bis has them.

use crate::support::{self, Response, Server, clips, get};
use millpond_lab::llhls::{Checker, Reload};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
    sync::Mutex,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";
/// A playlist of a track: each has a few dozen lines.
const VIDEO: &str = "/cams/h264_aac.mp4/v1/index.m3u8";
const AUDIO: &str = "/cams/h264_aac.mp4/a1/index.m3u8";

/// A server whose channel is the clip.
fn channel() -> Server {
    Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP])
}

/// A server whose place is the RTSP of another one.
fn edge(origin: &Server, more: &[&str]) -> Server {
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    Server::start(&[&[&*place, "--source-transport", "tcp"], more].concat())
}

/// Hashes of decoded pictures, or of coded frames of sound, from the beginning of what ffmpeg plays.
fn hashes(input: &str, track: &str, count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", track, "-fps_mode", "passthrough"]);
    let frames = if track == "0:v" { "-frames:v" } else { "-frames:a" };
    if track == "0:a" {
        command.args(["-c", "copy"]);
    }
    let output = command.args([frames, &count.to_string(), "-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{input}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that frames are a part of a source that plays round and round.
#[track_caller]
fn assert_part_of(received: &[String], source: &[String]) {
    let offset = source.iter().position(|hash| *hash == received[0]).expect("a frame of the source");
    let same = source.iter().cycle().skip(offset).zip(received).take_while(|(a, b)| a == b).count();
    let places = received.iter().map(|hash| source.iter().position(|one| one == hash));
    let around: Vec<_> = places.skip(same.saturating_sub(2)).take(6).collect();
    assert_eq!(same, received.len(), "frames are equal up to there; around it are those with the numbers {around:?}");
}

fn source(track: &str) -> Vec<String> {
    hashes(clips::folder().join(CLIP).to_str().unwrap(), track, 1000)
}

/// A media playlist as far as these tests read it.
struct Playlist {
    text: String,
    /// Number of the segment after the last complete one.
    next: u64,
    /// Parts of that segment.
    parts: u64,
}

impl Playlist {
    fn of(text: String) -> Self {
        let number = |tag: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(tag));
            line.map_or(0, |value| value.parse::<u64>().unwrap())
        };
        let complete = text.lines().filter(|line| line.starts_with("#EXTINF")).count() as u64;
        let next = number("#EXT-X-MEDIA-SEQUENCE:") + number("#EXT-X-SKIP:SKIPPED-SEGMENTS=") + complete;
        let open = text.lines().rev().take_while(|line| !line.starts_with("../"));
        let parts = open.filter(|line| line.starts_with("#EXT-X-PART:")).count() as u64;
        Self { text, next, parts }
    }

    fn load(server: &Server, path: &str) -> Self {
        let reply = get(server.port, path, &[]);
        assert_eq!(reply.status, 200, "{path}: {} {}", reply.text(), server.log_text());
        Self::of(reply.text())
    }

    /// Paths of the listed segments.
    fn segments(&self) -> Vec<String> {
        self.text.lines().filter(|line| line.starts_with("../")).map(resolve).collect()
    }

    /// Paths in the attribute `URI` of the lines that begin so.
    fn uris(&self, tag: &str) -> Vec<String> {
        let lines = self.text.lines().filter(|line| line.starts_with(tag));
        lines.map(|line| resolve(line.split("URI=\"").nth(1).unwrap().split('"').next().unwrap())).collect()
    }

    fn seconds(&self, tag: &str) -> f64 {
        let line = self.text.lines().find_map(|line| line.strip_prefix(tag)).unwrap();
        line.split(',').next().unwrap().parse().unwrap()
    }
}

fn resolve(uri: &str) -> String {
    format!("/cams/{CLIP}/{}", uri.strip_prefix("../").unwrap())
}

#[track_caller]
fn until(what: &str, probe: impl Fn() -> bool) {
    let began = Instant::now();
    while !probe() {
        assert!(began.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_problem(reply: &Response) -> bool {
    reply.header("content-type") == Some("application/problem+json")
}

#[test]
fn players_get_the_frames_of_the_source() {
    let origin = channel();
    let server = edge(&origin, &[]);
    let url = |name: &str| server.url(&format!("cams/{CLIP}/{name}"));
    let (pictures, sound) = (source("0:v"), source("0:a"));
    let received = hashes(&url("index.m3u8"), "0:v", 500);
    assert_eq!(received.len(), 500);
    assert_part_of(&received, &pictures);
    let received = hashes(&url("index.m3u8"), "0:a", 300);
    assert!(received.len() == 300 && received.iter().all(|hash| sound.contains(hash)));
    let received = hashes(&url("index.mpd"), "0:v", 500);
    assert_eq!(received.len(), 500);
    assert_part_of(&received, &pictures);
    // All of them shared one session, and the channel itself is live too.
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 1.0);
    let received = hashes(&origin.url(&format!("{CLIP}/live/index.m3u8")), "0:v", 100);
    assert_part_of(&received, &pictures);
    let stored = origin.get(&format!("{CLIP}/index.m3u8"));
    assert!(Playlist::of(origin.get(&format!("{CLIP}/v1/index.m3u8")).text()).text.contains("ENDLIST"));
    assert_eq!(stored.status, 200);
}

/// Reloads a playlist as players with low latency do, and checks each reply.
fn play(server: &Server, path: &str, checker: &Mutex<Checker>, (began, time): (Instant, Duration)) -> usize {
    let mut last = Playlist::load(server, path);
    let (mut reloads, mut skips) = (0, 0);
    while began.elapsed() < time {
        let skip = reloads % 2 == 1;
        let query =
            format!("_HLS_msn={}&_HLS_part={}{}", last.next, last.parts, if skip { "&_HLS_skip=YES" } else { "" });
        let asked = began.elapsed();
        let reply = get(server.port, &format!("{path}?{query}"), &[]);
        let arrived = began.elapsed();
        let body = reply.text();
        assert_eq!(reply.status, 200, "{query}: {body}");
        let (segment, part) = (Some(last.next), Some(last.parts));
        let max_age = reply.header("cache-control").and_then(|field| field.split("max-age=").nth(1)?.parse().ok());
        let max_age = max_age.map(Duration::from_secs);
        let reload = Reload { path, segment, part, skip, asked, arrived, max_age, body: &body };
        let found = checker.lock().unwrap().check(&reload);
        assert!(found.is_empty(), "{path} {query}: {found:?}\n{body}");
        skips += usize::from(body.contains("#EXT-X-SKIP"));
        last = Playlist::of(body);
        // The hinted part is held until it is complete.
        if reloads % 5 == 0
            && let [hint] = &*last.uris("#EXT-X-PRELOAD-HINT")
        {
            let part = get(server.port, hint, &[]);
            assert!(part.status == 404 || &part.body[4..8] == b"moof", "{hint}: {}", part.status);
        }
        reloads += 1;
    }
    assert!(time < Duration::from_secs(40) || skips > 5, "{skips} delta updates in {reloads}");
    reloads
}

#[test]
fn a_minute_of_blocking_reloads_keeps_the_rules() {
    let origin = channel();
    let server = edge(&origin, &["--playlist-window", "30s"]);
    let checker = Mutex::new(Checker::default());
    let first = Playlist::load(&server, VIDEO);
    checker.lock().unwrap().check(&Reload { path: VIDEO, body: &first.text, ..Reload::default() });
    let first = Playlist::load(&server, AUDIO);
    checker.lock().unwrap().check(&Reload { path: AUDIO, body: &first.text, ..Reload::default() });
    let time = (Instant::now(), Duration::from_secs(60));
    let reloads = std::thread::scope(|scope| {
        let tracks = [VIDEO, AUDIO].map(|path| scope.spawn(|| play(&server, path, &checker, time)));
        tracks.map(|track| track.join().unwrap())
    });
    assert!(reloads.iter().all(|count| *count > 60), "{reloads:?} reloads of parts of a third of a second");
    // Waiting is not the server's delay.
    let sum = server.metric("millpond_http_first_byte_seconds_sum", "kind=\"hls\"");
    assert!(sum < 40.0, "{sum} s of two minutes");
    let kept = server.metric("millpond_http_requests_total", "kind=\"hls\"");
    assert!(kept > 120.0, "{kept}");
}

#[test]
fn players_of_the_load_generator_find_no_fault() {
    let origin = channel();
    let server = edge(&origin, &[]);
    let master = server.get(&format!("cams/{CLIP}/index.m3u8")).text();
    // Shaka Player would look for captions in three segments.
    assert!(master.contains(",CLOSED-CAPTIONS=NONE\n"), "{master}");
    let mut load = Command::new(env!("CARGO_BIN_EXE_millpond"));
    load.args(["load", &server.url(&format!("cams/{CLIP}/index.m3u8")), "--live", "--json", "-"]);
    let output = load.args(["--clients", "5", "--duration", "12s"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["mode"], &report["errors"]), (&"live".into(), &Value::Array(Vec::new())), "{report:#}");
    let count = |kind: &str| {
        let kinds = report["kinds"].as_array().unwrap();
        kinds.iter().find(|of| of["kind"] == kind).map_or(0, |of| of["requests"].as_u64().unwrap())
    };
    // Two tracks with three parts a second, and reloads one after the other.
    assert!(count("part") > 100 && count("reload") > 100 && count("init") >= 10, "{report:#}");
    let late = |what: &str| report["late"][what]["count"].as_u64().unwrap();
    assert!(late("delay") > 100 && late("age") > 50, "{report:#}");
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 1.0);
}

#[test]
fn what_is_not_there_is_refused() {
    let origin = channel();
    let server = edge(&origin, &[]);
    let head = support::request(server.port, "HEAD", &format!("/cams/{CLIP}/index.m3u8"), &[]);
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/vnd.apple.mpegurl")));
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 0.0, "HEAD opens nothing");
    let list = Playlist::load(&server, VIDEO);
    let (next, segment) = (list.next, list.segments().pop().unwrap());
    let folder = segment.rsplit_once('/').unwrap().0;
    let other_run = folder.replace('~', "~0");
    for (path, status) in [
        (format!("{VIDEO}?_HLS_part=1"), 400),
        (format!("{VIDEO}?_HLS_msn=one"), 400),
        (format!("{VIDEO}?_HLS_msn=1&_HLS_msn=1"), 400),
        (format!("{VIDEO}?_HLS_msn={}", next + 30), 400),
        (format!("{VIDEO}?_HLS_msn={}&_HLS_part=4000", next + 1), 400),
        (format!("/cams/{CLIP}/v9/index.m3u8"), 404),
        (format!("{folder}/1.m4s"), 404),
        (format!("{folder}/{}.m4s", next + 30), 404),
        (format!("{folder}/{}.7.m4s", next + 1), 404),
        (format!("{folder}/{}.60000.m4s", next - 1), 404),
        (format!("{folder}/init-77.mp4"), 404),
        (format!("{other_run}/{}.m4s", next - 1), 404),
        (segment.replace("/v1/", "/v7/"), 404),
        (segment.replace(CLIP, "other.mp4"), 404),
        ("/cams/missing.mp4/index.m3u8".to_owned(), 404),
    ] {
        let reply = get(server.port, &path, &[]);
        assert!(reply.status == status && is_problem(&reply), "{path}: {} {}", reply.status, reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    }
    let clock = get(server.port, "/.millpond/time", &[]);
    assert_eq!((clock.status, clock.header("cache-control")), (200, Some("no-store")));
    assert!(clock.text().len() == 24 && clock.text().ends_with('Z'), "{}", clock.text());
}

#[test]
fn media_never_changes() {
    let origin = channel();
    let server = edge(&origin, &[]);
    let mut list = Playlist::load(&server, VIDEO);
    let init = get(server.port, &list.uris("#EXT-X-MAP")[0], &[]);
    assert_eq!((init.status, init.header("content-type")), (200, Some("video/mp4")));
    assert!(init.header("cache-control").unwrap().ends_with("immutable") && &init.body[4..8] == b"ftyp");
    // The unfinished segment is sent part by part; it is the same when it is complete.
    let known = list.segments();
    let (folder, _) = known[0].rsplit_once('/').unwrap();
    let mut open = format!("{folder}/{}.m4s", list.next);
    let mut first = get(server.port, &open, &[]);
    for _ in 0..5 {
        if first.header("transfer-encoding").is_some() {
            break;
        }
        // It was complete before the request came.
        list = Playlist::load(&server, VIDEO);
        open = format!("{folder}/{}.m4s", list.next);
        first = get(server.port, &open, &[]);
    }
    assert_eq!((first.status, first.header("transfer-encoding")), (200, Some("chunked")), "{}", first.text());
    let again = get(server.port, &open, &[]);
    assert_eq!(again.header("content-length"), Some(&*first.body.len().to_string()));
    assert!(first.body == again.body && first.header("etag") == again.header("etag"));
    let etag = first.header("etag").unwrap();
    assert_eq!(get(server.port, &open, &[("If-None-Match", etag)]).status, 304);
    let range = get(server.port, &open, &[("Range", "bytes=100-4999")]);
    assert!(range.status == 206 && range.body == first.body[100..5000]);
    // Its parts are the same bytes.
    let list = Playlist::load(&server, VIDEO);
    let prefix = open.strip_suffix("m4s").unwrap();
    let parts: Vec<_> = list.uris("#EXT-X-PART:").into_iter().filter(|part| part.starts_with(prefix)).collect();
    let joined: Vec<u8> = parts.iter().flat_map(|part| get(server.port, part, &[]).body).collect();
    assert!(parts.len() > 3 && joined == first.body, "{parts:?}");
}

#[test]
fn requests_keep_the_source_open_and_the_last_one_releases_it() {
    let origin = channel();
    let server = edge(&origin, &["--linger", "0s"]);
    let (video, audio) = (Playlist::load(&server, VIDEO), Playlist::load(&server, AUDIO));
    get(server.port, &video.segments()[0], &[]);
    get(server.port, &audio.segments()[0], &[]);
    assert_eq!(origin.metric("millpond_rtsp_playing", ""), 1.0, "{}", origin.log_text());
    until("the source is left", || origin.metric("millpond_rtsp_playing", "") == 0.0);
    let modules = || {
        let graph: Value = support::api::api(server.admin, "graph");
        graph["modules"].as_array().unwrap().len()
    };
    until("the graph is empty", || modules() == 0);
    // Media of that run are gone; nothing is opened for them.
    assert_eq!(get(server.port, &video.segments()[0], &[]).status, 404);
    assert_eq!(modules(), 0);
    // Another run goes on with greater numbers.
    let later = Playlist::load(&server, VIDEO);
    assert!(later.next > video.next, "{} after {}", later.next, video.next);
    assert!(later.segments().iter().all(|segment| !video.segments().contains(segment)));
}

#[test]
fn a_reload_that_waits_in_vain_is_ended() {
    let mut origin = channel();
    let mut server = edge(&origin, &["--shutdown-grace", "60s"]);
    let list = Playlist::load(&server, VIDEO);
    let target = list.seconds("#EXT-X-TARGETDURATION:");
    origin.process.0.kill().unwrap();
    let ahead = |list: &Playlist| format!("{VIDEO}?_HLS_msn={}&_HLS_part=0", list.next + 1);
    // The frames received before may end another segment.
    let began = Instant::now();
    let mut reply = get(server.port, &ahead(&list), &[]);
    while reply.status == 200 {
        assert!(began.elapsed() < Duration::from_secs(60));
        reply = get(server.port, &ahead(&Playlist::of(reply.text())), &[]);
    }
    assert!(reply.status == 503 && is_problem(&reply), "{}", reply.text());
    assert!(reply.header("retry-after").is_some() && began.elapsed().as_secs_f64() > target * 2.9);
    // A server that stops does not wait for the rest.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let now = Playlist::load(&server, VIDEO);
    write!(stream, "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", ahead(&now)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let process = rustix::process::Pid::from_child(&server.process.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    let mut head = String::new();
    BufReader::new(&mut stream).read_line(&mut head).unwrap();
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    stream.read_to_end(&mut Vec::new()).unwrap();
    assert!(server.process.0.wait().unwrap().success());
}
