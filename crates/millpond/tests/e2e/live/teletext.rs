//! Subtitles of live transport streams. Teletext becomes WebVTT of playlists and manifests: what libzvbi reads, when it reads it.
//! Teletext and DVB subtitles pass on in transport streams as they came.

use crate::{
    live::{
        cues::push,
        transport::{DATAGRAM, send_all, until_open},
    },
    support::{
        self, Server, decode, free_port, get,
        teletext::{Cue, FRENCH, GERMAN, assert_same, cues_of, film, joined, read_by_ffmpeg},
    },
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

/// Longest wait.
const LONG: Duration = Duration::from_secs(90);

/// A film as it is sent, and what is expected of it.
struct Film {
    folder: tempfile::TempDir,
    pictures: Vec<decode::Frame>,
}

impl Film {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("film.ts");
        std::fs::write(&file, film(10)).unwrap();
        let pictures = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
        Self { folder, pictures }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("film.ts")
    }

    /// Cues of a page, in milliseconds from the first picture on.
    fn cues(&self, page: u16) -> Vec<Cue> {
        read_by_ffmpeg(&self.file(), page, self.pictures[0].time)
    }

    /// Time of the first picture in milliseconds, as segments of pictures have it: by a picture of a segment.
    fn first(&self, segment: &Path) -> i64 {
        let found = &decode::video(&["-i", segment.to_str().unwrap()], "0:v").unwrap()[0];
        let picture = self.pictures.iter().find(|picture| picture.hash == found.hash).expect("a picture of the film");
        ((found.time - (picture.time - self.pictures[0].time)) * 1000.0).round() as i64
    }
}

/// The addresses of a playlist's segments, and that of their header. `path` is that of the playlist.
fn segments(playlist: &str, path: &str) -> (Vec<String>, Option<String>) {
    let folder = path.rsplit_once('/').unwrap().0;
    let address = |name: &str| match name.strip_prefix("../") {
        Some(name) => format!("{}/{name}", folder.rsplit_once('/').unwrap().0),
        None => format!("{folder}/{name}"),
    };
    let map = playlist.lines().find_map(|line| line.strip_prefix("#EXT-X-MAP:URI=\"")?.split('"').next());
    let names = playlist.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    (names.map(address).collect(), map.map(address))
}

fn loaded(server: &Server, path: &str) -> Vec<u8> {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.body
}

/// The cues of a live playlist as a player gathers them, until one with a text has ended.
fn gathered(server: &Server, path: &str, last: &str) -> Vec<Cue> {
    let (began, mut known) = (Instant::now(), BTreeMap::new());
    loop {
        let reply = server.get(path);
        let playlist = if reply.status == 200 { reply.text() } else { String::new() };
        let names = segments(&playlist, path.split('?').next().unwrap()).0;
        for name in &names {
            let load = || cues_of(&String::from_utf8(loaded(server, name)).unwrap());
            known.entry(name.clone()).or_insert_with(load);
        }
        let has_last = |name: &String| known[name].iter().any(|cue| cue.2 == last);
        let is_over = names.iter().any(has_last) && names.last().is_some_and(|name| !has_last(name));
        if is_over || playlist.contains("#EXT-X-ENDLIST") {
            let mut cues: Vec<Cue> = known.into_values().flatten().collect();
            cues.sort();
            return joined(cues);
        }
        assert!(began.elapsed() < LONG, "{path}: {playlist}{known:?}{}", server.log_text());
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Checks the subtitles of a stream: those of both pages, in the playlists of fragmented MP4, and of transport streams where they are wanted.
fn assert_subtitled(server: &Server, stream: &str, film: &Film, query: &str, has_ts: bool) {
    let master = server.get(&format!("{stream}/index.m3u8{query}")).text();
    assert_eq!(master.matches("TYPE=SUBTITLES").count(), 2, "{master}");
    assert!(master.contains("NAME=\"French\",LANGUAGE=\"fr\""), "{master}");
    assert!(master.contains("NAME=\"German (hearing impaired)\",LANGUAGE=\"de\""), "{master}");
    let folders = [(stream.to_owned(), "mp4"), (format!("{stream}/ts"), "ts")];
    for (folder, extension) in folders.into_iter().take(1 + usize::from(has_ts)) {
        let pictures = format!("{folder}/v1/index.m3u8");
        let (names, map) = segments(&server.get(&format!("{pictures}{query}")).text(), &pictures);
        let header = map.map(|map| loaded(server, &map)).unwrap_or_default();
        let segment = film.folder.path().join(format!("segment.{extension}"));
        std::fs::write(&segment, [header, loaded(server, names.last().unwrap())].concat()).unwrap();
        let first = film.first(&segment);
        for (track, page) in [("text1", FRENCH), ("text2", GERMAN)] {
            let expected = film.cues(page);
            let last = &expected.last().unwrap().2;
            let cues = gathered(server, &format!("{folder}/{track}/index.m3u8{query}"), last);
            let cues: Vec<Cue> =
                cues.into_iter().map(|(start, end, text)| (start - first, end - first, text)).collect();
            assert_same(&cues, &expected, &format!("{folder}/{track}"));
        }
    }
    let mpd = server.get(&format!("{stream}/index.mpd{query}")).text();
    assert_eq!(mpd.matches("codecs=\"wvtt\"").count(), 2, "{mpd}");
    assert!(mpd.contains("lang=\"fr\"") && mpd.contains("lang=\"de\""), "{mpd}");
}

/// PTS and bytes of the packets of a stream, as ffprobe reads them: `dvb_teletext` or `dvb_subtitle`.
fn packets(file: &Path, codec: &str) -> Vec<(i64, String)> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-fix_teletext_pts", "0", "-select_streams", "s", "-show_data_hash", "md5"]);
    let entries = "packet=pts,data_hash,stream_index:stream=index,codec_name";
    let output = command.args(["-show_entries", entries, "-of", "json"]).arg(file).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let streams = found["streams"].as_array().unwrap();
    let index =
        &streams.iter().find(|stream| stream["codec_name"] == codec).unwrap_or_else(|| panic!("{found}"))["index"];
    let packets = found["packets"].as_array().unwrap().iter().filter(|packet| packet["stream_index"] == *index);
    packets.map(|packet| (packet["pts"].as_i64().unwrap(), packet["data_hash"].as_str().unwrap().to_owned())).collect()
}

/// Keeps some seconds of a stream as they are sent.
fn record(server: &Server, path: &str, to: &Path) -> Child {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "8", "--output"]).arg(to).arg(server.url(path)).spawn().unwrap()
}

/// Checks that a transport stream has the packets of the film's subtitles, at the same distance from its pictures.
fn assert_passed_on(film: &Film, file: &Path) {
    let first = film.first(file);
    let start = (film.pictures[0].time * 90_000.0).round() as i64;
    for (codec, least) in [("dvb_teletext", 2), ("dvb_subtitle", 5)] {
        let source: Vec<_> = packets(&film.file(), codec);
        let ours = packets(file, codec);
        assert!(ours.len() >= least, "{codec}: {ours:?}");
        let shifted = |(pts, hash): &(i64, String)| ((pts - start) / 90 + first, hash.clone());
        let source: Vec<_> = source.iter().map(shifted).collect();
        for (pts, hash) in ours {
            let is_same = |(time, other): &(i64, String)| (time - pts / 90).abs() <= 1 && *other == hash;
            assert!(source.iter().any(is_same), "{codec}: {pts} {hash} of {source:?}");
        }
    }
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-select_streams", "s", "-show_entries", "stream=codec_name:stream_tags=language"]);
    let said = String::from_utf8(command.args(["-of", "csv=p=0"]).arg(file).output().unwrap().stdout).unwrap();
    assert!(said.contains("dvb_teletext,\"fra,deu\"") && said.contains("dvb_subtitle,nld"), "{said}");
}

#[test]
fn subtitles_by_udp_are_what_libzvbi_reads() {
    if !support::have("ffmpeg") || !support::have("ffprobe") {
        return;
    }
    let expected = Film::new();
    let port = free_port();
    let edge = Server::start(&[&format!("tv=udp://127.0.0.1:{port}"), "--live-segment", "1s"]);
    let url = edge.port;
    let viewer = std::thread::spawn(move || get(url, "/tv/index.m3u8", &[]));
    until_open(port);
    // Its clock wraps after eight seconds.
    let datagrams = film(95_434).chunks(DATAGRAM).map(<[u8]>::to_vec).collect();
    let sender = send_all(datagrams, "127.0.0.1", port);
    assert_eq!(viewer.join().unwrap().status, 200);
    let recorded = expected.folder.path().join("recorded.ts");
    let mut recorder = record(&edge, "tv/stream.ts", &recorded);
    assert_subtitled(&edge, "tv", &expected, "", true);
    let said = edge.log_text();
    assert!(said.contains("teletext subtitles become WebVTT") && said.contains("they are pictures"), "{said}");
    // Its time is over.
    assert_eq!(recorder.wait().unwrap().code(), Some(28), "{said}");
    assert_passed_on(&expected, &recorded);
    drop(edge);
    sender.join().unwrap();
}

#[test]
fn subtitles_are_rewound_with_the_pictures() {
    if !support::have("ffmpeg") {
        return;
    }
    let expected = Film::new();
    let folder = tempfile::tempdir().unwrap();
    let shift = ["--time-shift", "1h", "--time-shift-size", "64MiB", "--time-shift-folder"];
    let args = [&["live=publish:", "--live-segment", "1s"][..], &shift, &[folder.path().to_str().unwrap()]].concat();
    let edge = Server::start(&args);
    let publisher = push(edge.port, film(10));
    assert_eq!(edge.get("live/tv/index.m3u8").status, 200);
    assert_subtitled(&edge, "live/tv", &expected, "", true);
    assert_subtitled(&edge, "live/tv", &expected, "?dvr", true);
    // The server is killed, and nobody publishes afterwards.
    drop(edge);
    publisher.join().unwrap();
    let edge = Server::start(&args);
    // After a restart, the past has no transport streams.
    assert_subtitled(&edge, "live/tv", &expected, "?dvr", false);
}
