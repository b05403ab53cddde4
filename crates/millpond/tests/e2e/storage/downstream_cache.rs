//! A second cache behind Millpond, as a CDN is one: nothing stays there, or on our disk, that the origin forbids.

use crate::support::{Response, Running, Server, clips, get, origins};
use std::path::{Path, PathBuf};

/// Header fields of the origin for each folder.
const ORIGIN: &str = r#"
    location /private/ { add_header Cache-Control "private, max-age=7"; }
    location /secret/ { add_header Cache-Control "no-store"; }
    location /short/ { add_header Cache-Control "public, max-age=50, must-revalidate"; add_header Age 20; }
    location /asked/ { add_header Cache-Control "no-cache"; }
    location /split/ { add_header Cache-Control "max-age=900, s-maxage=40"; }
    location ~ \.vtt$ { add_header Cache-Control "private, max-age=30"; }
    location /silent/ { }
    location /listed/ { if ($request_uri ~ "/$") { add_header Cache-Control "private"; } }
    location /named/ {
        types { } default_type "application/x-own; charset=x";
        add_header Content-Disposition 'attachment; filename="own.mp4"';
        add_header Content-Language "de, en";
        add_header ETag 'W/"own"'; etag off;
    }
"#;

struct Chain {
    server: Server,
    cdn: u16,
    _folder: tempfile::TempDir,
    _scratch: tempfile::TempDir,
    _running: [Running; 2],
}

impl Chain {
    fn start() -> Option<Self> {
        let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clip = clips::folder().join("h264_aac.mp4");
        for name in ["private", "secret", "short", "asked", "split", "mixed", "silent", "listed", "named"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::copy(&clip, folder.path().join(name).join("a.mp4")).unwrap();
        }
        let cues = "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n";
        std::fs::write(folder.path().join("mixed/a.en.vtt"), cues).unwrap();
        let (origin, port) = origins::nginx(folder.path(), scratch.path(), ORIGIN)?;
        let server = Server::start(&[&format!("http://127.0.0.1:{port}")]);
        let (behind, cdn) = origins::cdn(server.port, scratch.path())?;
        Some(Self { server, cdn, _folder: folder, _scratch: scratch, _running: [origin, behind] })
    }

    /// The second of two replies by way of the cache.
    fn twice(&self, path: &str) -> Response {
        let first = get(self.cdn, path, &[]);
        assert_eq!(first.status, 200, "{path}: {}", String::from_utf8_lossy(&first.body));
        let second = get(self.cdn, path, &[]);
        assert!(first.body == second.body, "{path}");
        second
    }
}

/// A file, and all kinds of what is made of it.
fn paths(folder: &str) -> Vec<String> {
    [
        "a.mp4",
        "a.mp4/index.m3u8",
        "a.mp4/index.mpd",
        "a.mp4/v1/index.m3u8",
        "a.mp4/v1/init.mp4",
        "a.mp4/v1/1.m4s",
        "a.mp4/ts/v1/1.ts",
    ]
    .iter()
    .map(|path| format!("/{folder}/{path}"))
    .collect()
}

fn seconds(field: &str, directive: &str) -> Option<u64> {
    field.split(", ").find_map(|part| part.strip_prefix(directive)?.strip_prefix('=')?.parse().ok())
}

#[test]
fn a_cache_behind_keeps_what_it_may_and_no_more() {
    let Some(chain) = Chain::start() else { return };
    for (folder, kept) in
        [("silent", true), ("short", true), ("split", true), ("private", false), ("secret", false), ("asked", false)]
    {
        for path in paths(folder) {
            let reply = chain.twice(&path);
            let field = reply.header("cache-control").unwrap().to_owned();
            assert_eq!(reply.header("x-cache"), Some(if kept { "HIT" } else { "MISS" }), "{path}: {field}");
            let max_age = seconds(&field, "max-age");
            match folder {
                "silent" => assert!(field.starts_with("public, max-age="), "{path}: {field}"),
                // Twenty seconds old when it came.
                "short" => assert!(max_age <= Some(30) && field.ends_with("must-revalidate"), "{path}: {field}"),
                "split" => assert!(seconds(&field, "s-maxage") <= Some(40) && max_age <= Some(900), "{path}: {field}"),
                "private" => assert!(field.starts_with("private, max-age=") && max_age <= Some(7), "{path}: {field}"),
                "asked" => assert_eq!(field, "public, no-cache", "{path}"),
                _ => assert_eq!(field, "no-store", "{path}"),
            }
        }
    }
}

#[test]
fn the_strictest_part_of_an_asset_counts_for_all_of_it() {
    let Some(chain) = Chain::start() else { return };
    let file = chain.twice("/mixed/a.mp4");
    assert_eq!((file.header("cache-control"), file.header("x-cache")), (Some("public, max-age=60"), Some("HIT")));
    for path in ["/mixed/index.m3u8", "/mixed/index.mpd", "/mixed/v1/1.m4s", "/listed/index.m3u8", "/listed/v1/1.m4s"] {
        let reply = chain.twice(path);
        let field = reply.header("cache-control").unwrap();
        assert!(field.starts_with("private, max-age="), "{path}: {field}");
        assert!(seconds(field, "max-age") <= Some(30) || path.starts_with("/listed"), "{path}: {field}");
        assert_eq!(reply.header("x-cache"), Some("MISS"), "{path}");
    }
}

#[test]
fn a_file_keeps_what_its_origin_says_of_it() {
    let Some(chain) = Chain::start() else { return };
    let reply = chain.server.get("named/a.mp4");
    for (name, value) in [
        ("content-type", "application/x-own; charset=x"),
        ("content-disposition", "attachment; filename=\"own.mp4\""),
        ("content-language", "de, en"),
        ("etag", "W/\"own\""),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    assert!(reply.header("last-modified").is_some());
    let same = get(chain.server.port, "/named/a.mp4", &[("If-None-Match", "W/\"own\"")]);
    assert_eq!(same.status, 304);
    let silent = chain.server.get("silent/a.mp4");
    assert_eq!(silent.header("content-type"), Some("video/mp4"));
    assert!(silent.header("etag").is_some_and(|etag| etag.starts_with('"')));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files without a name that a server has in its cache folder.
fn unnamed(server: &Server) -> usize {
    let folder = server.cache.path().canonicalize().unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.process.0.id())).unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets.filter(|file| file.starts_with(&folder) && file.to_string_lossy().ends_with("(deleted)")).count()
}

#[test]
fn nothing_that_must_not_be_stored_reaches_the_disk() {
    let Some(chain) = Chain::start() else { return };
    let on_disk = || {
        let names = files(chain.server.cache.path());
        let names = names.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("slab-") || name.ends_with(".index")).collect::<Vec<_>>()
    };
    let play = |folder| {
        for _ in 0..4 {
            paths(folder).iter().for_each(|path| assert_eq!(get(chain.server.port, path, &[]).status, 200, "{path}"));
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    };
    play("secret");
    assert_eq!(on_disk(), Vec::<String>::new());
    assert_eq!(unnamed(&chain.server), 0);
    assert_eq!(chain.server.metric("millpond_disk_slices", ""), 0.0);
    play("silent");
    assert!(on_disk().len() >= 2, "what may be stored is: {:?}", on_disk());
}
