//! The disk cache: what outlives a kill, what an operator sees and steers, what siblings give.

use crate::support::{
    self, Server,
    api::{body, send},
    get, origins,
    small_disk::SmallDisk,
};
use std::{path::Path, process::Command, time::Duration};

const SIZE: usize = 5 << 20;

/// An origin with one large file, and what is in it.
fn origin(folder: &Path, scratch: &Path) -> Option<(support::Running, u16, Vec<u8>)> {
    let mut seed = 1_u64;
    let bytes: Vec<u8> = (0..SIZE)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .collect();
    std::fs::write(folder.join("film.bin"), &bytes).unwrap();
    let (running, port) = origins::nginx(folder, scratch, "")?;
    Some((running, port, bytes))
}

/// Bytes of bodies that the origin sent since it was started.
fn sent(scratch: &Path) -> u64 {
    let text = origins::settled_log(scratch);
    let film = text.lines().filter(|line| line.contains("film.bin"));
    film.filter_map(|line| line.rsplit('|').next()?.parse::<u64>().ok()).sum()
}

/// Waits until the disk has as many slices, then for what is left to be told.
fn written(server: &Server, slices: f64) {
    for _ in 0..3_000 {
        if server.metric("millpond_disk_slices", "") >= slices {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} slices on the disk", server.metric("millpond_disk_slices", ""));
}

fn millpond(server: &Server, args: &[&str]) -> String {
    let admin = format!("127.0.0.1:{}", server.admin);
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).args(["--admin", &admin]).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn slices_outlive_a_kill_and_are_asked_for_once() {
    let (folder, scratch, cache) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let place = format!("http://127.0.0.1:{port}");
    let start = || Server::start(&[&place, "--cache", cache.path().to_str().unwrap()]);
    let server = start();
    assert!(server.get("film.bin").body == bytes);
    written(&server, 10.0);
    let before = sent(scratch.path());
    assert_eq!(before, SIZE as u64, "each byte once");
    // Killed while it serves.
    let client = std::thread::spawn({
        let port = server.port;
        move || std::panic::catch_unwind(|| (0..1000).for_each(|_| drop(get(port, "/film.bin", &[])))).is_err()
    });
    std::thread::sleep(Duration::from_millis(50));
    drop(server);
    assert!(client.join().unwrap());
    let server = start();
    assert!(server.get("film.bin").body == bytes);
    let range = get(server.port, "/film.bin", &[("Range", "bytes=1000000-2999999")]);
    assert!(range.status == 206 && range.body == bytes[1_000_000..3_000_000]);
    // To open the object, its first slice is asked for as the proof that it is the same version.
    assert!(sent(scratch.path()) - before <= 512 << 10, "{}", sent(scratch.path()) - before);
    assert!(server.metric("millpond_disk_hits_total", "") >= 10.0);
}

#[test]
fn an_operator_sees_and_steers() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, _)) = origin(folder.path(), scratch.path()) else { return };
    let server = Server::start(&[&format!("films=http://127.0.0.1:{port}")]);
    let explained = millpond(&server, &["explain", "films/film.bin"]);
    assert!(explained.contains(&format!("{SIZE} bytes")) && explained.contains("origin "), "{explained}");
    millpond(&server, &["cache", "warm", "films/film.bin"]);
    written(&server, 10.0);
    let listed = millpond(&server, &["cache", "ls"]);
    assert!(listed.lines().any(|line| line.contains("films/film.bin") && line.contains(" 10 ")), "{listed}");
    let explained = millpond(&server, &["explain", &server.url("films/film.bin")]);
    assert!(explained.contains("disk") && explained.contains("0 bytes would be asked"), "{explained}");
    let pinned = millpond(&server, &["cache", "pin", "films/film.bin"]);
    assert!(pinned.contains(&format!("\"pinned-bytes\": {}", 10 * (512 << 10))), "{pinned}");
    let small = millpond(&server, &["cache", "set", "--size", "1MiB", "--policy", "lru"]);
    assert!(small.contains("\"policy\": \"lru\"") && small.contains("\"slices\": 10"), "pinned ones stay: {small}");
    millpond(&server, &["cache", "unpin", "films/film.bin"]);
    let small = millpond(&server, &["cache", "set", "--size", "1MiB"]);
    assert!(small.contains("\"slices\": 2"), "{small}");
    assert!(millpond(&server, &["cache", "purge", "films/film.bin"]).contains("\"purged-slices\": 2"));
    assert!(!millpond(&server, &["cache", "ls"]).contains("film.bin"));

    // Paths are as in URLs.
    std::fs::write(folder.path().join("a b.bin"), [7; 1000]).unwrap();
    assert_eq!(server.get("films/a%20b.bin").status, 200);
    for action in ["warm", "pin"] {
        let told = millpond(&server, &["cache", action, "films/a%20b.bin"]);
        assert!(told.contains("\"objects\": 1"), "{action}: {told}");
    }
    let mapped = millpond(&server, &["cache", "map", "films/a%20b.bin"]);
    assert!(mapped.contains("a b.bin: 1000 bytes"), "{mapped}");
    let purged = millpond(&server, &["cache", "purge", "films/a%20b.bin"]);
    assert!(purged.contains("\"purged-slices\": ") && !purged.contains("\"purged-slices\": 0"), "{purged}");
    let foreign = send(server.admin, "POST", "cache/purge", &body("path=films"), &[("Origin", "http://x")]);
    assert_eq!(foreign.status, 403);
}

/// The pinned bytes, once there are `least` and their number has stayed for two seconds: slices that are written or read count too.
fn pinned_bytes(server: &Server, least: f64) -> f64 {
    let count = || server.metric("millpond_disk_pinned_bytes", "");
    let (mut last, mut still) = (count(), 0);
    for _ in 0..3000 {
        std::thread::sleep(Duration::from_millis(20));
        let now = count();
        still = if now == last { still + 1 } else { 0 };
        last = now;
        if still >= 100 && last >= least {
            return last;
        }
    }
    panic!("{last} pinned bytes")
}

#[test]
fn the_beginning_of_a_title_is_pinned_with_its_index() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let encode = |name: &str, flags: &str| {
        let path = folder.path().join(name);
        let input = ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=60"];
        let codec = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-b:v", "2M", "-minrate", "2M"];
        let rate = ["-maxrate", "2M", "-bufsize", "1M", "-nal-hrd", "cbr", "-movflags", flags];
        let status = Command::new("ffmpeg").args(input).args(codec).args(rate).arg(&path).status().unwrap();
        assert!(status.success());
        std::fs::metadata(path).unwrap().len()
    };
    // The index of the one is before its media, that of the other behind.
    let length = encode("a.mp4", "faststart");
    encode("b.mp4", "0");
    assert!(length > 12 << 20, "{length}");
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = Server::start(&[&format!("films=http://127.0.0.1:{port}")]);
    let pinned = millpond(&server, &["cache", "pin", "--first", "10s", "films/a.mp4", "films/b.mp4"]);
    // Of each 10 s of 2 Mbit/s; of the second one the last slice too.
    assert_eq!(pinned.matches("\"objects\": 1").count(), 2, "{pinned}");
    let is_listed = |path: &str| {
        let listed: Vec<String> = millpond(&server, &["cache", "ls"]).lines().map(str::to_owned).collect();
        let line = listed.iter().find(|line| line.ends_with(path)).unwrap_or_else(|| panic!("{listed:?}"));
        assert!(line.contains(" pin "), "{line}");
    };
    let slice = f64::from(512 << 10);
    let expected = 2.0 * (10.0 * 250_000.0 / slice).ceil() + 1.0;
    let kept = pinned_bytes(&server, (expected - 2.0) * slice) / slice;
    assert!((expected - 2.0..=expected + 3.0).contains(&kept), "{kept} slices, about {expected} expected");
    is_listed("films/a.mp4");
    is_listed("films/b.mp4");
    // The rest of a title leaves, its beginning stays.
    assert_eq!(server.get("films/a.mp4").body.len() as u64, length);
    millpond(&server, &["cache", "set", "--size", "1MiB"]);
    assert_eq!(pinned_bytes(&server, 0.0) / slice, kept);
    millpond(&server, &["cache", "unpin", "films/a.mp4", "films/b.mp4"]);
    assert_eq!(pinned_bytes(&server, 0.0), 0.0);
    let refused = send(server.admin, "POST", "cache/pins", &body("path=films/a.mp4&first=soon"), &[]);
    assert_eq!(refused.status, 400);
    let none = send(server.admin, "POST", "cache/pins", &body("path=films/c.mp4&first=5s"), &[]);
    assert_eq!(none.status, 404, "{}", none.text());
}

#[test]
fn a_miss_asks_a_sibling_before_the_origin() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let place = format!("http://127.0.0.1:{port}");
    let first = Server::start(&[&format!("films={place}")]);
    assert!(first.get("films/film.bin").body == bytes);
    let asked = sent(scratch.path());
    let config = scratch.path().join("second.toml");
    let siblings = format!("\"http://127.0.0.1:{}/films\", \"http://127.0.0.1:1/\"", first.port);
    let text = format!("[places.films]\nurl = \"{place}\"\nsiblings = [{siblings}]\nsibling-timeout = \"60s\"\n");
    std::fs::write(&config, text).unwrap();
    let second = Server::start(&["--config", config.to_str().unwrap()]);
    assert!(second.get("films/film.bin").body == bytes);
    let more = sent(scratch.path()) - asked;
    assert!(more <= 512 << 10, "the origin sent {more} bytes more: the first slice says which version there is");
    assert!(second.metric("millpond_sibling_hits_total", "") >= 1.0);
    // The sibling fetches nothing that it lacks.
    std::fs::write(folder.path().join("other.bin"), &bytes).unwrap();
    assert!(second.get("films/other.bin").body == bytes);
    let log = std::fs::read_to_string(scratch.path().join("access.log")).unwrap();
    let requests = log.lines().filter(|line| line.contains("other.bin")).count();
    assert!(second.metric("millpond_sibling_misses_total", "") >= 1.0);
    let began = std::time::Instant::now();
    while first.metric("millpond_disk_writes_total", "") != first.metric("millpond_disk_slices", "") {
        assert!(began.elapsed() < Duration::from_secs(60), "more was written than is kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(requests <= 3, "{requests}");
    // A sibling that is gone costs nothing but its first failure.
    drop(first);
    std::fs::write(folder.path().join("third.bin"), &bytes).unwrap();
    assert!(second.get("films/third.bin").body == bytes);
}

#[test]
fn nginx_is_a_sibling_too() {
    let (folder, scratch, theirs) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let proxy = format!("location /films/ {{ proxy_pass http://127.0.0.1:{port}/; }}");
    let Some((_proxy, sibling)) = origins::nginx(theirs.path(), theirs.path(), &proxy) else { return };
    let config = scratch.path().join("a.toml");
    let text = format!(
        "[places.films]\nurl = \"http://127.0.0.1:{port}\"\nsiblings = [\"http://127.0.0.1:{sibling}/films\"]\nsibling-timeout = \"60s\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap()]);
    assert!(server.get("films/film.bin").body == bytes);
    assert!(server.metric("millpond_sibling_hits_total", "") >= 1.0);
}

#[test]
fn squid_is_a_sibling_too() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let Some((_proxy, sibling)) = origins::squid(port, scratch.path()) else { return };
    assert!(get(sibling, "/film.bin", &[]).body == bytes, "squid has it now");
    // A busy squid notes a moment later that it has all of it.
    let began = std::time::Instant::now();
    while get(sibling, "/film.bin", &[("Cache-Control", "only-if-cached"), ("Range", "bytes=1000000-1000009")]).status
        != 206
    {
        assert!(began.elapsed() < Duration::from_secs(60), "squid keeps no copy");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A busy origin logs a moment later what it has sent.
    while sent(scratch.path()) < bytes.len() as u64 {
        assert!(began.elapsed() < Duration::from_secs(60), "the origin has sent nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    let asked = sent(scratch.path());
    let config = scratch.path().join("a.toml");
    let text = format!(
        "[places.films]\nurl = \"http://127.0.0.1:{port}\"\nsiblings = [\"http://127.0.0.1:{sibling}\"]\nsibling-timeout = \"60s\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap()]);
    assert!(server.get("films/film.bin").body == bytes);
    let more = sent(scratch.path()) - asked;
    assert!(more <= 512 << 10, "the origin sent {more} bytes more: the first slice says which version there is");
    assert!(server.metric("millpond_sibling_hits_total", "") >= 1.0);
    // Squid fetches nothing that it lacks for a sibling.
    std::fs::write(folder.path().join("other.bin"), &bytes).unwrap();
    assert!(server.get("films/other.bin").body == bytes);
    let log = std::fs::read_to_string(scratch.path().join("squid-access.log")).unwrap();
    assert!(log.lines().filter(|line| line.contains("other.bin")).all(|line| line.contains("/504 ")), "{log}");
}

#[test]
fn caches_that_lead_in_a_circle_are_told_so() {
    let port = support::free_port();
    let place = format!("http://127.0.0.1:{port}");
    let server = Server::start_at(port, &[&place]);
    let reply = server.get("film.bin");
    assert!(matches!(reply.status, 502 | 508), "{}", reply.status);
    assert!(
        server.log_text().contains("508") || server.log_text().contains("been here before"),
        "{}",
        server.log_text()
    );
}

#[test]
fn a_thousand_viewers_of_a_cold_object_are_one_request() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}")]);
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert!(server.get("film.bin").body == bytes);
                }
            });
        }
    });
    assert_eq!(sent(scratch.path()), SIZE as u64);
}

#[test]
fn a_full_disk_is_gone_without() {
    let Some(disk) = SmallDisk::mount() else { return };
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let place = format!("http://127.0.0.1:{port}");
    let cache = disk.0.path().to_str().unwrap();
    let server = Server::start(&[&place, "--cache", cache, "--cache-size", "100MiB"]);
    for _ in 0..3 {
        assert!(server.get("film.bin").body == bytes);
    }
    let began = std::time::Instant::now();
    while server.metric("millpond_disk_failed", "") != 1.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.metric("millpond_disk_errors_total", "") >= 1.0);
    assert!(server.log_text().contains("No space left on device"), "{}", server.log_text());
    assert_eq!(sent(scratch.path()), SIZE as u64, "memory has it");
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let (folder, scratch, cache) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some((_origin, port, bytes)) = origin(folder.path(), scratch.path()) else { return };
    let place = format!("http://127.0.0.1:{port}");
    let start = || Server::start(&[&place, "--cache", cache.path().to_str().unwrap()]);
    let first = start();
    // It has the folder once it serves.
    assert!(first.get("film.bin").body == bytes);
    let second = start();
    assert!(second.get("film.bin").body == bytes);
    assert!(second.log_text().contains("another server keeps its slices there"), "{}", second.log_text());
}
