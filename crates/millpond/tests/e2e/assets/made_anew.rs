//! Segments that are made anew: the same bytes whichever way they leave, and little memory while nobody takes them.

use crate::support::{Server, clips, get, have, wire};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// A film of 2 MB a second, so that segments are larger than what a socket takes, whose pictures and sound alternate.
fn film() -> Option<PathBuf> {
    if !have("ffmpeg") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made-anew-2");
    std::fs::create_dir_all(&folder).unwrap();
    clips::make(
        &folder.join("film.mp4"),
        "-f lavfi -i testsrc2=s=1280x720:r=25,noise=alls=60:allf=t -f lavfi -i sine=440:r=48000 -t 16 -c:v libx264 \
            -preset ultrafast -pix_fmt yuv420p -b:v 16M -maxrate 16M -bufsize 16M -g 100 -keyint_min 100 -sc_threshold 0 \
            -c:a aac -b:a 128k",
    );
    Some(folder)
}

const SEGMENTS: [&str; 2] = ["/film.mp4/v1/2.m4s", "/film.mp4/ts/v1/2.ts"];
const FRESH: (&str, &str) = ("Cache-Control", "no-cache");

fn serve(folder: &Path, duration: &str) -> Server {
    let folder = folder.to_str().unwrap();
    Server::start(&[folder, "--segment-duration", duration, "--workers", "1", "--memory", "256MiB"])
}

/// Asks for a reply that is to be made anew.
fn ask(mut client: TcpStream, path: &str) -> TcpStream {
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    client
}

#[test]
fn a_segment_has_the_same_bytes_whichever_way_it_leaves() {
    let Some(folder) = film() else { return };
    let server = serve(&folder, "4");
    for path in SEGMENTS {
        let made = get(server.port, path, &[FRESH]);
        assert_eq!(made.status, 200, "{path}");
        assert!(made.body.len() > 4 << 20, "{path} has {} bytes", made.body.len());
        for _ in 0..3 {
            assert!(get(server.port, path, &[]).body == made.body, "{path} from memory");
        }
        // In steps that are no multiple of a page.
        let mut joined = Vec::new();
        while joined.len() < made.body.len() {
            let last = (joined.len() + 333_333).min(made.body.len()) - 1;
            let range = format!("bytes={}-{last}", joined.len());
            let part = get(server.port, path, &[FRESH, ("Range", &range)]);
            assert_eq!(part.status, 206, "{path} {range}");
            joined.extend(part.body);
        }
        assert!(joined == made.body, "{path} in ranges");
        // Its socket takes less than the segment: the rest waits.
        let mut slow = ask(TcpStream::connect(("127.0.0.1", server.port)).unwrap(), path);
        std::thread::sleep(Duration::from_millis(300));
        let (mut got, mut step) = (Vec::new(), vec![0; 100_000]);
        loop {
            let count = slow.read(&mut step).unwrap();
            if count == 0 {
                break;
            }
            got.extend_from_slice(&step[..count]);
        }
        assert!(got.ends_with(&made.body), "{path} for a slow client");
        if have("curl") {
            let url = server.url(path.trim_start_matches('/'));
            let arguments = ["-sS", "--http2-prior-knowledge", "-H", "Cache-Control: no-cache", &url];
            assert!(Command::new("curl").args(arguments).output().unwrap().stdout == made.body, "{path} over HTTP/2");
        }
    }
    assert_eq!(server.metric("millpond_responses_broken_total", ""), 0.0);
}

fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn clients_that_take_nothing_hold_little_and_that_is_charged() {
    const CLIENTS: usize = 60;
    let Some(folder) = film() else { return };
    let server = serve(&folder, "8");
    let charged = || server.metric("millpond_memory_kind_bytes", "kind=\"connections\"");
    assert_eq!(get(server.port, SEGMENTS[1], &[FRESH]).status, 200);
    let before = resident(&server);
    let clients: Vec<_> = (0..CLIENTS).map(|_| ask(wire::socket(server.port), SEGMENTS[1])).collect();
    for _ in 0..500 {
        if charged() >= (CLIENTS * (256 << 10)) as f64 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(charged(), (CLIENTS * (256 << 10)) as f64);
    std::thread::sleep(Duration::from_millis(300));
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < (CLIENTS as u64) * (512 << 10), "{CLIENTS} clients hold {grown} bytes");
    drop(clients);
    for _ in 0..500 {
        if charged() == 0.0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} bytes are charged for nobody", charged());
}
