//! Real servers, real decoders: what the end-to-end tests share.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "shared by all tests")]

pub mod api;
pub mod cbcs;
pub mod clips;
pub mod decode;
pub mod etcd;
pub mod namespaces;
pub mod ogg;
#[macro_use]
pub mod origins;
pub mod relay;
pub mod rtsp;
pub mod small_disk;
pub mod teletext;
pub mod thin;
pub mod web;
pub mod webrtc;
pub mod whep_endpoint;
pub mod whip;
pub mod whip_endpoint;
pub mod wire;

use socket2::{Domain, Socket, Type};
use std::{
    io::{BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// A free port of the loopback, which nobody takes before it is used: it is below those that the system gives to clients,
/// and each is given once.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(211).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        // Not listening: a process that another test starts has this socket too until it becomes its program (execve(2)),
        // and would keep the port from the server that is to have it.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_reuse_address(true).unwrap();
        if socket.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into()).is_ok() {
            return port;
        }
    }
}

/// A folder in memory, where there is room. Compilers keep a disk busy for seconds, and whoever waits for it at each write is late.
pub fn memory_folder() -> tempfile::TempDir {
    let has_room = rustix::fs::statvfs("/dev/shm").is_ok_and(|fs| fs.f_bavail * fs.f_frsize > 1 << 30);
    if has_room { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() }.unwrap()
}

/// Says that the running test leaves something out. `scripts/test` names the file that gathers these lines.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {why}", thread.name().unwrap_or("a test"));
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("MILLPOND_TEST_SKIPS") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// The library that gives a program another wall clock, where Debian's package `faketime` puts it.
pub const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// Whether a program is installed. Where it isn't, the test says so.
///
/// # Panics
/// Where it isn't and the variable `CI` is `true`.
pub fn have(program: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
        || Path::new("/usr/sbin").join(program).is_file();
    if !found {
        missing(program);
    }
    found
}

/// Says that a test needs `what`, which `scripts/setup` installs.
///
/// # Panics
/// Where the variable `CI` is `true`.
pub fn missing(what: &str) {
    let why = format!("{what} is not installed (scripts/setup installs it)");
    skip(&why);
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}, and CI is true");
}

/// Clips from outside of the project, where a checkout has them beside it.
pub fn shared_media() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/media");
    if folder.is_dir() {
        return Some(folder.canonicalize().unwrap());
    }
    skip("there are no shared clips beside the checkout");
    None
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `millpond serve` of this build.
pub struct Server {
    pub process: Running,
    pub port: u16,
    pub admin: u16,
    pub rtsp: u16,
    /// Of RTSP over TLS, where a certificate is configured.
    pub rtsps: u16,
    pub cache: tempfile::TempDir,
    pub log: PathBuf,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// Of all clips that ffmpeg makes.
    pub fn of_clips() -> Self {
        Self::start(&[clips::folder().to_str().unwrap()])
    }

    /// With variables added to the environment.
    pub fn start_with(args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::launch(free_port(), args, env)
    }

    /// On a port that is known before.
    pub fn start_at(port: u16, args: &[&str]) -> Self {
        Self::launch(port, args, &[])
    }

    fn launch(port: u16, args: &[&str], env: &[(&str, &str)]) -> Self {
        let (admin, rtsp, rtsps) = (free_port(), free_port(), free_port());
        let cache = tempfile::tempdir().unwrap();
        let log = cache.path().join("log.txt");
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.arg("serve").args(args);
        // Players on a busy machine are slow at times. They lose frames only where a test sets another value.
        command.env("MILLPOND_VIEWER_QUEUE", "20s");
        command.args(["--http", &format!("127.0.0.1:{port}")]);
        let has_admin = !args.contains(&"--admin");
        if has_admin {
            command.args(["--admin", &format!("127.0.0.1:{admin}")]);
        }
        command.args(["--rtsp", &format!("127.0.0.1:{rtsp}")]);
        if args.iter().any(|arg| arg.starts_with("--tls-")) {
            command.args(["--rtsps", &format!("127.0.0.1:{rtsps}")]);
            if !args.contains(&"--https") {
                command.args(["--https", &format!("127.0.0.1:{}", free_port())]);
            }
        }
        if !args.contains(&"--cache") {
            command.arg("--cache").arg(cache.path());
        }
        let child = command
            .envs(env.iter().copied())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let server = Self { process: Running(child), port, admin, rtsp, rtsps, cache, log };
        wait_for_port(port, &server.log);
        wait_for_port(rtsp, &server.log);
        if has_admin {
            wait_for_port(admin, &server.log);
        }
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn get(&self, path: &str) -> Response {
        get(self.port, &format!("/{path}"), &[])
    }

    /// The log, once nothing is added to it any more: a thread of the server writes it, behind what it tells about.
    pub fn log_text(&self) -> String {
        let read = || std::fs::read_to_string(&self.log).unwrap_or_default();
        let (mut text, began, mut since) = (read(), Instant::now(), Instant::now());
        while since.elapsed() < Duration::from_millis(300) && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
            let now = read();
            if now != text {
                (text, since) = (now, Instant::now());
            }
        }
        text
    }

    /// A value of the metrics, summed over all label sets that contain `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = get(self.admin, "/metrics", &[]).text();
        text.lines()
            .filter(|l| l.starts_with(name) && l[name.len()..].starts_with(['{', ' ']) && l.contains(labels))
            .filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

pub fn wait_for_port(port: u16, log: &Path) {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "nothing listens on port {port}: {}",
            std::fs::read_to_string(log).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A reply, read to its end.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// One request on a connection of its own.
pub fn get(port: u16, target: &str, headers: &[(&str, &str)]) -> Response {
    request(port, "GET", target, headers)
}

pub fn request(port: u16, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(b"\r\n").unwrap();
    read_response(&mut BufReader::new(stream), method == "HEAD")
}

pub fn read_response(reader: &mut impl std::io::BufRead, head_only: bool) -> Response {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("status line {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let mut response = Response { status, headers, body: Vec::new() };
    if head_only || matches!(status, 204 | 304) {
        return response;
    }
    match response.header("content-length") {
        Some(len) => {
            let len = len.parse().unwrap();
            reader.take(len).read_to_end(&mut response.body).unwrap();
            assert_eq!(response.body.len() as u64, len, "body cut short");
        }
        None => response.body = read_chunked(reader),
    }
    response
}

/// Longest time for a body of parts, and most of its bytes: a stream without an end would never be a failure.
const LONGEST_BODY: Duration = Duration::from_secs(180);
const LARGEST_BODY: usize = 256 << 20;

fn read_chunked(reader: &mut impl std::io::BufRead) -> Vec<u8> {
    let (mut body, began) = (Vec::new(), Instant::now());
    loop {
        let is_short = began.elapsed() < LONGEST_BODY && body.len() < LARGEST_BODY;
        assert!(is_short, "a body without an end, after {} bytes", body.len());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let len = u64::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("chunk length {line:?}"));
        reader.take(len).read_to_end(&mut body).unwrap();
        let mut end = String::new();
        reader.read_line(&mut end).unwrap();
        if len == 0 {
            return body;
        }
    }
}
