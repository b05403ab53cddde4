//! Interception: clients and servers in namespaces of their own, neither of which knows of the edge between them. The rules of the
//! firewall are those of docs/handbook/interception.md.

use crate::{
    operations::metrics::{By, watch::Watch},
    support::{
        Running, Server,
        namespaces::{Namespace, is_alone, routed, shell},
    },
};
use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Debian's own Python, which has the bindings of GStreamer.
const PYTHON: &str = "/usr/bin/python3";
/// Pictures that can be told apart, with a key frame each second.
const PICTURES: &str = "videotestsrc is-live=true pattern=snow ! video/x-raw,format=I420,width=176,height=144,framerate=25/1 \
     ! x264enc tune=zerolatency key-int-max=25 bitrate=400 threads=1 ! rtph264pay name=pay0 pt=96 config-interval=-1";
/// Replies to POST with the length of its body and the sum of its bytes.
const ECHO: &str = "
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.reply(f'{len(body)} {sum(body)} {self.client_address[0]}')
    def do_GET(self):
        self.reply('plain')
    def reply(self, text):
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
http.server.ThreadingHTTPServer(('10.2.0.3', 80), Handler).serve_forever()
";

/// Programs in the server's namespace: RTSP at every address, nginx at 10.2.0.2, 10.2.0.5 and fd00:2::2, HTTP that replies to POST at 10.2.0.3.
struct Servers {
    namespace: Namespace,
    _running: Vec<Running>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Servers {
    fn start(namespace: Namespace, folder: &Path) -> Self {
        let rtsp = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/support/live_source.py");
        let mut command = namespace.command(PYTHON);
        // Nothing listens for RTSP at 10.2.0.3.
        shell(&format!(
            "nsenter -t {} -n nft 'table ip f {{ chain i {{ type filter hook input priority 0; \
             ip daddr 10.2.0.3 tcp dport 554 reject with tcp reset; }}; }}'",
            namespace.id()
        ));
        let film = folder.join("film.mp4");
        let film = format!(
            "( filesrc location={} ! qtdemux ! rtph264pay name=pay0 pt=96 config-interval=-1 )",
            film.display()
        );
        command.arg(rtsp).args([":::554", &format!("door=( {PICTURES} )"), &format!("film={film}")]);
        let mut rtsp = command.stdout(Stdio::piped()).spawn().unwrap();
        let (said, lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(rtsp.stdout.take().unwrap()));
        let words = said.clone();
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| words.lock().unwrap().push(line));
        });
        let config = folder.join("nginx.conf");
        let root = folder.display();
        let text = format!(
            "daemon off; master_process off; pid {root}/pid; error_log stderr; user root;\nevents {{}}\n\
             http {{ access_log off; root {root}; client_body_temp_path {root}/temp; proxy_temp_path {root}/temp; \
             fastcgi_temp_path {root}/temp; uwsgi_temp_path {root}/temp; scgi_temp_path {root}/temp; \
             server {{ listen 10.2.0.2:80; listen 10.2.0.5:80; listen [fd00:2::2]:80; add_header X-Server $server_addr; }} }}\n"
        );
        std::fs::write(&config, text).unwrap();
        let nginx = namespace.command("nginx").arg("-c").arg(&config).arg("-p").arg(folder).spawn().unwrap();
        let echo = namespace.command(PYTHON).args(["-c", ECHO]).stderr(Stdio::null()).spawn().unwrap();
        let servers = Self { namespace, _running: [rtsp, nginx, echo].map(Running).into(), said };
        servers.until("ready", 1);
        servers
    }

    fn count(&self, line: &str) -> usize {
        self.said.lock().unwrap().iter().filter(|said| *said == line).count()
    }

    /// Starts a viewer of the stream and waits until as many PLAYs have succeeded. On a busy machine gst-rtsp-server may refuse a PLAY
    /// beside another viewer: the viewer tries again.
    #[track_caller]
    fn begin(&self, plays: usize, viewer: impl Fn() -> Command) -> Child {
        let mut refused = Vec::new();
        for _ in 0..5 {
            let mut started = viewer().spawn().unwrap();
            while started.try_wait().unwrap().is_none() {
                if self.count("play /door") >= plays {
                    return started;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            refused.push(String::from_utf8_lossy(&started.wait_with_output().unwrap().stderr).into_owned());
            std::thread::sleep(Duration::from_secs(2));
        }
        panic!("{refused:?}: {:?}", self.said.lock().unwrap());
    }

    #[track_caller]
    fn until(&self, line: &str, count: usize) {
        let began = Instant::now();
        while self.count(line) < count {
            assert!(began.elapsed() < Duration::from_secs(40), "{line}: {:?}", self.said.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The blocks of code of docs/handbook/interception.md in a language.
fn documented(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/handbook/interception.md");
    let page = std::fs::read_to_string(page).unwrap();
    let begin = format!("```{language}");
    let blocks = page.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap());
    // Words behind the language say what becomes of the block.
    let all: String = blocks.map(|block| block.split_once('\n').unwrap().1).collect();
    assert!(!all.is_empty(), "no block of {language}");
    all
}

fn edge(more: &[&str]) -> Server {
    shell(&documented("sh"));
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), documented("nft")).unwrap();
    shell(&format!("nft -f {}", rules.path().display()));
    let networks = ["--intercept-networks", "10.2.0.0/24,fd00:2::/64"];
    // By UDP a busy machine may lose packets.
    let transport = ["--source-transport", "tcp"];
    Server::start(&[&["--intercept", "[::]:8081", "--intercept-mark", "0x2"][..], &networks, &transport, more].concat())
}

/// Decoded pictures of a URL, as hashes.
fn player(of: &Namespace, options: &[&str], url: &str, count: usize) -> Command {
    let mut command = of.command("ffmpeg");
    // A server that hangs ends the player, not the test run.
    let limit = if url.starts_with("rtsp") { "-timeout" } else { "-rw_timeout" };
    command.args(["-v", "error", "-nostdin", limit, "30000000"]).args(options).args([
        "-i",
        url,
        "-map",
        "0:v",
        "-fps_mode",
        "passthrough",
    ]);
    command.args(["-frames:v", &count.to_string(), "-f", "framemd5", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
fn hashes(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

fn curl(client: &Namespace, args: &[&str]) -> String {
    let mut command = client.command("curl");
    let output = command.args(["-sS", "-g", "--max-time", "60"]).args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn streams_are_translated_and_all_else_is_passed_on() {
    if !is_alone(
        (module_path!(), "streams_are_translated_and_all_else_is_passed_on"),
        &["nft", "nginx", "ffmpeg", "curl"],
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file: Vec<u8> = (0..30_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(folder.path().join("file.bin"), &file).unwrap();
    let (client, server) = routed();
    let servers = Servers::start(server, folder.path());
    let edge = edge(&[]);
    let watch = Watch::begin(&edge);

    // Four viewers of three kinds: exact pictures, one session for those by HTTP.
    let direct = player(&servers.namespace, &["-rtsp_transport", "tcp"], "rtsp://127.0.0.1/door", 600).spawn().unwrap();
    servers.until("play /door", 1);
    // It has decoded its first key frame before the edge gets one.
    std::thread::sleep(Duration::from_secs(3));
    // gst-rtsp-server ends with a failed assertion (gst_rtsp_media_get_rates) where a PLAY of a stream comes beside another one, or
    // beside a TEARDOWN: all viewers begin one after the other, before the first one leaves.
    let apart = || std::thread::sleep(Duration::from_millis(500));
    let udp = servers.begin(2, || player(&client, &["-rtsp_transport", "udp"], "rtsp://10.2.0.2/door", 300));
    apart();
    let first = servers.begin(3, || player(&client, &[], "http://10.2.0.2/door", 225));
    apart();
    let second = player(&client, &[], "http://10.2.0.2/door", 200).spawn().unwrap();
    let v6 = player(&client, &[], "http://[fd00:2::2]/door", 175).spawn().unwrap();
    let viewers = [first, second, v6, udp].map(|player| {
        let played = player.wait_with_output().unwrap();
        assert!(played.status.success(), "{}\n{}", String::from_utf8_lossy(&played.stderr), edge.log_text());
        hashes(&played)
    });
    let direct = hashes(&direct.wait_with_output().unwrap());
    for (number, seen) in viewers.iter().enumerate() {
        let at = direct.iter().position(|hash| *hash == seen[0]).unwrap_or_else(|| panic!("{number}: another picture"));
        let both = seen.len().min(direct.len() - at);
        let same = seen.iter().zip(&direct[at..]).take_while(|(a, b)| a == b).count();
        // RTP by UDP goes past the edge, and a busy machine may lose some.
        assert!(both > 20 && (same == both || number == 3), "{number}: picture {same} of {both} differs");
    }
    // Its viewers have left.
    servers.until("teardown /door", 4);

    // Replies that are no streams pass unchanged.
    assert_eq!(
        curl(&client, &["http://10.2.0.2/none", "-o", "/dev/null", "-w", "%{http_code} %{content_type}"]),
        "404 text/html"
    );
    let got = folder.path().join("got.bin");
    assert_eq!(curl(&client, &["http://10.2.0.2/file.bin", "-o", got.to_str().unwrap(), "-w", "%{http_code}"]), "200");
    assert!(std::fs::read(&got).unwrap() == file, "the file differs");
    let body = folder.path().join("file.bin");
    let posted =
        curl(&client, &["http://10.2.0.3/", "--data-binary", &format!("@{}", body.display()), "-H", "Expect:"]);
    let sum: u64 = file.iter().map(|byte| u64::from(*byte)).sum();
    assert_eq!(posted, format!("{} {sum} 10.1.0.2", file.len()), "the server sees the body and the client's address");
    // A server without RTSP.
    assert_eq!(curl(&client, &["http://10.2.0.3/door"]), "plain");
    // A server with RTSP alone: its failure is a status.
    let failed = curl(&client, &["http://10.2.0.4/none", "-w", " %{http_code} %{content_type}"]);
    assert!(failed.ends_with(" 404 application/problem+json") && failed.contains("DESCRIBE: 404"), "{failed}");

    // Neither other networks nor this machine.
    let outside = curl(&client, &["http://10.2.9.9/door"]);
    assert!(outside.contains("Empty reply") || outside.contains("reset"), "{outside}");
    let looped = curl(&client, &["http://10.1.0.1:8081/door"]);
    assert!(looped.contains("Empty reply") || looped.contains("reset"), "{looped}");
    for outcome in ["translated", "passed", "rtsp", "failed", "outside", "loop"] {
        let label = format!("outcome=\"{outcome}\"");
        assert!(edge.metric("millpond_intercepted_connections_total", &label) > 0.0, "{outcome}: {}", edge.log_text());
    }
    let log = edge.log_text();
    assert!(log.contains("outside of intercept-networks") && log.contains("its server is this machine"), "{log}");
    assert_eq!(edge.metric("millpond_intercepted_open", ""), 0.0);
    watch.end(By::Intercepted, &edge);
}

#[test]
fn clients_of_rtsp_share_a_live_stream_and_have_stored_titles_for_themselves() {
    if !is_alone(
        (module_path!(), "clients_of_rtsp_share_a_live_stream_and_have_stored_titles_for_themselves"),
        &["nft", "nginx", "ffmpeg"],
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.mp4");
    let made =
        "-v error -f lavfi -i testsrc2=s=176x144:r=25:d=3 -c:v libx264 -preset ultrafast -g 25 -bf 0 -pix_fmt yuv420p";
    let made = Command::new("ffmpeg").args(made.split(' ')).arg(&film).status();
    assert!(made.unwrap().success());
    let (client, server) = routed();
    let servers = Servers::start(server, folder.path());
    let edge = edge(&["--intercept-share-rtsp=true"]);
    let watch = Watch::begin(&edge);

    let direct = player(&servers.namespace, &["-rtsp_transport", "tcp"], "rtsp://127.0.0.1/door", 600).spawn().unwrap();
    servers.until("play /door", 1);
    // It has decoded its first key frame before the edge gets one.
    std::thread::sleep(Duration::from_secs(3));
    // One of them asks for UDP first: it is refused, and asks for its connection.
    let ways: [&[&str]; 3] = [&["-rtsp_transport", "tcp"], &["-rtsp_transport", "tcp"], &[]];
    let viewers = ways.map(|way| player(&client, way, "rtsp://10.2.0.2/door", 50).spawn().unwrap());
    let viewers = viewers.map(|player| hashes(&player.wait_with_output().unwrap()));
    let direct = hashes(&direct.wait_with_output().unwrap());
    servers.until("teardown /door", 2);
    for (number, seen) in viewers.iter().enumerate() {
        let at = direct.iter().position(|hash| *hash == seen[0]).unwrap_or_else(|| panic!("{number}: another picture"));
        let both = seen.len().min(direct.len() - at);
        assert!(both > 20 && seen[..both] == direct[at..at + both], "{number}");
    }
    assert_eq!(servers.count("play /door"), 2, "one session of the edge");
    let until_ended = |shared: f64, passed: f64| {
        let ended =
            |outcome: &str| edge.metric("millpond_intercepted_connections_total", &format!("outcome=\"{outcome}\""));
        let began = Instant::now();
        while (ended("shared"), ended("rtsp")) != (shared, passed) {
            assert!(
                began.elapsed() < Duration::from_secs(40),
                "{} {}: {}",
                ended("shared"),
                ended("rtsp"),
                edge.log_text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until_ended(3.0, 0.0);

    // A stored title, from its beginning. What the server doesn't have, it says itself.
    let itself = player(&client, &[], &format!("file:{}", film.display()), 50).output().unwrap();
    // The edge has looked at the title by a session of its own. While the server ends that one, it may refuse the client (5xx).
    let played = |options: &[&str], url: &str, count: usize| {
        for asked in 1..10 {
            let played = player(&client, options, url, count).output().unwrap();
            if played.status.success() || !String::from_utf8_lossy(&played.stderr).contains("5XX") {
                return (hashes(&played), f64::from(asked));
            }
            // The edge remembers a failure for a moment.
            std::thread::sleep(Duration::from_millis(500));
        }
        panic!("{url} is refused: {}", edge.log_text());
    };
    let (pictures, asked) = played(&["-rtsp_transport", "tcp"], "rtsp://10.2.0.2/film", 50);
    assert_eq!(pictures, hashes(&itself));
    // By HTTP too: each client from the beginning, and the second one from the cache.
    for _ in 0..2 {
        let (pictures, _) = played(&[], "http://10.2.0.2/film", 75);
        assert_eq!(pictures.len(), 75, "all of it");
        assert_eq!(pictures[..50], hashes(&itself)[..]);
    }
    let none = player(&client, &["-rtsp_transport", "tcp"], "rtsp://10.2.0.2/none", 1).output().unwrap();
    assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("404"), "{none:?}");
    until_ended(3.0, asked + 1.0);
    watch.end(By::Intercepted, &edge);
}

#[test]
fn a_dead_or_loaded_server_hands_its_connections_to_another_one_of_its_group() {
    if !is_alone(
        (module_path!(), "a_dead_or_loaded_server_hands_its_connections_to_another_one_of_its_group"),
        &["nft", "nginx", "ffmpeg", "curl"],
    ) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(folder.path().join("file.bin"), &file).unwrap();
    // More than the buffers of sockets hold: the server is loaded until its client goes.
    std::fs::File::create(folder.path().join("large.bin")).unwrap().set_len(1 << 30).unwrap();
    let (client, server) = routed();
    client.command("ip").args(["addr", "add", "10.1.0.3/24", "dev", "eth0"]).status().unwrap();
    let servers = Servers::start(server, folder.path());
    // 10.2.0.4 has no HTTP, 10.2.0.3 no RTSP.
    let edge = edge(&["--intercept-groups", "10.2.0.4 10.2.0.2, 10.2.0.3 10.2.0.5"]);
    let watch = Watch::begin(&edge);

    // A dead port, of HTTP and of RTSP, passed on and translated.
    let got = folder.path().join("got.bin");
    let got_path = got.to_str().unwrap();
    let from = curl(&client, &["http://10.2.0.4/file.bin", "-o", got_path, "-w", "%{http_code} %header{x-server}"]);
    assert_eq!(from, "200 10.2.0.2", "{}", edge.log_text());
    assert!(std::fs::read(&got).unwrap() == file, "the file differs");
    for url in ["rtsp://10.2.0.3/door", "http://10.2.0.3/door"] {
        let options: &[&str] = if url.starts_with("rtsp") { &["-rtsp_transport", "tcp"] } else { &[] };
        let played = player(&client, options, url, 25).output().unwrap();
        assert!(hashes(&played).len() >= 20, "{url}: {}", edge.log_text());
    }
    assert!(edge.log_text().contains("a server of a group can't be reached"), "{}", edge.log_text());
    assert_eq!(edge.metric("millpond_intercepted_connections_total", "outcome=\"unreachable\""), 0.0);

    // A loaded server. A client that has a connection keeps its server.
    let slow =
        ["http://10.2.0.5/large.bin", "-o", "/dev/null", "-sSv", "--limit-rate", "100k", "--interface", "10.1.0.2"];
    let told = folder.path().join("slow.txt");
    let stderr = std::fs::File::create(&told).unwrap();
    let slow = Running(client.command("curl").args(slow).stderr(stderr).spawn().unwrap());
    let began = Instant::now();
    while edge.metric("millpond_intercepted_open", "") < 1.0 {
        let told = || std::fs::read_to_string(&told).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(40), "{}\n{}", told(), edge.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
    let server = |from: &str| {
        let answer = ["http://10.2.0.5/file.bin", "-o", got_path, "--interface", from, "-w", "%{size_download}"];
        curl(&client, &answer)
    };
    let began = Instant::now();
    // The slow connection counts once it has reached its server.
    while server("10.1.0.3") != "plain".len().to_string() {
        assert!(began.elapsed() < Duration::from_secs(20), "the other server answers: {}", edge.log_text());
    }
    assert_eq!(server("10.1.0.2"), file.len().to_string());
    drop(slow);
    assert!(edge.metric("millpond_intercepted_diverted_total", "") >= 3.0);
    watch.end(By::Diverted, &edge);
    drop(servers);
}
