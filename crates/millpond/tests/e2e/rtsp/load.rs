//! The RTSP load generator against a server of this build, and against none.

use crate::support::{self, Server, clips, origins, thin};
use serde_json::Value;
use std::{
    io::Write as _,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Nine seconds without B-frames: timestamps of packets rise as they are sent.
const CLIP: &str = "steady.mp4";

fn serve() -> Server {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-rtsp-1");
    std::fs::create_dir_all(&folder).unwrap();
    clips::make(&folder.join(CLIP), "V S -c:v libx264 -bf 0 -g 50 -c:a aac");
    Server::start(&[folder.to_str().unwrap()])
}

/// Runs the generator: its report, and whether it says that all went well.
fn load(url: &str, arguments: &str) -> (Value, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(["load", url, "--json", "-"]).args(arguments.split(' ').filter(|word| !word.is_empty()));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{url} {arguments}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    });
    (report, output.status.success())
}

fn url(server: &Server) -> String {
    format!("rtsp://127.0.0.1:{}/{CLIP}", server.rtsp)
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {report:#}"))
}

/// Every packet came, most in time, and no session failed.
fn assert_clean(report: &Value) {
    let failures = &report["failures"];
    assert_eq!((number(report, "/sessions/failed"), failures.as_array().map(Vec::len)), (0.0, Some(0)), "{failures:#}");
    for count in ["lost", "reordered", "duplicates", "foreign"] {
        assert_eq!(number(report, &format!("/media/{count}")), 0.0, "{count} in {:#}", report["media"]);
    }
    // The time of a packet is that of its read: a client that waits for a processor finds it late.
    assert!(number(report, "/media/late") <= number(report, "/media/packets") / 2.0, "{:#}", report["media"]);
}

/// How often each request was answered.
fn answered(report: &Value, method: &str) -> u64 {
    let methods = report["methods"].as_array().unwrap();
    methods.iter().find(|one| one["method"] == method).map_or(0, |one| one["latency"]["count"].as_u64().unwrap())
}

fn assert_nobody_is_left(server: &Server) {
    for _ in 0..100 {
        if server.metric("millpond_rtsp_playing", "") == 0.0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("sessions that were not torn down");
}

#[test]
fn all_of_a_title_comes_in_time_by_udp_and_tcp() {
    let server = serve();
    let picture = server.cache.path().join("plot.svg");
    let reports = std::thread::scope(|scope| {
        let run = |transport: &str| {
            let plot = picture.with_extension(transport);
            load(&url(&server), &format!("--clients 5 --ramp-up 1s --transport {transport} --plot {}", plot.display()))
        };
        [scope.spawn(move || run("udp")), scope.spawn(move || run("tcp"))].map(|run| run.join().unwrap())
    });
    for (report, succeeded) in &reports {
        assert!(succeeded);
        assert_clean(report);
        assert_eq!((number(report, "/sessions/started"), number(report, "/sessions/done")), (5.0, 5.0));
        assert_eq!((number(report, "/startup/count"), answered(report, "SETUP")), (5.0, 10));
        // 225 pictures and some 422 frames of sound each; from frame to frame is one less a track.
        let between = number(report, "/media/between/count");
        assert!((5.0 * 224.0 + 5.0 * 400.0..5.0 * 224.0 + 5.0 * 430.0).contains(&between), "{between}");
        let elapsed = number(report, "/elapsed");
        assert!((9.0..60.0).contains(&elapsed), "{elapsed}");
        assert!(report["timeline"].as_array().unwrap().iter().any(|second| number(second, "/active") == 5.0));
    }
    let [(udp, _), (tcp, _)] = &reports;
    assert_eq!((&udp["transport"], &tcp["transport"]), (&"udp".into(), &"tcp".into()));
    assert_eq!((&udp["media"]["packets"], &udp["media"]["bytes"]), (&tcp["media"]["packets"], &tcp["media"]["bytes"]));
    for transport in ["udp", "tcp"] {
        let svg = std::fs::read_to_string(picture.with_extension(transport)).unwrap();
        assert!(svg.contains("between frames") && svg.contains(&format!("5 clients over {transport}")));
    }
    assert_nobody_is_left(&server);
}

#[test]
fn places_are_filled_again_and_starts_come_at_a_rate() {
    let server = serve();
    let (report, _) = load(&url(&server), "--clients 3 --watch 1s --duration 5s");
    assert_clean(&report);
    let started = number(&report, "/sessions/started");
    assert!((5.0..=15.0).contains(&started), "{started}");
    assert_eq!(number(&report, "/sessions/done") + number(&report, "/sessions/cut-off"), started);
    let (report, _) = load(&url(&server), "--clients 3 --watch 1s --duration 5s --once");
    assert_eq!((number(&report, "/sessions/started"), number(&report, "/sessions/done")), (3.0, 3.0));
    let (report, _) = load(
        &url(&server),
        "--rate 20 --arrivals poisson --duration 3s --watch 500ms --watch-distribution exponential",
    );
    assert_clean(&report);
    let started = number(&report, "/sessions/started");
    assert!((35.0..90.0).contains(&started), "{started}");
    assert_eq!((number(&report, "/rate"), &report["clients"]), (20.0, &Value::Null));
    assert_nobody_is_left(&server);
}

#[test]
fn mute_clients_only_ask() {
    let server = serve();
    let (report, succeeded) = load(&url(&server), "--mute --clients 4 --duration 2s");
    assert!(succeeded);
    assert_clean(&report);
    let started = number(&report, "/sessions/started");
    assert!(started > 4.0, "{started}");
    assert_eq!((number(&report, "/media/packets"), number(&report, "/startup/count")), (0.0, 0.0));
    for method in ["connect", "OPTIONS", "DESCRIBE", "SETUP", "PLAY", "TEARDOWN"] {
        assert!(answered(&report, method) as f64 >= number(&report, "/sessions/done"), "{method} in {report:#}");
    }
    assert_nobody_is_left(&server);
}

#[test]
fn jumps_and_pauses_lose_nothing() {
    let server = serve();
    for transport in ["udp", "tcp"] {
        let arguments = format!("--clients 4 --duration 8s --seeks 40 --pauses 20 --transport {transport}");
        let (report, succeeded) = load(&url(&server), &arguments);
        assert!(succeeded);
        assert_clean(&report);
        let (seeks, pauses) = (number(&report, "/sessions/seeks"), number(&report, "/sessions/pauses"));
        assert!(seeks > 3.0 && pauses > 0.0, "{seeks} jumps, {pauses} pauses");
        assert!(number(&report, "/resumed/count") > 3.0, "{:#}", report["resumed"]);
    }
    assert_nobody_is_left(&server);
}

#[test]
fn titles_are_drawn_and_early_leavers_leave() {
    let server = serve();
    let pattern = format!("rtsp://127.0.0.1:{}/{{1..3}}.mp4", server.rtsp);
    let (report, succeeded) = load(&url(&server), &format!("{pattern} --zipf 1 --clients 30 --mean-watch 0.1"));
    assert!(!succeeded, "three of the four are not there");
    assert_eq!(number(&report, "/urls"), 4.0);
    let (done, failed) = (number(&report, "/sessions/done"), number(&report, "/sessions/failed"));
    // Of the first 48 in 100 are asked for.
    assert!(done > 7.0 && failed > 7.0 && done + failed == 30.0, "{done} {failed}");
    assert!(number(&report, "/elapsed") < 9.0, "nobody saw it to the end");
}

#[test]
fn what_goes_wrong_is_told() {
    let server = serve();
    let failed = |url: &str, arguments: &str| {
        let (report, succeeded) = load(url, arguments);
        assert!(!succeeded);
        assert_eq!((number(&report, "/sessions/started"), number(&report, "/sessions/failed")), (0.0, 2.0));
        let [failure] = report["failures"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
        assert_eq!((failure["count"].as_u64(), &failure["examples"].as_array().unwrap().len()), (Some(2), &1));
        let example = failure["examples"][0].as_str().unwrap().to_owned();
        assert!(example.starts_with(url), "{example}");
        (failure["kind"].as_str().unwrap().to_owned(), example)
    };
    let (kind, example) = failed(&format!("rtsp://127.0.0.1:{}/a.mp4", support::free_port()), "--clients 2");
    assert_eq!(kind, "connect");
    assert!(example.contains("refused"), "{example}");
    let (kind, example) = failed(&format!("rtsp://127.0.0.1:{}/nothing.mp4", server.rtsp), "--clients 2");
    assert_eq!(kind, "DESCRIBE status 404");
    assert!(example.contains("404 Not Found"), "{example}");
    // A server that hangs up, and one of another kind.
    for (reply, kind) in [("", "connection closed"), ("HTTP/1.1 200 OK\r\n\r\n", "connection closed")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
                stream.write_all(reply.as_bytes()).unwrap();
            }
        });
        assert_eq!(failed(&format!("rtsp://127.0.0.1:{port}/a"), "--clients 2").0, kind);
        other.join().unwrap();
    }
}

#[test]
fn rate_control_holds_nothing_back_from_a_healthy_viewer() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("load-rtsp-1");
    std::fs::create_dir_all(&folder).unwrap();
    clips::make(&folder.join(CLIP), "V S -c:v libx264 -bf 0 -g 50 -c:a aac");
    let server = Server::start(&["--rtsp-rate-control", "tfrc", folder.to_str().unwrap()]);
    for attempt in 1.. {
        let before = server.metric("millpond_rtp_held_frames_total", "");
        let (report, succeeded) = load(&url(&server), "--clients 5 --reports 50ms --watch 5s --once");
        assert!(succeeded);
        assert_eq!(number(&report, "/sessions/done"), 5.0);
        // A busy machine may lose packets, or be silent for longer than a healthy viewer is. Both lower the rate.
        let held = server.metric("millpond_rtp_held_frames_total", "") - before;
        if held == 0.0 || number(&report, "/media/lost") > 0.0 {
            break;
        }
        assert!(attempt < 4, "{held} in {:#}", report["media"]);
    }
    // Two tracks of five clients, every 50 ms: far more than one in 5 s.
    assert!(server.metric("millpond_rtcp_reports_total", "") > 200.0);
    assert_nobody_is_left(&server);
}

/// Plays a title whose first six seconds have a much higher rate than the rest, over a link of little more than its mean rate. Returns
/// the seconds of startup, and the share of late packets.
fn over_a_thin_link(port: u16, rate: f64, arguments: &[&str]) -> (f64, f64) {
    let place = format!("http://127.0.0.1:{}", thin::link(port, rate));
    let server = Server::start(&[&[place.as_str(), "--slice", "256KiB"], arguments].concat());
    let url = format!("rtsp://127.0.0.1:{}/varying.mp4", server.rtsp);
    let (report, passed) = load(&url, "--clients 1 --once --transport tcp --silence 60s --duration 60s");
    assert!(passed, "{report:#}");
    (number(&report, "/startup/p50") / 1e3, number(&report, "/media/late-percent"))
}

#[test]
fn a_stream_begins_later_by_what_its_link_lacks() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let film = folder.path().join("varying.mp4");
    clips::make(
        &film,
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=20,noise=alls=20:allf=t -c:v libx264 -preset veryfast -b:v 600k -g 50 \
         -x264-params keyint=50:scenecut=0:zones=0,149,b=2/150,500,b=0.6 -bf 0 -movflags +faststart",
    );
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let mean = std::fs::metadata(&film).unwrap().len() as f64 / 20.0;
    let (waited, later) = over_a_thin_link(port, 1.2 * mean, &[]);
    let (at_once, late) = over_a_thin_link(port, 1.2 * mean, &["--rtsp-start", "0s"]);
    // Its first six seconds take more than eight.
    assert!(waited > at_once + 1.0, "{waited} s, {at_once} s at once");
    assert!(late > 5.0 && later <= late, "late packets: {late} % without the wait, {later} % with it");
}
