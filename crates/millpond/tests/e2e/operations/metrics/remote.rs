//! An origin by HTTP, the cache on the disk, and sibling caches.

use super::origin::{Manner, Origin, noise};
use super::{By, watch::Watch};
use crate::storage::stripe::units;
use crate::support::{Server, free_port, get, read_response, small_disk::SmallDisk};
use std::{
    fs::OpenOptions,
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

/// Bytes of each large file: several times the server's memory and disk.
const SIZE: usize = 12 << 20;
const LARGE: [&str; 5] = ["a.bin", "b.bin", "c.bin", "d.bin", "e.bin"];

fn origin() -> Origin {
    let film = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/360p.mp4");
    let large = LARGE.map(|name| (name.to_owned(), noise(SIZE)));
    let small = ["small.bin", "other.bin"].map(|name| (name.to_owned(), noise(100_000)));
    let small = small.into_iter().chain([("film.mp4".to_owned(), std::fs::read(film).unwrap())]);
    Origin::start(large.into_iter().chain(small))
}

fn slabs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { slabs(&path) } else { vec![path] })
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slab-")))
        .collect()
}

#[test]
fn viewers() {
    let origin = origin();
    let url = origin.url();
    let server = Server::start(&[&url, "--prefetch", "window", "--slice", "16KiB", "--segment-duration", "2s"]);
    let watch = Watch::begin(&server);
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream);
    for path in ["v1/index.m3u8", "v1/init.mp4", "v1/1.m4s", "v1/2.m4s", "v1/3.m4s"] {
        let head = format!("GET /film.mp4/{path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: player\r\n\r\n");
        reader.get_mut().write_all(head.as_bytes()).unwrap();
        assert_eq!(read_response(&mut reader, false).status, 200);
        std::thread::sleep(Duration::from_millis(100));
    }
    watch.until("millpond_prefetched_unused_bytes", || ());
    watch.end(By::Viewers, &server);
}

#[test]
fn an_origin_and_the_disk() {
    let origin = origin();
    let cache = tempfile::tempdir().unwrap();
    let sizes = ["--memory", "8MiB", "--cache-size", "16MiB", "--slice", "256KiB"];
    let url = origin.url();
    let args = [&[url.as_str(), "--cache", cache.path().to_str().unwrap()][..], &sizes].concat();
    // Bytes that an earlier server has written are compared before their first use.
    let before = Server::start(&args);
    for _ in 0..500 {
        before.get("small.bin");
        if before.metric("millpond_disk_writes_total", "") >= 1.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(before);
    let server = &Server::start(&args);
    let watch = Watch::begin(server);
    watch.until("millpond_disk_verified_total", || drop(server.get("small.bin")));
    // Several ask for the same that comes slowly.
    origin.behaves(Manner::Slow(Duration::from_millis(300)));
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| server.get("other.bin")))));
    origin.behaves(Manner::CutsOnce);
    assert_eq!(server.get("a.bin").body.len(), SIZE, "asked for again from where it broke off");
    // More than memory and disk hold, faster than it can be written.
    let all = || {
        std::thread::scope(|scope| {
            for name in LARGE {
                scope.spawn(move || assert_eq!(server.get(name).body.len(), SIZE));
            }
        });
    };
    watch.until("millpond_disk_writes_passed_over_total", all);
    watch.until("millpond_memory_evictions_total", all);
    watch.until("millpond_disk_evictions_total", all);
    // The second reader of a file finds its slices in memory, while they are not written yet.
    watch.until("millpond_slice_memory_hit_bytes_total", || {
        LARGE.iter().for_each(|name| (0..2).for_each(|_| drop(server.get(name))));
    });
    // A reader of what lies on the disk that is in no hurry: its slice is pinned.
    watch.until("millpond_disk_pinned_bytes", || {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        write!(stream, "GET /b.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 1000]);
        std::thread::sleep(Duration::from_millis(100));
    });
    watch.until("millpond_disk_hits_total", || drop(server.get("b.bin")));
    watch.until("millpond_disk_damaged_total", || {
        for slab in slabs(cache.path()) {
            // The last bytes of every slab.
            let file = OpenOptions::new().write(true).open(slab).unwrap();
            file.set_len(70_000).unwrap();
        }
        server.get("b.bin");
    });
    // An object that was opened a while ago is served while the origin fails.
    assert_eq!(server.get("small.bin").status, 200);
    origin.behaves(Manner::Fails);
    watch.until("millpond_stale_opens_total", || {
        std::thread::sleep(Duration::from_millis(200));
        server.get("small.bin");
    });
    watch.end(By::Remote, server);
}

#[test]
fn siblings() {
    let origin = origin();
    let first = Server::start(&[&format!("films={}", origin.url())]);
    assert_eq!(first.get("films/a.bin").body.len(), SIZE);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("second.toml");
    let (port, gone) = (first.port, free_port());
    let siblings = format!("\"http://127.0.0.1:{port}/films\", \"http://127.0.0.1:{gone}/\"");
    let text =
        format!("[places.films]\nurl = \"{}\"\nsiblings = [{siblings}]\nsibling-timeout = \"1s\"\n", origin.url());
    std::fs::write(&config, text).unwrap();
    let second = Server::start(&["--config", config.to_str().unwrap()]);
    let watch = Watch::begin(&second);
    assert_eq!(second.get("films/a.bin").body.len(), SIZE);
    assert_eq!(second.get("films/b.bin").body.len(), SIZE, "no sibling has it");
    drop(first);
    watch.until("millpond_sibling_failures_total", || drop(second.get("films/c.bin")));
    watch.end(By::Siblings, &second);
}

#[test]
fn stripes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    ["place", "a", "b"].iter().for_each(|name| std::fs::create_dir(path(name)).unwrap());
    std::fs::write(path("large.bin"), noise(SIZE)).unwrap();
    let (over, map) = (format!("a={},b={}", path("a"), path("b")), path("place/large.bin.stripe"));
    let args = ["stripe", &path("large.bin"), "--over", &over, "--copies", "2", "--map", &map];
    assert!(std::process::Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).status().unwrap().success());
    let good: Vec<_> = units(&path("a")).into_iter().filter(|(name, _)| !name.ends_with("/sums")).collect();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join("a").join(name), bytes).unwrap();
    for (name, bytes) in &good {
        write(name, &vec![1; bytes.len()]);
    }
    let web = Origin::start(units(&path("b")));
    let over = format!("\"a={}\", \"b={}\"", path("a"), web.url());
    let text = format!("[places.films]\nurl = {:?}\nstripe-over = [{over}]\nstripe-repair = true\n", path("place"));
    std::fs::write(path("config.toml"), text).unwrap();
    let server = Server::start(&["--config", &path("config.toml"), "--memory", "8MiB", "--cache-size", "0"]);
    let watch = Watch::begin(&server);
    watch.until("millpond_stripe_requests_in_flight", || drop(server.get("films/large.bin")));
    watch.until("millpond_stripe_repaired_units_total", || assert_eq!(server.get("films/large.bin").body.len(), SIZE));
    good.iter().for_each(|(name, bytes)| write(name, bytes));
    web.behaves(Manner::Fails);
    watch.until("millpond_stripe_resting", || assert_eq!(server.get("films/large.bin").body.len(), SIZE));
    watch.end(By::Stripes, &server);
}

#[test]
fn a_full_disk() {
    let Some(disk) = SmallDisk::mount() else { return };
    let origin = origin();
    let cache = disk.0.path().to_str().unwrap();
    let server = Server::start(&[&origin.url(), "--cache", cache, "--cache-size", "100MiB"]);
    let watch = Watch::begin(&server);
    watch.until("millpond_disk_failed", || drop(get(server.port, "/a.bin", &[])));
    watch.end(By::FullDisk, &server);
}
