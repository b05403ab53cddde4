//! Modules that operators attach to streams: by the admin API, by commands and by the configuration. ffmpeg publishes and judges.

use super::publish::{assert_of_clip, hashes, push_clip, reader, serve, until_published};
use crate::support::{
    Running, Server,
    api::{api, items, send},
    free_port, get, wait_for_port,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn rtsp(server: &Server, path: &str) -> String {
    format!("rtsp://127.0.0.1:{}/{path}", server.rtsp)
}

/// Decodes the first pictures of a stream.
fn watch(server: &Server, path: &str, count: usize) -> std::process::Child {
    reader(&["-rtsp_transport", "tcp", "-i", &rtsp(server, path)], "0:v", count)
}

fn attach(server: &Server, stream: &str, kind: &str, options: &Value) -> (u16, Value) {
    let body = json!({ "stream": stream, "kind": kind, "options": options });
    let reply = send(server.admin, "POST", "modules", &body, &[]);
    (reply.status, serde_json::from_str(&reply.text()).unwrap())
}

fn detach(server: &Server, id: &Value) -> u16 {
    send(server.admin, "DELETE", &format!("modules/{id}"), &Value::Null, &[]).status
}

#[track_caller]
fn eventually(words: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{words}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A packet of ffmpeg's list: times in ticks, and a hash.
#[derive(Clone, Debug, PartialEq)]
struct Packet {
    dts: i64,
    pts: i64,
    hash: String,
}

/// Reads packets of a track as they are in a long response.
fn packets(server: &Server, path: &str, track: &str, count: usize) -> std::process::Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", &server.url(&format!("{path}/stream.mp4"))]);
    command.args(["-map", track, "-c", "copy", "-frames:v", &count.to_string(), "-frames:a", &count.to_string()]);
    command.args(["-f", "framemd5", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn listed(child: std::process::Child) -> Vec<Packet> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let packet = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        Packet { dts: fields[1].parse().unwrap(), pts: fields[2].parse().unwrap(), hash: fields[5].to_owned() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(packet).collect()
}

/// Checks that two lists have the same packets at the same distances in time, where they overlap.
fn assert_same(one: &[Packet], other: &[Packet]) {
    let (later, earlier) = match one.iter().position(|packet| packet.hash == other[0].hash) {
        Some(_) => (other, one),
        None => (one, other),
    };
    let offset = earlier.iter().position(|packet| packet.hash == later[0].hash).expect("a common packet");
    let common = later.iter().zip(&earlier[offset..]);
    assert!(common.len() > 40, "{} packets are common", common.len());
    let (a, b) = (&later[0], &earlier[offset]);
    for (place, (x, y)) in common.enumerate() {
        assert_eq!(x.hash, y.hash, "packet {place}");
        assert_eq!((x.pts - a.pts, x.dts - a.dts), (y.pts - b.pts, y.dts - b.dts), "packet {place}");
    }
}

#[test]
fn a_tee_gives_the_same_frames_and_disturbs_no_viewer() {
    let server = serve(&[]);
    let _publisher = push_clip("tcp", &rtsp(&server, "live/cam"));
    until_published(&server, "live/cam");
    let viewer = watch(&server, "live/cam", 300);
    eventually("the viewer plays", || {
        items(server.admin, "streams")[0]["viewers"].to_string().contains("transmission")
    });
    let (status, tee) = attach(&server, "live/cam", "tee", &json!({ "to": "live/copy" }));
    assert_eq!((status, &tee["state"]), (201, &json!("running")), "{tee}");
    until_published(&server, "live/copy");
    let copied = watch(&server, "live/copy", 100);
    // Eight seconds and more: on a busy machine, one reader starts seconds after the other one.
    for (track, count) in [("0:v", 200), ("0:a", 400)] {
        let (source, copy) = (packets(&server, "live/cam", track, count), packets(&server, "live/copy", track, count));
        assert_same(&listed(source), &listed(copy));
    }
    assert_of_clip(&hashes(copied), 100);

    let dot = get(server.admin, "/api/v1/graph.dot", &[]).text();
    let node = |label: &str| {
        let line = dot.lines().find(|line| line.contains(label)).unwrap_or_else(|| panic!("{label}: {dot}"));
        line.trim().split(' ').next().unwrap().to_owned()
    };
    let (source, module, output) =
        (node("publication\\nlive/cam"), node("tee\\nlive/cam live/copy"), node("publication\\nlive/copy"));
    assert!(
        dot.contains(&format!("{source} -> {module} ")) && dot.contains(&format!("{module} -> {output} ")),
        "{dot}"
    );
    assert_eq!(module, format!("n{}", tee["module"]));

    for (stream, kind, options, expected, words) in [
        ("live/cam", "tee", json!({ "to": "live/copy" }), 409, "to: live/copy: the stream has another publisher"),
        ("live/copy", "tee", json!({ "to": "live/cam" }), 409, "to: live/cam: the frames would come back to live/copy"),
        ("live/cam", "tee", json!({ "to": "films/copy" }), 409, "to: films/copy is not in a place of publishers"),
        ("live/cam", "tee", json!({}), 400, "tee needs the option to"),
        (
            "live/cam",
            "tee",
            json!({ "to": "live/x", "delay": "1h" }),
            400,
            "delay: expected a duration from 0s to 600s",
        ),
        (
            "live/cam",
            "tea",
            json!({}),
            400,
            "no kind of modules is called \"tea\", did you mean \"tee\"? (kinds: recorder, archiver, opus, tee, push)",
        ),
        ("live/cam", "recorder", json!({ "size": "11GiB" }), 400, "size: found 11GiB, expected at most 10GiB"),
        ("live/cam", "recorder", json!({}), 403, "recording is off: set record-folder"),
    ] {
        let (status, problem) = attach(&server, stream, kind, &options);
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == expected && detail.contains(words), "{stream} {kind} {options}: {status} {problem}");
    }

    assert_eq!((detach(&server, &tee["id"]), detach(&server, &tee["id"])), (200, 404));
    assert!(!get(server.admin, "/api/v1/graph.dot", &[]).text().contains("tee\\n"));
    assert_of_clip(&hashes(viewer), 300);
    assert_eq!(items(server.admin, "streams")[0]["dropped-frames"], 0);
}

#[test]
fn a_delayed_tee_gives_the_frames_later() {
    let server = serve(&[]);
    let _publisher = push_clip("tcp", &rtsp(&server, "live/cam"));
    until_published(&server, "live/cam");
    let began = Instant::now();
    let (status, tee) = attach(&server, "live/cam", "tee", &json!({ "to": "live/later", "delay": "4s" }));
    assert_eq!(status, 201, "{tee}");
    // The viewer waits for the first frame.
    let pictures = hashes(watch(&server, "live/later", 60));
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
    assert_of_clip(&pictures, 60);
}

fn millpond(server: &Server, arguments: &[&str]) -> Output {
    let admin = format!("127.0.0.1:{}", server.admin);
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(arguments).args(["--admin", &admin]).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr }).into_owned()
}

#[test]
fn commands_list_add_and_remove_modules() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&["--record-folder", folder.path().to_str().unwrap()]);
    let _publisher = push_clip("tcp", &rtsp(&server, "live/cam"));
    until_published(&server, "live/cam");
    let kinds = text(&millpond(&server, &["module", "kinds"]));
    for words in ["recorder: ", "  size=SIZE", "tee: ", "  to=PATH", "[required]", "  delay=DURATION", "[default: 0s]"]
    {
        assert!(kinds.contains(words), "{words}: {kinds}");
    }
    let added = text(&millpond(&server, &["module", "add", "live/cam", "recorder", "duration=2s"]));
    let added: Value = serde_json::from_str(&added).unwrap_or_else(|_| panic!("{added}"));
    let id = added["id"].to_string();
    eventually("the recording has its duration", || {
        let all = text(&millpond(&server, &["module", "ls"]));
        all.lines().any(|line| line.contains("ended") && line.contains("recorder duration=2s"))
    });
    // The recordings list the same one.
    let recording = api(server.admin, &format!("recordings/{id}"));
    assert_eq!(recording["ended"], "duration reached", "{recording}");
    assert!(folder.path().join(recording["file"].as_str().unwrap()).is_file());
    let removed = millpond(&server, &["module", "rm", &id]);
    assert!(removed.status.success(), "{}", text(&removed));
    let refused = text(&millpond(&server, &["module", "add", "live/cam", "tee", "copy"]));
    assert!(refused.contains("expected NAME=VALUE, such as to=live/copy, found \"copy\""), "{refused}");
}

/// A server whose configuration has modules.
struct Configured {
    server: Server,
    folder: tempfile::TempDir,
}

impl Configured {
    fn text(modules: &str) -> String {
        format!("linger = \"0s\"\nmodules = [{modules}]\n[places.live]\nurl = \"publish:\"\n")
    }

    fn start(modules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("millpond.toml");
        fs::write(&file, Self::text(modules)).unwrap();
        Self { server: Server::start(&["--config", file.to_str().unwrap()]), folder }
    }

    fn reload(&self, modules: &str) -> Output {
        fs::write(self.folder.path().join("millpond.toml"), Self::text(modules)).unwrap();
        millpond(&self.server, &["reload"])
    }

    fn module(&self, kind_and_options: &str) -> Option<Value> {
        let of = |module: &Value| {
            let options = module["options"].as_object().unwrap().iter();
            let options: String = options.map(|(name, value)| format!(" {name}={}", value.as_str().unwrap())).collect();
            format!("{}{options}", module["kind"].as_str().unwrap())
        };
        let all = items(self.server.admin, "modules");
        all.as_array().unwrap().iter().find(|module| of(module) == kind_and_options).cloned()
    }

    fn runs(&self, kind_and_options: &str) -> bool {
        self.module(kind_and_options).is_some_and(|module| module["state"] == "running")
    }
}

#[test]
fn modules_of_the_configuration_follow_it_and_their_source() {
    let configured = Configured::start(r#""live/cam tee to=live/copy""#);
    let server = &configured.server;
    // The stream is opened at the start, and its publisher is waited for.
    let publisher = push_clip("tcp", &rtsp(server, "live/cam"));
    eventually("the module runs", || configured.runs("tee to=live/copy"));
    until_published(server, "live/copy");
    let viewer = watch(server, "live/copy", 250);
    eventually("the viewer plays", || {
        let streams = items(server.admin, "streams");
        let copy = streams.as_array().unwrap().iter().find(|stream| stream["path"] == "live/copy").unwrap();
        copy["viewers"].to_string().contains("transmission")
    });
    let before = configured.module("tee to=live/copy").unwrap();
    let reloaded = configured.reload(r#""live/cam tee to=live/copy", "live/cam tee to=live/more""#);
    assert!(reloaded.status.success(), "{}", text(&reloaded));
    eventually("the new module runs", || configured.runs("tee to=live/more"));
    let reloaded = configured.reload(r#""live/cam tee to=live/copy""#);
    assert!(reloaded.status.success(), "{}", text(&reloaded));
    assert_eq!(configured.module("tee to=live/more"), None);
    assert_eq!(configured.module("tee to=live/copy"), Some(before.clone()), "it was not touched");
    assert_of_clip(&hashes(viewer), 250);
    assert_eq!(detach(server, &before["id"]), 409);

    // A line that is wrong changes nothing, and is named.
    let refused = configured.reload(r#""live/cam tea to=live/copy""#);
    assert!(!refused.status.success());
    let checked = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["check", "--config", configured.folder.path().join("millpond.toml").to_str().unwrap()])
        .output()
        .unwrap();
    for output in [&refused, &checked] {
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let words =
            "no kind of modules is called \"tea\", did you mean \"tee\"? (kinds: recorder, archiver, opus, tee, push)";
        assert!(said.contains("millpond.toml:2:") && said.contains(words), "{said}");
    }
    assert!(configured.runs("tee to=live/copy"));

    // The stream ends 15 s after its publisher has left. The next publisher finds the module there.
    drop(publisher);
    eventually("the module waits", || configured.module("tee to=live/copy").unwrap()["state"] == "waiting");
    let _publisher = push_clip("tcp", &rtsp(server, "live/cam"));
    eventually("the module runs again", || configured.runs("tee to=live/copy"));
    assert_of_clip(&hashes(watch(server, "live/copy", 50)), 50);
}

#[test]
fn a_program_with_a_kind_of_its_own_serves_with_it() {
    let program = Path::new(env!("CARGO_BIN_EXE_millpond")).with_file_name("examples").join("key-frame-log");
    let build = "`cargo build -p millpond --example key-frame-log` makes it";
    assert!(program.is_file(), "{} is missing: {build}", program.display());
    let folder = tempfile::tempdir().unwrap();
    let (http, admin, port) = (free_port(), free_port(), free_port());
    let text = format!(
        "http = \"127.0.0.1:{http}\"\nadmin = \"127.0.0.1:{admin}\"\nrtsp = \"127.0.0.1:{port}\"\ncache = {:?}\n\
         modules = [\"live/cam key-frame-log\"]\n[places.live]\nurl = \"publish:\"\n",
        folder.path()
    );
    let (file, log) = (folder.path().join("millpond.toml"), folder.path().join("log.txt"));
    fs::write(&file, text).unwrap();
    let process = Command::new(program).args([&file, folder.path()]).stderr(fs::File::create(&log).unwrap()).spawn();
    let _process = Running(process.unwrap());
    wait_for_port(port, &log);
    wait_for_port(admin, &log);
    let kinds = api(admin, "modules")["kinds"].take();
    let kind = kinds.as_array().unwrap().iter().find(|kind| kind["name"] == "key-frame-log").unwrap();
    assert_eq!((&kind["input"], &kind["options"][0]["name"]), (&json!("pictures"), &json!("every")), "{kind}");
    let _publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{port}/live/cam"));
    let lines = || {
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let of = |path: std::path::PathBuf| fs::read_to_string(path).unwrap();
        let text: String = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).map(of).collect();
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>()
    };
    eventually("four key frames were written", || lines().len() >= 4);
    // Key frames of the clip are two seconds apart, but for the end of a round.
    let lines = lines();
    assert!(lines.iter().any(|line| (line["interval"].as_f64().unwrap_or(0.0) - 2.0).abs() < 0.05), "{lines:?}");
    assert!(lines[0]["bytes"].as_u64().unwrap() > 1000, "{lines:?}");
    let dot = get(admin, "/api/v1/graph.dot", &[]).text();
    assert!(dot.contains("key-frame-log\\nlive/cam key-frames-"), "{dot}");
}
