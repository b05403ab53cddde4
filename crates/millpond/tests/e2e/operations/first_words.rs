//! The banner that `serve` prints at its start: the server answers at each address in it, from this machine and from other devices.

use crate::support::{
    Running,
    namespaces::{is_alone, shell},
};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The root of the checkout.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// A network with the address that the documentation has for this machine (RFC 5737).
const NETWORK: &str = "ip link add eth0 type veth peer name veth0 && ip link set veth0 up && ip link set eth0 up && \
                       ip addr add 192.0.2.10/24 dev eth0";
/// A network of a container engine.
const ENGINE: &str = "ip link add docker0 type veth peer name veth1 && ip link set veth1 up && ip link set docker0 up && \
                      ip addr add 172.17.0.1/16 dev docker0";

/// A server and what it has printed.
struct Printed {
    text: String,
    log: PathBuf,
    _process: Running,
    _folder: tempfile::TempDir,
}

impl Printed {
    /// Starts a server in the network of the test.
    fn of(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [out, log] = ["out", "log"].map(|name| folder.path().join(name));
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        command.arg("serve").args(args).args(["--cache", folder.path().to_str().unwrap()]);
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&log).unwrap());
        let process = Running(command.spawn().unwrap());
        let (mut text, began) = (String::new(), Instant::now());
        // The lines come at once.
        while !text.ends_with('\n') {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", std::fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            text = std::fs::read_to_string(&out).unwrap();
        }
        Self { text, log, _process: process, _folder: folder }
    }

    #[track_caller]
    fn has(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "no {part:?} in {}", self.text);
        }
    }

    #[track_caller]
    fn lacks(&self, parts: &[&str]) {
        for part in parts {
            assert!(!self.text.contains(part), "{part:?} in {}", self.text);
        }
    }

    /// The commands that push a stream, with a film and a name.
    fn pushes(&self, name: &str) -> Vec<String> {
        let commands = self.text.lines().filter_map(|line| line.strip_prefix("    push    "));
        let film = Path::new(ROOT).join("assets/sample/180p.mp4");
        commands.map(|line| line.replace("film.mp4", film.to_str().unwrap()).replace("NAME", name)).collect()
    }
}

/// The text without what differs from start to start.
fn timeless(text: &str) -> String {
    let Some((before, (_, after))) =
        text.split_once("(up after ").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    else {
        return text.to_owned();
    };
    format!("{before}(up after TIME){after}")
}

/// Fetches a URL; `None` where the status is none of success.
fn fetch(url: &str, more: &[&str]) -> Option<String> {
    let mut command = Command::new("curl");
    let output = command.args(["--fail", "--silent", "--max-time", "30"]).args(more).arg(url).output().unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Decodes pictures of a URL.
#[track_caller]
fn plays(url: &str, log: &Path) {
    let mut command = Command::new("timeout");
    command.args(["60", "ffmpeg", "-v", "error", "-nostdin"]);
    if url.starts_with("rtsp:") {
        command.args(["-rtsp_transport", "tcp"]);
    }
    let output = command.args(["-i", url, "-map", "0:v", "-frames:v", "25", "-f", "null", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {said}\n{}", std::fs::read_to_string(log).unwrap());
}

#[test]
fn the_readme_has_what_is_printed() {
    if !is_alone((module_path!(), "the_readme_has_what_is_printed"), &["curl", "ffmpeg"]) {
        return;
    }
    shell(NETWORK);
    let printed = Printed::of(&[]);
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let (_, section) = readme.split_once("## What it prints\n\n```\n").expect("a section of what is printed");
    let (block, _) = section.split_once("```\n").unwrap();
    assert_eq!(timeless(&printed.text), timeless(block), "README.md, section \"What it prints\"");
    let urls: Vec<&str> = printed.text.split_whitespace().filter(|word| word.contains("://")).collect();
    assert_eq!(urls.len(), 9, "{urls:?}");
    for url in urls {
        match url {
            "rtsp://192.0.2.10:8554/" => {}
            _ if url.starts_with("rtsp:") => plays(url, &printed.log),
            _ => assert!(fetch(url, &[]).is_some(), "{url} can't be fetched"),
        }
    }
}

#[test]
fn addresses_are_those_that_are_listened_on() {
    if !is_alone((module_path!(), "addresses_are_those_that_are_listened_on"), &["curl"]) {
        return;
    }
    let alone = Printed::of(&[]);
    alone.has(&["serves http://localhost:8080/ (up after ", "  rtsp     rtsp://localhost:8554/\n"]);
    alone.lacks(&["network"]);
    drop(alone);
    // The engine's bridge is older than the network, and is told last.
    shell(ENGINE);
    shell(NETWORK);
    shell("ip -6 addr add 2001:db8::10/64 dev eth0 nodad && ip addr add 169.254.1.1/16 dev eth0");
    let all = Printed::of(&["--http", "[::]:8080", "--admin", "0.0.0.0:8380"]);
    let network = "  network  http://192.0.2.10:8080/
           http://[2001:db8::10]:8080/
           http://172.17.0.1:8080/
  rtsp     rtsp://192.0.2.10:8554/
  console  http://192.0.2.10:8380/
  metrics  http://192.0.2.10:8380/metrics
";
    all.has(&[
        "serves http://localhost:8080/ (up after ",
        network,
        "    HLS     http://192.0.2.10:8080/sample/index.m3u8\n",
    ]);
    all.lacks(&["fe80", "169.254", "http://127.0.0.1"]);
    // A busy kernel takes a moment until a new address can be reached.
    let again = ["--retry", "9", "--retry-delay", "1", "--retry-all-errors"];
    for host in ["localhost", "192.0.2.10", "[2001:db8::10]", "172.17.0.1"] {
        assert!(fetch(&format!("http://{host}:8080/sample/index.m3u8"), &again).is_some(), "{host}");
    }
    drop(all);
    let one = Printed::of(&["--http", "192.0.2.10:8080", "--rtsp", "127.0.0.1:8554"]);
    one.has(&["serves http://192.0.2.10:8080/ (up after ", "  rtsp     rtsp://127.0.0.1:8554/\n"]);
    one.has(&["    DASH    http://192.0.2.10:8080/sample/index.mpd\n", "    RTSP    rtsp://127.0.0.1:8554/sample\n"]);
    one.lacks(&["network", "localhost"]);
    drop(one);
    let loopback = Printed::of(&["--http", "127.0.0.1:8080", "--rtsp", "127.0.0.1:8554"]);
    loopback
        .has(&["serves http://127.0.0.1:8080/ (up after ", "    HLS     http://127.0.0.1:8080/sample/index.m3u8\n"]);
    loopback.lacks(&["network", "192.0.2.10", "localhost"]);
    drop(loopback);
    let socket = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}/admin.sock", socket.path().display());
    let rtmp = ["--rtmp", "1935", "--rtmps", "0.0.0.0:1936", "--webrtc", "8189", "--srt", "9710"];
    let secure = Printed::of(&[&["--tls-self-signed", "--admin", &socket][..], &rtmp].concat());
    secure.has(&["  https    https://192.0.2.10:8443/\n", "  rtsps    rtsps://192.0.2.10:8322/\n"]);
    secure.has(&["  rtmp     rtmp://192.0.2.10:1935/\n", "  rtmps    rtmps://192.0.2.10:1936/\n"]);
    secure.has(&["  webrtc   udp://192.0.2.10:8189\n", "  srt      srt://192.0.2.10:9710/\n"]);
    secure.has(&[&format!("  admin    {socket}\n")]);
    secure.lacks(&["console", "metrics"]);
    assert!(fetch("https://192.0.2.10:8443/sample/index.m3u8", &["--insecure"]).is_some());
}

#[test]
fn pages_of_this_machine_learn_its_addresses_and_others_do_not() {
    if !is_alone((module_path!(), "pages_of_this_machine_learn_its_addresses_and_others_do_not"), &["curl"]) {
        return;
    }
    shell(NETWORK);
    let _all = Printed::of(&["--rtsp", "127.0.0.1:8554", "--tls-self-signed", "--rtsps", "127.0.0.1:8322"]);
    let expected = serde_json::json!({
        "http": { "port": 8080, "hosts": ["192.0.2.10"] },
        "https": { "port": 8443, "hosts": ["192.0.2.10"] },
        "rtsp": { "port": 8554, "hosts": [] },
        "rtsps": { "port": 8322, "hosts": [] },
    });
    for (base, more) in [
        ("http://localhost:8080", &[][..]),
        ("http://127.0.0.1:8080", &[]),
        ("https://localhost:8443", &["--insecure", "--http1.1"]),
        ("https://localhost:8443", &["--insecure", "--http2"]),
    ] {
        let told = fetch(&format!("{base}/.millpond/network"), more).unwrap_or_else(|| panic!("{base} {more:?}"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), expected, "{base} {more:?}");
    }
    for (base, more) in [
        ("http://192.0.2.10:8080", &[][..]),
        // From another device, by a name of the loopback.
        ("http://192.0.2.10:8080", &["--header", "Host: localhost:8080"]),
        ("http://localhost:8080", &["--header", "Host: rebound.example"]),
        ("http://localhost:8080", &["--header", "Origin: http://page.example"]),
        ("http://localhost:8080", &["--header", "X-Forwarded-For: 198.51.100.7"]),
    ] {
        assert_eq!(fetch(&format!("{base}/.millpond/network"), more), None, "{base} {more:?}");
    }
}

#[test]
fn printed_commands_push_streams_that_play() {
    if !is_alone((module_path!(), "printed_commands_push_streams_that_play"), &["ffmpeg"]) {
        return;
    }
    shell(NETWORK);
    let users = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(users.path(), "USER:PASSWORD\n").unwrap();
    let users = users.path().to_str().unwrap();
    let rtmp = ["--rtmp", "0.0.0.0:1935"];
    let rtmps = ["--tls-self-signed", "--rtmps", "0.0.0.0:1936"];
    let users_of = ["--publish-users", users];
    for (place, args, count) in [
        ("studio=publish:", [&rtmp[..], &[]], 3),
        ("publish:", [&rtmp, &["--publish-open"]], 3),
        ("studio=publish:", [&[], &[]], 2),
        ("studio=publish:", [&users_of, &rtmp], 3),
        ("studio=publish:", [&users_of, &rtmps], 3),
    ] {
        let printed = Printed::of(&[&[place], args[0], args[1]].concat());
        let name = if place == "publish:" { "NAME" } else { "studio/NAME" };
        printed.has(&[&format!("\n  {name} is a live stream that is pushed")]);
        let commands = printed.pushes("show");
        assert_eq!(commands.len(), count, "{}", printed.text);
        for command in commands {
            let command = format!("exec {} -nostdin", command.replacen("ffmpeg", "ffmpeg -v error -stream_loop 5", 1));
            let pushing = Running(Command::new("sh").args(["-c", &command]).stdout(Stdio::null()).spawn().unwrap());
            // Viewers wait for a publisher.
            for address in printed.text.lines().filter_map(|line| line.strip_prefix("    ")) {
                if let Some(url) =
                    ["HLS     ", "MP4     ", "RTSP    "].iter().find_map(|kind| address.strip_prefix(kind))
                {
                    plays(&url.replace("NAME", "show"), &printed.log);
                }
            }
            drop(pushing);
            eprintln!("{command}: plays");
        }
    }
}

#[test]
fn live_places_have_ladders_and_several_places_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let text = "http = \"127.0.0.1:0\"\nrtsp = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
                [places.cams]\nurl = \"rtsp://user:secret@127.0.0.1:9/\"\nladders = [\"door=hi lo\", \"gate=a b\"]\n\
                [places.films]\nurl = \"FILMS\"\n[places.studio]\nurl = \"publish:\"\n";
    let films = format!("{ROOT}/assets/sample");
    std::fs::write(&config, text.replace("FILMS", &films)).unwrap();
    let printed = Printed::of(&["--config", config.to_str().unwrap()]);
    printed.has(&[
        "/films/index.m3u8\n",
        "\n  cams/NAME is the live stream NAME of rtsp://",
        "\n  studio/NAME is a live stream",
    ]);
    printed
        .has(&["\n    ladder  door: http://127.0.0.1:", "/cams/door/index.m3u8\n    ladder  gate: http://127.0.0.1:"]);
    printed.has(&["    OBS     needs RTMP, which is off", "    who     this machine only; "]);
    printed.lacks(&["secret"]);
    assert!(printed.text.lines().count() <= 40, "{}", printed.text);
}
