//! Prefetch in the server: viewers are followed, what they need next is sent for, and nothing for those who left.

use crate::support::{self, Response, Server, clips, origins};
use std::{
    io::{BufReader, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// A folder with a title of 40 s at 2 Mbit/s.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefetch");
    std::fs::create_dir_all(&folder).unwrap();
    clips::make(
        &folder.join("film.mp4"),
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=40 -f lavfi -i sine=duration=40 -c:v libx264 -preset ultrafast -g 50 -b:v 2000k -minrate 2000k -maxrate 2000k -bufsize 2000k -x264-params nal-hrd=cbr:keyint=50 -c:a aac -b:a 96k",
    );
    folder
}

struct Rig {
    server: Server,
    _origin: support::Running,
    _scratch: tempfile::TempDir,
}

/// A server with an empty cache before nginx; slices of 128 KiB are half a second of the title.
fn rig(mode: &str) -> Option<Rig> {
    if !support::have("ffmpeg") {
        return None;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (origin, port) = origins::nginx(&folder(), scratch.path(), "")?;
    let cache = scratch.path().join("cache");
    let place = format!("http://127.0.0.1:{port}");
    let settings = ["--prefetch", mode, "--slice", "128KiB", "--segment-duration", "2s", "--cache"];
    let server = Server::start(&[&[place.as_str()], &settings[..], &[cache.to_str().unwrap()]].concat());
    Some(Rig { server, _origin: origin, _scratch: scratch })
}

impl Rig {
    fn metric(&self, name: &str) -> f64 {
        self.server.metric(name, "")
    }

    /// Waits until a figure is as wanted.
    fn comes(&self, name: &str, wanted: impl Fn(f64) -> bool) -> f64 {
        let started = Instant::now();
        loop {
            let value = self.metric(name);
            if wanted(value) {
                return value;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{name} stays at {value}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Rig {
    /// Waits until a figure stays the same for a second.
    fn rests(&self, name: &str) {
        let (mut value, mut since) = (self.metric(name), Instant::now());
        while since.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.metric(name);
            if now != value {
                (value, since) = (now, Instant::now());
            }
        }
    }
}

/// Somebody with a connection that stays.
struct Viewer(BufReader<TcpStream>);

impl Viewer {
    fn of(server: &Server) -> Self {
        Self(BufReader::new(TcpStream::connect(("127.0.0.1", server.port)).unwrap()))
    }

    fn get(&mut self, path: &str) -> Response {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: millpond\r\nUser-Agent: test\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let response = support::read_response(&mut self.0, false);
        assert_eq!(response.status, 200, "{path}");
        response
    }
}

const AHEAD: &str = "millpond_prefetched_bytes_total";
const UNUSED: &str = "millpond_prefetched_unused_bytes";
const MISSED: &str = "millpond_slice_miss_bytes_total";
const WATCHED: &str = "millpond_watched_tracks";

#[test]
fn what_a_viewer_needs_next_is_there_and_who_leaves_is_forgotten() {
    let Some(rig) = rig("window:8") else { return };
    let mut viewer = Viewer::of(&rig.server);
    viewer.get("film.mp4/ts/v1/1.ts");
    assert!(rig.metric(WATCHED) >= 1.0);
    // Eight slices of 128 KiB ahead of the first, four of which the segment itself has.
    rig.comes(AHEAD, |bytes| bytes >= 3.0 * 131_072.0);
    rig.rests(AHEAD);
    let (missed, unused) = (rig.metric(MISSED), rig.metric(UNUSED));
    assert!(unused > 0.0);
    viewer.get("film.mp4/ts/v1/2.ts");
    let more = rig.metric(MISSED) - missed;
    assert!(more < 2.0 * 131_072.0, "the second segment is there, or nearly: {more} bytes are not");
    drop(viewer);
    rig.comes(WATCHED, |tracks| tracks == 0.0);
    let ahead = rig.metric(AHEAD);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(rig.metric(AHEAD), ahead, "nothing is sent for on behalf of who has left");
}

#[test]
fn the_last_moment_is_kept_and_a_pause_sends_for_nothing() {
    let Some(rig) = rig("active") else { return };
    let mut viewer = Viewer::of(&rig.server);
    let began = Instant::now();
    viewer.get("film.mp4/ts/v1/1.ts");
    std::thread::sleep(Duration::from_millis(500));
    let ahead = rig.metric(AHEAD);
    let is_early = began.elapsed() < Duration::from_secs(1);
    assert!(ahead == 0.0 || !is_early, "the link is fast, the next segment needed in a second and a half");
    let ahead = rig.comes(AHEAD, |bytes| bytes > 0.0);
    // It doesn't come back: what it needs first is there, the rest can wait.
    std::thread::sleep(Duration::from_secs(4));
    let more = rig.metric(AHEAD);
    assert!(more <= ahead + 5.0 * 131_072.0, "{more} bytes for who doesn't go on");
    let missed = rig.metric(MISSED);
    viewer.get("film.mp4/ts/v1/2.ts");
    assert!(rig.metric(MISSED) - missed < 3.0 * 131_072.0, "the segment's first slices were there");
}

#[test]
fn the_mode_changes_while_the_server_runs() {
    let Some(rig) = rig("on-demand") else { return };
    let mut viewer = Viewer::of(&rig.server);
    viewer.get("film.mp4/v1/1.m4s");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((rig.metric(AHEAD), rig.metric(WATCHED)), (0.0, 0.0));
    let admin = format!("127.0.0.1:{}", rig.server.admin);
    let set = |mode: &str| {
        let args = ["cache", "set", "--prefetch", mode, "--memory", "64MiB", "--admin", &admin];
        Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).output().unwrap()
    };
    let refused = set("sometimes");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("no prefetch mode"));
    let told = String::from_utf8(set("window:4").stdout).unwrap();
    assert!(told.contains("\"prefetch\": \"window:4\"") && told.contains("\"limit-bytes\": 67108864"), "{told}");
    viewer.get("film.mp4/v1/2.m4s");
    rig.comes(AHEAD, |bytes| bytes > 0.0);
}

#[test]
fn full_has_the_whole_object_before_it_sends_anything() {
    let Some(rig) = rig("full") else { return };
    let len = std::fs::metadata(folder().join("film.mp4")).unwrap().len() as f64;
    Viewer::of(&rig.server).get("film.mp4/v1/1.m4s");
    let sent = rig.metric("millpond_origin_bytes_total");
    assert!(sent >= len && sent < len * 1.1, "{sent} of {len}");
}
