//! Live sources of another make: GStreamer's RTSP server behind an edge. What ffmpeg decodes of the edge equals what it decodes of
//! the source.

use crate::support::{self, Running, Server, free_port, have, rtsp::Client};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Debian's own Python, which has the bindings.
const PYTHON: &str = "/usr/bin/python3";
pub(crate) const PICTURES: &str =
    "videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=176,height=144,framerate=25/1";
pub(crate) const SOUND: &str =
    "audiotestsrc is-live=true wave=white-noise ! audioconvert ! audio/x-raw,rate=48000,channels=2 ! avenc_aac";
/// Options of an encoder for a key frame each second and no others.
pub(crate) const X264: &str = "key-int-max=25 bitrate=800 threads=1 option-string=scenecut=0";

/// GStreamer's server.
pub(crate) struct Source {
    _process: Running,
    pub(crate) port: u16,
    said: Arc<Mutex<Vec<String>>>,
}

impl Source {
    pub(crate) fn start(port: u16, pipelines: &[(&str, String)]) -> Self {
        Self::with_retransmission(port, pipelines, "none")
    }

    /// One with stored titles: each client has a pipeline of its own.
    pub(crate) fn stored(port: u16, pipelines: &[(&str, String)]) -> Self {
        Self::with(port, pipelines, ("SHARED", "no"))
    }

    /// One that sends lost packets again, to clients of these profiles: `avpf`, `both` or `none`.
    pub(crate) fn with_retransmission(port: u16, pipelines: &[(&str, String)], profiles: &str) -> Self {
        Self::with(port, pipelines, ("RETRANSMISSION", profiles))
    }

    fn with(port: u16, pipelines: &[(&str, String)], (name, value): (&str, &str)) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/support/live_source.py");
        let mut command = Command::new(PYTHON);
        command.arg(script).arg(port.to_string()).env(name, value);
        command.args(pipelines.iter().map(|(name, launch)| format!("{name}=( {launch} )")));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (said, lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(child.stdout.take().unwrap()));
        let words = said.clone();
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| words.lock().unwrap().push(line))
        });
        let source = Self { _process: Running(child), port, said };
        source.until("ready", 1);
        source
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.said.lock().unwrap().iter().filter(|said| *said == line).count()
    }

    #[track_caller]
    fn until(&self, line: &str, count: usize) {
        let began = Instant::now();
        while self.count(line) < count {
            assert!(began.elapsed() < Duration::from_secs(40), "{line}: {:?}", self.said.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn url(&self, name: &str) -> String {
        format!("rtsp://127.0.0.1:{}/{name}", self.port)
    }
}

/// Whether GStreamer's server and the encoders are there. Where they are not, the test says so.
pub(crate) fn has_gstreamer() -> bool {
    let check = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer";
    let has = |program: &str, args: &[&str]| {
        let status = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !have("ffmpeg") || !have("gst-inspect-1.0") {
        return false;
    }
    let is_there = has(PYTHON, &["-c", check])
        && ["x264enc", "x265enc", "avenc_aac", "avenc_mp2", "opusenc"]
            .iter()
            .all(|name| has("gst-inspect-1.0", &["--exists", name]));
    if !is_there {
        support::missing("gst-rtsp-server");
    }
    is_there
}

fn edge(source: u16, more: &[&str]) -> Server {
    let place = format!("cams=rtsp://127.0.0.1:{source}/");
    Server::start(&[&[&*place, "--linger", "0s"], more].concat())
}

/// An ffmpeg that hashes the first decoded pictures, or the frames of sound as they are.
fn player(input: &str, track: &str, count: usize) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]);
    if input.starts_with("rtsp") {
        command.args(["-rtsp_transport", "tcp"]);
    }
    command.args(["-i", input, "-map", track, "-fps_mode", "passthrough"]);
    if track == "0:a" {
        command.args(["-c", "copy"]);
    }
    command.args([if track == "0:v" { "-frames:v" } else { "-frames:a" }, &count.to_string(), "-f", "framemd5", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn hashes(player: Child) -> Vec<String> {
    let output = player.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Side data may follow the hash.
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that viewers of the edge get the frames of a source's track.
fn assert_exact(source: &Source, edge: &Server, name: &str, track: &str) {
    let count = if track == "0:v" { 75 } else { 140 };
    let direct = player(&source.url(name), track, 8 * count);
    source.until(&format!("play /{name}"), 1);
    // It has decoded its first key frame before the edge gets one.
    std::thread::sleep(Duration::from_secs(3));
    let viewers = [format!("rtsp://127.0.0.1:{}/cams/{name}", edge.rtsp), edge.url(&format!("cams/{name}/stream.mp4"))];
    let viewers = viewers.map(|url| player(&url, track, count));
    let seen = viewers.map(hashes);
    let direct = hashes(direct);
    for (seen, way) in seen.iter().zip(["rtsp", "stream.mp4"]) {
        let at = direct.iter().position(|hash| *hash == seen[0]);
        let at = at.unwrap_or_else(|| panic!("{name} {track} {way}: the first frame is none of the source"));
        let both = seen.len().min(direct.len() - at);
        assert!(both >= count / 2, "{name} {track} {way}: {both} frames");
        let same = seen.iter().zip(&direct[at..]).take_while(|(a, b)| a == b).count();
        assert!(same >= both, "{name} {track} {way}: frame {same} of {both} differs");
    }
    // The direct player and the edge.
    source.until(&format!("play /{name}"), 2);
    assert_eq!(source.count(&format!("play /{name}")), 2, "{name}: one session for all viewers");
    assert_eq!(source.count(&format!("describe /{name}")), 2, "{name}: a live stream is described once");
}

#[test]
fn streams_of_gstreamer_are_exact() {
    if !has_gstreamer() {
        return;
    }
    let streams = [
        (
            "plain",
            format!(
                "{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 config-interval=-1 \
                 {SOUND} ! rtpmp4gpay name=pay1 pt=97"
            ),
        ),
        // Parameter sets are in band only, and pictures are reordered.
        (
            "bframes",
            format!(
                "{PICTURES} ! x264enc bframes=3 b-pyramid=true {X264}:open-gop=1 \
                 ! video/x-h264,stream-format=byte-stream,profile=main ! rtph264pay name=pay0 pt=96 config-interval=0"
            ),
        ),
        ("slices", format!("{PICTURES} ! x264enc tune=zerolatency {X264}:slices=4 ! rtph264pay name=pay0 pt=96")),
        (
            "hevc",
            format!(
                "{PICTURES} ! x265enc tune=zerolatency key-int-max=25 speed-preset=ultrafast bitrate=800 \
                 ! rtph265pay name=pay0 pt=96 config-interval=-1 \
                 {} ! rtpopuspay name=pay1 pt=97",
                SOUND.replace("avenc_aac", "opusenc")
            ),
        ),
    ];
    let source = Source::start(free_port(), &streams);
    let edges = ["tcp", "udp"].map(|transport| edge(source.port, &["--source-transport", transport]));
    std::thread::scope(|scope| {
        for (number, (name, _)) in streams.iter().enumerate() {
            let (source, edge) = (&source, &edges[number % 2]);
            scope.spawn(move || assert_exact(source, edge, name, "0:v"));
        }
    });
    for edge in &edges {
        until_nothing_runs(edge);
    }
    drop(source);
    // Sound without pictures, by other payload formats.
    let mp2 = SOUND.replace("avenc_aac", "avenc_mp2 bitrate=192000");
    let sound = [
        ("latm", format!("{SOUND} ! rtpmp4apay name=pay0 pt=97")),
        ("mp2", format!("{mp2} ! mpegaudioparse ! rtpmpapay name=pay0")),
    ];
    let source = Source::start(free_port(), &[&[streams[0].clone(), streams[3].clone()][..], &sound].concat());
    let edge = edge(source.port, &[]);
    std::thread::scope(|scope| {
        for name in ["plain", "hevc", "latm", "mp2"] {
            let (source, edge) = (&source, &edge);
            scope.spawn(move || assert_exact(source, edge, name, "0:a"));
        }
    });
}

fn until_nothing_runs(server: &Server) {
    let began = Instant::now();
    loop {
        let graph: Value = support::api::api(server.admin, "graph");
        if graph["modules"].as_array().unwrap().is_empty() {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(40), "{graph}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Counts the bytes of a long response while it arrives.
fn count_bytes(server: &Server, path: &str) -> (TcpStream, Arc<AtomicUsize>) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (count, mut reader) = (Arc::<AtomicUsize>::default(), stream.try_clone().unwrap());
    let counted = count.clone();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = reader.read(&mut bytes) {
            counted.fetch_add(read, Ordering::SeqCst);
        }
    });
    (stream, count)
}

#[test]
fn viewers_go_on_when_a_killed_source_is_back() {
    if !has_gstreamer() {
        return;
    }
    let sound = format!("{SOUND} ! rtpmp4gpay name=pay1 pt=97");
    let pictures = format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 {sound}");
    let pipelines = [("door", pictures)];
    let port = free_port();
    let source = Source::start(port, &pipelines);
    let edge = edge(port, &[]);
    let mut viewer = Client::new(&edge, "cams/door");
    assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    let (stream, bytes) = count_bytes(&edge, "/cams/door/stream.mp4");
    viewer.receive(|packets| packets.len() > 300);
    assert_eq!(source.count("play /door"), 1);
    drop(source);
    std::thread::sleep(Duration::from_secs(5));
    let source = Source::start(port, &pipelines);
    source.until("play /door", 1);
    let (packets, before) = (viewer.packets.len(), bytes.load(Ordering::SeqCst));
    viewer.receive(|all| all.len() > packets + 600);
    let began = Instant::now();
    while bytes.load(Ordering::SeqCst) < before + 200_000 {
        assert!(began.elapsed() < Duration::from_secs(40), "{}", edge.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    let heads = viewer.rtp(0);
    assert!(heads.windows(2).all(|two| two[0].0.wrapping_add(1) == two[1].0), "sequence numbers have no hole");
    assert!(heads.windows(2).all(|two| (two[1].1.wrapping_sub(two[0].1) as i32) >= 0), "times go on");
    // The time that was lost passes: 5 s, and the time until the source is tried again.
    let longest = heads.windows(2).map(|two| two[1].1.wrapping_sub(two[0].1)).max().unwrap();
    assert!((4 * 90_000..30 * 90_000).contains(&longest), "{longest} ticks");
    assert_eq!(source.count("play /door"), 1);
    drop(viewer);
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    source.until("teardown /door", 1);
    until_nothing_runs(&edge);
}
