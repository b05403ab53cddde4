//! Time shift: the past of live streams on the disk.

use crate::support::{Response, Server, clips, get, memory_folder, small_disk::SmallDisk};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";
const VIDEO: &str = "/cams/h264_aac.mp4/v1/index.m3u8";

fn channel() -> Server {
    Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP])
}

/// A server that keeps the past of what another one plays in a folder.
fn edge(origin: &Server, folder: &Path) -> Server {
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let folder = folder.to_str().unwrap();
    let shift = ["--time-shift", "1h", "--time-shift-size", "64MiB", "--time-shift-folder", folder];
    let more = ["--source-transport", "tcp", "--playlist-window", "10s"];
    Server::start(&[&[&*place], &shift[..], &more[..]].concat())
}

/// Segments of a playlist by their numbers: path, and wall time of the beginning as text.
fn segments(text: &str) -> BTreeMap<u64, (String, String)> {
    let (mut all, mut date) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(time) = line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:") {
            time.clone_into(&mut date);
        } else if let Some(path) = line.strip_prefix("../") {
            let number = path.rsplit('/').next().unwrap().strip_suffix(".m4s").unwrap().parse().unwrap();
            all.insert(number, (format!("/cams/{CLIP}/{path}"), date.clone()));
        }
    }
    all
}

fn load(server: &Server, path: &str) -> String {
    let reply = get(server.port, path, &[]);
    assert_eq!(reply.status, 200, "{path}: {} {}", reply.text(), server.log_text());
    reply.text()
}

/// Waits until the playlist of the whole past is as expected; returns it.
fn until(server: &Server, is_so: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let text = load(server, &format!("{VIDEO}?dvr"));
        if is_so(&text) {
            return text;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn media(server: &Server, path: &str) -> Response {
    let reply = get(server.port, path, &[]);
    assert!(reply.status == 200 && &reply.body[4..8] == b"moof", "{path}: {} {}", reply.status, reply.text());
    reply
}

fn report(server: &Server) -> Value {
    let streams: Value = crate::support::api::items(server.admin, "streams");
    streams[0]["time-shift"].clone()
}

/// Hashes of decoded pictures.
fn pictures(input: &[&str], count: usize) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", "0:v", "-fps_mode", "passthrough"]);
    let output = command.args(["-frames:v", &count.to_string(), "-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{input:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

#[track_caller]
fn assert_of_source(received: &[String]) {
    let source = pictures(&["-i", clips::folder().join(CLIP).to_str().unwrap()], 1000);
    let offset = source.iter().position(|hash| *hash == received[0]).expect("a picture of the source");
    let same = source.iter().cycle().skip(offset).zip(received).take_while(|(a, b)| a == b).count();
    assert_eq!(same, received.len(), "pictures are equal up to there");
}

#[test]
fn the_past_is_served_again_after_a_kill() {
    let (origin, folder) = (channel(), memory_folder());
    let mut first = edge(&origin, folder.path());
    let mut before = segments(&until(&first, |text| segments(text).len() >= 7));
    // Where the disk is slow, the last one may not be written yet.
    before.pop_last();
    let bytes: BTreeMap<_, _> = before.iter().map(|(n, (path, _))| (*n, media(&first, path).body)).collect();
    // Manifests address the same segments by their times.
    let (oldest, (path, _)) = before.first_key_value().unwrap();
    let mpd = load(&first, &format!("/cams/{CLIP}/index.mpd?dvr"));
    let time = mpd.split_once("<S t=\"").unwrap().1.split_once('"').unwrap().0;
    let timed = format!("{}/t{time}.m4s", path.rsplit_once('/').unwrap().0);
    assert!(media(&first, &timed).body == bytes[oldest], "{timed}: {mpd}");
    let told = report(&first);
    assert!(told["bytes"].as_u64().unwrap() > 0 && told["from"].as_f64().unwrap() < told["to"].as_f64().unwrap());
    assert_eq!((&told["lost"], &told["errors"]), (&Value::from(0), &Value::from(0)), "{told}");
    assert!(first.metric("millpond_live_time_shift_bytes", "") > 0.0);
    assert_eq!(first.metric("millpond_live_time_shift_failing", ""), 0.0);
    first.process.0.kill().unwrap();
    first.process.0.wait().unwrap();

    let second = edge(&origin, folder.path());
    let last = *before.keys().next_back().unwrap();
    // Delta updates leave out what is older than 18 seconds.
    let text = until(&second, |text| segments(text).keys().filter(|number| **number > last).count() >= 8);
    let after = segments(&text);
    assert_eq!(text.matches("#EXT-X-DISCONTINUITY\n").count(), 1, "{text}");
    assert!(text.matches("#EXT-X-MAP").count() >= 2 && !text.contains("EXT-X-GAP"), "{text}");
    let numbers: Vec<_> = after.keys().copied().collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    for (number, (path, date)) in &before {
        let (known, same) = (&bytes[number], &after[number]);
        assert_eq!(date, &same.1, "the wall time of {number}");
        assert!(media(&second, &same.0).body == *known && media(&second, path).body == *known, "segment {number}");
        let range = get(second.port, &same.0, &[("Range", "bytes=1000-1999")]);
        let said = || format!("{number}: {} {} {}", range.status, range.text(), second.log_text());
        assert!(range.status == 206 && range.body == known[1000..2000], "{}", said());
    }
    assert!(media(&second, &timed).body == bytes[oldest], "{timed}");
    let mpd = load(&second, &format!("/cams/{CLIP}/index.mpd?dvr"));
    assert!(mpd.contains("timeShiftBufferDepth=\"PT3600"), "{mpd}");
    assert!(mpd.contains(&format!("$Number$.m4s\" startNumber=\"{oldest}\"")) && mpd.contains("t$Time$.m4s"), "{mpd}");
    // The live edge lists only the last ones, and a delta update leaves the past out.
    let edge = segments(&load(&second, VIDEO));
    assert!(edge.len() < after.len() && edge.keys().next_back() >= after.keys().next_back());
    let delta = load(&second, &format!("{VIDEO}?dvr&_HLS_skip=YES"));
    assert!(delta.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS="), "{delta}");

    // Players begin in the past.
    let url = second.url(&format!("cams/{CLIP}/index.m3u8?dvr"));
    let count = 45 * 4;
    let played = pictures(&["-live_start_index", "0", "-i", &url], count);
    assert_eq!(played.len(), count);
    assert_of_source(&played);
    // A clip of whole segments.
    let dates: Vec<_> = before.values().map(|(_, date)| date).collect();
    let clip = format!("?start={}&end={}", dates[1], dates[4]);
    let url = second.url(&format!("cams/{CLIP}/index.m3u8{clip}"));
    let listed = load(&second, &format!("{VIDEO}{clip}"));
    assert!(listed.ends_with("#EXT-X-ENDLIST\n") && listed.contains("#EXT-X-PLAYLIST-TYPE:VOD\n"), "{listed}");
    assert_eq!(segments(&listed).keys().collect::<Vec<_>>(), before.keys().skip(1).take(3).collect::<Vec<_>>());
    let played = pictures(&["-i", &url], 10_000);
    assert_eq!(played.len(), 150);
    assert_of_source(&played);
    for (query, status) in [
        ("?start=yesterday", 400),
        ("?end=2026-11-22T10:00:00Z", 400),
        ("?start=2001-01-01T00:00:00Z&end=2001-01-01T00:01:00Z", 400),
        ("?start=2001-01-01T00:00:00Z", 200),
    ] {
        assert_eq!(get(second.port, &format!("{VIDEO}{query}"), &[]).status, status, "{query}");
    }
}

#[test]
fn viewers_do_not_notice_a_bad_disk() {
    let (origin, file) = (channel(), tempfile::NamedTempFile::new().unwrap());
    // No folder can be made there.
    let server = edge(&origin, file.path());
    let text = until(&server, |text| segments(text).len() >= 2);
    media(&server, &segments(&text).values().next().unwrap().0);
    let told = report(&server);
    assert!(told["why"].as_str().is_some_and(|why| why.contains("making the folder")), "{told}");
    assert_eq!(server.metric("millpond_live_time_shift_failing", ""), 1.0);
    assert!(server.log_text().contains("time shift is off"), "{}", server.log_text());
    // It is tried again without another request for it.
    let path = file.into_temp_path();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let began = Instant::now();
    while report(&server)["written"].as_u64().unwrap_or(0) == 0 {
        assert!(began.elapsed() < Duration::from_secs(120), "{} {}", report(&server), server.log_text());
        load(&server, VIDEO);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(server.metric("millpond_live_time_shift_failing", ""), 0.0);
    drop(server);
    std::fs::remove_dir_all(&path).unwrap();

    let Some(disk) = SmallDisk::mount() else { return };
    let server = edge(&origin, disk.0.path());
    let text = until(&server, |text| segments(text).len() >= 3 && report(&server)["errors"] != 0);
    segments(&text).values().for_each(|(path, _)| drop(media(&server, path)));
    let told = report(&server);
    assert!(told["why"].as_str().is_some_and(|why| why.contains("bytes are free")), "{told}");
    assert!(told["lost"].as_u64().unwrap() > 0 && told["written"] == 0, "{told}");
    assert_eq!(server.metric("millpond_live_time_shift_failing", ""), 1.0);
}
