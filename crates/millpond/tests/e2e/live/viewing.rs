//! Statistics of viewing: viewers of all protocols on one stream and one title, their rebuffers, and what stays of them.

use crate::{
    live::webrtc::Pushed,
    operations::{
        metrics::{By, watch::Watch},
        upgrade::{Successor, eventually, upgrade},
    },
    support::{
        Running, Server,
        api::{api, items},
        clips, free_port, get,
        rtsp::Client,
        webrtc::Viewer,
    },
};
use serde_json::Value;
use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";
const STREAM: &str = "live/cam";
/// Interval between two samples, in seconds.
const SAMPLE: f64 = 5.0;
/// Time for which viewers watch.
const WATCHED: Duration = Duration::from_secs(13);

/// Plays an address at the pace of the media, round and round, until it is dropped.
fn play(options: &[&str], url: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re"]).args(options).args(["-i", url, "-c", "copy", "-f", "null", "-"]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The figures of a title today; null before it has any.
fn figures(admin: u16, title: &str) -> Value {
    let found = items(admin, &format!("viewing?day=today&title={title}"));
    found.as_array().unwrap().first().cloned().unwrap_or(Value::Null)
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or(0.0)
}

fn of_protocol(figures: &Value, protocol: &str, name: &str) -> f64 {
    number(&figures["protocols"][protocol], name)
}

/// Ends a server as a service manager does.
fn end(server: &mut Server) {
    let process = rustix::process::Pid::from_raw(server.process.0.id() as i32).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(server.process.0.wait().unwrap().success(), "{}", server.log_text());
}

#[test]
fn viewers_of_all_protocols_are_counted_by_title_and_day() {
    let films = format!("films={}", clips::folder().display());
    let srt = format!("127.0.0.1:{}", free_port());
    let Some(mut pushed) = Pushed::start(&[&films, "--srt", &srt]) else { return };
    let server = &pushed.server;
    let watch = Watch::begin(server);
    assert_eq!(api(server.admin, "viewing")["viewers"], 0, "a publisher is no viewer");

    let film = format!("films/{CLIP}");
    let began = Instant::now();
    let viewers = [
        play(&[], &server.url(&format!("{STREAM}/index.m3u8"))),
        play(&["-rtsp_transport", "tcp"], &format!("rtsp://127.0.0.1:{}/{STREAM}", server.rtsp)),
        play(&[], &format!("srt://{srt}?streamid=read:{STREAM}")),
    ];
    let mut browser = Viewer::new(server, STREAM);
    browser.receive(|viewer| viewer.pictures.len() > 5);
    let mut until = |title: &str, viewers: f64| {
        eventually(&format!("{viewers} viewers of {title}"), || {
            browser.receive_for(Duration::from_millis(100));
            number(&figures(server.admin, title), "viewers") == viewers
        });
    };
    until(STREAM, 4.0);
    let on_demand = [
        play(&["-rtsp_transport", "tcp"], &format!("rtsp://127.0.0.1:{}/{film}", server.rtsp)),
        play(&["-stream_loop", "-1"], &server.url(&format!("{film}/index.m3u8"))),
    ];
    until(&film, 2.0);
    browser.receive_for(WATCHED);
    let live = figures(server.admin, STREAM);
    assert_eq!((number(&live, "viewers"), number(&live, "peak"), number(&live, "starts")), (4.0, 4.0, 4.0), "{live:#}");
    for protocol in ["http", "rtsp", "webrtc", "srt"] {
        assert_eq!(of_protocol(&live, protocol, "starts"), 1.0, "{protocol}: {live:#}");
        let watched = of_protocol(&live, protocol, "viewer-seconds");
        let (least, most) = (WATCHED.as_secs_f64() - SAMPLE, began.elapsed().as_secs_f64() + SAMPLE);
        assert!((least..=most).contains(&watched), "{protocol}: {watched} of {least} to {most} s {live:#}");
        let name = "millpond_viewers";
        assert!(server.metric(name, &format!("protocol=\"{protocol}\"")) >= 1.0, "{protocol}");
    }
    let title = figures(server.admin, &film);
    assert_eq!(of_protocol(&title, "http", "starts"), 1.0, "{title:#}");
    assert_eq!((of_protocol(&title, "rtsp", "starts"), number(&title, "peak")), (1.0, 2.0), "{title:#}");
    let day = api(server.admin, "viewing")["days"][0].clone();
    assert_eq!((number(&day, "peak"), number(&day, "titles")), (6.0, 2.0), "{day:#}");
    let sum = number(&live, "viewer-seconds") + number(&title, "viewer-seconds");
    assert!((number(&day, "viewer-seconds") - sum).abs() <= 6.0 * SAMPLE, "{day:#} {sum}");
    let metric = server.metric("millpond_viewer_seconds_total", "protocol=\"srt\"");
    assert!((metric - of_protocol(&live, "srt", "viewer-seconds")).abs() <= SAMPLE, "{metric}");
    let metric = server.metric("millpond_viewer_starts_total", "protocol=\"webrtc\"");
    assert_eq!(metric, 1.0);
    watch.end(By::Statistics, server);

    // Sessions leave at once.
    drop((viewers, on_demand, browser));
    eventually("the sessions have left", || {
        let live = figures(server.admin, STREAM);
        number(&live, "viewers") <= 1.0
    });
    pushed.leave();
    end(&mut pushed.server);
    let kept = pushed.server.cache.path().join("viewing.json");
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.contains(STREAM) && text.contains(&film) && !text.contains("127.0.0.1"), "{text}");

    // Another process has them.
    let again = Server::start(&["live=publish:", &films, "--cache", pushed.server.cache.path().to_str().unwrap()]);
    eventually("the counts are read", || number(&figures(again.admin, STREAM), "starts") >= 4.0);
    let after = figures(again.admin, STREAM);
    assert_eq!(
        (number(&after, "starts"), number(&after, "peak"), number(&after, "viewers")),
        (4.0, 4.0, 0.0),
        "{after:#}"
    );
    assert!(number(&after, "viewer-seconds") >= number(&live, "viewer-seconds"), "{after:#}");
    let admin = format!("127.0.0.1:{}", again.admin);
    for (more, expected) in
        [(&[][..], STREAM), (&["--find", "FILMS"][..], &*film), (&["--days", "--json"][..], "\"peak\":6")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let output = command.args(["viewing", "--admin", &admin]).args(more).output().unwrap();
        let said = String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains(expected), "{said}");
    }
}

#[test]
fn rebuffers_are_counted_by_title() {
    let media = clips::folder().to_str().unwrap();
    let server = Server::start(&[&*format!("films={media}"), "--statistics-file", "off"]);
    let path = format!("films/{CLIP}/index.m3u8");
    // By the query, by header fields, and by lists of version 2.
    server.get(&format!("{path}?CMCD=bs%2Csid%3D%22a%22"));
    get(server.port, &format!("/{path}"), &[("CMCD-Status", "bs, rtp=12000"), ("CMCD-Session", "sid=\"a\"")]);
    server.get(&format!("{path}?CMCD=bl%3D%280%3Bv%203000%3Ba%29%2Cbs%2Csid%3D%22a%22%2Cv%3D2"));
    // No rebuffer, no CMCD, and no title.
    server.get(&format!("{path}?CMCD=bs%3D%3F0%2Csid%3D%22a%22"));
    server.get(&format!("{path}?CMCD=bs%2Cbs"));
    server.get("films/nothing.mp4/index.m3u8?CMCD=bs");
    let film = format!("films/{CLIP}");
    eventually("three rebuffers", || number(&figures(server.admin, &film), "rebuffers") == 3.0);
    let reply = api(server.admin, "viewing");
    assert_eq!((number(&reply, "total"), number(&reply["days"][0], "rebuffers")), (1.0, 3.0), "{reply:#}");
    assert_eq!(server.metric("millpond_cmcd_buffer_starvations_total", ""), 4.0);
    assert!(!server.cache.path().join("viewing.json").exists());
    for (query, status) in [("day=2026-02-30", 400), ("day=today&limit=1", 200), ("limit=1001", 400), ("x=1", 400)] {
        assert_eq!(get(server.admin, &format!("/api/v1/viewing?{query}"), &[]).status, status, "{query}");
    }
    let none = items(server.admin, "viewing?day=2020-02-29");
    assert_eq!(none.as_array().map(Vec::len), Some(0));
}

#[test]
fn a_process_that_takes_over_continues_the_counts() {
    let media = clips::folder().to_str().unwrap();
    let server = Server::start(&[&*format!("films={media}"), "--drain", "1s"]);
    let film = format!("films/{CLIP}");
    let mut viewer = Client::new(&server, &film);
    viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    eventually("a viewer", || number(&figures(server.admin, &film), "starts") == 1.0);
    let file = server.cache.path().join("viewing.json");
    assert!(!file.exists(), "no minute has passed");
    let _successor = Successor::of(&upgrade(server.admin));
    assert!(file.exists());
    eventually("the counts are read", || number(&figures(server.admin, &film), "starts") == 1.0);
    drop(viewer);
    server.get(&format!("{film}/index.m3u8"));
    eventually("another viewer", || number(&figures(server.admin, &film), "starts") == 2.0);
    let figures = figures(server.admin, &film);
    assert_eq!((of_protocol(&figures, "http", "starts"), of_protocol(&figures, "rtsp", "starts")), (1.0, 1.0));
}

#[test]
fn a_damaged_file_does_not_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.json");
    fs::write(&file, "{\"version\":1,").unwrap();
    let server = Server::start(&["--statistics-file", file.to_str().unwrap()]);
    eventually("it is set aside", || folder.path().join("kept.json.damaged").exists());
    assert!(server.log_text().contains("viewing statistics is damaged"), "{}", server.log_text());
    assert_eq!(api(server.admin, "viewing")["total"], 0);
}
