//! A real server and files that claim far more than they hold: every request is answered or refused at a bounded cost,
//! and nobody else notices.

use crate::support::{Response, Server, get, request};
use millpond_hostile::catalogue;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Write as _,
    net::TcpStream,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Resources that are requested of each hostile file.
const OUTPUTS: [&str; 3] = ["index.m3u8", "index.mpd", "ts/index.m3u8"];
/// Resources that are planned for each, without their bytes, which are no pictures.
const SEGMENTS: [&str; 6] = ["v1/index.m3u8", "v1/iframes.m3u8", "v1/init.mp4", "v1/1.m4s", "v1/i1.m4s", "ts/v1/1.ts"];
/// CPU seconds that all requests for one file may take, in a build that isn't optimized, beside those of honest ones.
const MOST_CPU: f64 = 6.0;
/// Most memory of the process: the budget of 64 MiB, and what a build that isn't optimized needs beside.
const MOST_MEMORY: u64 = (64 << 20) + (150 << 20);
/// Longest wait for an honest reply: machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Unit of times in /proc: always that on Linux (proc_pid_stat(5)).
const TICKS: f64 = 100.0;

struct Folder(tempfile::TempDir);

impl Folder {
    /// Hostile files, and two honest ones.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        catalogue::write(folder.path()).unwrap();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample");
        for name in ["180p.mp4", "360p.mp4"] {
            std::fs::copy(sample.join(name), folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    fn serve(&self, args: &[&str]) -> Server {
        Server::start(&[&[self.0.path().to_str().unwrap(), "--memory", "64MiB"], args].concat())
    }
}

/// CPU seconds of a process, of all its threads.
fn cpu(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process.0.id())).unwrap();
    // The fields after the name in brackets, which may hold anything: utime and stime are the 14th and 15th of all.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / TICKS
}

/// Most bytes of memory that a process had so far.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Sends a request and does not read the reply.
fn ask(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

/// Watches and checks health until `over`, at least once, and returns how long each segment took.
fn honest(server: &Server, over: &AtomicBool) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let started = Instant::now();
        for path in ["/livez", "/readyz", "/metrics"] {
            assert_eq!(get(server.admin, path, &[]).status, 200, "{path}");
        }
        let asked = Instant::now();
        let segment = server.get(&format!("180p.mp4/v1/{}.m4s", waits.len() % 3 + 1));
        assert_eq!(segment.status, 200);
        waits.push(asked.elapsed());
        assert!(started.elapsed() < PATIENCE, "health and a segment took {:?}", started.elapsed());
        if over.load(Ordering::Relaxed) {
            return waits;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn every_output_is_bounded(args: &[&str]) {
    let folder = Folder::new();
    let server = folder.serve(args);
    assert_eq!(server.get("180p.mp4/index.m3u8").status, 200);
    let mut table = String::new();
    for (name, _) in catalogue::ALL {
        let over = AtomicBool::new(false);
        let before = cpu(&server);
        let (replies, mut waits) = std::thread::scope(|scope| {
            let viewer = scope.spawn(|| honest(&server, &over));
            let mut replies: Vec<Response> =
                OUTPUTS.iter().map(|output| server.get(&format!("{name}/{output}"))).collect();
            let head = |output: &&str| request(server.port, "HEAD", &format!("/{name}/{output}"), &[]);
            replies.extend(SEGMENTS.iter().map(head));
            over.store(true, Ordering::Relaxed);
            (replies, viewer.join().unwrap())
        });
        let took = cpu(&server) - before;
        waits.sort();
        let p99 = waits[waits.len() * 99 / 100];
        let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        table += &format!(
            "{name}: {statuses:?}, {took:.2} s, {} honest p99 {p99:.1?}, {} MB\n",
            waits.len(),
            peak(&server) >> 20
        );
        for reply in &replies {
            // Replies to HEAD have no text.
            let is_of_memory = reply.body.is_empty() || reply.text().contains("bytes of memory, expected at most");
            let is_large = reply.status == 500 && is_of_memory;
            assert!(is_large || matches!(reply.status, 200 | 404 | 422 | 503), "{name}: {reply:?}");
            let kind = reply.header("content-type");
            assert!(reply.status == 200 || kind == Some("application/problem+json"), "{name}: {reply:?}");
        }
        assert!(took - waits.len() as f64 * 0.05 < MOST_CPU, "{name} took {took:.1} s of CPU\n{table}");
    }
    eprintln!("{table}");
    assert!(!server.log_text().contains("the job ended without a result"), "a job panicked");
    assert!(peak(&server) < MOST_MEMORY, "{} MB\n{table}", peak(&server) >> 20);
}

#[test]
fn every_output_of_a_hostile_file_is_bounded() {
    every_output_is_bounded(&[]);
}

#[test]
fn every_output_of_a_hostile_file_is_bounded_with_one_worker() {
    every_output_is_bounded(&["--workers", "1"]);
}

#[test]
fn clients_that_hang_up_stop_the_work() {
    let folder = Folder::new();
    let server = folder.serve(&["--workers", "1"]);
    for _ in 0..3 {
        let asked: Vec<TcpStream> =
            catalogue::ALL.iter().map(|(name, _)| ask(&server, &format!("{name}/index.m3u8"))).collect();
        std::thread::sleep(Duration::from_millis(50));
        drop(asked);
    }
    let started = Instant::now();
    while server.metric("millpond_work_jobs_running", "") + server.metric("millpond_work_jobs_waiting", "") > 0.0 {
        assert!(started.elapsed() < PATIENCE * 3, "work goes on though nobody waits: {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The last of them may only be accepted now.
    let in_a_second = || {
        let before = cpu(&server);
        std::thread::sleep(Duration::from_secs(1));
        cpu(&server) - before
    };
    while in_a_second() >= 0.3 {
        assert!(started.elapsed() < PATIENCE * 3, "it computes though nobody waits");
    }
    assert!(peak(&server) < MOST_MEMORY, "{} MB", peak(&server) >> 20);
    assert_eq!(server.get("360p.mp4/index.m3u8").status, 200);
}

#[test]
fn sigterm_ends_the_server_while_heavy_work_runs() {
    let folder = Folder::new();
    for workers in ["1", "2"] {
        let mut server = folder.serve(&["--workers", workers, "--shutdown-grace", "2s"]);
        let asked: Vec<TcpStream> = OUTPUTS
            .iter()
            .flat_map(|output| catalogue::ALL.map(|(name, _)| ask(&server, &format!("{name}/{output}"))))
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        kill_process(Pid::from_child(&server.process.0), Signal::TERM).unwrap();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = server.process.0.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "it goes on after SIGTERM: {}", server.log_text());
            std::thread::sleep(Duration::from_millis(20));
        };
        // A machine that stands still for seconds leaves the threads no time to stop, which the log says.
        let log = server.log_text();
        assert!(status.success() || log.contains("serving threads did not stop"), "{status}: {log}");
        drop(asked);
    }
}

#[test]
fn a_folder_of_thousands_is_refused_and_its_files_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let films = folder.path().join("films");
    std::fs::create_dir(&films).unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/180p.mp4");
    std::fs::copy(sample, films.join("film0.mp4")).unwrap();
    for number in 1..3000 {
        std::os::unix::fs::symlink("film0.mp4", films.join(format!("film{number}.mp4"))).unwrap();
    }
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let refused = server.get("films/index.m3u8");
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(text.contains("films: found 3000 titles (film0.mp4,"), "{text}");
    assert_eq!(server.get("films/film7.mp4/index.m3u8").status, 200);
    let before = cpu(&server);
    for _ in 0..5 {
        assert_eq!(server.get("films/index.mpd").status, 422);
    }
    let took = cpu(&server) - before;
    assert!(took < 2.0, "{took} s of CPU for five requests");

    // A playlist that lies ready in such a folder is a file.
    std::fs::write(films.join("index.m3u8"), "#EXTM3U\n").unwrap();
    let started = Instant::now();
    // That there is none is remembered for a moment.
    while server.get("films/index.m3u8").status != 200 {
        assert!(started.elapsed() < PATIENCE, "{:?}", server.get("films/index.m3u8"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(server.get("films/index.m3u8").text(), "#EXTM3U\n");
}
