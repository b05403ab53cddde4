//! Live HLS streams of other servers as sources: what viewers get of them, and what becomes of bad ones.

use crate::{
    live::publish::{self, CLIP, assert_of_clip, assert_of_film, hashes, reader},
    support::{Running, Server, clips, memory_folder, origins, web},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{self, Write as _},
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Segments that begin with key frames, two seconds apart.
const SEGMENTS: &[&str] = &["-hls_time", "2", "-hls_list_size", "6", "-hls_delete_threshold", "4"];
/// A playlist that a further run goes on with.
const GOES_ON: &[&str] = &["-hls_flags", "delete_segments+append_list+omit_endlist+discont_start+program_date_time"];
const TRANSPORT: &[&str] = &["-hls_flags", "delete_segments+omit_endlist+program_date_time"];
const FRAGMENTS: &[&str] = &["-hls_flags", "delete_segments+omit_endlist", "-hls_segment_type", "fmp4"];

/// Writes a clip as live HLS, round and round.
fn write(folder: &Path, format: &[&str]) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(clips::folder().join(CLIP));
    command.args(["-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "hls"]).args(SEGMENTS).args(format);
    command.arg(folder.join("index.m3u8")).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Writes sound and pictures in playlists of their own.
fn write_split(folder: &Path) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(clips::folder().join(CLIP));
    command.args(["-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "hls"]).args(SEGMENTS).args(FRAGMENTS);
    command.args(["-var_stream_map", "v:0,agroup:sound a:0,agroup:sound,default:yes,language:de"]);
    command.args(["-master_pl_name", "index.m3u8"]).arg(folder.join("%v.m3u8")).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

fn until_written(folder: &Path) {
    until_there(&folder.join("index.m3u8"));
}

/// Waits for a file.
pub(super) fn until_there(file: &Path) {
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no {}", file.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn pull(port: u16, path: &str, more: &[&str]) -> Server {
    pull_from(&format!("hls+http://127.0.0.1:{port}/{path}"), more)
}

/// A server that pulls a stream.
pub(super) fn pull_from(url: &str, more: &[&str]) -> Server {
    let place = format!("tv={url}");
    Server::start(&[&[place.as_str(), "--linger", "0s"], more].concat())
}

pub(super) fn by_rtsp(server: &Server) -> String {
    format!("rtsp://127.0.0.1:{}/tv", server.rtsp)
}

fn assert_whole(server: &Server) {
    assert_whole_film(server, &clips::folder().join(CLIP));
}

/// Checks the pictures of a film that viewers get by RTSP and by HLS.
pub(super) fn assert_whole_film(server: &Server, film: &Path) {
    let early = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(server)], "0:v", 150);
    assert_of_film(film, &hashes(early), 150);
    let by_http = reader(&["-i", &server.url("tv/index.m3u8")], "0:v", 100);
    assert_of_film(film, &hashes(by_http), 100);
    let sound = reader(&["-t", "2", "-i", &server.url("tv/stream.mp4")], "0:a", 40);
    assert!(hashes(sound).len() > 80, "two seconds of sound");
}

#[test]
fn every_picture_of_a_playlist_of_ffmpeg_reaches_viewers() {
    for format in [TRANSPORT, FRAGMENTS] {
        let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
        let _source = write(folder.path(), format);
        until_written(folder.path());
        let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
        assert_whole(&pull(port, "index.m3u8", &[]));
    }
}

#[test]
fn encrypted_segments_are_decrypted() {
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let (key, info) = (folder.path().join("key"), folder.path().join("info"));
    std::fs::write(&key, b"sixteen bytes...").unwrap();
    std::fs::write(&info, format!("key\n{}\n", key.display())).unwrap();
    let format = [TRANSPORT, &["-hls_key_info_file", info.to_str().unwrap()]].concat();
    let _source = write(folder.path(), &format);
    until_written(folder.path());
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    assert_whole(&pull(port, "index.m3u8", &[]));
}

#[test]
fn sound_in_a_playlist_of_its_own_joins_the_pictures() {
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let _source = write_split(folder.path());
    until_written(folder.path());
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = pull(port, "index.m3u8", &[]);
    assert_whole(&server);
}

#[test]
fn another_millpond_is_pulled_by_parts() {
    clips::folder();
    let origin = publish::serve(&[]);
    let _publisher = publish::push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/cam", origin.rtsp));
    publish::until_published(&origin, "live/cam");
    let server = pull(origin.port, "live/cam/index.m3u8", &[]);
    assert_whole(&server);
    let playlist = server.get("tv/v1/index.m3u8").text();
    assert!(!playlist.contains("#EXT-X-DISCONTINUITY\n"), "{playlist}");
}

#[test]
fn a_discontinuity_loses_no_picture() {
    let (folder, scratch) = (memory_folder(), tempfile::tempdir().unwrap());
    let first = write(folder.path(), GOES_ON);
    until_written(folder.path());
    let Some((_nginx, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = pull(port, "index.m3u8", &[]);
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &by_rtsp(&server)], "0:v", 500);
    std::thread::sleep(Duration::from_secs(9));
    // It completes its last segment.
    kill_process(Pid::from_child(&first.0), Signal::TERM).unwrap();
    drop(wait(first));
    let _second = write(folder.path(), GOES_ON);
    let received = hashes(viewer);
    let path = clips::folder().join(CLIP);
    let source = hashes(reader(&["-i", path.to_str().unwrap()], "0:v", 1000));
    let place = |hash: &String| source.iter().position(|known| known == hash).expect("a picture of the clip");
    let places: Vec<usize> = received.iter().map(place).collect();
    let is_break = |at: &usize| places[*at] != (places[at - 1] + 1) % source.len();
    let breaks: Vec<usize> = (1..places.len()).filter(is_break).collect();
    let joint = *breaks.last().expect("a break, at which the clip begins again");
    assert_eq!((received.len(), places[joint]), (500, 0));
    // ffmpeg writes a picture before those that show before it: the last ones may be missing in its last segment.
    assert!(breaks.iter().all(|at| joint - at < 6), "{breaks:?}");
}

fn wait(mut process: Running) -> Running {
    process.0.wait().unwrap();
    process
}

/// How a source misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// It closes connections without a reply.
    Gone,
    /// It does not reply.
    Hung,
    /// Its playlist or manifest is none.
    Playlist,
    /// Its segments are bytes of no format.
    Segments,
    /// Its segments are missing.
    Missing,
}

pub(super) const FAULTS: [Fault; 6] =
    [Fault::None, Fault::Gone, Fault::Hung, Fault::Playlist, Fault::Segments, Fault::Missing];

/// Serves a folder, with the fault whose number is in `fault`.
pub(super) fn serve_badly(folder: &Path, fault: &Arc<AtomicUsize>) -> u16 {
    let (folder, fault) = (folder.to_owned(), fault.clone());
    web::serve(move |mut stream: &TcpStream, head: &str| {
        let name = head.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
        let is_playlist = name.ends_with(".m3u8") || name.ends_with(".mpd");
        let now = FAULTS[fault.load(Ordering::Relaxed)];
        let body = match now {
            Fault::Gone => return Err(io::ErrorKind::ConnectionAborted.into()),
            Fault::Hung => {
                std::thread::sleep(Duration::from_secs(30));
                return Err(io::ErrorKind::TimedOut.into());
            }
            Fault::Playlist if is_playlist => b"<html>no playlist</html>".to_vec(),
            Fault::Segments if !is_playlist => vec![0x55; 100_000],
            Fault::Missing if !is_playlist => {
                return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            }
            _ => match std::fs::read(folder.join(&name)) {
                Ok(body) => body,
                Err(_) => return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            },
        };
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
        stream.write_all(&body)
    })
}

/// The state of the first stream, and its cause in words.
fn state(server: &Server) -> (String, String) {
    let streams = crate::support::api::items(server.admin, "streams");
    let one = streams.as_array().and_then(|all| all.first()).cloned().unwrap_or_default();
    let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
    (text("state"), text("why"))
}

#[track_caller]
pub(crate) fn until_state(server: &Server, expected: &str) -> String {
    let began = Instant::now();
    loop {
        let (found, why) = state(server);
        if found == expected {
            return why;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{found}, not {expected}: {why} {}", server.log_text());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn viewers_stay_while_a_source_is_lost() {
    let folder = memory_folder();
    let _source = write(folder.path(), TRANSPORT);
    until_written(folder.path());
    let fault = Arc::new(AtomicUsize::new(0));
    let port = serve_badly(folder.path(), &fault);
    let server = pull(port, "index.m3u8", &["--source-timeout", "2s"]);
    let mut viewer = Running(
        Command::new("ffmpeg")
            .args(["-v", "error", "-nostdin", "-rtsp_transport", "tcp", "-i", &by_rtsp(&server)])
            .args(["-c", "copy", "-f", "null", "-"])
            .spawn()
            .unwrap(),
    );
    until_state(&server, "running");
    for (number, words) in [
        (1, "no reply"),
        // A reply that was late may have arrived before.
        (2, " s"),
        (3, "line 1: found \"<html>no playlist</html>\", expected #EXTM3U"),
        (4, "no frame for"),
        (5, ""),
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
fn a_playlist_that_has_ended_is_no_live_stream() {
    let folder = memory_folder();
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n";
    std::fs::write(folder.path().join("index.m3u8"), text).unwrap();
    let port = serve_badly(folder.path(), &Arc::default());
    let server = pull(port, "index.m3u8", &[]);
    let reply = server.get("tv/index.m3u8");
    assert_eq!(reply.status, 502);
    assert!(reply.text().contains("write its folder as a place of http or https"), "{}", reply.text());
    let none = server.get("tv/other/index.m3u8");
    assert_eq!(none.status, 404);
    let elsewhere = pull(port, "none.m3u8", &[]);
    assert_eq!(elsewhere.get("tv/index.m3u8").status, 404);
}

#[test]
fn a_transport_stream_of_a_web_server_reaches_viewers() {
    clips::folder();
    let origin = publish::serve(&[]);
    let _publisher = publish::push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/cam", origin.rtsp));
    publish::until_published(&origin, "live/cam");
    let place = format!("tv=ts+http://127.0.0.1:{}/live/cam/stream.ts", origin.port);
    let server = Server::start(&[&place, "--linger", "0s"]);
    assert_whole(&server);
    let codes: Vec<u16> =
        ["tv/1/index.m3u8", "tv/7/index.m3u8", "tv/x/index.m3u8"].iter().map(|path| server.get(path).status).collect();
    assert_eq!(codes, [200, 404, 404]);
}
