//! Reloads of the configuration: by signal, command and a watched file; right and wrong ones, while viewers play.

use crate::operations::metrics::{By, watch::Watch};
use crate::support::{Response, Server, clips, free_port, get, have, read_response, rtsp::Client, wait_for_port};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A server with a configuration file.
struct Configured {
    server: Server,
    folder: tempfile::TempDir,
}

impl Configured {
    /// `text` is the file without the place `clips`, which it always has.
    fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("millpond.toml"), Self::with_clips(text)).unwrap();
        let server = Server::start(&["--config", folder.path().join("millpond.toml").to_str().unwrap()]);
        Self { server, folder }
    }

    fn with_clips(text: &str) -> String {
        format!("{text}\n[places.clips]\nurl = \"{}\"\n", clips::folder().display())
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("millpond.toml")
    }

    /// Writes the file and runs `millpond reload`.
    fn reload(&self, text: &str) -> Output {
        fs::write(self.file(), Self::with_clips(text)).unwrap();
        self.order()
    }

    fn order(&self) -> Output {
        let admin = format!("127.0.0.1:{}", self.server.admin);
        Command::new(env!("CARGO_BIN_EXE_millpond")).args(["reload", "--admin", &admin]).output().unwrap()
    }

    /// As `reload`, for a text that is right: the report.
    #[track_caller]
    fn applied(&self, text: &str) -> Value {
        let output = self.reload(text);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// As `reload`, for a text that is wrong: the error.
    #[track_caller]
    fn refused(&self, text: &str) -> String {
        let output = self.reload(text);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }

    fn status(&self, path: &str) -> u16 {
        self.server.get(path).status
    }

    fn hang_up(&self) {
        kill_process(Pid::from_child(&self.server.process.0), Signal::HUP).unwrap();
    }
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn place(name: &str, folder: &Path) -> String {
    format!("[places.{name}]\nurl = \"{}\"\n", folder.display())
}

/// A request on a connection that stays open.
fn ask(connection: &mut BufReader<TcpStream>, path: &str) -> Response {
    write!(connection.get_mut(), "GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    read_response(connection, false)
}

fn connect(server: &Server) -> BufReader<TcpStream> {
    let connection = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    BufReader::new(connection)
}

#[test]
fn right_configurations_are_put_in_force_and_wrong_ones_are_not() {
    let configured = Configured::start("");
    let (server, watch) = (&configured.server, Watch::begin(&configured.server));
    let media = tempfile::tempdir().unwrap();
    fs::copy(clips::folder().join(CLIP), media.path().join(CLIP)).unwrap();
    let more = place("more", media.path());
    let film = format!("more/{CLIP}/index.m3u8");
    let mut connection = connect(server);
    assert_eq!(ask(&mut connection, &film).status, 404);

    fs::write(configured.file(), Configured::with_clips(&more)).unwrap();
    configured.hang_up();
    eventually("the place is not served", || configured.status(&film) == 200);
    assert_eq!(ask(&mut connection, &film).status, 200, "connections from before see it too");

    let wrong = configured.refused(&format!("{more}titels = \"file\"\n"));
    assert!(wrong.contains("millpond.toml:3:1") && wrong.contains("\"titels\"") && wrong.contains("titles"), "{wrong}");
    assert!(server.log_text().contains("unknown key \\\"titels\\\""), "{}", server.log_text());
    let gone = configured.refused(&place("more", &media.path().join("gone")));
    assert!(gone.contains("gone"), "{gone}");
    assert_eq!(configured.status(&film), 200, "the place stays");
    assert_eq!(server.metric("millpond_config_reloads_total", "outcome=\"failed\""), 2.0);
    assert_eq!(server.metric("millpond_config_last_reload_successful", ""), 0.0);

    // The clock of the metric counts seconds.
    std::thread::sleep(Duration::from_millis(1100));
    let report = configured.applied("slice = \"256KiB\"\nlog = \"debug\"\nplaylist-lifetime = \"77s\"");
    assert_eq!(report["places"]["removed"], serde_json::json!(["more"]), "{report}");
    assert_eq!(report["needs-restart"][0]["setting"], "slice", "{report}");
    assert_eq!(report["needs-restart"][0]["to"], "256KiB", "{report}");
    let applied: Vec<_> = report["applied"].as_array().unwrap().iter().map(|change| &change["setting"]).collect();
    assert_eq!(applied, ["playlist-lifetime", "log"], "{report}");
    assert_eq!(ask(&mut connection, &film).status, 404);
    let playlist = ask(&mut connection, &format!("clips/{CLIP}/index.m3u8"));
    assert!(playlist.header("cache-control").unwrap().contains("max-age=77"), "{playlist:?}");
    assert_eq!(server.metric("millpond_config_settings_waiting_for_restart", ""), 1.0);
    watch.end(By::Reload, server);
}

#[test]
fn what_plays_goes_on_when_its_place_is_removed() {
    let media = tempfile::tempdir().unwrap();
    fs::copy(clips::folder().join(CLIP), media.path().join(CLIP)).unwrap();
    fs::write(media.path().join("large.bin"), vec![7; 64 << 20]).unwrap();
    let configured = Configured::start(&place("more", media.path()));
    let mut download = connect(&configured.server);
    write!(download.get_mut(), "GET /more/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 100_000];
    download.read_exact(&mut first).unwrap();
    let mut viewer = Client::new(&configured.server, &format!("more/{CLIP}"));
    assert_eq!(viewer.ask("DESCRIBE", "", "").status, 200);
    assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    viewer.receive(|packets| packets.len() > 3);

    let report = configured.applied("");
    assert_eq!(report["places"]["removed"][0], "more");
    assert_eq!(configured.status("more/large.bin"), 404);
    viewer.packets.clear();
    // The end of the title is told.
    viewer.receive(|packets| crate::support::rtsp::over(packets, 1));
    let mut rest = vec![0; (64 << 20) - first.len()];
    download.read_exact(&mut rest).unwrap();
    assert!(rest.iter().all(|byte| *byte == 7), "the rest of the file");
}

#[test]
fn channels_and_rules_change_beside_a_channel_that_plays() {
    if !have("ffmpeg") {
        return;
    }
    let channel = |more: &str| format!("rtsp-channels = [\"clips/{CLIP}\"{more}]\n");
    let configured = Configured::start(&channel(""));
    let url = format!("rtsp://127.0.0.1:{}/clips/{CLIP}", configured.server.rtsp);
    let seconds = "8";
    let ffmpeg = Command::new("ffmpeg")
        .args(["-v", "warning", "-rtsp_transport", "tcp", "-i", &url, "-t", seconds, "-c", "copy", "-f", "null", "-"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let graph = || get(configured.server.admin, "/api/v1/graph", &[]).text();
    // Names of kinds are always there, modules only while something plays.
    eventually("the channel does not play", || graph().contains("\"kind\": \"transmission\""));
    let runs = configured.server.metric("millpond_live_epochs_total", "");
    let users = configured.folder.path().join("users");
    fs::write(&users, "ann:secret\n").unwrap();
    let rules = format!("access-users = \"{}\"\n", users.display());
    for n in 0..10 {
        let list = if n % 2 == 0 { ", \"news=clips/h264_aac.mp4\"" } else { "" };
        configured.applied(&format!("{}{}", channel(list), if n % 3 == 0 { &rules } else { "" }));
        let expected = if n % 3 == 0 { 401 } else { 200 };
        assert_eq!(configured.status(&format!("clips/{CLIP}/index.m3u8")), expected, "reload {n}");
        configured.refused("rtsp-channels = [\"=\"]\n");
    }
    let output = ffmpeg.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let began = configured.server.metric("millpond_live_epochs_total", "") - runs;
    // The clip has some seconds and is an epoch each time; a second run of the channel would begin with one more at once.
    assert!(began <= 8.0, "{began} epochs");
}

#[test]
fn listeners_come_and_go() {
    let configured = Configured::start("");
    let (first, second, https) = (free_port(), free_port(), free_port());
    let rtmp = |port: u16| format!("rtmp = \"127.0.0.1:{port}\"\n");
    let is_open = |port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok();
    configured.applied(&rtmp(first));
    wait_for_port(first, &configured.server.log);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let why = configured.refused(&format!("{}playlist-lifetime = \"77s\"\n", rtmp(port)));
    assert!(why.contains(&format!("--rtmp 127.0.0.1:{port}")) && why.contains("another program"), "{why}");
    assert!(is_open(first), "nothing of a refused configuration is in force");
    let playlist = configured.server.get(&format!("clips/{CLIP}/index.m3u8"));
    assert!(!playlist.header("cache-control").unwrap().contains("max-age=77"), "{playlist:?}");
    let tls = format!("tls-self-signed = true\nhttps = \"127.0.0.1:{https}\"\nrtsps = \"127.0.0.1:0\"\n");
    configured.applied(&format!("{}{tls}", rtmp(second)));
    wait_for_port(second, &configured.server.log);
    eventually("the old address is open", || !is_open(first));
    if have("curl") {
        let url = format!("https://127.0.0.1:{https}/clips/{CLIP}/index.m3u8");
        assert!(Command::new("curl").args(["-skf", "-o", "/dev/null", &url]).status().unwrap().success());
    }
    configured.applied("");
    eventually("TLS is off", || !is_open(https) && !is_open(second));
    assert_eq!(configured.status(&format!("clips/{CLIP}/index.m3u8")), 200);
}

#[test]
fn a_watched_file_is_loaded_when_a_link_changes() {
    // As Kubernetes mounts a ConfigMap: the file is a link through a folder that is a link too.
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, text: &str| {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("millpond.toml"), Configured::with_clips(text)).unwrap();
        folder
    };
    let data = folder.path().join("..data");
    symlink(version("..1", "config-watch = true"), &data).unwrap();
    let file = folder.path().join("millpond.toml");
    symlink("..data/millpond.toml", &file).unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap()]);
    let lifetime = || {
        let playlist = server.get(&format!("clips/{CLIP}/index.m3u8"));
        playlist.header("cache-control").unwrap().contains("max-age=77")
    };
    assert!(!lifetime());
    let swap = |target: PathBuf| {
        symlink(target, folder.path().join("..new")).unwrap();
        fs::rename(folder.path().join("..new"), &data).unwrap();
    };
    swap(version("..2", "config-watch = true\nplaylist-lifetime = \"77s\""));
    eventually("the new file is not loaded", lifetime);
    swap(version("..3", "config-watch = true\nplaylist-lifetime = \"soon\""));
    eventually("the wrong file is not refused", || {
        server.metric("millpond_config_reloads_total", "outcome=\"failed\"") >= 1.0
    });
    assert!(lifetime());
    swap(version("..4", ""));
    eventually("the file is not loaded", || !lifetime());
    // It is not watched any more.
    swap(version("..5", "playlist-lifetime = \"77s\""));
    std::thread::sleep(Duration::from_secs(3));
    assert!(!lifetime());
}
