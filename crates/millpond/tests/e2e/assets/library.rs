//! Folders as people have them: seasons, ladders, motion photos, files of other formats, incomplete files.

use crate::support::{
    self, Response, Running, Server, clips, decode, free_port,
    origins::{self, Kind, Stack},
};
use millpond_media::movie::TrackKind;
use serde_json::Value;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

over_every_storage! {
    a_season_is_many_titles
    what_probe_accepts_is_served
    searches_find_in_all_folders
    other_formats_are_named_with_the_command_that_helps
    odd_names_are_listed_and_played
}

/// Names that some URL code takes apart, with the last two composed and decomposed.
const ODD_NAMES: [&str; 12] = [
    "a~b.mp4",
    "a+b.mp4",
    "a%2Fb.mp4",
    "a%b.mp4",
    "a b.mp4",
    "a#b.mp4",
    "a?b.mp4",
    "a&b=c.mp4",
    "a*b.mp4",
    "a;b:c@d$e.mp4",
    "\u{e4}.mp4",
    "a\u{308}.mp4",
];
const ODD_FOLDER: &str = "p+r \u{e4}%2F#?";

fn millpond(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).env("RUST_LOG", "off").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample").join(name)
}

/// A folder with copies of a sample under some names, with slashes for folders.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, from) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(sample(from), path).unwrap();
    }
    root
}

fn problem(reply: &Response) -> (u16, String) {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    (reply.status, body["detail"].as_str().unwrap_or_default().to_owned())
}

fn detail_of(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap_or_default()
}

fn json(reply: &Response) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
}

fn variants(server: &Server, asset: &str) -> usize {
    let reply = server.get(&format!("{asset}/index.m3u8"));
    assert_eq!(reply.status, 200, "{asset}: {}", reply.text());
    reply.text().matches("#EXT-X-STREAM-INF").count()
}

fn a_season_is_many_titles(kind: Kind) {
    let root = folder(&[
        ("season/S01E01.mp4", "360p.mp4"),
        ("season/S01E02_360p.mp4", "360p.mp4"),
        ("season/S01E02_180p.mp4", "180p.mp4"),
        ("told/S01E01.mp4", "360p.mp4"),
        ("told/S01E02.mp4", "180p.mp4"),
    ]);
    // A file in the folder overrides.
    let smil = r#"<smil><body><switch><video src="S01E01.mp4"/><video src="S01E02.mp4"/></switch></body></smil>"#;
    std::fs::write(root.path().join("told/index.smil"), smil).unwrap();
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("shows"), root.path(), &[]) else { return };
    let (status, detail) = problem(&server.get("shows/season/index.m3u8"));
    assert_eq!(status, 422, "{detail}");
    assert!(detail.contains("found 2 titles (S01E01.mp4, S01E02_180p.mp4), expected one"), "{detail}");
    assert_eq!(variants(server, "shows/season/S01E01.mp4"), 1);
    assert_eq!(variants(server, "shows/told"), 2);

    let listing = json(&server.get(".millpond/assets?folder=shows/season"));
    let kinds: Vec<_> = listing["assets"].as_array().unwrap().iter().map(|a| a["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["list", "file", "file", "file"], "{listing}");
    let episode = &listing["assets"][0];
    assert_eq!(episode["files"], serde_json::json!(["S01E02_180p.mp4", "S01E02_360p.mp4"]));
    // For "newest first" on the page. Listings of web servers may lack it.
    let is_dated = |row: &Value| row["modified"].as_u64().is_some_and(|seconds| seconds > 1_600_000_000);
    assert!(kind != Kind::Folder || listing["assets"].as_array().unwrap().iter().all(is_dated), "{listing}");
    assert_eq!(variants(server, episode["path"].as_str().unwrap()), 2, "{listing}");
    let listing = json(&server.get(".millpond/assets?folder=shows/told"));
    assert_eq!(listing["assets"][0]["kind"], "folder", "{listing}");
}

/// A folder with each of [`ODD_NAMES`], and an odd folder with the same.
fn odd_folder() -> tempfile::TempDir {
    let below = ODD_NAMES.map(|name| format!("{ODD_FOLDER}/{name}"));
    let names = ODD_NAMES.into_iter().chain(below.iter().map(String::as_str));
    let files: Vec<_> = names.zip(["180p.mp4", "360p.mp4"].into_iter().cycle()).collect();
    folder(&files)
}

/// Encodes a path as the page does.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()/".contains(&byte);
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Asserts that all odd names of a folder are listed, and that their segments and bytes are served.
fn odd_names_play(server: &Server, root: &Path, folder: &str) {
    let listing = json(&server.get(&format!(".millpond/assets?folder={}", encoded(folder.trim_end_matches('/')))));
    let rows = listing["assets"].as_array().unwrap();
    for name in ODD_NAMES {
        let path = format!("{folder}{name}");
        assert!(rows.iter().any(|row| row["path"] == *path && row["kind"] == "file"), "{path}: {listing}");
        assert_eq!(variants(server, &encoded(&path)), 1, "{path}");
        let list = server.get(&format!("{}/index.m3u8", encoded(&path))).text();
        let media = list.lines().find(|line| line.ends_with("v1/index.m3u8")).unwrap().to_owned();
        let segment = media.replace("index.m3u8", "1.m4s");
        assert_eq!(server.get(&format!("{}/{segment}", encoded(&path))).status, 200, "{path}");
        let whole = server.get(&encoded(&path));
        assert_eq!((whole.status, whole.body), (200, std::fs::read(root.join(name)).unwrap()), "{path}");
    }
}

fn odd_names_are_listed_and_played(kind: Kind) {
    let root = odd_folder();
    let Some(Stack { server, .. }) = &origins::start(kind, root.path(), &[]) else { return };
    odd_names_play(server, root.path(), "");
    odd_names_play(server, &root.path().join(ODD_FOLDER), &format!("{ODD_FOLDER}/"));
}

#[test]
fn odd_names_below_a_prefix_of_a_bucket_play() {
    let root = odd_folder();
    let scratch = tempfile::tempdir().unwrap();
    let Some((_running, port)) = origins::versitygw(root.path(), scratch.path()) else { return };
    let env = origins::credentials(&format!("http://127.0.0.1:{port}"), origins::SECRET);
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start_with(&[&format!("s3://media/{ODD_FOLDER}")], &env);
    odd_names_play(&server, &root.path().join(ODD_FOLDER), "");
}

#[test]
fn names_with_commas_are_titles_of_several_files() {
    let names = ["Well, well (360p).mp4", "Well, well (180p).mp4", "100%2C.mp4"].map(|name| format!("Old, odd/{name}"));
    let [one, two, other] = &names;
    let root = folder(&[(one, "360p.mp4"), (two, "180p.mp4"), (other, "180p.mp4")]);
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let listing = json(&server.get(".millpond/assets?folder=Old,%20odd"));
    let rows = listing["assets"].as_array().unwrap();
    let list = rows.iter().find(|row| row["kind"] == "list").unwrap_or_else(|| panic!("{listing}"));
    assert_eq!(list["title"], "Well, well", "{listing}");
    assert_eq!(rows.len(), 4, "{listing}");
    // As the page encodes it, as clients do that encode every comma, and as a person writes it.
    let path = list["path"].as_str().unwrap();
    let page = path.replace('%', "%25").replace(' ', "%20");
    let person = "Old%2C%20odd/Well%2C%20well%20(,360p,180p,).mp4.urlset".to_owned();
    for path in [page.clone(), page.replace(',', "%2C"), person] {
        let list = server.get(&format!("{path}/index.m3u8"));
        assert_eq!(
            (list.status, list.text().matches("#EXT-X-STREAM-INF").count()),
            (200, 2),
            "{path}: {}",
            list.text()
        );
    }
}

fn searches_find_in_all_folders(kind: Kind) {
    let root = folder(&[
        ("one.mp4", "180p.mp4"),
        ("deep/er/The One.mp4", "180p.mp4"),
        ("deep/Another_360p.mp4", "360p.mp4"),
        ("deep/Another_180p.mp4", "180p.mp4"),
        // A second title: else the folder would be the asset.
        ("deep/Holiday.mp4", "180p.mp4"),
        ("One/other.mp4", "180p.mp4"),
    ]);
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("shows"), root.path(), &[]) else { return };
    let search = |query: &str| json(&server.get(&format!(".millpond/search?{query}")));
    let began = Instant::now();
    while search("q=one")["of"]["is-reading"] == true {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    let found = search("q=ONE");
    let paths = |found: &Value| -> Vec<String> {
        found["assets"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ["shows/One/", "shows/one.mp4", "shows/deep/er/The One.mp4", "shows/One/other.mp4"];
    assert!(paths(&found).starts_with(&expected.map(str::to_owned)), "{found}");
    assert_eq!((&found["of"]["folders"], &found["of"]["is-cut"]), (&4.into(), &false.into()), "{found}");
    let page = search("q=one&offset=1&limit=2");
    assert_eq!(
        (paths(&page), &page["total"]),
        (expected[1..3].iter().map(|p| (*p).to_owned()).collect(), &found["total"])
    );
    let list = search("q=another");
    assert_eq!((&list["assets"][0]["kind"], &list["assets"][0]["number"]), (&"list".into(), &2.into()), "{list}");
    assert_eq!(search("q=%20")["total"], 0);
    // A row's poster is a file of its own, of the smallest rendition.
    let brief = json(&server.get(&format!(".millpond/brief?path={}", list["assets"][0]["path"].as_str().unwrap())));
    let poster = server.get(brief["poster"]["url"].as_str().unwrap().trim_start_matches('/'));
    assert_eq!((poster.status, poster.header("content-type")), (200, Some("video/mp4")), "{brief}");
    assert!(poster.header("cache-control").unwrap().contains("immutable"), "{poster:?}");
    let picture = millpond_media::index_bytes(&poster.body).unwrap();
    let TrackKind::Video { height, .. } = picture.tracks[0].kind else { panic!("{picture:?}") };
    assert_eq!((height, picture.tracks[0].samples.len()), (180, 1));
}

#[test]
fn thumbnails_are_images_of_key_frames() {
    let root = folder(&[("film.mp4", "360p.mp4")]);
    let place = root.path().to_str().unwrap();
    let server = Server::start(&[place, "--thumbnails", "listed"]);
    for (path, width, height) in [("v1/i1.jpg", 320, 180), ("v1/i3.jpg", 320, 180), ("v1/sheet1.jpg", 800, 450)] {
        let reply = server.get(&format!("film.mp4/{path}"));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/jpeg")), "{path}: {}", reply.text());
        // A baseline frame header (SOF0) has the size.
        let at = reply.body.windows(4).position(|four| four == [0xff, 0xc0, 0, 17]).unwrap();
        let side = |from: usize| u32::from(reply.body[at + from]) << 8 | u32::from(reply.body[at + from + 1]);
        assert_eq!((side(7), side(5)), (width, height), "{path}");
        assert!(reply.body.len() > 4000, "{path}: {} bytes", reply.body.len());
        assert_eq!(server.get(&format!("film.mp4/{path}")).body, reply.body);
    }
    let cues = server.get("film.mp4/v1/thumbnails.vtt").text();
    assert!(cues.contains("00:00:02.000 --> 00:00:04.000\nsheet1.jpg#xywh=160,0,160,90\n"), "{cues}");
    let [playlist, mpd, master] =
        ["v1/images.m3u8", "index.mpd", "index.m3u8"].map(|path| server.get(&format!("film.mp4/{path}")).text());
    assert!(playlist.contains("#EXT-X-IMAGES-ONLY") && playlist.contains("LAYOUT=5x5"), "{playlist}");
    assert!(mpd.contains("thumbnail_tile") && master.contains("#EXT-X-IMAGE-STREAM-INF"), "{mpd}\n{master}");
    for path in ["v1/i9999.jpg", "v1/sheet0.jpg", "v1/sheet99.jpg", "a1/i1.jpg", "a1/thumbnails.vtt", "v9/sheet1.jpg"] {
        assert_eq!(server.get(&format!("film.mp4/{path}")).status, 404, "{path}");
    }
    let server = Server::start(&[place]);
    assert!(
        !server.get("film.mp4/index.mpd").text().contains("image") && server.get("film.mp4/v1/i1.jpg").status == 200
    );
    let server = Server::start(&[place, "--thumbnails", "off"]);
    for path in ["v1/i1.jpg", "v1/sheet1.jpg", "v1/thumbnails.vtt", "v1/images.m3u8"] {
        assert_eq!(server.get(&format!("film.mp4/{path}")).status, 404, "{path}");
    }
}

#[test]
fn probe_tells_what_is_grouped_and_why() {
    let root = folder(&[("E01.mp4", "360p.mp4"), ("E02_360p.mp4", "360p.mp4"), ("E02_180p.mp4", "180p.mp4")]);
    std::fs::write(root.path().join("E03.wmv"), b"\x30\x26\xb2\x75\x8e\x66\xcf\x11").unwrap();
    let path = root.path().to_str().unwrap();
    let (code, out, err) = millpond(&["probe", path]);
    assert_eq!(code, 0, "{err}");
    for part in [
        "2 titles, so no asset by itself",
        "  E02_,180p,360p,.mp4.urlset",
        "files: E02_180p.mp4, E02_360p.mp4",
        "one title by name and content",
        "no other file has its name",
        "left out: E03.wmv is Windows Media (ASF)",
        "ffmpeg -i E03.wmv ",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let (_, out, _) = millpond(&["probe", "--json", path]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["is-asset"], report["titles"].as_array().unwrap().len()), (&Value::Bool(false), 2), "{out}");
}

#[test]
fn a_place_says_what_its_folders_are() {
    let root = folder(&[("film/one.mp4", "360p.mp4"), ("film/two.mp4", "180p.mp4"), ("film/240p.mp4", "180p.mp4")]);
    for (titles, expected) in [("folder", 200), ("file", 422), ("alike", 422)] {
        let config = root.path().join("a.toml");
        let place = root.path().display();
        std::fs::write(&config, format!("[places.all]\nurl = \"{place}\"\ntitles = \"{titles}\"\n")).unwrap();
        let server = Server::start(&["--config", config.to_str().unwrap()]);
        assert_eq!(server.get("all/film/index.m3u8").status, expected, "{titles}");
        assert_eq!(variants(&server, "all/film/one.mp4"), 1);
    }
    let wrong = root.path().join("b.toml");
    std::fs::write(&wrong, "[places.all]\nurl = \"/tmp\"\ntitles = \"some\"\n").unwrap();
    let (code, _, err) = millpond(&["check", "--config", wrong.to_str().unwrap()]);
    assert!(code == 1 && err.contains("titles") && err.contains("alike"), "{err}");
}

#[test]
fn a_file_of_another_length_is_no_rendition() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = folder(&[("film/film_360p.mp4", "360p.mp4"), ("film/film_180p.mp4", "180p.mp4")]);
    let short = root.path().join("film/film_720p.mp4");
    clips::make(&short, "V -t 3 -vf scale=640:360 -c:v libx264 -g 25");
    let server = Server::start(&[root.path().to_str().unwrap()]);
    assert_eq!(variants(&server, "film"), 2);
    let asset = json(&server.get(".millpond/asset?path=film"));
    let warnings = asset["warnings"].to_string();
    assert!(warnings.contains("film_720p.mp4: it lasts 3.0 s, not "), "{warnings}");
    let (_, out, _) = millpond(&["probe", root.path().join("film").to_str().unwrap()]);
    assert!(out.contains("film_720p.mp4 stands alone: it lasts 3.0 s"), "{out}");

    // Of two that differ none is the odd one.
    std::fs::remove_file(root.path().join("film/film_180p.mp4")).unwrap();
    let started = Instant::now();
    while server.get("film/index.m3u8").status == 200 && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(200));
    }
    let (status, detail) = problem(&server.get("film/index.m3u8"));
    assert!(status == 422 && detail.contains("files of different titles"), "{status} {detail}");
    let (code, out, _) = millpond(&["probe", root.path().join("film").to_str().unwrap()]);
    assert!(code == 0 && out.contains("one title by name, not by content"), "{out}");
}

#[test]
fn a_film_plays_with_some_of_too_many_subtitles() {
    let root = folder(&[("film.mp4", "180p.mp4")]);
    for number in 0..300 {
        let text = "1\n00:00:01,000 --> 00:00:02,000\nwords\n";
        std::fs::write(root.path().join(format!("film.en.{number}.srt")), text).unwrap();
    }
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let playlist = server.get("film.mp4/index.m3u8");
    assert!(playlist.status == 200 && playlist.text().contains("TYPE=SUBTITLES"), "{}", playlist.text());
    let warnings = json(&server.get(".millpond/asset?path=film.mp4"))["warnings"].to_string();
    assert!(warnings.contains("found 300 subtitle files, expected at most 256: 44 are left out"), "{warnings}");
    assert!(server.log_text().contains("44 are left out"), "{}", server.log_text());
}

#[test]
fn a_motion_photo_plays_its_film() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("photo.mp4");
    let still = "-f lavfi -i testsrc=size=800x600:rate=1/2:duration=4";
    clips::make(&file, &format!("V S {still} -map 2:v -map 0:v -map 1:a -t 4 -c:v libx264 -g 50 -bf 2 -c:a aac"));
    let server = Server::start(&[root.path().to_str().unwrap()]);
    for list in ["photo.mp4/index.m3u8", "photo.mp4/ts/index.m3u8"] {
        let reply = server.get(list);
        let text = reply.text();
        assert_eq!(text.matches("#EXT-X-STREAM-INF").count(), 1, "{text}");
        assert!(text.contains("RESOLUTION=320x180") && !text.contains("800x600"), "{text}");
        let ours = decode::video(&["-i", &server.url(list)], "0:v:0").unwrap();
        let film = decode::video(&["-i", file.to_str().unwrap()], "0:v:1").unwrap();
        assert_eq!(ours.len(), film.len(), "{list}: each frame of the film");
    }
    let mpd = server.get("photo.mp4/index.mpd").text();
    let sets: Vec<&str> = mpd.split("<AdaptationSet").filter(|set| set.contains("contentType=\"video\"")).collect();
    assert_eq!(sets.len(), 2, "{mpd}");
    assert!(sets[0].contains("value=\"main\"") && sets[0].contains("width=\"320\""), "{mpd}");
    assert!(sets[1].contains("value=\"alternate\"") && sets[1].contains("width=\"800\""), "{mpd}");
    let stills = decode::video(&["-i", &server.url("photo.mp4/v2/index.m3u8")], "0:v:0").unwrap();
    assert_eq!(stills.len(), 2, "the still has a URL of its own");
    let stills = decode::video(&["-i", &server.url("photo.mp4/ts/v2/index.m3u8")], "0:v:0").unwrap();
    assert_eq!(stills.len(), 2);
    let asset = json(&server.get(".millpond/asset?path=photo.mp4"));
    assert_eq!((&asset["tracks"][0]["alternative"], &asset["tracks"][1]["alternative"]), (&false.into(), &true.into()));
    let rtsp = support::rtsp::Client::new(&server, "photo.mp4").ask("DESCRIBE", "", "");
    assert!(rtsp.status == 200 && rtsp.body.contains("v1"), "{}", rtsp.body);
}

#[test]
fn a_second_camera_is_no_rung_and_a_ladder_of_one_file_stays_one() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let rear = "-f lavfi -i mandelbrot=size=320x180:rate=25";
    let coded = "-t 4 -c:v libx264 -pix_fmt yuv420p -g 50 -c:a aac";
    for (name, args) in [
        // ffmpeg disables all pictures but the first.
        ("disabled.mp4", format!("V S {rear} -map 0:v -map 2:v -map 1:a {coded}")),
        ("cameras.mp4", format!("V S {rear} -map 0:v -map 2:v -map 1:a {coded} -disposition:v default")),
        ("ladder.mp4", format!("V S -map 0:v -map 0:v -map 1:a -filter:v:1 scale=160:90 {coded}")),
    ] {
        clips::make(&root.path().join(name), &args);
    }
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let pictures = |name: &str| -> (Vec<bool>, String) {
        let asset = json(&server.get(&format!(".millpond/asset?path={name}")));
        let tracks = asset["tracks"].as_array().unwrap().iter().filter(|track| track["kind"] == "video");
        (tracks.map(|track| track["alternative"] == true).collect(), asset["warnings"].to_string())
    };
    let (disabled, warnings) = pictures("disabled.mp4");
    assert_eq!((disabled, variants(&server, "disabled.mp4")), (vec![false], 1));
    assert!(warnings.contains("its header disables it"), "{warnings}");
    let (cameras, _) = pictures("cameras.mp4");
    assert_eq!((cameras, variants(&server, "cameras.mp4")), (vec![false, true], 1));
    let mpd = server.get("cameras.mp4/index.mpd").text();
    assert_eq!(mpd.matches("contentType=\"video\"").count(), 2, "{mpd}");
    let (ladder, _) = pictures("ladder.mp4");
    assert_eq!((ladder, variants(&server, "ladder.mp4")), (vec![false, false], 2));
}

/// The page names the codecs of sound that is left out, without reading sentences.
#[test]
fn codecs_that_are_not_read_are_described() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let coded = "-t 2 -strict -2 -c:v libx264 -pix_fmt yuv420p -ar 48000 -ac 2";
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let of = |track: u32, codec: &str| serde_json::json!({ "track": track, "kind": "audio", "codec": codec });
    for (name, args, expected) in [
        ("dts.mkv", "V S -c:a dca", vec![of(2, "DTS")]),
        ("dts.mp4", "V S -c:a dca", vec![of(2, "DTS")]),
        ("dts.ts", "V S -c:a dca", vec![of(257, "DTS")]),
        ("true.mkv", "V S -map 0 -map 1 -map 1 -c:a:0 truehd -c:a:1 aac", vec![of(2, "Dolby TrueHD")]),
        ("windows.avi", "V S -bf 0 -c:a wmav2", vec![of(2, "Windows Media Audio")]),
        ("adpcm.flv", "V S -ar 44100 -c:a adpcm_swf", vec![of(2, "ADPCM")]),
        ("plain.mkv", "V S -c:a aac", vec![]),
    ] {
        let (inputs, codecs) = args.split_at("V S".len());
        clips::make(&root.path().join(name), &format!("{inputs} {coded}{codecs}"));
        let asset = json(&server.get(&format!(".millpond/asset?path={name}")));
        assert_eq!(asset["left-out"], Value::from(expected), "{name}: {asset}");
    }
    clips::make(&root.path().join("old.mkv"), "V -t 2 -c:v mpeg2video");
    let brief = json(&server.get(".millpond/brief?path=old.mkv"));
    let expected = (Value::from("codec"), serde_json::json!(["MPEG-2 video (V_MPEG2)"]));
    assert_eq!((brief["code"].clone(), brief["media"].clone()), expected, "{brief}");
    assert!(brief["command"].as_str().unwrap().starts_with("ffmpeg -i old.mkv "), "{brief}");
    assert_eq!(brief["asset"], "old.mkv", "{brief}");
}

fn what_probe_accepts_is_served(kind: Kind) {
    const NAMES: &[&str] = &[
        "a.3gp", "a.3g2", "a.f4v", "a.m4v", "a.mov", "a.qt", "a.m4a", "a.m4b", "a.M4V", "a.lrv", "a.avi", "a.bin",
        "a.video",
    ];
    let root = tempfile::tempdir().unwrap();
    for name in NAMES.iter().chain(&["film"]) {
        let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
        std::fs::copy(
            sample("180p.mp4"),
            root.path().join(format!("{stem}{extension}.{extension}").trim_end_matches('.')),
        )
        .unwrap();
    }
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("films"), root.path(), &[]) else { return };
    for entry in std::fs::read_dir(root.path()).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let (code, _, err) = millpond(&["probe", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{name}: {err}");
        // A name without an extension is a folder where asking costs a request.
        if name.contains('.') || kind == Kind::Folder {
            assert_eq!(variants(server, &format!("films/{name}")), 1, "{name}");
        }
    }
    let listing = json(&server.get(".millpond/assets?folder=films"));
    let files = listing["assets"].as_array().unwrap().iter().filter(|asset| asset["kind"] == "file").count();
    assert_eq!(files, 11, "{listing}");
    assert_eq!(server.get("films/none.bin/index.m3u8").status, 404);
    assert_eq!(server.get("films/none.mkv/index.m3u8").status, 404);
}

/// Name, format, and how ffmpeg makes it.
const FORMATS: &[(&str, &str, &str)] = &[
    ("f.mpg", "an MPEG program stream", "V S -t 2 -c:v mpeg2video -c:a mp2"),
    ("h.wmv", "Windows Media (ASF)", "V S -t 2 -c:v wmv2 -c:a wmav2"),
    ("i.ac3", "raw AC-3", "S -t 2 -c:a ac3"),
    ("j.w64", "Sony Wave64", "S -t 2"),
];

fn other_formats_are_named_with_the_command_that_helps(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats-2");
    std::fs::create_dir_all(&made).unwrap();
    let root = tempfile::tempdir().unwrap();
    for (name, _, args) in FORMATS {
        clips::make(&made.join(name), args);
        std::fs::copy(made.join(name), root.path().join(name)).unwrap();
    }
    // Whatever the name says.
    std::fs::copy(made.join("h.wmv"), root.path().join("windows.mp4")).unwrap();
    std::fs::create_dir(root.path().join("sub")).unwrap();
    std::fs::copy(made.join("h.wmv"), root.path().join("sub/a.wmv")).unwrap();
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("films"), root.path(), &[]) else { return };
    for (name, format, _) in FORMATS.iter().chain(&[("windows.mp4", "Windows Media (ASF)", "")]) {
        for tail in ["index.m3u8", "index.mpd", "v1/1.m4s"] {
            let (status, detail) = problem(&server.get(&format!("films/{name}/{tail}")));
            assert_eq!(status, 422, "{name}/{tail}: {detail}");
            let told = format!("{name}: is {format}, expected MP4, MOV");
            assert!(detail.contains(&told) && detail.contains("ffmpeg -i "), "{detail}");
        }
        let brief = json(&server.get(&format!(".millpond/brief?path=films/{name}")));
        assert_eq!((&brief["code"], &brief["media"]), (&"format".into(), &serde_json::json!([format])), "{brief}");
        assert!(detail_of(&brief).ends_with(brief["command"].as_str().unwrap()), "{brief}");
        let (code, _, err) = millpond(&["probe", root.path().join(name).to_str().unwrap()]);
        assert!(code == 1 && err.contains(&format!("{name}: is {format}, ")) && err.contains("ffmpeg -i "), "{err}");
    }
    let (status, detail) = problem(&server.get("films/sub/index.m3u8"));
    assert!(status == 422 && detail.contains("a.wmv, which is Windows Media (ASF)"), "{status} {detail}");
    assert_eq!(server.get("films/h.wmv").status, 200, "the file itself is passed through");
    let listing = json(&server.get(".millpond/assets?folder=films"));
    assert_eq!(listing["left-out"].as_array().unwrap().len(), FORMATS.len(), "{listing}");
    if kind != Kind::Folder {
        return;
    }
    for (name, ..) in FORMATS {
        let (_, detail) = problem(&server.get(&format!("films/{name}/index.m3u8")));
        let command = &detail[detail.find("ffmpeg").unwrap()..];
        let shell = command.replacen("ffmpeg", "ffmpeg -v error -nostdin -y", 1);
        let status = Command::new("sh").args(["-c", &shell]).current_dir(root.path()).status().unwrap();
        assert!(status.success(), "{command}");
        let stem = name.split('.').next().unwrap();
        assert_eq!(variants(server, &format!("films/{stem}.mp4")), 1, "{command}");
    }
}

/// Returns the server's report on a place at its start.
fn greeting(place: &Path) -> String {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("greeting.txt");
    let local = |port: u16| format!("127.0.0.1:{port}");
    let process = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .arg("serve")
        .arg(place)
        .args(["--http", &local(free_port()), "--admin", &local(free_port()), "--rtsp", &local(free_port())])
        .arg("--cache")
        .arg(cache.path())
        .stdout(Stdio::from(std::fs::File::create(&file).unwrap()))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _running = Running(process);
    let (mut text, started) = (String::new(), Instant::now());
    // The lines come at once.
    while !text.contains("metrics") && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
        text = std::fs::read_to_string(&file).unwrap();
    }
    text
}

#[test]
fn the_start_tells_what_was_found_and_what_was_left_out() {
    let root = folder(&[
        ("mixed/a film.mp4", "180p.mp4"),
        ("mixed/more/b.mp4", "180p.mp4"),
        ("ladder/240p.mp4", "180p.mp4"),
        ("ladder/480p.mp4", "360p.mp4"),
        ("nested/one/two/film.mp4", "180p.mp4"),
        ("many/1.mp4", "180p.mp4"),
    ]);
    let at = |name: &str| root.path().join(name);
    for n in 2..9 {
        std::fs::hard_link(at("many/1.mp4"), at(&format!("many/{n}.mp4"))).unwrap();
    }
    for name in ["empty", "wmv", "wmv/sub", "text"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    for name in ["wmv/a.wmv", "wmv/b.WMV", "wmv/sub/c.wmv", "mixed/x.mxf", "text/a.txt"] {
        std::fs::write(at(name), "x").unwrap();
    }
    for (place, parts) in [
        ("empty", &["found no media that is served (MP4, MOV, MKV, WebM ...), and nothing else"][..]),
        ("text", &["but 1 other file"]),
        (
            "wmv",
            &[
                "left out: a.wmv and 2 files more are Windows Media (ASF)",
                "ffmpeg -i a.wmv ",
                "but 3 media files in another format",
            ],
        ),
        ("nested", &["  one/two/film.mp4\n", "/one/two/film.mp4/index.m3u8"]),
        ("mixed", &["  a film.mp4\n", "/a%20film.mp4/index.m3u8", "  more/b.mp4\n", "left out: x.mxf is MXF"]),
        ("ladder", &["  all files as one title\n", "/index.m3u8\n", "/ts/index.m3u8\n"]),
        ("many", &["  5.mp4\n", "and 3 more assets"]),
        ("many/1.mp4", &["  1.mp4\n", "/1.mp4/index.m3u8"]),
        ("wmv/a.wmv", &["left out: a.wmv is Windows Media (ASF)", "but 1 media file in another format"]),
    ] {
        // A busy machine may need longer than the half second that the start spends on folders.
        let mut text = greeting(&at(place));
        for _ in 0..5 {
            if parts.iter().all(|part| text.contains(part)) {
                break;
            }
            text = greeting(&at(place));
        }
        for part in parts {
            assert!(text.contains(part), "{place}: no {part:?} in {text}");
        }
    }
}

#[test]
fn a_file_is_a_place() {
    let root = folder(&[("film.mp4", "180p.mp4"), ("other.mp4", "360p.mp4")]);
    std::fs::write(root.path().join("film.de.vtt"), "WEBVTT\n\n00:01.000 --> 00:02.000\nHallo\n").unwrap();
    let server = Server::start(&[root.path().join("film.mp4").to_str().unwrap()]);
    for asset in ["film.mp4/", ""] {
        let text = server.get(&format!("{asset}index.m3u8")).text();
        assert_eq!(text.matches("#EXT-X-STREAM-INF").count(), 1, "{text}");
        assert_eq!(text.matches("TYPE=SUBTITLES").count(), 1, "{text}");
        for tail in ["index.mpd", "ts/index.m3u8", "v1/1.m4s", "ts/v1/1.ts", "s1/1.vtt"] {
            assert_eq!(server.get(&format!("{asset}{tail}")).status, 200, "{asset}{tail}");
        }
    }
    assert_eq!(server.get("film.mp4").body, std::fs::read(root.path().join("film.mp4")).unwrap());
    for path in ["other.mp4", "other.mp4/index.m3u8"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let listing = json(&server.get(".millpond/assets?folder="));
    assert_eq!(listing["assets"].as_array().unwrap().len(), 1, "{listing}");
    let server = Server::start(&[&format!("cinema={}", root.path().join("film.mp4").display())]);
    assert_eq!(variants(&server, "cinema/film.mp4"), 1);
}

#[test]
fn a_half_copied_file_is_still_being_copied() {
    if !support::have("ffmpeg") {
        return;
    }
    let whole = std::fs::read(clips::folder().join("h264_moov_first.mp4")).unwrap();
    let moov = whole.windows(4).position(|four| four == b"moov").unwrap();
    let mdat = whole.windows(4).position(|four| four == b"mdat").unwrap();
    assert!(moov < mdat);
    let root = tempfile::tempdir().unwrap();
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let path = root.path().join("film.mp4");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut copied = 0;
    // Nothing yet, half of the index, the index alone, half of the media.
    for until in [0, moov + 500, mdat + 8, mdat + (whole.len() - mdat) / 2] {
        file.write_all(&whole[copied..until]).unwrap();
        copied = until;
        let started = Instant::now();
        let reply = loop {
            let reply = server.get("film.mp4/index.m3u8");
            // Facts about the file are trusted for a moment.
            if problem(&reply).1.contains(&format!("found {until} bytes so far")) {
                break reply;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "{until}: {reply:?}");
            std::thread::sleep(Duration::from_millis(100));
        };
        let (status, detail) = problem(&reply);
        assert!(status == 503 && detail.contains("film.mp4: still being copied"), "{until}: {status} {detail}");
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
        let listing = json(&server.get(".millpond/assets?folder="));
        assert_eq!(listing["assets"][0]["state"], "copying", "{until}: {listing}");
    }
    assert!(greeting(root.path()).contains("film.mp4: still being copied"));
    file.write_all(&whole[copied..]).unwrap();
    let started = Instant::now();
    while server.get("film.mp4/index.m3u8").status != 200 {
        assert!(started.elapsed() < Duration::from_secs(30), "it plays when all is there");
        std::thread::sleep(Duration::from_millis(100));
    }
    let reference = decode::video(&["-i", path.to_str().unwrap()], "0:v:0").unwrap();
    let ours = decode::video(&["-i", &server.url("film.mp4/index.m3u8")], "0:v:0").unwrap();
    decode::same_video(&ours, &reference, 0.0, 1e-4).unwrap();
    let listing = json(&server.get(".millpond/assets?folder="));
    assert_eq!(listing["assets"][0]["state"], Value::Null, "{listing}");
}

#[test]
fn a_file_that_was_cut_off_long_ago_plays_as_far_as_it_goes() {
    if !support::have("ffmpeg") {
        return;
    }
    let whole = std::fs::read(clips::folder().join("h264_moov_first.mp4")).unwrap();
    let mdat = whole.windows(4).position(|four| four == b"mdat").unwrap();
    let root = tempfile::tempdir().unwrap();
    for (name, len) in [("half.mp4", mdat + (whole.len() - mdat) / 2), ("head.mp4", 200)] {
        let path = root.path().join(name);
        std::fs::write(&path, &whole[..len]).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    }
    let server = Server::start(&[root.path().to_str().unwrap()]);
    assert_eq!(variants(&server, "half.mp4"), 1);
    let (status, detail) = problem(&server.get("head.mp4/index.m3u8"));
    assert!(status == 422 && detail.contains("the file is cut short"), "{status} {detail}");
}
