//! The access log: its formats and fields, files that are renamed or full, and that the simulator reads it.

use crate::support::{Server, get, rtsp::Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");

/// A server with a remote place, and the server of its files.
fn remote(args: &[&str]) -> (Server, Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(Path::new(SAMPLE).join("360p.mp4"), folder.path().join("a.mp4")).unwrap();
    let origin = Server::start(&[folder.path().to_str().unwrap(), "--access-log", "off"]);
    let place = format!("films={}", origin.url(""));
    let server = Server::start(&[&[place.as_str(), "--slice", "256KiB"], args].concat());
    (server, origin, folder)
}

/// Lines of a file, once there are `count`.
fn lines(file: &Path, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{count} lines expected: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until slices are complete: they are in memory, and on the disk soon.
fn wait_for_slices(server: &Server, count: f64) {
    let slices =
        || server.metric("millpond_memory_entries", "kind=\"slices\"") + server.metric("millpond_disk_slices", "");
    let began = Instant::now();
    while slices() < count {
        assert!(began.elapsed() < Duration::from_secs(60), "no slice is complete: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a metric is above a value.
fn wait_above(server: &Server, metric: &str, labels: &str, value: f64) {
    let began = Instant::now();
    while server.metric(metric, labels) <= value {
        assert!(began.elapsed() < Duration::from_secs(60), "{metric}{{{labels}}} stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The runs of the simulator on a log.
fn simulate(file: &Path) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(["simulate", "--format", "log", "--cache", "64MiB", "--slice", "256KiB", "--json", "-", "--trace"]);
    let output = command.arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn lines_have_all_fields_and_the_simulator_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = |format: &str| folder.path().join(format!("{format}.log"));
    for format in ["json", "clf", "combined"] {
        let path = file(format);
        let args = ["--access-log", path.to_str().unwrap(), "--access-log-format", format];
        let (server, _origin, _folder) = remote(&args);
        let fields = [("User-Agent", "a \"player\""), ("Referer", "http://page.example/?token=eyJh.b.c&x=1")];
        let first = [fields[0], fields[1], ("Range", "bytes=0-9999")];
        assert_eq!(get(server.port, "/films/a.mp4", &first).status, 206);
        // Lines come in the order of the ends of their requests.
        self::lines(&path, 1);
        wait_for_slices(&server, 1.0);
        let len = get(server.port, "/films/a.mp4?CMCD=bl%3D21300%2Csu", &fields).body.len();
        self::lines(&path, 2);
        wait_for_slices(&server, 5.0);
        get(server.port, "/films/a.mp4", &fields);
        let mut client = Client::new(&server, "films/a.mp4");
        client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
        assert_eq!(client.ask("PLAY", "", "").status, 200);
        client.receive(|packets| packets.len() > 20);
        assert_eq!(client.ask("TEARDOWN", "", "").status, 200);
        let count = if format == "json" { 5 } else { 4 };
        let lines = lines(&path, count);
        assert_eq!(lines.len(), count, "{lines:#?}");
        if format == "json" {
            let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            let caches: Vec<_> = lines[..3].iter().map(|line| line["cache"].as_str().unwrap()).collect();
            // The request that opens the file brings its first slice, which is a hit where it arrives before the body is read.
            assert!(["miss", "hit"].contains(&caches[0]), "{lines:#?}");
            assert_eq!(caches[1..], ["partial", "hit"], "{lines:#?}");
            assert_eq!(lines[0]["range"], format!("bytes 0-9999/{len}"));
            assert_eq!((&lines[1]["client"], &lines[1]["protocol"]), (&"127.0.0.1".into(), &"HTTP/1.1".into()));
            assert_eq!((&lines[1]["cmcd"], &lines[1]["uri"]), (&"bl=21300,su".into(), &"/films/a.mp4".into()));
            assert_eq!(lines[1]["referrer"], "http://page.example/?x=1");
            assert!(lines[1]["first_us"].as_u64().unwrap() <= lines[1]["us"].as_u64().unwrap());
            let session = lines.iter().find(|line| line["message"] == "RTSP session ended").unwrap();
            assert_eq!((&session["method"], &session["transport"]), (&"PLAY".into(), &"tcp".into()));
            assert_eq!((&session["asset"], &session["lost"]), (&"films/a.mp4".into(), &0.into()));
        } else {
            let end = if format == "clf" { "" } else { " \"http://page.example/?x=1\" \"a \\x22player\\x22\"" };
            let begin = |line: &str| line.starts_with("127.0.0.1 - - [") && line.contains(" +0000] \"");
            assert!(
                begin(&lines[0]) && lines[0].ends_with(&format!("GET /films/a.mp4 HTTP/1.1\" 206 10000{end}")),
                "{lines:#?}"
            );
            assert!(lines[1].ends_with(&format!("GET /films/a.mp4 HTTP/1.1\" 200 {len}{end}")), "{lines:#?}");
            assert!(lines[3].contains("\"PLAY /films/a.mp4 RTSP/1.0\" 200 "), "{lines:#?}");
        }
        let runs = simulate(&path);
        assert!(runs.len() == 1 && runs[0].to_string().contains("hit"), "{runs:#?}");
        let totals = Command::new(env!("CARGO_BIN_EXE_millpond"))
            .args(["simulate", "--format", "log", "--save", "/dev/stdout", "--trace"])
            .arg(&path)
            .output()
            .unwrap();
        let csv = String::from_utf8(totals.stdout).unwrap();
        assert_eq!(csv.lines().count(), 1 + 4, "a heading and four visits: {csv}");
    }
}

#[test]
fn a_renamed_file_is_followed_at_sigusr1_and_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let server = Server::start(&["--access-log", file.to_str().unwrap()]);
    for (turn, signals) in [(1, true), (2, false)] {
        server.get(&format!("before-{turn}"));
        assert!(lines(&file, turn)[turn - 1].contains(&format!("before-{turn}")));
        let old = folder.path().join(format!("access.log.{turn}"));
        std::fs::rename(&file, &old).unwrap();
        if signals {
            kill_process(Pid::from_child(&server.process.0), Signal::USR1).unwrap();
        }
        // Without a signal the name is checked once a second, when a line is written.
        let began = Instant::now();
        let mut asked = 0;
        while !file.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "the file was not opened again");
            if !signals {
                server.get("between");
                asked += 1;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        server.get(&format!("after-{turn}"));
        let began = Instant::now();
        let count = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
        while count(&file) + count(&old) < turn + asked + 1 {
            assert!(began.elapsed() < Duration::from_secs(60), "lines are lost");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(std::fs::read_to_string(&file).unwrap().contains(&format!("after-{turn}")));
        if !signals {
            break;
        }
        // The next turn begins with one line.
        assert_eq!(count(&file), 1);
    }
}

#[test]
fn a_full_disk_under_the_access_log_stops_nothing_and_is_told() {
    let server = Server::start(&["--access-log", "/dev/full", "--log-format", "json"]);
    for _ in 0..50 {
        assert_eq!(server.get("sample/index.m3u8").status, 200);
    }
    wait_above(&server, "millpond_log_lines_lost_total", "log=\"access\"", 49.0);
    assert_eq!(server.metric("millpond_log_failing", "log=\"access\""), 1.0);
    assert_eq!(server.metric("millpond_log_lines_lost_total", "log=\"server\""), 0.0);
    assert_eq!(get(server.admin, "/readyz", &[]).status, 200);
    let told = server.log_text();
    assert_eq!(told.matches("the access log can't be written").count(), 1, "{told}");
    assert!(told.contains("No space left"), "{told}");
}

#[test]
fn an_access_log_that_can_not_be_opened_is_an_error_at_the_start() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    let output = command.args(["serve", "--access-log", "/nowhere/access.log"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("access-log: /nowhere/access.log: No such file"), "{told}");
}
