//! Ladders: streams that are renditions of one, cut at the same times.

use crate::support::{Running, Server, get};
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Pushes one test picture with sound in two sizes, as two streams with key frames at the same times.
fn push(server: &Server, sizes: &[(&str, &str)]) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
    command.args(["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    for (name, size) in sizes {
        command.args(["-map", "0:v", "-map", "1:a", "-s", size, "-c:v", "libx264", "-preset", "ultrafast"]);
        command.args(["-tune", "zerolatency", "-g", "25", "-sc_threshold", "0", "-c:a", "aac"]);
        let url = format!("rtsp://127.0.0.1:{}/live/{name}", server.rtsp);
        command.args(["-f", "rtsp", "-rtsp_transport", "tcp", &url]);
    }
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

fn both(server: &Server) -> Running {
    push(server, &[("door/hi", "640x360"), ("door/lo", "320x180")])
}

fn text(server: &Server, path: &str) -> String {
    let reply = get(server.port, path, &[]);
    assert_eq!(reply.status, 200, "{path}: {} {}", reply.text(), server.log_text());
    reply.text()
}

/// Loads a text until it is as wanted.
#[track_caller]
fn until(server: &Server, path: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let reply = get(server.port, path, &[]);
        if reply.status == 200 && is_wanted(&reply.text()) {
            return reply.text();
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{path}: {} {}", reply.text(), server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Numbers of the complete segments of a playlist with their dates.
fn segments(playlist: &str) -> Vec<(u64, String)> {
    let mut date = String::new();
    let mut found = Vec::new();
    for line in playlist.lines() {
        if let Some(at) = line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:") {
            at.clone_into(&mut date);
        } else if let Some(name) = line.strip_suffix(".m4s").filter(|line| line.starts_with("../~")) {
            found.push((name.rsplit('/').next().unwrap().parse().unwrap(), date.clone()));
        }
    }
    found
}

/// Milliseconds of the minute of a date.
fn millis(date: &str) -> i64 {
    let seconds: f64 = date[17..].trim_end_matches('Z').parse().unwrap();
    (seconds * 1000.0).round() as i64
}

/// Whether segments of one number begin at one time.
fn are_aligned(hi: &str, lo: &str) -> bool {
    let (hi, lo) = (segments(hi), segments(lo));
    let common: Vec<_> =
        hi.iter().filter_map(|(number, date)| Some((date, &lo.iter().find(|(of, _)| of == number)?.1))).collect();
    let apart = |(a, b): &(&String, &String)| (millis(a) - millis(b)).rem_euclid(60_000);
    common.len() >= 2 && common.iter().map(apart).all(|apart| apart <= 45 || apart >= 60_000 - 45)
}

/// A server with both streams, whose playlists are aligned as `lists` loads them. Where the first key frames of the streams arrive
/// 400 ms apart, as those of a publisher that waits for a processor, they stay apart: then another publisher begins.
fn aligned<T>(mut start: impl FnMut() -> T, mut lists: impl FnMut(&T) -> (String, String)) -> (T, String, String) {
    for _ in 0..4 {
        let started = start();
        let (hi, lo) = lists(&started);
        if are_aligned(&hi, &lo) {
            return (started, hi, lo);
        }
    }
    panic!("segments of one number do not begin at one time");
}

#[test]
fn streams_of_a_folder_are_one_ladder() {
    let start = || {
        let server = Server::start(&["live=publish:"]);
        let publisher = both(&server);
        let master = until(&server, "/live/door/index.m3u8", |text| text.matches("#EXT-X-STREAM-INF").count() == 2);
        (server, publisher, master)
    };
    let (hi, lo) = ("/live/door/hi/v1/index.m3u8", "/live/door/lo/v1/index.m3u8");
    let ((server, _publisher, master), hi, lo) = aligned(start, |(server, ..)| {
        until(server, hi, |text| segments(text).len() >= 4);
        (text(server, hi), text(server, lo))
    });
    for line in ["RESOLUTION=320x180", "RESOLUTION=640x360", "\nhi/v1/index.m3u8\n", "\nlo/v1/index.m3u8\n"] {
        assert!(master.contains(line), "{line}: {master}");
    }
    assert_eq!(master.matches("TYPE=AUDIO").count(), 1, "one sound for both: {master}");
    assert!(master.contains("URI=\"hi/a1/index.m3u8\""), "{master}");
    assert!(hi.contains("#EXT-X-RENDITION-REPORT:URI=\"../../lo/v1/index.m3u8\",LAST-MSN="), "{hi}");
    assert!(lo.contains("#EXT-X-RENDITION-REPORT:URI=\"../../hi/v1/index.m3u8\",LAST-MSN="), "{lo}");
    let line = |text: &str, tag: &str| text.lines().find(|line| line.starts_with(tag)).map(str::to_owned);
    for tag in ["#EXT-X-TARGETDURATION", "#EXT-X-SERVER-CONTROL", "#EXT-X-DISCONTINUITY-SEQUENCE"] {
        assert_eq!(line(&hi, tag), line(&lo, tag));
    }
    let mpd = text(&server, "/live/door/index.mpd");
    assert!(mpd.contains("availabilityStartTime=\"1970-01-01T00:00:00.000Z\""), "{mpd}");
    assert_eq!(
        mpd.matches("contentType=\"video\" mimeType=\"video/mp4\" segmentAlignment=\"true\"").count(),
        1,
        "{mpd}"
    );
    assert!(mpd.contains("<Representation id=\"hi/v1\"") && mpd.contains("<Representation id=\"lo/v1\""), "{mpd}");
    assert_eq!(mpd.matches("contentType=\"audio\"").count(), 1, "{mpd}");
    // Both can be played from the addresses in it.
    for (name, width) in [("0:v:0", "320"), ("0:v:1", "640")] {
        let mut probe = Command::new("ffmpeg");
        probe.args(["-v", "error", "-nostdin", "-i", &server.url("live/door/index.mpd"), "-map", name]);
        let output = probe.args(["-frames:v", "30", "-f", "framecrc", "-"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(&format!("#dimensions 0: {width}x")), "{said} {text}");
    }
}

#[test]
fn a_stream_that_comes_late_is_taken_up_at_the_same_times() {
    let server = Server::start(&["live=publish:", "--linger", "0s"]);
    let _first = push(&server, &[("door/hi", "640x360")]);
    let master = until(&server, "/live/door/index.m3u8", |text| text.contains("#EXT-X-STREAM-INF"));
    assert_eq!(master.matches("#EXT-X-STREAM-INF").count(), 1, "{master}");
    let second = push(&server, &[("door/lo", "320x180")]);
    until(&server, "/live/door/index.m3u8", |text| text.matches("#EXT-X-STREAM-INF").count() == 2);
    until(&server, "/live/door/lo/v1/index.m3u8", |text| segments(text).len() >= 4);
    let list = |name: &str| segments(&text(&server, &format!("/live/door/{name}/v1/index.m3u8")));
    // The key frames of two publishers are anywhere; numbers are those of the segments at the same time.
    let (hi, lo) = (list("hi"), list("lo"));
    let common = hi.iter().filter_map(|(number, date)| Some((date, &lo.iter().find(|(of, _)| of == number)?.1)));
    let common: Vec<_> = common.map(|(a, b)| (millis(a) - millis(b)).rem_euclid(60_000)).collect();
    assert!(common.len() >= 2, "{hi:?} {lo:?}");
    assert!(common.iter().all(|apart| *apart <= 1500 || *apart >= 58_500), "{hi:?} {lo:?}");
    // One that leaves is no longer listed; the other one goes on.
    drop(second);
    let mpd = until(&server, "/live/door/index.mpd", |text| !text.contains("lo/v1"));
    assert!(mpd.contains("hi/v1"), "{mpd}");
}

#[test]
fn ladders_of_servers_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("edge.toml");
    let start = || {
        let origin = Server::start(&["live=publish:"]);
        let publisher = both(&origin);
        let place = format!("url = \"rtsp://127.0.0.1:{}/live/\"\nsource-transport = \"tcp\"", origin.rtsp);
        let ladders = "ladders = [\"gate=door/hi door/lo\", \"back=door/hi2 door/none\"]";
        std::fs::write(&config, format!("[places.cams]\n{place}\n{ladders}\nsource-timeout = \"2s\"\n")).unwrap();
        let edge = Server::start(&["--config", config.to_str().unwrap()]);
        until(&origin, "/live/door/index.m3u8", |text| text.matches("#EXT-X-STREAM-INF").count() == 2);
        let master = until(&edge, "/cams/gate/index.m3u8", |text| text.matches("#EXT-X-STREAM-INF").count() == 2);
        assert!(master.contains("\n../door/hi/v1/index.m3u8\n"), "{master}");
        (edge, origin, publisher)
    };
    let ((edge, _origin, _publisher), ..) = aligned(start, |(edge, ..)| {
        until(edge, "/cams/door/hi/v1/index.m3u8", |text| segments(text).len() >= 4);
        (text(edge, "/cams/door/hi/v1/index.m3u8"), text(edge, "/cams/door/lo/v1/index.m3u8"))
    });
    let none = get(edge.port, "/cams/back/index.m3u8", &[]);
    assert!([404, 502, 504].contains(&none.status), "{} {}", none.status, none.text());
}
