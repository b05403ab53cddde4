//! Filters of manifests: what queries, places and tokens keep of a title in three sizes.

use crate::{
    access::tokens::{self, made, now},
    support::{self, Response, Server, clips, decode},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path, process::Command, sync::OnceLock};

/// A place with a title of 240, 480 and 720 lines in the folder `a`, with sound and subtitles in English and German. Made once.
fn place() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filters-1");
        let folder = root.join("a");
        std::fs::create_dir_all(&folder).unwrap();
        let clip = |name: &str, args: &str| clips::make(&folder.join(name), args);
        clip("a_240.mp4", "V S -vf scale=426:240 -c:v libx264 -g 50 -b:v 200k -c:a aac -metadata:s:a:0 language=eng");
        clip("a_480.mp4", "V -vf scale=854:480 -c:v libx264 -g 50 -b:v 700k");
        clip("a_720.mp4", "V -vf scale=1280:720 -c:v libx264 -g 50 -b:v 2000k");
        let sound = "-f lavfi -i sine=frequency=880:sample_rate=48000:duration=9";
        clip("a_de.m4a", &format!("{sound} -c:a aac -metadata:s:a:0 language=deu"));
        std::fs::write(folder.join("a.en.vtt"), "WEBVTT\n\n00:01.000 --> 00:03.500\nHello\n").unwrap();
        std::fs::write(folder.join("a.de.srt"), "1\n00:00:01,000 --> 00:00:03,500\nHallo\n").unwrap();
        root.to_str().unwrap().to_owned()
    })
}

fn text(server: &Server, path: &str) -> String {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

fn problem(server: &Server, path: &str) -> (u16, String) {
    let reply = server.get(path);
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    (reply.status, body["detail"].as_str().unwrap().to_owned())
}

/// The text between two others, behind the first of which it stands.
fn between<'a>(text: &'a str, before: &str, after: char) -> &'a str {
    text.split(before).nth(1).unwrap_or_else(|| panic!("{before} in {text}")).split(after).next().unwrap()
}

/// Heights of the variants of a multivariant playlist, in their order.
fn heights(list: &str) -> Vec<u32> {
    let variants = list.lines().filter(|line| line.starts_with("#EXT-X-STREAM-INF"));
    variants.map(|line| between(between(line, "RESOLUTION=", ','), "x", ',').parse().unwrap()).collect()
}

/// Heights and rates of the representations of an MPD, in their order.
fn representations(mpd: &str) -> Vec<(u32, u64)> {
    let number = |text: &str, name: &str| between(text, &format!(" {name}=\""), '"').parse::<u64>().unwrap();
    let video = mpd.split("<Representation id=\"v").skip(1);
    video.map(|one| (number(one, "height") as u32, number(one, "bandwidth"))).collect()
}

fn etag(reply: &Response) -> String {
    reply.header("etag").unwrap().to_owned()
}

#[test]
fn a_query_chooses_the_tracks_of_manifests() {
    let server = &Server::start(&[place()]);
    for (query, expected) in [
        ("", &[240_u32, 480, 720][..]),
        ("?_HLS_msn=1&CMCD=br%3D1", &[240, 480, 720]),
        ("?max-height=480", &[240, 480]),
        ("?max-height=240&text=none", &[240]),
        ("?video=avc1%2Chevc", &[240, 480, 720]),
    ] {
        for list in ["index.m3u8", "ts/index.m3u8"] {
            assert_eq!(heights(&text(server, &format!("a/{list}{query}"))), expected, "{list}{query}");
        }
        let found = representations(&text(server, &format!("a/index.mpd{query}")));
        assert_eq!(found.iter().map(|(height, _)| *height).collect::<Vec<_>>(), expected, "index.mpd{query}");
    }
    // The rates are those that the MPD states.
    let rates: Vec<u64> = representations(&text(server, "a/index.mpd")).iter().map(|(_, rate)| *rate).collect();
    for (query, expected) in [
        (format!("max-rate={}", rates[1]), &[240_u32, 480][..]),
        (format!("max-rate={}", rates[1] - 1), &[240]),
        (format!("min-rate={}", rates[1]), &[480, 720]),
        (format!("first={}", rates[1]), &[480, 240, 720]),
        ("first=1G".to_owned(), &[720, 240, 480]),
    ] {
        assert_eq!(heights(&text(server, &format!("a/index.m3u8?{query}"))), expected, "{query}");
    }
    let list = text(server, "a/index.m3u8?audio=deu&text=en-GB,en");
    let media = |kind: &str| list.lines().filter(|line| line.contains(kind)).collect::<Vec<_>>();
    let (sound, subtitles) = (media("TYPE=AUDIO"), media("TYPE=SUBTITLES"));
    assert!(sound.len() == 1 && sound[0].contains("LANGUAGE=\"de\",DEFAULT=YES"), "{list}");
    assert!(subtitles.len() == 1 && subtitles[0].contains("LANGUAGE=\"en\""), "{list}");
    let variants = list.lines().filter(|line| !line.starts_with('#'));
    for uri in variants.chain([between(sound[0], "URI=\"", '"')]) {
        assert!(text(server, &format!("a/{uri}")).contains("#EXTINF"), "{uri}");
    }
}

/// The command states the length of the server's reply to the same URL.
#[test]
fn a_url_with_a_filter_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("my film")).unwrap();
    for entry in std::fs::read_dir(Path::new(place()).join("a")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join("my film").join(entry.file_name())).unwrap();
    }
    let server = &Server::start(&[folder.path().to_str().unwrap()]);
    for query in ["", "?max-height=480", "?max-height=240&text=none"] {
        let path = format!("my%20film/index.m3u8{query}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let admin = format!("127.0.0.1:{}", server.admin);
        let output = command.args(["explain", &server.url(&path), "--admin", &admin]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let expected = format!("my film/index.m3u8: {} bytes,", text(server, &path).len());
        assert!(told.starts_with(&expected), "{query}: {told}{}", String::from_utf8_lossy(&output.stderr));
    }
    let reply = support::get(server.admin, "/api/v1/explain?url=my+film/index.m3u8&query=max-height%3Dtall", &[]);
    assert_eq!(reply.status, 400, "{}", reply.text());
}

#[test]
fn manifests_of_other_filters_are_other_representations() {
    let server = &Server::start(&[place()]);
    let get = |query: &str, fields: &[(&str, &str)]| {
        let target = format!("/a/index.m3u8{query}");
        support::get(server.port, &target, fields)
    };
    let tags = ["", "?max-height=480", "?max-height=240", "?audio=none"].map(|query| etag(&get(query, &[])));
    assert_eq!(BTreeSet::from(tags.clone()).len(), 4, "{tags:?}");
    // One canonical form is one representation.
    assert_eq!(etag(&get("?x=1&max-height=0480", &[])), tags[1]);
    let known = [("If-None-Match", tags[1].as_str())];
    assert_eq!((get("?max-height=480", &known).status, get("?max-height=240", &known).status), (304, 200));
    let coded = ["", "?max-height=480"].map(|query| get(query, &[("Accept-Encoding", "gzip")]));
    assert!(coded.iter().all(|reply| reply.header("content-encoding") == Some("gzip")), "{coded:?}");
    assert_ne!(coded[0].body, coded[1].body);
    assert_ne!(etag(&coded[0]), etag(&coded[1]));
}

#[test]
fn a_wrong_filter_is_the_viewers_mistake() {
    let server = &Server::start(&[place()]);
    for (query, expected) in [
        ("max-height=tall", "query: parameter max-height: found \"tall\", expected a number of lines, such as max-"),
        ("max-height=480&max-height=720", "parameter max-height: found \"720\" as a second value, expected one value"),
        ("audio=", "parameter audio: found \"\", expected none, or up to 16 language tags"),
        ("video=h264", "parameter video: found \"h264\", expected none, or up to 16 of avc, hevc"),
    ] {
        for manifest in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
            let (status, detail) = problem(server, &format!("a/{manifest}?{query}"));
            assert!(status == 400 && detail.contains(expected), "{manifest}?{query}: {status} {detail}");
        }
    }
    for manifest in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
        let (status, detail) = problem(server, &format!("a/{manifest}?max-height=100&audio=fr"));
        let renditions = "the filter leaves nothing to play: max-height=100 (URL) excludes 3 of 3 renditions (";
        assert!(status == 422 && detail.contains(renditions) && detail.contains("x720)"), "{manifest}: {detail}");
        assert!(detail.contains("audio=fr (URL) excludes 2 of 2 sound tracks ("), "{manifest}: {detail}");
    }
    // Only manifests of the whole title have filters.
    assert!(text(server, "a/v1/index.m3u8?max-height=tall").contains("#EXTINF"));
    assert!(!server.log_text().contains("request failed"), "{}", server.log_text());
}

/// Heights of the pictures that ffprobe finds.
fn probed(url: &str) -> BTreeSet<u64> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-show_entries", "stream=codec_type,height", "-of", "json", url])
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let streams = found["streams"].as_array().unwrap().iter();
    streams.filter_map(|stream| stream["height"].as_u64().filter(|height| *height > 0)).collect()
}

#[test]
fn ffmpeg_plays_what_a_filter_keeps() {
    if !support::have("ffprobe") {
        return;
    }
    let server = &Server::start(&[place()]);
    for list in ["index.m3u8", "ts/index.m3u8"] {
        assert_eq!(probed(&server.url(&format!("a/{list}?max-height=480&text=none"))), BTreeSet::from([240, 480]));
    }
    let url = server.url("a/index.m3u8?max-height=240&audio=de&text=none");
    let ours = decode::video(&["-i", &url], "0:v:0").unwrap();
    let reference = decode::video(&["-i", &format!("{}/a/a_240.mp4", place())], "0:v:0").unwrap();
    decode::same_video(&ours, &reference, 0.0, 1e-4).unwrap();
}

#[test]
fn places_and_tokens_have_filters_that_viewers_cannot_widen() {
    let (_secret, key) = tokens::file(tokens::SECRET.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let films = place();
    let content = format!(
        "filter = \"max-height=480\"\n[places.open]\nurl = \"{films}\"\nfilter = \"audio=none\"\n\
         [places.closed]\nurl = \"{films}\"\naccess-tokens = \"{key}\"\n"
    );
    std::fs::write(&config, content).unwrap();
    let server = &Server::start(&["--config", config.to_str().unwrap()]);
    // The place's own filter stands in the place of the server's.
    let open = text(server, "open/a/index.m3u8?audio=en&max-height=480");
    assert!(heights(&open) == [240_u32, 480] && !open.contains("TYPE=AUDIO"), "{open}");
    assert_eq!(heights(&text(server, "open/a/index.m3u8")), [240_u32, 480, 720]);
    let of_token = |filter: &str, query: &str| {
        let claims = json!({ "exp": now() + 600, "paths": ["closed/a"], "filter": filter });
        format!("~{}/closed/a/index.m3u8{query}", made(&claims))
    };
    for (query, expected) in [
        ("", &[240_u32, 480][..]),
        ("?max-height=720&audio=de,en", &[240, 480]),
        ("?max-height=240&audio=deu", &[240]),
        ("?first=1G", &[480, 240]),
    ] {
        let list = text(server, &of_token("audio=de", query));
        assert_eq!(heights(&list), expected, "{query}");
        assert!(list.contains("LANGUAGE=\"de\",DEFAULT=YES") && list.matches("TYPE=AUDIO").count() == 1, "{list}");
    }
    let (status, detail) = problem(server, &of_token("audio=fr", "?max-height=100&text=none"));
    assert_eq!(status, 422, "{detail}");
    for part in ["max-height=100 (URL) excludes 3 of 3 renditions (", "audio=fr (claim of the token) excludes 2 of 2 "]
    {
        assert!(detail.contains(part), "no {part:?} in {detail}");
    }
    let (status, detail) = problem(server, "open/a/index.mpd?video=none");
    assert_eq!(status, 422, "{detail}");
    for part in ["video=none (URL) excludes 3 of 3 ", "audio=none (option of the place) excludes 2 of 2 "] {
        assert!(detail.contains(part), "no {part:?} in {detail}");
    }
    // A place without an option has the server's filter.
    let (status, detail) = problem(server, &of_token("audio=none", "?min-rate=100M"));
    assert_eq!(status, 422, "{detail}");
    for part in ["max-height=480 (setting of the server)", "widen the setting `filter` of the server"] {
        assert!(detail.contains(part), "no {part:?} in {detail}");
    }
    let (status, detail) = problem(server, &of_token("max_height=240", ""));
    assert!(status == 400 && detail.contains("token: parameter \"max_height\""), "{status} {detail}");
}
