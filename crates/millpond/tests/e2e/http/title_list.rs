//! Lists of titles for players: M3U and XSPF, read by others.

use crate::support::{self, Response, Server, clips, get};
use std::{
    collections::BTreeMap,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// Reads XSPF as XML, and prints a line of JSON: names by address.
const XSPF_READER: &str = r#"
import json, sys, xml.etree.ElementTree as tree
space = "{http://xspf.org/ns/0/}"
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == space + "playlist" and root.get("version") == "1", root.tag
tracks = root.find(space + "trackList").findall(space + "track")
print(json.dumps({t.find(space + "location").text: t.find(space + "title").text for t in tracks}))
"#;

/// Names that are hard for lists, below the place, and what lists show of them.
const NAMES: [(&str, &str); 4] = [
    ("one, two \"three\".mp4", "one, two \"three\""),
    ("100%25 & <more>.mp4", "100%25 & <more>"),
    ("new\nline.mp4", "new line"),
    ("Shows/Season 1/E01.mp4", "Shows/Season 1/E01"),
];

fn serve(more: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let clip = clips::folder().join("h264_aac.mp4");
    let copy = |to: &Path| {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&clip, to).unwrap();
    };
    for (name, _) in NAMES {
        copy(&folder.path().join(name));
    }
    for name in ["Shows/Season 1/E02_360p.mp4", "Shows/Season 1/E02_720p.mp4"] {
        copy(&folder.path().join(name));
    }
    let films = format!("films={}", folder.path().display());
    let server = Server::start(&[&[&*films], more].concat());
    (folder, server)
}

/// Gets a list, once all folders are read.
fn list(server: &Server, target: &str, headers: &[(&str, &str)]) -> Response {
    let began = Instant::now();
    loop {
        let reply = get(server.port, target, headers);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        if !reply.text().contains("Not complete") {
            return reply;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Names by address of an M3U.
fn entries(text: &str) -> BTreeMap<String, String> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("#EXTM3U"), "{text}");
    let lines: Vec<&str> = lines.collect();
    let pair = |pair: &[&str]| match pair {
        [name, address] => ((*address).to_owned(), name.strip_prefix("#EXTINF:-1,").expect(text).to_owned()),
        _ => panic!("a line without its address: {text}"),
    };
    lines.chunks(2).map(pair).collect()
}

/// The address on this machine of one for the host of the tests' requests.
fn here(server: &Server, address: &str) -> String {
    server.url(address.strip_prefix("http://localhost/").expect(address))
}

#[test]
fn players_open_all_titles_of_a_list() {
    if !support::have("ffprobe") || !support::have("python3") {
        return;
    }
    let (_folder, server) = serve(&[]);
    let m3u = list(&server, "/.millpond/all.m3u", &[]);
    assert_eq!(m3u.header("content-type"), Some("audio/x-mpegurl"));
    let found = entries(&m3u.text());
    let shown: Vec<&str> = found.values().map(String::as_str).collect();
    for (_, name) in NAMES {
        assert!(shown.contains(&&*format!("films/{name}")), "{name:?}: {found:?}");
    }
    assert!(shown.contains(&"films/Shows/Season 1/E02"), "{found:?}");
    assert_eq!(found.len(), NAMES.len() + 1, "each title once, and not its renditions: {found:?}");
    for address in found.keys() {
        let output = Command::new("ffprobe")
            .args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &here(&server, address)])
            .output()
            .unwrap();
        let codecs = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(codecs.contains("h264") && codecs.contains("aac"), "{address}: {codecs} {output:?}");
    }
    // XSPF says the same.
    let xspf = list(&server, "/.millpond/all.xspf", &[]);
    assert_eq!(xspf.header("content-type"), Some("application/xspf+xml"));
    let file = server.cache.path().join("all.xspf");
    std::fs::write(&file, &xspf.body).unwrap();
    let input = std::fs::File::open(&file).unwrap();
    let output = Command::new("python3").args(["-c", XSPF_READER]).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read, found);
}

#[test]
fn a_list_of_a_folder_has_its_titles_only() {
    let (_folder, server) = serve(&[]);
    for folder in ["films/Shows", "/films/Shows/", "films%2FShows"] {
        let found = entries(&list(&server, &format!("/.millpond/all.m3u?folder={folder}"), &[]).text());
        let names: Vec<&str> = found.values().map(String::as_str).collect();
        assert_eq!(names, ["Season 1/E01", "Season 1/E02"], "{folder}");
    }
    for folder in ["films/none", "nothing"] {
        let reply = server.get(&format!(".millpond/all.m3u?folder={folder}"));
        assert_eq!(reply.status, 404, "{folder}: {}", reply.text());
    }
}

#[test]
fn addresses_are_those_that_the_client_reaches() {
    let (_folder, server) = serve(&["--trusted-proxies", "127.0.0.1"]);
    let fields = [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "https")];
    let found = entries(&list(&server, "/.millpond/all.m3u?folder=films", &fields).text());
    assert!(
        !found.is_empty() && found.keys().all(|address| address.starts_with("https://localhost/films/")),
        "{found:?}"
    );
}
