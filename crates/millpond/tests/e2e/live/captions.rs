//! Captions within the pictures of live streams: manifests announce them once seen, and ffmpeg reads them in its recordings.

use crate::{
    assets::captions::{CHANNEL, LETTERS, captioned_pictures, place, read_captions},
    live::publish::serve,
    support::{self, Running, Server, free_port, get, wait_for_port},
};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const CEA_608: &str = "<Accessibility schemeIdUri=\"urn:scte:dash:cc:cea-608:2015\" value=";

/// Pushes the film with captions in a loop.
fn push(output: &[&str]) -> Running {
    let film = Path::new(place()).join("film.mp4");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(film).args(["-c", "copy"]);
    Running(command.args(output).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Loads a text until it has some words.
#[track_caller]
fn until(server: &Server, path: &str, words: &str) -> String {
    let began = Instant::now();
    loop {
        let reply = get(server.port, path, &[]);
        if reply.status == 200 && reply.text().contains(words) {
            return reply.text();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{path}: {} {}", reply.text(), server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Checks that manifests of a stream announce its channel, and that ffmpeg reads captions in its recording.
#[track_caller]
fn assert_announced(server: &Server, stream: &str) {
    let expected = format!("{CHANNEL}NAME=\"CC1\",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID=\"CC1\"\n");
    for list in ["index.m3u8", "ts/index.m3u8"] {
        let found = until(server, &format!("/{stream}/{list}"), &expected);
        assert!(found.contains(",CLOSED-CAPTIONS=\"cc\"\n"), "{list}: {found}");
        assert_eq!(found.matches("TYPE=CLOSED-CAPTIONS").count(), 1, "{list}: {found}");
    }
    let mpd = until(server, &format!("/{stream}/index.mpd"), CEA_608);
    assert!(mpd.contains(&format!("{CEA_608}\"CC1=und\"/>")), "{mpd}");
    if !support::have("ffprobe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recorded.ts");
    let mut record = Command::new("ffmpeg");
    record.args(["-v", "error", "-nostdin", "-i", &server.url(&format!("{stream}/index.m3u8"))]);
    record.args(["-map", "0:v", "-t", "5", "-c", "copy"]).arg(&file);
    assert!(record.status().unwrap().success(), "{}", server.log_text());
    // Two rounds of the film at least.
    assert!(captioned_pictures(&file) >= 100, "{stream}");
    let captions = read_captions(&file);
    assert!(captions.contains(LETTERS), "{stream}: {captions}");
}

#[test]
fn captions_of_publishers_are_announced() {
    let port = free_port();
    let server = serve(&["--rtmp", &format!("127.0.0.1:{port}")]);
    wait_for_port(port, &server.log);
    let by_put = format!("http://127.0.0.1:{}/live/put", server.port);
    let by_rtmp = format!("rtmp://127.0.0.1:{port}/live/rtmp");
    let _publishers = [push(&["-f", "mpegts", "-method", "PUT", &by_put]), push(&["-f", "flv", &by_rtmp])];
    for stream in ["live/put", "live/rtmp"] {
        assert_announced(&server, stream);
    }
}

#[test]
fn captions_of_cameras_are_announced() {
    let origin = Server::start(&[place(), "--rtsp-channels", "film.mp4"]);
    let cameras = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let server = Server::start(&[&cameras, "--source-transport", "tcp"]);
    assert_announced(&server, "cams/film.mp4");
}

#[test]
fn live_places_have_their_own_rules() {
    for (rule, expected) in [("CC3=spa", "LANGUAGE=\"es\""), ("off", ",CLOSED-CAPTIONS=NONE\n")] {
        let server = serve(&["--captions", rule]);
        let to = format!("http://127.0.0.1:{}/live/cam", server.port);
        let _publisher = push(&["-f", "mpegts", "-method", "PUT", &to]);
        let list = until(&server, "/live/cam/index.m3u8", "#EXT-X-STREAM-INF");
        assert!(list.contains(expected) && !list.contains("CC1"), "{rule}: {list}");
        let mpd = until(&server, "/live/cam/index.mpd", "</MPD>");
        assert_eq!(mpd.contains(&format!("{CEA_608}\"CC3=spa\"/>")), rule != "off", "{mpd}");
        assert!(!mpd.contains("CC1"), "{mpd}");
    }
}
