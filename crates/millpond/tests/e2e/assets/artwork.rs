//! Pictures of titles: files beside them, pictures in their files, key frames, and snapshots of live streams. ffmpeg makes the files, and
//! ffprobe judges the images.

use crate::{
    live::{publish, rtsp},
    support::{
        self, Response, Server, clips,
        origins::{self, Kind, Stack},
    },
};
use serde_json::Value;
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

over_every_storage! {
    image_files_are_artwork
    folders_have_pictures_without_listings
    pictures_in_files_are_artwork
}

const PICTURE: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=3";
const SOUND: &str = "-f lavfi -i sine=440:duration=3";

/// Makes a file with ffmpeg. Spaces separate the arguments.
fn make(folder: &Path, name: &str, args: &str) {
    clips::make(&folder.join(name), args);
}

/// Makes an image of a size.
fn image(folder: &Path, name: &str, size: &str) {
    make(folder, name, &format!("-f lavfi -i testsrc=size={size} -frames:v 1"));
}

fn json(reply: &Response) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
}

/// The codec and size of an image, as ffprobe sees them.
fn judged(bytes: &[u8]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("image");
    std::fs::write(&file, bytes).unwrap();
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0"]);
    let output = command.arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().trim_end_matches(',').to_owned()
}

/// Gets an image. Returns the reply, and the codec and size that ffprobe sees.
fn got(server: &Server, url: &str) -> (Response, String) {
    let reply = server.get(url.trim_start_matches('/'));
    assert_eq!(reply.status, 200, "{url}: {reply:?}");
    let seen = judged(&reply.body);
    (reply, seen)
}

fn image_files_are_artwork(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for (folder, films) in
        [("season", &["E 1.mp4", "E 2.mp4"][..]), ("film", &["Film.mp4"]), ("album", &["1.mp3", "2.mp3"])]
    {
        let folder = root.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        for film in films {
            make(&folder, film, if film.ends_with("mp3") { SOUND } else { PICTURE });
        }
    }
    for (name, size) in [
        ("season/E 1.jpg", "64x36"),
        ("season/fanart.png", "80x45"),
        ("season/E 2-fanart.jpg", "96x54"),
        ("film/poster.png", "40x60"),
        ("album/Folder.jpg", "50x50"),
        ("album/2.png", "20x20"),
    ] {
        image(root.path(), name, size);
    }
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("all"), root.path(), &[]) else { return };
    let listing = |folder: &str| json(&server.get(&format!(".millpond/assets?folder=all/{folder}")));
    let image = |value: &Value| value.as_str().map(|url| got(server, url).1).unwrap_or_default();
    let of_rows = |listing: &Value, field: &str| -> Vec<String> {
        listing["assets"].as_array().unwrap().iter().map(|row| image(&row[field])).collect()
    };
    let season = listing("season");
    assert_eq!(of_rows(&season, "artwork"), ["mjpeg,64,36", ""], "{season}");
    assert_eq!(of_rows(&season, "backdrop"), ["", "mjpeg,96,54"], "{season}");
    assert_eq!((image(&season["backdrop"]), &season["artwork"]), ("png,80,45".to_owned(), &Value::Null), "{season}");
    assert_eq!(season["left-out"], serde_json::json!([]), "an image is nothing that can't be played: {season}");
    let film = listing("film");
    assert_eq!(of_rows(&film, "artwork"), ["png,40,60"], "{film}");
    assert_eq!(image(&film["artwork"]), "png,40,60", "{film}");
    assert_eq!(of_rows(&listing("album"), "artwork"), ["mjpeg,50,50", "png,20,20"]);
}

/// The picture of a card of a folder: its URL, and the codec and size that ffprobe sees.
fn on_card(server: &Server, folder: &str) -> Option<(String, String)> {
    let reply = server.get(&format!(".millpond/brief?path={folder}%2F"));
    assert_eq!(reply.status, 200, "{folder}: {reply:?}");
    let url = json(&reply)["artwork"].as_str()?.to_owned();
    let seen = got(server, &url).1;
    Some((url, seen))
}

fn folders_have_pictures_without_listings(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for (folder, film) in [("own", "1.mp4"), ("of title", "a.mp4"), ("plain", "b.mp4"), ("song", "c.mp3"), ("none", "")]
    {
        let folder = root.path().join("tv").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        if film.is_empty() {
            std::fs::write(folder.join("notes.txt"), "nothing that plays").unwrap();
        } else {
            make(&folder, film, if film.ends_with("mp3") { SOUND } else { PICTURE });
        }
    }
    for (name, size) in
        [("tv/own/Folder.png", "40x60"), ("tv/own/1.jpg", "64x36"), ("tv/of title/a-poster.jpg", "44x66")]
    {
        image(root.path(), name, size);
    }
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("all"), root.path(), &[]) else { return };
    let of = |folder: &str| on_card(server, &format!("all/tv/{}", folder.replace(' ', "%20")));
    let requests = || server.metric("millpond_origin_requests_total", "");
    let seen = |folder: &str| of(folder).map(|(_, seen)| seen).unwrap_or_default();
    if kind != Kind::Folder {
        // Nobody has listed these folders.
        let before = requests();
        assert_eq!(["own", "of title", "plain"].map(&of), [None, None, None]);
        assert_eq!(requests().to_bits(), before.to_bits(), "a card asks the storage for nothing");
        server.get(".millpond/assets?folder=all/tv/own");
        assert_eq!((seen("own"), of("of title")), ("png,40,60".to_owned(), None));
        // A search lists all folders.
        server.get(".millpond/search?q=notes");
    }
    assert_eq!([seen("own"), seen("of title")], ["png,40,60", "mjpeg,44,66"]);
    let plain = of("plain");
    if kind == Kind::Folder {
        let (url, seen) = plain.unwrap();
        assert!(url.ends_with("/v1/poster.jpg") && seen == "mjpeg,320,180", "{url} {seen}");
    } else {
        assert_eq!(plain, None);
    }
    assert_eq!([of("song"), of("none"), of("absent"), on_card(server, "other")], [const { None }; 4]);
}

/// The card of a closed place has no picture, and asks for no password.
#[test]
fn cards_of_closed_folders_have_no_picture() {
    if !support::have("ffmpeg") {
        return;
    }
    let (root, settings) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    image(root.path(), "folder.jpg", "40x60");
    let (users, file) = (settings.path().join("users"), settings.path().join("millpond.toml"));
    std::fs::write(&users, "ann:pass\n").unwrap();
    let (place, users) = (root.path().display(), users.display());
    let config =
        format!("[places.open]\nurl = \"{place}\"\n[places.closed]\nurl = \"{place}\"\naccess-users = \"{users}\"\n");
    std::fs::write(&file, config).unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap()]);
    assert_eq!(on_card(&server, "open").unwrap().1, "mjpeg,40,60");
    assert_eq!(on_card(&server, "closed"), None);
    let ann = [("Authorization", "Basic YW5uOnBhc3M=")];
    let reply = support::get(server.port, "/.millpond/brief?path=closed%2F", &ann);
    assert_eq!(json(&reply)["artwork"], "/closed/folder.jpg", "{reply:?}");
}

/// Returns the base64 text of bytes.
fn base64(bytes: &[u8]) -> String {
    const CHARACTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits = (0..3).fold(0, |bits, place| bits << 8 | usize::from(group.get(place).copied().unwrap_or(0)));
        let character =
            |place: usize| if place > group.len() { '=' } else { CHARACTERS[bits >> (18 - 6 * place) & 63].into() };
        (0..4).map(character).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// Makes a file of each format that can have a picture within. Each picture is 120 by 90.
fn with_pictures(folder: &Path) -> [(&'static str, &'static str); 9] {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["cover.jpg", "cover.png"] {
        image(scratch.path(), name, "120x90");
    }
    let cover = |kind: &str| scratch.path().join(format!("cover.{kind}")).display().to_string();
    let (jpeg, png) = (cover("jpg"), cover("png"));
    let attached = "-map 0:v -map 1:v -c:v:0 libx264 -c:v:1 copy -disposition:v:1 attached_pic";
    let with_sound = "-map 0:a -map 1:v -c:v copy -disposition:v attached_pic";
    make(folder, "film.mp4", &format!("{PICTURE} -i {jpeg} {attached}"));
    make(folder, "fast.mp4", &format!("{PICTURE} -i {png} {attached} -movflags +faststart"));
    let attach = format!("-attach {png} -metadata:s:t mimetype=image/png -metadata:s:t filename=cover.png");
    make(folder, "film.mkv", &format!("{PICTURE} {attach} -c:v libx264"));
    make(folder, "song.mp3", &format!("{SOUND} -i {jpeg} {with_sound} -id3v2_version 3"));
    make(folder, "later.mp3", &format!("{SOUND} -i {png} {with_sound} -id3v2_version 4"));
    make(folder, "song.flac", &format!("{SOUND} -i {png} {with_sound}"));
    let image = std::fs::read(&png).unwrap();
    let text = |text: &[u8]| [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let block = base64(&[&[0, 0, 0, 3][..], &text(b"image/png"), &text(b""), &[0; 16], &text(&image)].concat());
    make(folder, "song.opus", &format!("{SOUND} -c:a libopus -metadata METADATA_BLOCK_PICTURE={block}"));
    make(folder, "song.oga", &format!("{SOUND} -c:a flac -metadata METADATA_BLOCK_PICTURE={block}"));
    let old = base64(&std::fs::read(&jpeg).unwrap());
    make(folder, "old.opus", &format!("{SOUND} -c:a libopus -metadata COVERART={old}"));
    [
        ("film.mp4", "jpg"),
        ("fast.mp4", "png"),
        ("film.mkv", "png"),
        ("song.mp3", "jpg"),
        ("later.mp3", "png"),
        ("song.flac", "png"),
        ("song.opus", "png"),
        ("song.oga", "png"),
        ("old.opus", "jpg"),
    ]
}

fn pictures_in_files_are_artwork(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let files = with_pictures(root.path());
    make(root.path(), "plain.mp3", SOUND);
    let Some(Stack { server, .. }) = &origins::start(kind, root.path(), &[]) else { return };
    for (name, extension) in files {
        let brief = json(&server.get(&format!(".millpond/brief?path={name}")));
        let url = brief["artwork"].as_str().unwrap_or_else(|| panic!("{name}: {brief}"));
        assert!(url.ends_with(&format!("/artwork.{extension}")), "{name}: {brief}");
        let (reply, seen) = got(server, url);
        let (media_type, codec) = if extension == "jpg" { ("image/jpeg", "mjpeg") } else { ("image/png", "png") };
        assert_eq!(seen, format!("{codec},120,90"), "{name}");
        assert_eq!(reply.header("content-type"), Some(media_type), "{name}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{name}");
        assert!(reply.header("cache-control").unwrap().contains("immutable"), "{name}: {reply:?}");
        // Paths without a version are for scripts.
        assert_eq!(got(server, &format!("{name}/artwork.{extension}")).0.body, reply.body, "{name}");
        let other = if extension == "jpg" { "png" } else { "jpg" };
        assert_eq!(server.get(&format!("{name}/artwork.{other}")).status, 404, "{name}");
        // The picture is no track of the title.
        let playlist = server.get(&format!("{name}/index.m3u8"));
        assert_eq!((playlist.status, playlist.text().matches("EXT-X-STREAM-INF").count()), (200, 1), "{name}");
    }
    assert_eq!(json(&server.get(".millpond/brief?path=plain.mp3"))["artwork"], Value::Null);
    assert_eq!(server.get("plain.mp3/artwork.jpg").status, 404);
}

/// The index on the disk has the place of the picture.
#[test]
fn artwork_is_known_after_a_restart() {
    if !support::have("ffmpeg") {
        return;
    }
    let (root, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = with_pictures(root.path());
    let args = [root.path().to_str().unwrap(), "--cache", cache.path().to_str().unwrap()];
    let all = |server: &Server| files.map(|(name, kind)| got(server, &format!("{name}/artwork.{kind}")).0.body);
    let before = all(&Server::start(&args));
    assert!(before.iter().all(|image| image.len() > 100));
    assert_eq!(all(&Server::start(&args)), before);
}

/// The mean luma of an image.
fn brightness(bytes: &[u8]) -> f64 {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("image.jpg");
    std::fs::write(&file, bytes).unwrap();
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(file).args(["-vf", "format=gray", "-f", "rawvideo", "-"]);
    let samples = command.output().unwrap().stdout;
    samples.iter().map(|sample| f64::from(*sample)).sum::<f64>() / samples.len().max(1) as f64
}

#[test]
fn a_poster_is_neither_black_nor_blank() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    // Ten seconds: three of black, one of white, and then pictures.
    let sources = "-f lavfi -i color=black:size=320x180:rate=25:duration=3 -f lavfi -i color=white:size=320x180:rate=25:duration=1 \
         -f lavfi -i testsrc2=size=320x180:rate=25:duration=6";
    let coding = "-filter_complex concat=n=3 -c:v libx264 -pix_fmt yuv420p -g 25 -keyint_min 25 -sc_threshold 0";
    make(root.path(), "film.mp4", &format!("{sources} {coding}"));
    make(
        root.path(),
        "night.mp4",
        "-f lavfi -i color=black:size=320x180:rate=25:duration=3 -c:v libx264 -pix_fmt yuv420p",
    );
    let place = root.path().to_str().unwrap();
    let server = Server::start(&[place]);
    let brief = json(&server.get(".millpond/brief?path=film.mp4"));
    let (poster, seen) = got(&server, brief["poster"]["image"].as_str().unwrap());
    assert_eq!((seen.as_str(), poster.header("content-type")), ("mjpeg,320,180", Some("image/jpeg")));
    let light = brightness(&poster.body);
    assert!((40.0..220.0).contains(&light), "{light}");
    // The first key frame behind black and white is the fifth.
    assert_eq!(poster.body, got(&server, "film.mp4/v1/i5.jpg").0.body);
    // A film of black alone has a black poster.
    assert!(brightness(&got(&server, "night.mp4/v1/poster.jpg").0.body) < 20.0);
    let server = Server::start(&[place, "--thumbnails", "off"]);
    assert_eq!(server.get("film.mp4/v1/poster.jpg").status, 404);
    assert_eq!(json(&server.get(".millpond/brief?path=film.mp4"))["poster"]["image"], Value::Null);
}

/// The age of a picture in seconds, by its headers.
fn age(reply: &support::Response) -> i64 {
    let seconds = |name: &str| {
        let output =
            std::process::Command::new("date").args(["+%s", "-d", reply.header(name).unwrap()]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    seconds("date") - seconds("last-modified")
}

#[test]
fn running_streams_have_snapshots_that_move() {
    if !support::have("ffmpeg") {
        return;
    }
    clips::folder();
    let server = publish::serve(&[]);
    let absent = server.get("live/cam/snapshot.jpg");
    assert_eq!(absent.status, 404, "{absent:?}");
    let publisher = publish::push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp));
    publish::until_published(&server, "live/cam");
    let began = Instant::now();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    while seen.len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} pictures: {}", seen.len(), server.log_text());
        let reply = server.get("live/cam/snapshot.jpg");
        if reply.status == 200 {
            assert_eq!(reply.header("content-type"), Some("image/jpeg"));
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
            let age = age(&reply);
            // Key frames are two seconds apart, and an image is kept for three.
            assert!((-1..30).contains(&age), "{age} s");
            assert!(judged(&reply.body).starts_with("mjpeg,320,"), "{}", judged(&reply.body));
            if !seen.contains(&reply.body) {
                seen.push(reply.body);
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(publisher);
    while server.get("live/cam/snapshot.jpg").status == 200 {
        assert!(began.elapsed() < Duration::from_secs(120), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The camera is another server, which counts the sessions that play from it.
#[test]
fn snapshots_start_no_camera_and_keep_none_running() {
    if !support::have("ffmpeg") {
        return;
    }
    let (camera, server) = rtsp::servers();
    let path = format!("cams/{}", rtsp::CLIP);
    let snapshot = || server.get(&format!("{path}/snapshot.jpg")).status;
    let playing = || camera.metric("millpond_rtsp_playing", "");
    assert_eq!((snapshot(), playing()), (404, 0.0), "a snapshot starts no camera");
    let mut viewer = rtsp::watch(&server, &path);
    viewer.receive(|packets| packets.len() > 100);
    let began = Instant::now();
    while snapshot() != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        viewer.receive(|packets| packets.len() > 100);
    }
    assert_eq!(playing(), 1.0);
    drop(viewer);
    // Snapshots are requested without a pause until the camera is left.
    let left = Instant::now();
    while playing() > 0.0 {
        assert!(left.elapsed() < Duration::from_secs(30), "the camera still plays: {}", server.log_text());
        snapshot();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((snapshot(), playing()), (404, 0.0), "nothing begins again");
}
