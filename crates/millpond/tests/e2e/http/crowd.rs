//! Ten thousand idle connections and a thousand viewers at once: no error, no deadlock, little memory.

use crate::support::{Server, read_response};
use std::{
    io::{BufReader, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicU64, Ordering},
};

const VIEWERS: usize = 1000;

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn idle_connections_and_viewers_together() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    // Test and server have a descriptor each for a connection; the machine may not allow all of them.
    let most = limit.maximum.unwrap_or(1 << 20) as usize;
    let idle_count = 10_000.min(most.saturating_sub(VIEWERS + 500));
    let server = Server::start(&["--access-log=false", "--log", "warn", "--idle-timeout", "1h"]);
    let pid = server.process.0.id();
    let before = resident_kib(pid);
    let paths: Vec<String> =
        (1..=5).flat_map(|n| [format!("v1/{n}.m4s"), format!("ts/v2/{n}.ts"), format!("a1/{n}.m4s")]).collect();
    let expected: Vec<Vec<u8>> = paths.iter().map(|p| server.get(&format!("sample/{p}")).body).collect();
    // One write: a head in pieces would wait for the acknowledgement of each.
    let request = |stream: &mut TcpStream, path: &str| {
        stream.write_all(format!("GET /sample/{path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
    };
    let idle: Vec<TcpStream> = (0..idle_count)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            request(&mut stream, "index.m3u8").unwrap();
            assert_eq!(read_response(&mut BufReader::new(&stream), false).status, 200);
            stream
        })
        .collect();
    let with_idle = resident_kib(pid);
    let bytes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for viewer in 0..VIEWERS {
            let (paths, expected, bytes) = (&paths, &expected, &bytes);
            let port = server.port;
            std::thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || {
                    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    for step in 0..paths.len() {
                        let n = (viewer + step) % paths.len();
                        request(&mut stream, &paths[n]).unwrap();
                        let reply = read_response(&mut reader, false);
                        assert_eq!(reply.status, 200, "viewer {viewer}: {}", paths[n]);
                        assert!(reply.body == expected[n], "viewer {viewer}: {}", paths[n]);
                        bytes.fetch_add(reply.body.len() as u64, Ordering::Relaxed);
                    }
                })
                .unwrap();
        }
    });
    let after = resident_kib(pid);
    for mut stream in idle {
        request(&mut stream, "index.mpd").unwrap();
        assert_eq!(read_response(&mut BufReader::new(&stream), false).status, 200);
    }
    println!(
        "{idle_count} idle connections and {VIEWERS} viewers, {} MB sent; resident before {before} KiB, with the idle {with_idle} KiB, after {after} KiB",
        bytes.load(Ordering::Relaxed) / 1_000_000
    );
    assert!(with_idle - before < idle_count as u64 * 10, "over 10 KiB for an idle connection");
}
