//! Live DASH streams of other servers as sources: what viewers get of them, and what becomes of bad ones.

use crate::{
    live::{
        publish::{self, CLIP, assert_of_clip, hashes, reader},
        pull::{FAULTS, assert_whole_film, by_rtsp, pull_from, serve_badly, until_state, until_there},
    },
    support::{Running, Server, clips, memory_folder, origins},
};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Segments of two seconds that are listed with their times, and such that appear by the clock.
const LISTED: &str = "1";
const BY_CLOCK: &str = "0";

/// Writes a film as live DASH, round and round.
fn write(folder: &Path, film: &Path, timeline: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(film);
    command.args(["-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "dash", "-seg_duration", "2"]);
    command.args(["-window_size", "5", "-extra_window_size", "5", "-use_timeline", timeline, "-streaming", "1"]);
    command.arg(folder.join("index.mpd")).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// A film of eight seconds: round and round, all its segments have two seconds.
fn even_film(folder: &Path) -> PathBuf {
    let film = folder.join("film.mp4");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=8"]);
    command.args(["-f", "lavfi", "-i", "sine=sample_rate=48000:duration=8", "-c:v", "libx264", "-preset", "veryfast"]);
    command.args(["-g", "50", "-bf", "3", "-c:a", "aac", "-shortest"]).arg(&film);
    assert!(command.status().unwrap().success());
    film
}

fn pull(port: u16, path: &str, more: &[&str]) -> Server {
    pull_from(&format!("dash+http://127.0.0.1:{port}/{path}"), more)
}

#[test]
fn every_picture_of_a_timeline_of_ffmpeg_reaches_viewers() {
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let film = clips::folder().join(CLIP);
    let _source = write(folder.path(), &film, LISTED);
    until_there(&folder.path().join("index.mpd"));
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    assert_whole_film(&pull(port, "index.mpd", &[]), &film);
}

#[test]
fn every_picture_of_segments_by_the_clock_reaches_viewers() {
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let film = even_film(scratch.path());
    let _source = write(folder.path(), &film, BY_CLOCK);
    until_there(&folder.path().join("index.mpd"));
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    assert_whole_film(&pull(port, "index.mpd", &[]), &film);
}

#[test]
fn another_millpond_is_pulled() {
    let film = clips::folder().join(CLIP);
    for more in [&[][..], &["--live-part", "off"]] {
        let origin = publish::serve(more);
        let _publisher = publish::push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/cam", origin.rtsp));
        publish::until_published(&origin, "live/cam");
        let server = pull(origin.port, "live/cam/index.mpd", &[]);
        assert_whole_film(&server, &film);
        let playlist = server.get("tv/v1/index.m3u8").text();
        assert!(!playlist.contains("#EXT-X-DISCONTINUITY\n"), "{playlist}");
    }
}

/// A viewer by RTSP who stays.
fn viewer(server: &Server) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-rtsp_transport", "tcp", "-i", &by_rtsp(server)]);
    Running(command.args(["-c", "copy", "-f", "null", "-"]).spawn().unwrap())
}

#[test]
fn viewers_stay_while_a_manifest_is_lost() {
    let folder = memory_folder();
    let _source = write(folder.path(), &clips::folder().join(CLIP), LISTED);
    until_there(&folder.path().join("index.mpd"));
    let fault = Arc::new(AtomicUsize::new(0));
    let port = serve_badly(folder.path(), &fault);
    let server = pull(port, "index.mpd", &["--source-timeout", "2s"]);
    let mut viewer = viewer(&server);
    until_state(&server, "running");
    for (number, words) in [
        (1, "no reply"),
        (2, " s"),
        (3, "line 1: found <html>, expected <MPD> around everything"),
        (4, "no frame for"),
        (5, "status 404"),
    ] {
        fault.store(number, Ordering::Relaxed);
        let why = until_state(&server, "lost");
        assert!(why.contains(words), "{:?}: {why}", FAULTS[number]);
        assert!(!why.contains("127.0.0.1"), "{why}");
        fault.store(0, Ordering::Relaxed);
        until_state(&server, "running");
    }
    assert!(viewer.0.try_wait().unwrap().is_none(), "the viewer has left");
    let reader = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(&server)], "0:v", 50);
    assert_of_clip(&hashes(reader), 50);
}

#[test]
fn viewers_stay_while_a_source_is_started_again() {
    let film = clips::folder().join(CLIP);
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let source = write(folder.path(), &film, LISTED);
    until_there(&folder.path().join("index.mpd"));
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = pull(port, "index.mpd", &["--source-timeout", "5s"]);
    let mut viewer = viewer(&server);
    until_state(&server, "running");
    drop(source);
    let why = until_state(&server, "lost");
    assert!(why.contains("stands still") || why.contains("no frame"), "{why}");
    let _source = write(folder.path(), &film, LISTED);
    until_state(&server, "running");
    assert!(viewer.0.try_wait().unwrap().is_none(), "the viewer has left");
    let reader = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(&server)], "0:v", 100);
    assert_of_clip(&hashes(reader), 100);
}

/// A manifest with attributes of the MPD, a `BaseURL` and the type of its pictures.
fn manifest(attributes: &str, base: &str, media_type: &str) -> String {
    format!(
        "<MPD availabilityStartTime=\"2026-11-22T10:00:00Z\" {attributes}>{base}<Period><AdaptationSet mimeType=\"{media_type}\">\
         <Representation id=\"v1\"><SegmentTemplate duration=\"2\" media=\"$Number$\" initialization=\"i\"/></Representation>\
         </AdaptationSet></Period></MPD>"
    )
}

#[test]
fn what_is_no_live_stream_is_told() {
    let dynamic = "type=\"dynamic\"";
    for (text, words) in [
        (manifest("type=\"static\"", "", "video/mp4"), "write the folder of its files as a place of http or https"),
        (manifest(dynamic, "<BaseURL>http://other.example/</BaseURL>", "video/mp4"), "add it to follow-redirects-to"),
        (manifest(dynamic, "", "video/webm"), "of the type video/webm, expected fragmented MP4"),
        (manifest(dynamic, "", "video/mp2t"), "of the type video/mp2t"),
        (
            manifest(dynamic, "", "video/mp4").replace("<Rep", "<ContentProtection value=\"cenc\"/><Rep"),
            "encrypted (ContentProtection cenc)",
        ),
        ("<html>no manifest</html>".to_owned(), "expected <MPD> around everything"),
        ("\u{0}\u{1}garbage".to_owned(), "the manifest can't be read"),
    ] {
        let folder = memory_folder();
        std::fs::write(folder.path().join("index.mpd"), &text).unwrap();
        let port = serve_badly(folder.path(), &Arc::default());
        let reply = pull(port, "index.mpd", &[]).get("tv/index.m3u8");
        assert_eq!(reply.status, 502, "{text}");
        assert!(reply.text().contains(words), "{text}: {}", reply.text());
    }
    let folder = memory_folder();
    let port = serve_badly(folder.path(), &Arc::default());
    assert_eq!(pull(port, "none.mpd", &[]).get("tv/index.m3u8").status, 404);
}
