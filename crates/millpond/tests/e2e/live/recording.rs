//! Recordings of channels and live streams: started and stopped on the admin address, and equal to their source for ffmpeg.

use crate::support::{
    self, Server,
    api::{body, send},
    clips, memory_folder,
    rtsp::Client,
    small_disk::SmallDisk,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";

fn serve(channels: &str, folder: &Path, more: &[&str]) -> Server {
    let folder = folder.to_str().unwrap();
    let args = [clips::folder().to_str().unwrap(), "--rtsp-channels", channels, "--record-folder", folder];
    Server::start(&[&args, more].concat())
}

/// Starts (POST), stops (DELETE) or lists (GET) recordings. The query has the fields of the body, or the id.
fn raw(server: &Server, method: &str, query: &str, headers: &[(&str, &str)]) -> support::Response {
    match (method, query.strip_prefix("?id=")) {
        (_, Some(id)) => send(server.admin, method, &format!("recordings/{id}"), &Value::Null, headers),
        ("GET", None) => support::get(server.admin, "/api/v1/recordings", headers),
        (_, None) => send(server.admin, method, "recordings", &body(query), headers),
    }
}

fn ask(server: &Server, method: &str, query: &str, expected: u16) -> Value {
    let reply = raw(server, method, query, &[]);
    assert_eq!(reply.status, expected, "{method} {query}: {}", reply.text());
    serde_json::from_str(&reply.text()).unwrap()
}

/// Starts a recording. Returns its number and file.
fn start(server: &Server, folder: &Path, query: &str) -> (u64, PathBuf) {
    let reply = ask(server, "POST", query, 201);
    (reply["id"].as_u64().unwrap(), folder.join(reply["file"].as_str().unwrap()))
}

/// A recording as it is listed.
fn listed(server: &Server, id: u64) -> Value {
    let all = ask(server, "GET", "", 200);
    all["items"].as_array().unwrap().iter().find(|recording| recording["id"] == id).cloned().unwrap_or(Value::Null)
}

fn until(server: &Server, id: u64, mut is_there: impl FnMut(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let recording = listed(server, id);
        if is_there(&recording) {
            return recording;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{recording}: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn until_seconds(server: &Server, id: u64, seconds: f64) {
    until(server, id, |recording| recording["seconds"].as_f64().unwrap() >= seconds);
}

fn graph(server: &Server) -> Value {
    support::api::api(server.admin, "graph")
}

fn kinds(graph: &Value) -> Vec<String> {
    let modules = graph["modules"].as_array().unwrap();
    let mut kinds: Vec<String> = modules.iter().map(|module| module["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

/// A frame as ffmpeg lists it: decode and presentation time in ticks, and a hash.
#[derive(Clone, Debug, PartialEq)]
struct Hashed {
    dts: i64,
    pts: i64,
    hash: String,
}

/// The frames of a track of a file: decoded, or as they are stored.
fn frames(file: &Path, track: &str, is_copied: bool) -> Vec<Hashed> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(file).args(["-map", track, "-fps_mode", "passthrough"]);
    command.args(if is_copied { &["-c", "copy"][..] } else { &["-enc_time_base", "-1"] });
    let output = command.args(["-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let hashed = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let (dts, pts) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        Hashed { dts, pts, hash: fields[5].to_owned() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(hashed).collect()
}

/// The hashes of frames.
fn hashes(frames: &[Hashed]) -> Vec<&str> {
    frames.iter().map(|frame| &*frame.hash).collect()
}

/// The frames but the last ones: where a recording ends, frames that are presented earlier may be missing.
fn settled(frames: &[Hashed]) -> &[Hashed] {
    &frames[..frames.len() - 4]
}

/// Checks that a recording is a part of its source, which plays round and round. Returns the number of its first frame.
fn assert_part_of(recorded: &[Hashed], source: &[Hashed]) -> usize {
    let (recorded, source) = (hashes(recorded), hashes(source));
    let offset = source.iter().position(|hash| hash == &recorded[0]).expect("a frame of the source");
    let round: Vec<&str> = source.iter().cycle().skip(offset).take(recorded.len()).copied().collect();
    let same = recorded.iter().zip(&round).take_while(|(a, b)| a == b).count();
    assert_eq!(same, recorded.len(), "frames are equal up to there");
    offset
}

/// Checks times: they begin at 0 and go on without a gap.
fn assert_continuous(recorded: &[Hashed], step: i64, slack: i64) {
    let mut times: Vec<i64> = recorded.iter().map(|frame| frame.pts).collect();
    times.sort_unstable();
    assert!((0..=step).contains(&times[0]), "{times:?}");
    assert!(times.windows(2).all(|two| (two[1] - two[0] - step).abs() <= slack), "{times:?}");
    assert!(recorded.windows(2).all(|two| two[0].dts < two[1].dts), "{recorded:?}");
}

#[test]
fn a_recording_has_the_frames_of_the_channel() {
    let folder = memory_folder();
    let server = serve(CLIP, folder.path(), &[]);
    let mut viewer = Client::new(&server, CLIP);
    viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    viewer.receive(|packets| packets.len() > 100);
    // The viewer goes on with the whole channel.
    let (id, file) = start(&server, folder.path(), &format!("?path={CLIP}"));
    let shown = graph(&server);
    assert!(kinds(&shown).contains(&"recorder".to_owned()), "{shown}");
    let of = |kind: &str| shown["modules"].as_array().unwrap().iter().find(|module| module["kind"] == kind).unwrap();
    assert_eq!(of("recorder")["label"], format!("{CLIP} {}", file.file_name().unwrap().to_str().unwrap()));
    let pipes = shown["pipes"].as_array().unwrap();
    let joins = |pipe: &&Value| pipe["from"] == of("channel")["id"] && pipe["to"] == of("recorder")["id"];
    assert!(pipes.iter().any(|pipe| joins(&pipe)), "{shown}");
    let seen = viewer.packets.len();
    // Into the second lap.
    let began = Instant::now();
    while listed(&server, id)["seconds"].as_f64().unwrap() < 12.0 {
        viewer.receive(|packets| packets.len() > seen);
        assert!(began.elapsed() < Duration::from_secs(90), "{}", server.log_text());
        let more = viewer.packets.len() + 20;
        viewer.receive(|packets| packets.len() >= more);
    }
    let ended = ask(&server, "DELETE", &format!("?id={id}"), 200);
    assert_eq!((ended["ended"].as_str(), ended["lost-frames"].as_u64()), (Some("stopped"), Some(0)), "{ended}");
    assert_eq!(ended["bytes"].as_u64().unwrap(), file.metadata().unwrap().len());
    assert_eq!(listed(&server, id), Value::Null);
    let source = clips::folder().join(CLIP);
    let (pictures, sound) = (frames(&file, "0:v", false), frames(&file, "0:a", true));
    assert!(pictures.len() >= 300, "{}", pictures.len());
    assert_eq!(
        assert_part_of(settled(&pictures), &frames(&source, "0:v", false)) % 50,
        0,
        "it begins with a key frame"
    );
    assert_continuous(settled(&pictures), 512, 1);
    // The clip's sound is longer than its pictures: where it begins again it has no more than that gap.
    let whole = frames(&source, "0:a", true);
    let known = hashes(&whole);
    assert!(sound.len() > 400 && sound.iter().all(|frame| known.contains(&&*frame.hash)), "{}", sound.len());
    assert_continuous(&sound, 1024, 1100);
    assert_eq!(ended["frames"].as_u64().unwrap() as usize, pictures.len() + sound.len());
    // Nothing of it stays; the viewer does.
    let began = Instant::now();
    while kinds(&graph(&server)) != ["channel", "loader", "transmission"] {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", graph(&server));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn codecs_and_orders_of_frames_are_recorded() {
    let names = ["h264_open_gop.mp4", "hevc_hvc1.mp4", "h264_long_gop.mp4", "vp9_opus.mp4"];
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&names.join(","), folder.path(), &[]);
    let all = names.map(|name| (name, start(&server, folder.path(), &format!("?path={name}&duration=5s"))));
    for (name, (id, file)) in all {
        let ended = until(&server, id, |recording| recording["ended"].is_string());
        assert_eq!(ended["ended"], "duration reached", "{name}");
        let source = frames(&clips::folder().join(name), "0:v", false);
        let recorded = frames(&file, "0:v", false);
        assert!((121..=129).contains(&recorded.len()), "{name}: {}", recorded.len());
        assert_eq!(assert_part_of(settled(&recorded), &source), 0, "{name}");
        let step = source[1].pts - source[0].pts;
        assert_continuous(settled(&recorded), step, 1);
    }
}

#[test]
fn a_live_stream_is_recorded() {
    let origin = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let folder = tempfile::tempdir().unwrap();
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let edge = Server::start(&[&place, "--linger", "0s", "--record-folder", folder.path().to_str().unwrap()]);
    let (id, file) = start(&edge, folder.path(), &format!("?path=cams/{CLIP}&duration=5s"));
    assert_eq!(kinds(&graph(&edge)), ["reception", "recorder"]);
    ask(&edge, "POST", "?path=cams/missing.mp4", 404);
    let ended = until(&edge, id, |recording| recording["ended"].is_string());
    assert_eq!(
        (ended["ended"].as_str(), ended["lost-frames"].as_u64()),
        (Some("duration reached"), Some(0)),
        "{ended}"
    );
    let recorded = frames(&file, "0:v", false);
    assert!((121..=130).contains(&recorded.len()), "{}", recorded.len());
    let source = frames(&clips::folder().join(CLIP), "0:v", false);
    assert_eq!(assert_part_of(settled(&recorded), &source) % 50, 0, "it begins with a key frame");
    // Clocks are brought together by at most 5 ms a second.
    assert_continuous(settled(&recorded), 3600, 36);
    let began = Instant::now();
    while !kinds(&graph(&edge)).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "{}", graph(&edge));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_clip_of_another_size_is_recorded_in_a_file_of_its_own() {
    let (folder, ads) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ad = ads.path().join("ad.mp4");
    clips::make(&ad, "-f lavfi -i testsrc=size=640x360:rate=25:duration=3 -pix_fmt yuv420p -c:v libx264 -bf 2 -g 30");
    let channel = format!("films/{CLIP}");
    let places = [format!("films={}", clips::folder().display()), format!("ads={}", ads.path().display())];
    let records = folder.path().to_str().unwrap();
    let server = Server::start(&[&places[0], &places[1], "--rtsp-channels", &channel, "--record-folder", records]);
    let (id, first) = start(&server, folder.path(), &format!("?path={channel}"));
    until_seconds(&server, id, 2.0);
    let inserted = body(&format!("path={channel}&clip=ads/ad.mp4"));
    assert_eq!(send(server.admin, "POST", "insertions", &inserted, &[]).status, 201);
    until(&server, id, |recording| recording["files"] == 3);
    let seconds = listed(&server, id)["seconds"].as_f64().unwrap();
    until_seconds(&server, id, seconds + 3.0);
    let ended = ask(&server, "DELETE", &format!("?id={id}"), 200);
    assert_eq!((ended["ended"].as_str(), ended["files"].as_u64()), (Some("stopped"), Some(3)), "{ended}");

    let stem = first.file_stem().unwrap().to_str().unwrap().to_owned();
    let files = [first, folder.path().join(format!("{stem}-2.mp4")), folder.path().join(format!("{stem}-3.mp4"))];
    let length: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(ended["bytes"].as_u64(), Some(length));
    let [before, clip, after] = files.each_ref().map(|file| frames(file, "0:v", false));
    let source = frames(&clips::folder().join(CLIP), "0:v", false);
    for part in [&before, &after] {
        assert_eq!(assert_part_of(settled(part), &source) % 50, 0, "it begins with a key frame");
        assert_continuous(settled(part), 512, 1);
    }
    let whole = frames(&ad, "0:v", false);
    assert_eq!(hashes(&clip), hashes(&whole), "the whole clip");
    assert_continuous(&clip, 512, 1);
}

#[test]
fn a_killed_server_leaves_a_file_that_plays() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = serve(CLIP, folder.path(), &[]);
    let (id, file) = start(&server, folder.path(), &format!("?path=/{CLIP}"));
    until_seconds(&server, id, 4.0);
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();
    let recorded = frames(&file, "0:v", false);
    assert!(recorded.len() >= 100 && recorded.len().is_multiple_of(50), "whole fragments: {}", recorded.len());
    assert_part_of(&recorded, &frames(&clips::folder().join(CLIP), "0:v", false));
}

#[test]
fn a_server_that_stops_completes_its_recordings() {
    let folder = memory_folder();
    let mut server = serve(CLIP, folder.path(), &[]);
    let (id, file) = start(&server, folder.path(), &format!("?path={CLIP}"));
    until_seconds(&server, id, 2.0);
    let process = rustix::process::Pid::from_child(&server.process.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(server.process.0.wait().unwrap().success());
    assert!(server.log_text().contains("recording ended"), "{}", server.log_text());
    assert!(frames(&file, "0:v", false).len() > 50);
}

#[test]
fn requests_that_cannot_be_met_are_problems() {
    let problem = |server: &Server, method: &str, query: &str, status: u16, said: &str| {
        let reply = raw(server, method, query, &[]);
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{query}: {}", reply.text());
        assert!(reply.status == status && reply.text().contains(said), "{query}: {} {}", reply.status, reply.text());
    };
    let channel = format!("?path={CLIP}");
    let off = Server::of_clips();
    problem(&off, "POST", &channel, 403, "record-folder");
    assert_eq!(ask(&off, "GET", "", 200), serde_json::json!({ "items": [], "is-on": false }));
    let folder = tempfile::tempdir().unwrap();
    let channels = format!("{CLIP},pcm_s16le.mov");
    let server = serve(&channels, folder.path(), &["--recordings", "2"]);
    for (method, query, status, said) in [
        ("POST", "", 400, "path"),
        ("POST", "?path=h264_aac.mp4&duration=soon", 400, "duration"),
        ("POST", "?path=h264_aac.mp4&duration=0s", 400, "duration"),
        ("POST", "?path=h264_aac.mp4&size=much", 400, "size"),
        ("POST", "?path=h264_aac.mp4&size=1", 400, "64KiB or more"),
        ("POST", "?path=h264_aac.mp4&size=100TiB", 400, "record-size"),
        ("POST", "?path=h264_aac.mp4&duration=48h", 400, "record-duration"),
        ("POST", "?path=missing.mp4", 404, "missing.mp4"),
        ("POST", "?path=../../etc/passwd", 400, ".."),
        ("POST", "?path=h264_open_gop.mp4", 409, "rtsp-channels"),
        ("DELETE", "?id=x", 400, "number"),
        ("DELETE", "?id=7", 404, "no recording 7"),
        ("PUT", &channel, 405, "POST"),
    ] {
        problem(&server, method, query, status, said);
    }
    let foreign = raw(&server, "POST", &channel, &[("Origin", "http://page.example")]);
    assert_eq!(foreign.status, 403);
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "no file is left of a refusal");
    let first = start(&server, folder.path(), &channel).0;
    start(&server, folder.path(), &channel);
    problem(&server, "POST", &channel, 503, "recordings");
    ask(&server, "DELETE", &format!("?id={first}"), 200);
    let short = start(&server, folder.path(), &format!("{channel}&duration=1s")).0;
    until(&server, short, |recording| recording["ended"] == "duration reached");
    start(&server, folder.path(), &channel);
    // A folder that is gone.
    let gone = serve(CLIP, &folder.path().join("gone"), &[]);
    // The admin address answers once the folder is made.
    ask(&gone, "GET", "", 200);
    std::fs::remove_dir(folder.path().join("gone")).unwrap();
    problem(&gone, "POST", &channel, 500, "the file can't be made");
}

#[test]
fn a_size_ends_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(CLIP, folder.path(), &["--record-size", "200KiB"]);
    let (id, file) = start(&server, folder.path(), &format!("?path={CLIP}&size=200KiB"));
    let ended = until(&server, id, |recording| recording["ended"].is_string());
    assert_eq!(ended["ended"], "size reached");
    let length = file.metadata().unwrap().len();
    assert!(length <= 200 << 10 && length == ended["bytes"].as_u64().unwrap(), "{ended}");
    assert!(frames(&file, "0:v", false).len() >= 50);
}

#[test]
fn a_full_disk_ends_a_recording_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else { return };
    std::fs::write(disk.0.path().join("other"), vec![0; (2 << 20) - (300 << 10)]).unwrap();
    let server = serve(CLIP, disk.0.path(), &[]);
    let (id, file) = start(&server, disk.0.path(), &format!("?path={CLIP}"));
    let ended = until(&server, id, |recording| recording["ended"].is_string());
    assert!(ended["ended"] == "failed" && ended["error"].as_str().unwrap().contains("No space"), "{ended}");
    assert_eq!(server.metric("millpond_recordings_failed_total", ""), 1.0);
    let log = server.log_text();
    assert!(log.contains("its file can't be written") && log.contains(file.to_str().unwrap()), "{log}");
    // All fragments before the one that did not fit.
    assert_eq!(ended["bytes"].as_u64().unwrap(), file.metadata().unwrap().len());
    let recorded = frames(&file, "0:v", false);
    assert!(!recorded.is_empty() && recorded.len().is_multiple_of(50), "{}", recorded.len());
    // The channel serves.
    let mut viewer = Client::new(&server, CLIP);
    viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    viewer.receive(|packets| packets.len() > 20);
}

#[test]
fn the_command_starts_lists_and_stops() {
    let folder = memory_folder();
    let server = serve(CLIP, folder.path(), &[]);
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let output =
            command.arg("record").args(args).args(["--admin", &format!("127.0.0.1:{}", server.admin)]).output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (is_done, said) = run(&["start", CLIP, "--duration", "1m"]);
    assert!(is_done && said.contains("\"file\": \"h264_aac.mp4-"), "{said}");
    let (is_done, said) = run(&["ls"]);
    assert!(is_done && said.contains("runs") && said.contains("h264_aac.mp4-"), "{said}");
    let (is_done, said) = run(&["stop", "1"]);
    assert!(is_done && said.contains("\"ended\": \"stopped\""), "{said}");
    let (is_done, said) = run(&["stop", "1"]);
    assert!(!is_done && said.contains("there is no recording 1"), "{said}");
}
