//! HLS folders that ffmpeg has made, as titles.

use super::{
    joined::{BASELINE, LARGE, same},
    joined_periods::{decoded, stretches},
};
use crate::support::{
    self, Server, clips,
    decode::{self, Sound},
    origins::{self, Kind},
};
use std::{fs, path::Path, process::Command, time::Duration};

over_every_storage! {
    folders_play_as_the_film_does
}

/// Playlists, and how ffmpeg writes them.
const FORMS: [(&str, &[&str]); 4] = [
    ("ts.m3u8", &[]),
    ("ts_ranges.m3u8", &["-hls_flags", "single_file"]),
    ("fragments.m3u8", &["-hls_segment_type", "fmp4"]),
    ("fragment_ranges.m3u8", &["-hls_segment_type", "fmp4", "-hls_flags", "single_file"]),
];

/// Makes a playlist of a film, with segments of a second.
pub(super) fn make(film: &Path, playlist: &Path, form: &[&str]) {
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y", "-i"])
        .arg(film)
        .args(["-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod"])
        .args(form)
        .arg(playlist)
        .status()
        .unwrap();
    assert!(status.success(), "ffmpeg can't make {}", playlist.display());
}

/// Asserts that sound in the middle is that of the film, at the same distance from the pictures. Pictures are later by `base`.
pub(super) fn assert_heard(ours: &Sound, film: &Sound, base: f64, name: &str) {
    assert_heard_after(48_000, ours, film, base, name);
}

/// Asserts that sound after `skipped` samples is that of the film, at the same distance from the pictures.
pub(super) fn assert_heard_after(skipped: usize, ours: &Sound, film: &Sound, base: f64, name: &str) {
    assert_eq!((ours.rate, ours.channels), (film.rate, film.channels), "{name}");
    let frame = 4 * film.channels;
    let told = &film.samples[skipped * frame..(skipped + 4096) * frame];
    let found = (0..ours.samples.len() / frame).find(|number| ours.samples[number * frame..].starts_with(told));
    let found = found.unwrap_or_else(|| panic!("{name}: other sound"));
    let time = |sound: &Sound, number: usize| sound.start + number as f64 / f64::from(sound.rate);
    let late = time(ours, found) - base - time(film, skipped);
    assert!(late.abs() < 0.003, "{name}: sound is late by {late} s");
}

fn folders_play_as_the_film_does(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let film = scratch.path().join("film.mp4");
    clips::make(&film, LARGE);
    for (name, form) in FORMS {
        make(&film, &place.path().join(name), form);
    }
    let input = ["-i", film.to_str().unwrap()];
    let (pictures, sound) = (decode::video(&input, "0:v").unwrap(), decode::audio(&input, "0:a").unwrap());
    let Some(stack) = origins::start(kind, place.path(), &["--segment-duration", "2"]) else { return };
    for (name, _) in FORMS {
        for tail in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
            let (name, url) = (format!("{name}/{tail}"), stack.server.url(&format!("{name}/{tail}")));
            let ours = decode::video(&["-i", &url], "0:v").unwrap_or_else(|error| panic!("{name}: {error}"));
            let base = ours.first().map_or(0.0, |first| first.time) - pictures[0].time;
            decode::same_video(&ours, &pictures, base, 0.001).unwrap_or_else(|error| panic!("{name}: {error}"));
            let ours = decode::audio(&["-i", &url], "0:a").unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_heard(&ours, &sound, base, &name);
        }
        let url = format!("rtsp://127.0.0.1:{}/{name}", stack.server.rtsp);
        let ours = decode::video(&["-rtsp_transport", "tcp", "-i", &url], "0:v").unwrap();
        same(&ours, &pictures).unwrap_or_else(|error| panic!("{name} by RTSP: {error}"));
    }
    // The files themselves, as they are, with the types that players need.
    for (name, media_type) in [
        ("ts.m3u8", "application/vnd.apple.mpegurl"),
        ("ts0.ts", "video/mp2t"),
        ("fragments0.m4s", "video/iso.segment"),
        ("init.mp4", "video/mp4"),
    ] {
        let reply = stack.server.get(name);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(media_type)), "{name}");
        assert!(reply.body == fs::read(place.path().join(name)).unwrap(), "{name}");
    }
    let ours = decode::video(&["-i", &stack.server.url("ts.m3u8")], "0:v").unwrap();
    same(&ours, &pictures).unwrap();
}

#[test]
fn a_folder_that_is_made_again_is_another_version() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, other) = (scratch.path().join("one.mp4"), scratch.path().join("other.mp4"));
    clips::make(&one, BASELINE);
    clips::make(&other, &BASELINE.replace("testsrc2", "testsrc"));
    let playlist = place.path().join("show.m3u8");
    make(&one, &playlist, &[]);
    let server = Server::start(&[place.path().to_str().unwrap()]);
    let version = || server.get("show.m3u8/index.m3u8").header("etag").map(str::to_owned);
    let decoded = || decode::video(&["-i", &server.url("show.m3u8/index.m3u8")], "0:v").unwrap();
    let of = |film: &Path| decode::video(&["-i", film.to_str().unwrap()], "0:v").unwrap();
    same(&decoded(), &of(&one)).unwrap();
    let before = version();
    make(&other, &playlist, &[]);
    // Files are trusted for a second.
    let changes = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        version() != before
    });
    assert!(changes);
    same(&decoded(), &of(&other)).unwrap();
}

#[test]
fn playlists_are_listed_and_their_segments_are_not() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let film = scratch.path().join("film.mp4");
    clips::make(&film, BASELINE);
    let large = scratch.path().join("large.mp4");
    clips::make(&large, LARGE);
    for (name, film) in [("low", &film), ("high", &large)] {
        fs::create_dir(place.path().join(name)).unwrap();
        make(film, &place.path().join(name).join("v.m3u8"), &["-hls_segment_type", "fmp4"]);
    }
    make(&film, &place.path().join("show.m3u8"), &[]);
    let smil = "<smil><body><switch><video src='low/v.m3u8'/><video src='high/v.m3u8'/></switch></body></smil>";
    fs::write(place.path().join("ladder.smil"), smil).unwrap();
    let smil = "<smil><body><seq><video src='show.m3u8' clipEnd='2s'/><video src='low/v.m3u8'/></seq></body></smil>";
    fs::write(place.path().join("evening.smil"), smil).unwrap();
    let server = Server::start(&[place.path().to_str().unwrap()]);
    let listed = server.get(".millpond/assets").text();
    assert!(listed.contains("\"show.m3u8\"") && !listed.contains("show0.ts"), "{listed}");
    let listed = server.get(".millpond/assets?folder=low").text();
    assert!(
        listed.contains("\"low/v.m3u8\"") && !listed.contains("v0.m4s") && !listed.contains("init.mp4"),
        "{listed}"
    );
    // A manifest may name playlists, as renditions and as items.
    let variants = server.get("ladder.smil/index.m3u8").text();
    let behind = variants.split("RESOLUTION=640x360").nth(1).and_then(|rest| rest.lines().nth(1)).expect(&variants);
    let of = |film: &Path| decode::video(&["-i", film.to_str().unwrap()], "0:v").unwrap();
    let ours = decode::video(&["-i", &server.url(&format!("ladder.smil/{behind}"))], "0:v").unwrap();
    same(&ours, &of(&large)).unwrap();
    let (items, pictures) = (stretches(&server, "evening.smil", "v1/index.m3u8"), of(&film));
    assert_eq!(items.len(), 2);
    for (bytes, expected) in items.iter().zip([&pictures[..50], &pictures[..]]) {
        let ours = decoded(scratch.path(), bytes, |input| decode::video(input, "0:v"));
        same(&ours, expected).unwrap();
    }
}

#[test]
fn hostile_and_other_playlists_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    write("1.ts", "no transport stream at all");
    write("empty.ts", "");
    fs::create_dir(place.path().join("folder.ts")).unwrap();
    let media = |lines: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n{lines}\n#EXT-X-ENDLIST\n");
    let cases = [
        ("itself.m3u8", media("itself.m3u8"), "line 4: \"itself.m3u8\": found a playlist, expected a media segment"),
        ("missing.m3u8", media("2.ts"), "line 4: 2.ts: not found, expected a file with the segment at that path"),
        (
            "folder.m3u8",
            media("folder.ts"),
            "line 4: folder.ts: not found, expected a file with the segment at that path",
        ),
        ("up.m3u8", media("../../etc/passwd"), "line 4: \"../../etc/passwd\": found a path above the top of the place"),
        ("hidden.m3u8", media("%2e%2e/%2e%2e/etc/passwd"), "found a path above the top of the place"),
        ("far.m3u8", media("http://127.0.0.1/1.ts"), "found another server, expected a file of the playlist's place"),
        (
            "beyond.m3u8",
            media("#EXT-X-BYTERANGE:9000000000000000000@1\n1.ts"),
            "line 5: 1.ts: found 26 bytes, expected the bytes 1 to",
        ),
        (
            "huge.m3u8",
            media("#EXT-X-BYTERANGE:18446744073709551615@9\n1.ts"),
            "line 5: found EXT-X-BYTERANGE \"18446744073709551615\"",
        ),
        ("again.m3u8", media(&"1.ts\n".repeat(60_000)), "found 1560000 bytes of segments in files of 26 bytes"),
        ("empty.m3u8", media("empty.ts"), "found segments without bytes, expected media"),
        (
            "key.m3u8",
            media("#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n1.ts"),
            "line 4: found encryption with \"AES-128\", expected segments that are not",
        ),
        (
            "breaks.m3u8",
            media(&"1.ts\n#EXT-X-DISCONTINUITY\n".repeat(300)),
            "found more than 256 stretches between discontinuities",
        ),
        ("twice.m3u8", media("1.ts\n#EXT-X-DISCONTINUITY\n1.ts"), "found 52 bytes of segments in files of 26 bytes"),
        ("gap.m3u8", media("#EXT-X-GAP\n1.ts"), "line 4: found \"#EXT-X-GAP\", expected a segment that is there"),
        ("packed.m3u8", media("1.aac"), "line 4: \"1.aac\": found a segment without container (.aac)"),
        (
            "live.m3u8",
            media("1.ts").replace("#EXT-X-ENDLIST\n", ""),
            "expected #EXT-X-ENDLIST: live playlists are not read",
        ),
        (
            "main.m3u8",
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/v.m3u8\n".to_owned(),
            "a playlist: low/v.m3u8: not found, expected a media file at that path",
        ),
        (
            "circle.m3u8",
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ncircle.m3u8\n".to_owned(),
            "found a multivariant playlist, expected a media playlist",
        ),
        (
            "out.m3u8",
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n../v.m3u8\n".to_owned(),
            "line 3: \"../v.m3u8\": found a path above the top of the place",
        ),
        (
            "session.m3u8",
            "#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n1.m3u8\n".to_owned(),
            "line 2: found encryption with \"AES-128\", expected segments that are not",
        ),
        (
            "long.m3u8",
            media(&format!("#{}\n1.ts", "x".repeat(4 << 20))),
            "bytes, expected at most 4194304 in an HLS playlist",
        ),
        (
            "songs.m3u8",
            "#EXTM3U\nsong.mp3\n".to_owned(),
            "expected #EXT-X-TARGETDURATION, which every HLS playlist has",
        ),
        ("text.m3u8", "good morning\n".to_owned(), "line 1: found \"good morning\", expected #EXTM3U"),
    ];
    for (name, text, _) in &cases {
        write(name, text);
    }
    write("nonsense.m3u8", &media("1.ts"));
    let server = Server::start(&[place.path().to_str().unwrap()]);
    for (name, text, expected) in &cases {
        for tail in ["index.m3u8", "index.mpd"] {
            let reply = server.get(&format!("{name}/{tail}"));
            let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            let told = problem["detail"].as_str().unwrap();
            assert!(
                reply.status == 422 && told.contains(name) && told.contains(expected),
                "{name}: {} {told}",
                reply.status
            );
            assert!(!told.contains(place.path().to_str().unwrap()), "{told}");
        }
        // As a file it is served in any case.
        assert!(server.get(name).body == text.as_bytes(), "{name}");
    }
    let reply = server.get("nonsense.m3u8/index.m3u8");
    assert_eq!(reply.status, 422, "{}", reply.text());
    assert!(reply.text().contains("nonsense.m3u8"), "{}", reply.text());
    assert_eq!(server.get("none.m3u8/index.m3u8").status, 404);
}
