//! Hooks and the feed of events: order, signatures as others verify them, endpoints that fail, programs, and a feed that is resumed.

use crate::{
    live::publish::{CLIP, push_clip, until_published},
    operations::metrics::{By, watch::Watch},
    support::{Running, Server, api::send, clips, missing, rtsp::Client, small_disk::SmallDisk},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The Python with the libraries of Standard Webhooks and CloudEvents.
fn python() -> Option<PathBuf> {
    let home = std::env::var_os("HOME")?;
    let python = Path::new(&home).join(".local/share/millpond-webhooks/bin/python");
    if !python.is_file() {
        missing("standardwebhooks of PyPI");
        return None;
    }
    Some(python)
}

/// An endpoint in Python.
struct Endpoint {
    url: String,
    folder: TempDir,
    _process: Running,
}

impl Endpoint {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (modes, events) = (folder.path().join("mode"), folder.path().join("events"));
        fs::write(&modes, "fine").unwrap();
        fs::write(&events, "").unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/support/webhook.py");
        let mut command = Command::new(python()?);
        command.args([script, SECRET]).args([&modes, &events]).stdout(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let mut port = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Some(Self { url: format!("http://127.0.0.1:{}/events?key=1", port.trim()), folder, _process: process })
    }

    /// Changes how requests are answered.
    fn answers(&self, mode: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, mode).unwrap();
        fs::rename(new, self.folder.path().join("mode")).unwrap();
    }

    /// The events that it took.
    fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("events")).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(events.iter().all(|event| event["error"].is_null()), "{events:?}");
        events
    }

    /// Waits for events, and returns all that it took.
    #[track_caller]
    fn until(&self, server: &Server, are_there: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let events = self.events();
            if are_there(&events) {
                return events;
            }
            assert!(began.elapsed() < LONG, "{events:#?} {}", server.log_text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn serve(more: &[&str]) -> Server {
    Server::start(&[&["live=publish:", "--linger", "0s", "--disk-low", "0"], more].concat())
}

/// Pushes a second of a clip, as fast as it is taken.
fn push_second(server: &Server, path: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-t", "1", "-i"]).arg(clips::folder().join(CLIP));
    command.args(["-map", "0:v", "-c", "copy", "-f", "mpegts", &server.url(path)]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{} {}", String::from_utf8_lossy(&output.stderr), server.log_text());
}

fn has(events: &[Value], kind: &str, subject: &str) -> bool {
    events.iter().any(|event| event["type"] == kind && event["subject"] == subject)
}

/// The position of the n-th event of a type.
#[track_caller]
fn place(events: &[Value], kind: &str, number: usize) -> usize {
    let mut places = events.iter().enumerate().filter(|(_, event)| event["type"] == kind);
    places.nth(number).unwrap_or_else(|| panic!("{kind} {number}: {events:#?}")).0
}

/// Checks that events are in the order in which they happened, each once.
fn assert_ordered(events: &[Value]) {
    let number = |event: &Value| event["id"].as_str().unwrap().rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
    assert!(events.windows(2).all(|two| number(&two[0]) < number(&two[1])), "{events:#?}");
    assert!(events.windows(2).all(|two| two[0]["time"].as_str() <= two[1]["time"].as_str()), "{events:#?}");
}

#[test]
fn signed_events_tell_the_life_of_a_stream() {
    clips::folder();
    let Some(endpoint) = Endpoint::start() else { return };
    let server = serve(&["--hooks", &endpoint.url, "--hook-secret", SECRET]);
    let url = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let publisher = push_clip("tcp", &url);
    until_published(&server, "live/cam");
    let mut viewer = Client::new(&server, "live/cam");
    viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    endpoint.until(&server, |events| has(events, "millpond.viewers.began", "live/cam"));
    // The viewer waits for another publisher.
    drop(publisher);
    endpoint.until(&server, |events| has(events, "millpond.source.lost", "live/cam"));
    let again = push_clip("tcp", &url);
    endpoint.until(&server, |events| has(events, "millpond.source.back", "live/cam"));
    drop(viewer);
    let events = endpoint.until(&server, |events| has(events, "millpond.viewers.ended", "live/cam"));
    drop(again);
    assert_ordered(&events);
    let order = [
        place(&events, "millpond.publisher.began", 0),
        place(&events, "millpond.viewers.began", 0),
        place(&events, "millpond.publisher.ended", 0),
        place(&events, "millpond.source.lost", 0),
        place(&events, "millpond.publisher.began", 1),
        place(&events, "millpond.source.back", 0),
        place(&events, "millpond.viewers.ended", 0),
    ];
    assert!(order.is_sorted(), "{order:?} {events:#?}");
    assert!(events.iter().all(|event| event["id"] == event["webhook-id"] && event["path"] == "/events?key=1"));
    assert!(events.iter().all(|event| event["source"].as_str().unwrap().starts_with("millpond://")));
    assert_eq!(events[order[0]]["data"], json!({ "media": "rtp" }));
    let ended = &events[order[2]]["data"];
    assert!(ended["reason"] == "left" && ended["bytes"].as_u64().unwrap() > 10_000, "{ended}");
    assert!(events[order[3]]["data"]["why"].as_str().unwrap().contains("left"), "{events:#?}");
    assert!(!server.log_text().contains("key=1") && !server.log_text().contains(SECRET));
    let settings = crate::support::api::api(server.admin, "settings?q=hook").to_string();
    assert!(settings.contains("***") && !settings.contains(SECRET) && !settings.contains("key=1"), "{settings}");
}

#[test]
fn an_endpoint_that_fails_hangs_and_closes_gets_all_events_in_their_order() {
    clips::folder();
    let (Some(endpoint), Some(other)) = (Endpoint::start(), Endpoint::start()) else { return };
    let hooks = format!("{},{}", endpoint.url, other.url);
    let server = serve(&["--hooks", &hooks, "--hook-secret", SECRET, "--hook-timeout", "500ms"]);
    let began = Instant::now();
    let failed = || server.metric("millpond_hook_attempts_total", "result=\"failed\"");
    for (number, mode) in ["500", "hang", "close", "302"].into_iter().enumerate() {
        endpoint.answers(mode);
        let before = failed();
        push_second(&server, &format!("live/{number}"));
        while failed() < before + 1.0 {
            assert!(began.elapsed() < LONG * 2, "{mode}: {}", server.log_text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // The other one waited for nobody.
    let expected = other.until(&server, |events| has(events, "millpond.publisher.ended", "live/3"));
    assert!(endpoint.events().is_empty());
    assert!(server.metric("millpond_hook_waiting_events", "") >= 8.0);
    endpoint.answers("fine");
    let events = endpoint.until(&server, |events| has(events, "millpond.publisher.ended", "live/3"));
    assert_ordered(&events);
    let of_publishers = |events: &[Value]| -> Vec<String> {
        let of = |event: &&Value| event["type"].as_str().unwrap().starts_with("millpond.publisher");
        events.iter().filter(of).map(|event| format!("{} {}", event["subject"], event["type"])).collect()
    };
    assert_eq!(of_publishers(&events), of_publishers(&expected));
    assert_eq!(of_publishers(&events).len(), 8, "{events:#?}");
    assert_eq!(server.metric("millpond_hook_dropped_events_total", ""), 0.0);
    assert_eq!(server.metric("millpond_events_total", "type=\"millpond.publisher.began\""), 4.0);
    let log = server.log_text();
    assert!(log.contains("a hook fails") && log.contains("a hook takes events again"), "{log}");
}

#[test]
fn above_the_bound_the_oldest_events_are_dropped_and_counted() {
    clips::folder();
    let Some(endpoint) = Endpoint::start() else { return };
    endpoint.answers("503");
    let server = serve(&["--hooks", &endpoint.url, "--hook-secret", SECRET, "--hook-queue", "2"]);
    let watch = Watch::begin(&server);
    for number in 0..3 {
        push_second(&server, &format!("live/{number}"));
    }
    let emitted = || server.metric("millpond_events_total", "");
    let began = Instant::now();
    // Three publishers begin and end.
    while emitted() < 6.0 {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    endpoint.answers("fine");
    let events = endpoint.until(&server, |events| events.len() == 2);
    assert_ordered(&events);
    assert!(events.iter().all(|event| event["subject"] == "live/2"), "{events:#?}");
    assert_eq!(server.metric("millpond_hook_dropped_events_total", "reason=\"overflow\""), emitted() - 2.0);
    watch.end(By::Hooks, &server);
}

#[test]
fn a_program_gets_events_one_after_the_other() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let (script, seen) = (folder.path().join("on-event"), folder.path().join("seen"));
    // The subject is data, and no part of a command.
    let text = format!(
        "#!/bin/sh\nmkdir {0}/lock || exit 9\nread -r body\nsleep 0.1\n\
         printf '%s|%s|%s|%s\\n' \"$1\" \"$EVENT_TYPE\" \"$EVENT_SUBJECT\" \"$body\" >> {0}/seen\necho done $EVENT_ID\nrmdir {0}/lock\n",
        folder.path().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let run = format!("{},-v", script.display());
    let server = serve(&["--hook-run", &run]);
    push_second(&server, "live/a$(id)b");
    push_second(&server, "live/second");
    let began = Instant::now();
    let lines = loop {
        let text = fs::read_to_string(&seen).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= 4 {
            break lines;
        }
        assert!(began.elapsed() < LONG, "{lines:?} {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(lines[0].starts_with("-v|millpond.publisher.began|live/a$(id)b|{\"specversion\":\"1.0\""), "{lines:?}");
    let bodies = lines.iter().map(|line| serde_json::from_str(line.splitn(4, '|').nth(3).unwrap()).unwrap());
    assert_ordered(&bodies.collect::<Vec<_>>());
    let ran = "hook=\"on-event\",result=\"delivered\"";
    while server.metric("millpond_hook_attempts_total", ran) < 4.0 {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(server.log_text().contains("output of a hook"), "{}", server.log_text());

    // Whoever reaches the API starts no programs.
    let change = json!({ "set": { "hook_run": "/bin/true" } });
    let refused = send(server.admin, "PATCH", "settings", &change, &[]);
    assert_eq!(refused.status, 403, "{}", refused.text());
}

/// A feed of events.
struct Feed(BufReader<TcpStream>);

impl Feed {
    fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.admin)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET /api/v1/cloudevents{query} HTTP/1.1\r\nHost: localhost\r\n{last}\r\n").unwrap();
        let mut feed = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            feed.read_line(&mut line).unwrap();
        }
        Self(feed)
    }

    /// The next event that is of a type, with its id. Others are left out.
    fn next(&mut self, kind: &str) -> (String, Value) {
        let (mut id, mut name) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the feed has ended");
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => value.clone_into(&mut id),
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) if name == kind => return (id, serde_json::from_str(value).unwrap()),
                _ => {}
            }
        }
    }
}

#[test]
fn a_feed_is_resumed_after_the_last_event() {
    clips::folder();
    let server = serve(&[]);
    let mut live = Feed::open(&server, "", None);
    push_second(&server, "live/one");
    let (first, event) = live.next("millpond.publisher.began");
    assert!(event["id"] == first.as_str() && event["subject"] == "live/one", "{event}");
    let (ended, _) = live.next("millpond.publisher.ended");
    drop(live);
    push_second(&server, "live/two");
    let began = "millpond.publisher.began";
    assert_eq!(Feed::open(&server, "", Some(&ended)).next(began).1["subject"], "live/two");
    assert_eq!(Feed::open(&server, &format!("?after={first}"), None).next(began).1["subject"], "live/two");
    assert_eq!(Feed::open(&server, "?after=0", None).next(began).1["subject"], "live/one");
    assert_eq!(Feed::open(&server, "?after=0", Some(&ended)).next(began).1["subject"], "live/two");
    // An id of a process before this one: all that is kept.
    assert_eq!(Feed::open(&server, "", Some("1-1")).next(began).1["subject"], "live/one");
    let mut text = String::new();
    let mut refused = TcpStream::connect(("127.0.0.1", server.admin)).unwrap();
    write!(refused, "GET /api/v1/cloudevents?x=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    refused.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
}

#[test]
fn complete_recordings_and_low_disks_are_told() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = disk.0.path();
    let media = clips::folder().to_str().unwrap();
    let args = [media, "--rtsp-channels", CLIP, "--record-folder", folder.to_str().unwrap(), "--disk-low", "1500KiB"];
    let server = Server::start(&args);
    let mut feed = Feed::open(&server, "?after=0", None);
    let begun = send(server.admin, "POST", "recordings", &json!({ "path": CLIP, "duration": "2s" }), &[]);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let (_, event) = feed.next("millpond.recording.complete");
    let (subject, data) = (&event["subject"], &event["data"]);
    assert!(subject == CLIP && data["reason"] == "duration reached" && data["files"] == 1, "{event}");
    let file = Path::new(data["file"].as_str().unwrap()).to_owned();
    assert_eq!(fs::metadata(&file).unwrap().len(), data["bytes"].as_u64().unwrap());
    fs::write(folder.join("ballast"), vec![1; 900 << 10]).unwrap();
    let (_, event) = feed.next("millpond.disk.low");
    assert!(
        event["subject"] == "record-folder" && event["data"]["free-bytes"].as_u64().unwrap() < 1500 << 10,
        "{event}"
    );
}

#[test]
fn bad_hooks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("millpond.toml");
    for (text, expected) in [
        ("hooks = [\"ftp://user:pass@app.example/\"]", "http or https URLs"),
        ("hooks = [\"http://a/x\", \"http://a/x\"]", "each URL once"),
        ("hook-secret = \"secret\"", "whsec_"),
        ("hook-run = [\"on-event\"]", "the path of a program"),
        ("hook-timeout = \"5m\"", "from 100ms to 60s"),
        ("hook-queue = 0", "from 1 to 100000"),
    ] {
        fs::write(&file, text).unwrap();
        let checked =
            Command::new(env!("CARGO_BIN_EXE_millpond")).args(["check", "--config"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&[&*checked.stdout, &*checked.stderr].concat()).into_owned();
        assert!(!checked.status.success() && said.contains(expected), "{text}: {said}");
        assert!(!said.contains("pass@") && !said.contains("\"secret\""), "{text}: {said}");
    }
}
