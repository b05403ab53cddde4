//! A new process takes over from a running one, and sockets of the service manager are taken.

use crate::{
    live::publish::{hashes, reader, until_published},
    support::{Running, Server, clips, free_port, get, request, rtsp::Client, wait_for_port},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";

/// Far more than anything here takes, also on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The process that took over. It ends with the test.
pub(crate) struct Successor(Pid);

impl Successor {
    #[track_caller]
    pub(crate) fn of(upgraded: &Output) -> Self {
        assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
        let told: serde_json::Value = serde_json::from_slice(&upgraded.stdout).unwrap();
        Self(Pid::from_raw(told["process"].as_i64().unwrap() as i32).unwrap())
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

pub(crate) fn upgrade(admin: u16) -> Output {
    let admin = format!("127.0.0.1:{admin}");
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(["upgrade", "--admin", &admin]).output().unwrap()
}

#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_new_process_takes_over_without_a_failed_request() {
    let media = tempfile::tempdir().unwrap();
    fs::copy(clips::folder().join(CLIP), media.path().join(CLIP)).unwrap();
    fs::write(media.path().join("large.bin"), vec![7; 64 << 20]).unwrap();
    let mut server = Server::start(&[media.path().to_str().unwrap()]);
    let mut download = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    download.set_read_timeout(Some(LONG)).unwrap();
    download.write_all(b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut body = vec![0; 100_000];
    download.read_exact(&mut body).unwrap();
    let mut viewer = Client::new(&server, CLIP);
    assert_eq!(viewer.ask("DESCRIBE", "", "").status, 200);
    assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let (port, is_over) = (server.port, is_over.clone());
        move || {
            let mut asked = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(get(port, &format!("/{CLIP}/index.m3u8"), &[]).status, 200, "request {asked}");
                asked += 1;
            }
            asked
        }
    });
    eventually("no request is answered", || server.metric("millpond_http_requests_total", "") > 20.0);
    let successor = Successor::of(&upgrade(server.admin));
    // The admin address is that of the new process.
    let started = server.metric("process_start_time_seconds", "");
    eventually("the new process answers", || server.metric("millpond_http_requests_total", "kind=\"hls\"") > 20.0);
    is_over.store(true, Ordering::Relaxed);
    assert!(asking.join().expect("no request fails") > 40);
    assert!(server.process.0.try_wait().unwrap().is_none(), "the old process serves what it has begun");
    viewer.receive(|packets| crate::support::rtsp::over(packets, 1));
    drop(viewer);
    body.clear();
    download.read_to_end(&mut body).unwrap();
    assert!(body.len() > (63 << 20) && body.iter().all(|byte| *byte == 7), "{}", body.len());
    eventually("the old process ends", || server.process.0.try_wait().unwrap().is_some_and(|status| status.success()));
    assert_eq!(server.get(&format!("{CLIP}/index.m3u8")).status, 200);
    assert_eq!(server.metric("process_start_time_seconds", ""), started);
    // And some times more: the new process hands over as well, and has nothing else to end than its reply.
    let others: Vec<_> = (0..4).map(|_| Successor::of(&upgrade(server.admin))).collect();
    assert_eq!(server.get(&format!("{CLIP}/index.m3u8")).status, 200);
    drop((successor, others));
}

/// Pushes a clip round and round by ffmpeg, and again whenever it was disconnected, until it is dropped.
struct Publisher(Arc<AtomicBool>);

impl Publisher {
    fn start(format: &'static [&'static str], url: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = is_over.clone();
        let clip = clips::folder().join(CLIP);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut command = Command::new("ffmpeg");
                command.args(["-v", "quiet", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(&clip);
                let mut ffmpeg = Running(command.args(["-c", "copy"]).args(format).arg(&url).spawn().unwrap());
                while ffmpeg.0.try_wait().unwrap().is_none() && !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        Self(is_over)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Pictures that ffmpeg's HLS client may drop after another init segment.
const DROPPED: usize = 12;

/// Checks pictures of a clip that was pushed round and round, and from its beginning again after a disconnection: none is missing
/// but at the end of a push. Returns the number of disconnections.
#[track_caller]
fn breaks(clip: &[String], pictures: &[String]) -> usize {
    let at = |hash: &String| clip.iter().position(|known| known == hash).expect("a picture of the clip");
    let steps = pictures.windows(2).map(|pair| (at(&pair[0]), at(&pair[1])));
    let breaks: Vec<_> = steps.filter(|(before, after)| (before + 1) % clip.len() != *after).collect();
    assert!(breaks.iter().all(|(_, after)| *after < DROPPED), "{breaks:?}");
    breaks.iter().filter(|(before, _)| *before >= DROPPED).count()
}

#[test]
fn publishers_and_viewers_of_pushed_streams_go_over() {
    let rtmp = free_port();
    let address = format!("127.0.0.1:{rtmp}");
    let mut server = Server::start(&["live=publish:", "--linger", "0s", "--rtmp", &address]);
    let rtsp = format!("rtsp://127.0.0.1:{}/live", server.rtsp);
    let _publishers = [
        Publisher::start(&["-f", "rtsp", "-rtsp_transport", "tcp"], format!("{rtsp}/a")),
        Publisher::start(&["-f", "flv"], format!("rtmp://{address}/live/b")),
        Publisher::start(&["-f", "mpegts", "-method", "PUT"], server.url("live/c")),
    ];
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| until_published(&server, &format!("live/{name}")));
    let port = server.port;
    let url = |name: &str| format!("http://127.0.0.1:{port}/live/{name}/index.m3u8");
    // The client of HLS keeps its connection.
    let readers = names.map(|name| reader(&["-i", &url(name)], "0:v", 500));
    std::thread::sleep(Duration::from_secs(6));
    let successor = Successor::of(&upgrade(server.admin));
    eventually("the old process ends", || server.process.0.try_wait().unwrap().is_some_and(|status| status.success()));
    let clip = clips::folder().join(CLIP);
    let clip = hashes(reader(&["-i", clip.to_str().unwrap()], "0:v", 1000));
    for (name, viewer) in names.iter().zip(readers) {
        assert_eq!(breaks(&clip, &hashes(viewer)), 1, "{name}");
        assert_eq!(hashes(reader(&["-i", &url(name)], "0:v", 50)).len(), 50, "{name}");
    }
    drop(successor);
}

#[test]
fn a_process_that_can_not_serve_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("millpond.toml");
    fs::write(&file, format!("places = [\"{}\"]", clips::folder().display())).unwrap();
    let mut server = Server::start(&["--config", file.to_str().unwrap()]);
    fs::write(&file, "places = [\"/nowhere\"]").unwrap();
    let refused = upgrade(server.admin);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && why.contains("does not serve"), "{why}");
    assert!(server.log_text().contains("the server is not upgraded"), "{}", server.log_text());
    assert_eq!(server.get(&format!("{CLIP}/index.m3u8")).status, 200);
    assert_eq!(request(server.admin, "GET", "/api/v1/upgrade", &[]).status, 405);
    assert!(server.process.0.try_wait().unwrap().is_none());
}

#[test]
fn a_process_that_can_not_serve_leaves_the_socket_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("millpond.toml"), folder.path().join("admin.sock"));
    fs::write(&file, format!("places = [\"{}\"]", clips::folder().display())).unwrap();
    let admin = format!("unix:{}", socket.display());
    let server = Server::start(&["--config", file.to_str().unwrap(), "--admin", &admin]);
    let ask = |command: &[&str]| {
        let of = ["--admin", &*admin];
        Command::new(env!("CARGO_BIN_EXE_millpond")).args([command, &of[..]].concat()).output().unwrap()
    };
    eventually("the admin address answers", || ask(&["cache", "stat"]).status.success());
    fs::write(&file, "places = [\"/nowhere\"]").unwrap();
    let refused = ask(&["upgrade"]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("does not serve"), "{why}");
    eventually("the old process does not answer", || ask(&["cache", "stat"]).status.success());
    assert_eq!(server.get(&format!("{CLIP}/index.m3u8")).status, 200);
}

#[test]
fn the_service_goes_on_when_the_old_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(LONG)).unwrap();
    let told = || {
        let mut message = [0; 1024];
        let length = manager.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let env = [("NOTIFY_SOCKET", path.to_str().unwrap())];
    let mut server = Server::start_with(&[clips::folder().to_str().unwrap()], &env);
    assert!(told().contains(&format!("MAINPID={}", server.process.0.id())));
    let upgraded = upgrade(server.admin);
    let successor = Successor::of(&upgraded);
    let process = successor.0.as_raw_nonzero();
    assert!(told().contains(&format!("MAINPID={process}")));
    eventually("the old process ends", || server.process.0.try_wait().unwrap().is_some());
    manager.set_nonblocking(true).unwrap();
    assert!(manager.recv(&mut [0; 1024]).is_err(), "the old process says nothing: the service would stop");
}

#[test]
fn the_cache_on_the_disk_passes_to_the_new_process() {
    let origin = Server::of_clips();
    let url = format!("http://127.0.0.1:{}/", origin.port);
    let server = Server::start(&[&url, "--cache-size", "64MiB"]);
    let file = format!("/{CLIP}");
    let body = get(server.port, &file, &[]).body;
    eventually("nothing is on the disk", || server.metric("millpond_disk_slices", "") > 0.0);
    let slices = server.metric("millpond_disk_slices", "");
    let _successor = Successor::of(&upgrade(server.admin));
    eventually("the cache is not taken over", || server.metric("millpond_disk_slices", "") == slices);
    assert!(server.log_text().contains("the disk cache is taken over"), "{}", server.log_text());
    assert!(get(server.port, &file, &[]).body == body, "the same bytes");
    assert!(server.metric("millpond_disk_hits_total", "") > 0.0);
}

#[test]
fn sockets_of_the_service_manager_are_taken() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It waits until somebody accepts.
    let mut early = TcpStream::connect(("127.0.0.1", port)).unwrap();
    early.set_read_timeout(Some(LONG)).unwrap();
    early.write_all(b"GET /sample/index.m3u8 HTTP/1.0\r\n\r\n").unwrap();
    let (admin, cache) = (free_port(), tempfile::tempdir().unwrap());
    let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=http; exec \"$@\"";
    let child = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_millpond"), "serve", "--rtsp", "127.0.0.1:0"])
        // Nobody else could listen there.
        .args(["--http", &format!("127.0.0.1:{port}"), "--admin", &format!("127.0.0.1:{admin}")])
        .args(["--cache", cache.path().to_str().unwrap()])
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _process = Running(child);
    let mut reply = String::new();
    early.read_to_string(&mut reply).unwrap();
    assert!(reply.contains(" 200 OK\r\n") && reply.contains("#EXTM3U"), "{reply}");
    wait_for_port(admin, Path::new("no log"));
}
