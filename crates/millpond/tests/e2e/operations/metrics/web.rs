//! HTTP to a folder, TLS, and the log.

use super::{By, watch::Watch};
use crate::support::{Running, Server, free_port, get, read_response, wait_for_port};
use std::{
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");

/// A request whose reply is not read to its end.
fn ask(port: u16, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    stream
}

#[test]
fn requests_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let big = std::fs::File::create(folder.path().join("big.bin")).unwrap();
    big.set_len(256 << 20).unwrap();
    let film = folder.path().join("a.mp4");
    std::fs::copy(Path::new(SAMPLE).join("180p.mp4"), &film).unwrap();
    // The start looks whether a young file is still being copied.
    let hour = std::time::Duration::from_secs(3600);
    std::fs::File::options()
        .write(true)
        .open(&film)
        .unwrap()
        .set_modified(std::time::SystemTime::now() - hour)
        .unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--max-connections", "8"]);
    let watch = Watch::begin(&server);
    for path in ["a.mp4/index.m3u8", "a.mp4/index.m3u8", "a.mp4/v1/1.m4s", "a.mp4", "nothing.mp4"] {
        server.get(path);
    }
    let many: Vec<_> = (0..12).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    watch.until("millpond_connections_refused_total", || ());
    drop(many);
    // Those that leave, and one whose file gets shorter.
    watch.until("millpond_responses_unfinished_total", || {
        drop(std::panic::catch_unwind(|| ask(server.port, "big.bin")))
    });
    let mut cut = ask(server.port, "big.bin");
    watch.until("millpond_responses_in_flight", || ());
    big.set_len(1 << 20).unwrap();
    let _ = cut.read_to_end(&mut Vec::new());
    watch.until("process_cpu_seconds_total", || drop(server.get("a.mp4/v1/2.m4s")));
    watch.end(By::Web, &server);
}

#[test]
fn players_that_tell_of_themselves() {
    let server = Server::start(&[]);
    let watch = Watch::begin(&server);
    server.get("sample/index.m3u8?CMCD=bl%3D21300%2Cbs%2Cmtp%3D48100%2Cot%3Dv%2Crtp%3D12000%2Csid%3D%22a%22%2Csu");
    server.get("sample/index.m3u8?CMCD=bl%3Dlong");
    let value = |labels: &str| server.metric("millpond_cmcd_requests_total", labels);
    watch.until("millpond_cmcd_invalid_total", || ());
    assert_eq!((value("object=\"video\""), value("object=\"audio\"")), (1.0, 0.0));
    watch.end(By::Players, &server);
}

#[test]
fn broken_handshakes() {
    let https = free_port();
    let server = Server::start(&["--tls-self-signed", "--https", &format!("127.0.0.1:{https}")]);
    let watch = Watch::begin(&server);
    let mut stream = TcpStream::connect(("127.0.0.1", https)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    watch.end(By::Tls, &server);
}

/// A server whose log goes elsewhere, with an address of RTSP among the arguments.
pub(crate) fn serve(args: &[&str], rtsp: u16, log: Stdio) -> Server {
    let (port, admin) = (free_port(), free_port());
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(["serve", "--http", &format!("127.0.0.1:{port}"), "--admin", &format!("127.0.0.1:{admin}")]);
    command.args(args).args(["--cache", cache.path().to_str().unwrap()]);
    let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let log = cache.path().join("no log");
    wait_for_port(port, &log);
    Server { process: Running(child), port, admin, rtsp, rtsps: 0, cache, log }
}

#[test]
fn a_log_that_nobody_reads() {
    let server = serve(&["--rtsp", "127.0.0.1:0"], 0, Stdio::piped());
    let (port, admin) = (server.port, server.admin);
    let watch = Watch::begin(&server);
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let request = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(8000));
    watch.until("millpond_log_lines_lost_total", || {
        for _ in 0..100 {
            (&stream).write_all(request.as_bytes()).unwrap();
            assert_eq!(read_response(&mut reader, false).status, 404);
        }
    });
    assert_eq!(get(admin, "/livez", &[]).status, 200);
    watch.end(By::Log, &server);
}
