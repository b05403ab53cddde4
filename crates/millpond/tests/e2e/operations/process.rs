//! The process as its operator meets it: signals, a log that nobody reads, hostile text in it, closed pipes.

use crate::support::{Running, Server, free_port, get, read_response, rtsp::Client, wait_for_port};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Far more than any of this takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn signal(process: &Running, signal: Signal) {
    kill_process(Pid::from_child(&process.0), signal).unwrap();
}

/// How the process ended, within `LONG`.
fn end(process: &mut Running) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = process.0.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < LONG, "the process goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_log(server: &Server, text: &str) {
    let began = Instant::now();
    while !server.log_text().contains(text) {
        assert!(began.elapsed() < LONG, "no {text:?} in {}", server.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn signals_without_a_meaning_are_ignored_and_sigterm_ends() {
    let mut server = Server::start(&[]);
    for (number, said) in
        [(Signal::HUP, "configuration reloaded"), (Signal::USR1, "SIGUSR1 is ignored: the access log has no file")]
    {
        signal(&server.process, number);
        wait_for_log(&server, said);
    }
    signal(&server.process, Signal::PIPE);
    assert_eq!(server.get("sample/index.m3u8").status, 200);
    signal(&server.process, Signal::TERM);
    assert!(end(&mut server.process).success());
}

#[test]
fn sighup_reads_users_again() {
    let scratch = tempfile::tempdir().unwrap();
    let users = scratch.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let mut server = Server::start(&["--rtsp-users", users.to_str().unwrap()]);
    signal(&server.process, Signal::HUP);
    wait_for_log(&server, "SIGHUP: configuration, certificates, users and keys of tokens are read again");
    signal(&server.process, Signal::INT);
    assert!(end(&mut server.process).success());
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let root = tempfile::tempdir().unwrap();
    std::fs::File::create(root.path().join("large.bin")).unwrap().set_len(1 << 30).unwrap();
    let mut server = Server::start(&[root.path().to_str().unwrap(), "--shutdown-grace", "1h"]);
    let mut viewer = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    viewer.write_all(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    viewer.read_exact(&mut [0; 1024]).unwrap();
    signal(&server.process, Signal::TERM);
    wait_for_log(&server, "stopping");
    assert!(server.process.0.try_wait().unwrap().is_none(), "the response under way is waited for");
    // New clients are refused, so that they ask another server. In the queue of a socket they would wait for the whole grace.
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", server.port)).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "connections are still taken");
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&server.process, Signal::TERM);
    assert_eq!(end(&mut server.process).code(), Some(130));
}

/// A server with these outputs; its ports of HTTP and of the admin address.
fn serve(args: &[&str], stdout: Stdio, stderr: Stdio) -> (Running, u16, u16, tempfile::TempDir) {
    let (http, admin) = (free_port(), free_port());
    let cache = tempfile::tempdir().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .arg("serve")
        .args(args)
        .args(["--http", &format!("127.0.0.1:{http}"), "--admin", &format!("127.0.0.1:{admin}")])
        .args(["--rtsp", "127.0.0.1:0", "--cache", cache.path().to_str().unwrap()])
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap();
    let process = Running(child);
    wait_for_port(http, Path::new("no log"));
    (process, http, admin, cache)
}

/// Asks on one connection, with targets of 8 kB that go into the log.
fn ask(port: u16, count: usize) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let request = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(200).repeat(40));
    for n in 0..count {
        (&stream).write_all(request.as_bytes()).unwrap();
        assert_eq!(read_response(&mut reader, false).status, 404, "request {n}");
    }
}

/// Lines of a log that were lost.
fn lost_lines(admin: u16, log: &str) -> u64 {
    let metrics = get(admin, "/metrics", &[]).text();
    let sample = format!("millpond_log_lines_lost_total{{log=\"{log}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&sample));
    line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    for workers in ["1", "2"] {
        let args = ["--workers", workers, "--log-format", "text"];
        let (mut process, http, admin, _cache) = serve(&args, Stdio::piped(), Stdio::piped());
        ask(http, 2_000);
        assert_eq!(get(admin, "/livez", &[]).status, 200);
        let lost = lost_lines(admin, "server");
        assert!(lost > 0, "16 MB of lines wait nowhere");
        signal(&process, Signal::TERM);
        assert!(end(&mut process).success());
    }
}

#[test]
fn an_access_log_that_nobody_reads_and_a_full_disk_under_the_log_stop_nothing() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (mut process, http, admin, _cache) = serve(&["--access-log", "-"], Stdio::piped(), full.into());
    ask(http, 2_000);
    let began = Instant::now();
    while lost_lines(admin, "server") == 0 && began.elapsed() < LONG {
        signal(&process, Signal::USR1);
        std::thread::sleep(Duration::from_millis(20));
    }
    let metrics = get(admin, "/metrics", &[]).text();
    assert!(lost_lines(admin, "access") > 0 && lost_lines(admin, "server") > 0, "{metrics}");
    for log in ["server", "access"] {
        assert!(metrics.contains(&format!("millpond_log_failing{{log=\"{log}\"}} 1")), "{metrics}");
    }
    assert_eq!(get(admin, "/readyz", &[]).status, 200);
    signal(&process, Signal::TERM);
    assert!(end(&mut process).success());
}

#[test]
fn lost_lines_are_told_when_the_log_goes_on() {
    let (mut process, http, _, _cache) = serve(&["--log-format", "json"], Stdio::null(), Stdio::piped());
    ask(http, 2_000);
    let mut log = process.0.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    // Once all that waits is written, the next line is one of those that tell.
    let began = Instant::now();
    while !reader.is_finished() && began.elapsed() < Duration::from_secs(2) {
        ask(http, 1);
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&process, Signal::TERM);
    assert!(end(&mut process).success());
    let text = reader.join().unwrap();
    let told: u64 = text
        .lines()
        .filter(|line| line.contains("log lines were lost"))
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["lines"].as_u64().unwrap())
        .sum();
    assert!(told > 0, "{}", &text[text.len().saturating_sub(1000)..]);
    assert!(text.lines().count() as u64 + told >= 2_000, "every line was written or counted");
}

/// Whether a character in a log could steer a terminal or forge a line.
fn is_hostile(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn what_clients_ask_for_cannot_forge_the_log() {
    const EVIL: &str = "%1b%5b2J%0d%0aFORGED%c2%9b31m%7f%e2%80%a8%e2%80%ae%00.mp4";
    for format in ["text", "json"] {
        let server = Server::start(&["--log", "debug", "--log-format", format]);
        let without_zero = EVIL.replace("%00", "");
        for path in
            [EVIL, &without_zero, &format!("sample/{without_zero}/index.m3u8"), &format!("sample/{without_zero}")]
        {
            assert!(matches!(server.get(path).status, 400 | 404), "{path}");
        }
        // As bytes too, where the parser lets them pass.
        let mut raw = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        raw.write_all(
            "GET /sample/\u{9b}31m\u{202e}FORGED HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \u{9b}\r\n\r\n".as_bytes(),
        )
        .unwrap();
        assert!(matches!(read_response(&mut BufReader::new(raw), false).status, 400 | 404));
        let mut client = Client::new(&server, &format!("sample/{without_zero}"));
        assert!(matches!(client.ask("DESCRIBE", "", "").status, 400 | 404));
        let mut client = Client::new(&server, "sample");
        client.ask("SETUP", "/v1\u{9b}31m", "Transport: RTP/AVP\u{9b};unicast\r\nUser-Agent: \u{1b}[2J\u{202e}\r\n");
        wait_for_log(&server, "FORGED");
        let log = server.log_text();
        for line in log.lines() {
            assert!(!line.contains(is_hostile) && !line.starts_with("FORGED"), "{format}: {line:?}");
            if format == "json" {
                serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            }
        }
        assert!(!log.contains('\r'), "{format}");
    }
}

/// A pipe whose reader has left.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn output_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn no_command_panics_when_its_reader_left() {
    let server = Server::start(&[]);
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample/180p.mp4");
    std::fs::write(path("trace.csv"), "0,a,1000000\n1,b,1000000\n").unwrap();
    let (trace, out, url) = (path("trace.csv"), path("out"), server.url("sample/index.m3u8"));
    let admin = format!("127.0.0.1:{}", server.admin);
    server.get("sample/v1/1.m4s");
    let simulate = ["simulate", "--trace", &trace, "--cache", "10MB", "--slice", "1MB"];
    let load = ["load", &url, "--clients", "1", "--pace", "fast"];
    let rtsp = format!("rtsp://127.0.0.1:{}/sample", server.rtsp);
    for (args, code) in [
        (&["check"][..], 141),
        (&["probe", sample], 141),
        (&["probe", sample, "--json"], 141),
        (&["index", sample, "--output", &out], 141),
        (&["cache", "ls", "--admin", &admin], 141),
        (&["cache", "stat", "--admin", &admin], 141),
        (&["explain", "sample/v1/1.m4s", "--admin", &admin], 141),
        (&["explain", "sample/v1/1.m4s", "--json", "--admin", &admin], 141),
        (&simulate, 141),
        (&[&simulate[..], &["--json", "-"]].concat(), 141),
        (&load, 141),
        (&[&load[..], &["--json", "-"]].concat(), 141),
        (&["load", &rtsp, "--clients", "1", "--duration", "1s", "--once"], 141),
        (
            &[
                "doctor",
                "--http",
                "127.0.0.1:0",
                "--rtsp",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
                "--cache-size",
                "0",
            ],
            141,
        ),
        (&["completions", "zsh"], 141),
        (&["man"], 141),
        (&["--help"], 0),
        (&["serve", "--help"], 0),
        (&["--version"], 0),
    ] {
        let command = |stdout, stderr| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
            command.args(args).stdout(stdout).stderr(stderr).spawn().unwrap()
        };
        let (got, err) = output_of(command(closed(), Stdio::piped()));
        assert!(got == Some(code) && !err.contains("panicked"), "{args:?}: {got:?} {err}");
        // With both closed there is nobody to tell; it must not be a panic either.
        assert_ne!(output_of(command(closed(), closed())).0, Some(101), "{args:?}");
    }
    let failing = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["probe", "/nowhere.mp4"])
        .stdout(closed())
        .stderr(closed())
        .spawn()
        .unwrap();
    assert_eq!(output_of(failing).0, Some(1));
}

#[test]
fn a_server_goes_on_when_nobody_reads_its_output() {
    let (mut process, http, _, _cache) = serve(&[], closed(), closed());
    for _ in 0..10 {
        assert_eq!(get(http, "/sample/index.m3u8", &[]).status, 200);
    }
    signal(&process, Signal::TERM);
    assert!(end(&mut process).success());
}

#[test]
fn names_in_files_cannot_steer_the_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("a\u{1b}[2J\r\u{9b}31m\u{202e}.mp4");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample/180p.mp4"), &file).unwrap();
    let server = Server::start(&[scratch.path().to_str().unwrap()]);
    let admin = format!("127.0.0.1:{}", server.admin);
    let name = file.file_name().unwrap().to_str().unwrap();
    let segment = format!("{name}/v1/1.m4s");
    for args in [
        &["probe", file.to_str().unwrap()][..],
        &["probe", file.to_str().unwrap(), "--json"],
        &["probe", &format!("{}x", file.display())],
        &["index", file.to_str().unwrap(), "--output", scratch.path().to_str().unwrap()],
        &["explain", &segment, "--admin", &admin],
        &["explain", &segment, "--json", "--admin", &admin],
        &["cache", "ls", "--admin", &admin],
        &["cache", "pin", &segment, "--admin", &admin],
        &["check", scratch.path().join("a\u{1b}[2J").to_str().unwrap()],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).output().unwrap();
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(text.clone()).unwrap();
            assert!(!text.contains(|c| c != '\n' && is_hostile(c)), "{args:?}: {text:?}");
        }
    }
}
