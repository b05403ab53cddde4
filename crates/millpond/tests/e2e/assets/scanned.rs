//! Transport stream files that play while they are scanned.

use super::joined::same;
use crate::support::{self, Server, clips, decode, web};
use std::{
    io::Write as _,
    net::TcpStream,
    path::Path,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

/// Arguments for forty seconds at 8 Mbit/s. Most packets are null packets.
const FILM: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=40 -f lavfi -i sine=440:sample_rate=48000:duration=40 \
    -c:v libx264 -preset veryfast -pix_fmt yuv420p -g 25 -bf 2 -c:a aac -aac_pns 0 -muxrate 8000000";
/// The name of the film at the origin.
const NAME: &str = "film.ts";
/// The origin holds back ranges of the film that end behind this byte, at about half of the film.
const HELD: u64 = 20 << 20;
/// A `--memory` so small that a scan could wait for memory which it held itself.
const LITTLE: &str = "40MiB";

/// A web server that holds the end of a film back until [`let_go`](Self::let_go).
#[derive(Clone)]
struct Origin {
    film: Arc<Vec<u8>>,
    state: Arc<(Mutex<State>, Condvar)>,
    port: u16,
}

#[derive(Default)]
struct State {
    is_open: bool,
    /// Bytes that were sent.
    sent: u64,
    /// Requests for bytes that are held back.
    waiting: u32,
}

impl Origin {
    fn start(film: Vec<u8>) -> Self {
        let mut origin = Self { film: Arc::new(film), state: Arc::default(), port: 0 };
        let shared = origin.clone();
        origin.port = web::serve(move |stream, head| shared.answer(stream, head));
        origin
    }

    fn let_go(&self) {
        self.state.0.lock().unwrap().is_open = true;
        self.state.1.notify_all();
    }

    fn sent(&self) -> u64 {
        self.state.0.lock().unwrap().sent
    }

    fn is_held(&self) -> bool {
        let state = self.state.0.lock().unwrap();
        state.waiting > 0 && !state.is_open
    }

    fn answer(&self, mut stream: &TcpStream, head: &str) -> std::io::Result<()> {
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path != format!("/{NAME}") {
            return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
        let len = self.film.len() as u64;
        let asked = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
        let (first, last) = asked.and_then(|range| range.trim().split_once('-')).unwrap_or(("0", ""));
        let first: u64 = first.parse().unwrap();
        let end = last.parse::<u64>().map_or(len, |last| (last + 1).min(len));
        let range = asked.map_or(String::new(), |_| format!("Content-Range: bytes {first}-{}/{len}\r\n", end - 1));
        let status = if asked.is_some() { "206 Partial Content" } else { "200 OK" };
        let about = format!("ETag: \"1\"\r\nAccept-Ranges: bytes\r\n{range}Content-Length: {}", end - first);
        let is_head = head.starts_with("head");
        if !is_head && end > HELD {
            let mut state = self.state.0.lock().unwrap();
            state.waiting += 1;
            while !state.is_open {
                state = self.state.1.wait(state).unwrap();
            }
            state.waiting -= 1;
        }
        write!(stream, "HTTP/1.1 {status}\r\n{about}\r\n\r\n")?;
        if is_head {
            return Ok(());
        }
        self.state.0.lock().unwrap().sent += end - first;
        stream.write_all(&self.film[first as usize..end as usize])
    }
}

/// Loads the playlist of the video in the container at a path. Returns its version's folder too, such as `ts/~0123456789abcdef`.
fn playlist(server: &Server, container: &str) -> (String, support::Response) {
    let master = server.get(&format!("{NAME}/{container}index.m3u8"));
    assert_eq!(master.status, 200, "{}", master.text());
    let text = master.text();
    assert!(text.contains("BANDWIDTH=") && text.contains("CODECS=\"avc1."), "{text}");
    let uri = text.lines().find(|line| line.ends_with("/v1/index.m3u8")).unwrap_or_else(|| panic!("no video: {text}"));
    let folder = format!("{container}{}", uri.trim_end_matches("/v1/index.m3u8"));
    let playlist = server.get(&format!("{NAME}/{folder}/v1/index.m3u8"));
    assert_eq!(playlist.status, 200, "{}", playlist.text());
    (folder, playlist)
}

/// Durations and names of the segments that a playlist lists.
fn entries(playlist: &str) -> Vec<(String, String)> {
    let mut lines = playlist.lines();
    let mut entries = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(duration) = line.strip_prefix("#EXTINF:") {
            entries.push((duration.to_owned(), lines.next().unwrap().to_owned()));
        }
    }
    entries
}

/// Decodes bytes as a file with an extension; returns the number of pictures.
fn pictures(folder: &Path, extension: &str, bytes: &[u8]) -> usize {
    let file = folder.join(format!("part.{extension}"));
    std::fs::write(&file, bytes).unwrap();
    decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap().len()
}

#[test]
fn the_beginning_plays_before_the_end_is_read() {
    if !support::have("ffmpeg") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join(NAME);
    clips::make(&file, FILM);
    let film = std::fs::read(&file).unwrap();
    let len = film.len() as u64;
    assert!(len > HELD + (12 << 20), "{len} bytes");
    let origin = Origin::start(film);
    let server = Server::start(&[&format!("http://127.0.0.1:{}", origin.port), "--memory", LITTLE]);

    // Playlists and segments are loaded while the origin holds the end back.
    let mut kept = Vec::new();
    let mut folders = Vec::new();
    for (container, extension) in [("", "m4s"), ("ts/", "ts")] {
        let (folder, reply) = playlist(&server, container);
        let text = reply.text();
        assert!(text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && !text.contains("ENDLIST"), "{text}");
        assert!(text.contains("#EXT-X-START:TIME-OFFSET=0\n"), "{text}");
        assert_eq!(reply.header("cache-control"), Some("public, max-age=1"), "{text}");
        let listed = entries(&text);
        assert!(!listed.is_empty() && listed[0].1 == format!("1.{extension}"), "{text}");
        for (_, name) in &listed {
            let path = format!("{NAME}/{folder}/v1/{name}");
            let segment = server.get(&path);
            assert_eq!(segment.status, 200, "{path}: {}", segment.text());
            let lifetime = segment.header("cache-control");
            assert_eq!(lifetime, Some("public, max-age=10"), "{path}: a cache absorbs a crowd, but not for long");
            kept.push((path, segment.body));
        }
        folders.push((container, folder, listed));
    }
    let init = server.get(&format!("{NAME}/{}/v1/init.mp4", folders[0].1)).body;
    assert_eq!(pictures(scratch.path(), "mp4", &[&init[..], &kept[0].1].concat()), 100, "of four seconds");
    let first_ts = kept.iter().find(|(path, _)| path.ends_with("/1.ts")).unwrap();
    assert_eq!(pictures(scratch.path(), "ts", &first_ts.1), 100, "of four seconds");
    // A second viewer gets the same version. Its sound has segments too.
    assert_eq!(playlist(&server, "").0, folders[0].1);
    let sound = format!("{NAME}/{}/a1/1.m4s", folders[0].1);
    kept.push((sound.clone(), server.get(&sound).body));
    let began = Instant::now();
    while !origin.is_held() {
        assert!(began.elapsed() < Duration::from_secs(20), "the scan did not reach the end that is held");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.metric("millpond_index_builds_total", "") < 1.0, "the scan has not ended");

    // The scan goes on without viewers, and completes the playlist.
    origin.let_go();
    for (container, folder, listed) in &folders {
        let began = Instant::now();
        let text = loop {
            let (now, reply) = playlist(&server, container);
            assert_eq!(now, *folder, "the version stays");
            let text = reply.text();
            let all = entries(&text);
            assert_eq!(all[..listed.len()], listed[..], "{text}");
            if text.ends_with("#EXT-X-ENDLIST\n") {
                break text;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{text}");
            std::thread::sleep(Duration::from_millis(100));
        };
        assert!(text.contains("#EXT-X-PLAYLIST-TYPE:VOD\n") && entries(&text).len() == 10, "{text}");
    }
    for (path, before) in &kept {
        let now = server.get(path);
        assert!(now.status == 200 && now.body == *before, "{path}: other bytes than before");
        assert_eq!(now.header("cache-control"), Some("public, max-age=31536000, immutable"), "{path}");
    }
    assert_eq!(server.metric("millpond_index_builds_total", ""), 1.0, "one scan for all");
    // The scan reads each byte once. Segments read some bytes again, which so little memory does not keep.
    assert!(origin.sent() < 2 * len, "{} bytes of {len} were sent", origin.sent());
    let own = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
    let ours = decode::video(&["-i", &server.url(&format!("{NAME}/index.m3u8"))], "0:v").unwrap();
    same(&ours, &own).unwrap();
}

#[test]
fn a_scan_fits_into_little_memory() {
    if !support::have("ffmpeg") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    clips::make(&scratch.path().join(NAME), FILM);
    for memory in ["40MiB", "44MiB", "48MiB", "64MiB"] {
        let server = Server::start(&[scratch.path().to_str().unwrap(), "--memory", memory]);
        let reply = server.get(&format!("{NAME}/index.mpd"));
        assert_eq!(reply.status, 200, "{memory}: {}", reply.text());
    }
}
