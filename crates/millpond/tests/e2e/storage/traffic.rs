//! Requests to the storage: each byte once, at most one request a segment, few round trips to the first picture.

use crate::support::{
    self, Server, clips,
    origins::{self, Kind, Stack},
};
use std::path::Path;

/// Requests in nginx's log: (path, range, status, bytes).
fn origin_log(stack: &Stack) -> Vec<(String, String, u16, u64)> {
    let text = origins::settled_log(stack.scratch.path());
    text.lines()
        .map(|l| {
            let f: Vec<&str> = l.split('|').collect();
            (f[0].to_owned(), f[1].to_owned(), f[2].parse().unwrap(), f[3].parse().unwrap())
        })
        .collect()
}

fn big_clip(folder: &Path, name: &str, extra: &str) {
    clips::make(
        &folder.join(name),
        &format!(
            "-f lavfi -i testsrc2=size=640x360:rate=25:duration=60 -f lavfi -i sine=frequency=440:sample_rate=48000:duration=60 -c:v libx264 -preset ultrafast -g 50 -b:v 2500k -minrate 2500k -maxrate 2500k -bufsize 2500k -x264-params nal-hrd=cbr:keyint=50 -c:a aac -b:a 96k {extra}"
        ),
    );
}

/// Paths of a title's segments, as a player asks for them: picture and sound in turn.
fn segments(server: &Server, asset: &str) -> Vec<String> {
    let of = |track: &str| -> Vec<String> {
        let text = server.get(&format!("{asset}/{track}/index.m3u8")).text();
        text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(|l| format!("{asset}/{track}/{l}")).collect()
    };
    let (video, audio) = (of("v1"), of("a1"));
    let mut all = vec![format!("{asset}/v1/init.mp4"), format!("{asset}/a1/init.mp4")];
    for n in 0..video.len().max(audio.len()) {
        all.extend(video.get(n).cloned());
        all.extend(audio.get(n).cloned());
    }
    all
}

#[test]
fn a_title_played_through_reads_each_byte_once() {
    if !support::have("ffmpeg") || !support::have("nginx") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traffic-1");
    std::fs::create_dir_all(&folder).unwrap();
    big_clip(&folder, "plain.mp4", "");
    big_clip(&folder, "fragmented.mp4", "-movflags +frag_keyframe+empty_moov+default_base_moof");
    let cache = tempfile::tempdir().unwrap();
    for asset in ["plain.mp4", "fragmented.mp4"] {
        // The first server leaves the index on disk; the second has it warm and the media cold.
        let keep = cache.path().to_str().unwrap();
        let stack = origins::start(Kind::Nginx, &folder, &["--segment-duration", "4", "--cache", keep]).unwrap();
        assert_eq!(stack.server.get(&format!("{asset}/index.m3u8")).status, 200);
        drop(stack);
        let stack = origins::start(Kind::Nginx, &folder, &["--segment-duration", "4", "--cache", keep]).unwrap();
        let paths = segments(&stack.server, asset);
        let before = origin_log(&stack).len();
        let mut out = 0;
        for path in &paths {
            let reply = stack.server.get(path);
            assert_eq!(reply.status, 200, "{path}");
            out += reply.body.len() as u64;
        }
        let log = origin_log(&stack);
        let bytes_in: u64 = log.iter().map(|l| l.3).sum();
        let ratio = out as f64 / bytes_in as f64;
        println!(
            "{asset}: {out} bytes out, {bytes_in} in, ratio {ratio:.4}, {} requests for {} segments",
            log.len() - before,
            paths.len() - 2
        );
        assert!(ratio >= 0.99, "{asset}: {ratio}");
        assert!(log.len() - before <= paths.len() - 2, "{asset}: more requests than segments");
        assert_disjoint(&log);
    }
}

/// No byte was asked for twice.
fn assert_disjoint(log: &[(String, String, u16, u64)]) {
    let mut ranges: Vec<(u64, u64)> = log
        .iter()
        .filter(|l| l.2 == 206)
        .filter_map(|l| {
            let (first, last) = l.1.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].1 < pair[1].0, "asked twice: {pair:?}");
    }
}

#[test]
fn a_hundred_viewers_at_once_ask_for_each_byte_once() {
    if !support::have("ffmpeg") || !support::have("nginx") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traffic-1");
    std::fs::create_dir_all(&folder).unwrap();
    big_clip(&folder, "plain.mp4", "");
    // Reading ahead of slow viewers would be requests of its own.
    let args = ["--segment-duration", "4", "--prefetch", "on-demand"];
    let stack = origins::start(Kind::Nginx, &folder, &args).unwrap();
    let paths = segments(&stack.server, "plain.mp4");
    let warm = origin_log(&stack).len();
    std::thread::scope(|scope| {
        for viewer in 0..100 {
            let (paths, server) = (&paths, &stack.server);
            scope.spawn(move || {
                for path in paths.iter().take(12) {
                    let reply = server.get(path);
                    assert_eq!(reply.status, 200, "viewer {viewer}: {path}");
                }
            });
        }
    });
    let log = origin_log(&stack);
    println!("{} requests to the origin for 100 viewers of 10 segments", log.len() - warm);
    assert!(log.len() - warm <= 10);
    assert_disjoint(&log[warm..]);
}

/// A film of two hours, made of one minute repeated; with its metadata first or last.
fn film(folder: &Path, name: &str, flags: &str) {
    clips::make(
        &folder.join("minute.mp4"),
        "-f lavfi -i testsrc2=size=160x90:rate=25:duration=60 -f lavfi -i sine=frequency=440:sample_rate=48000:duration=60 -c:v libx264 -preset ultrafast -bf 2 -g 100 -b:v 60k -c:a aac -b:a 64k",
    );
    std::fs::write(folder.join("list.txt"), "file minute.mp4\n".repeat(120)).unwrap();
    let list = folder.join("list.txt").display().to_string();
    clips::make(&folder.join(name), &format!("-f concat -i {list} -c copy {flags}"));
}

#[test]
fn the_first_manifest_of_a_long_film_takes_three_requests_and_its_index_little_memory() {
    if !support::have("ffmpeg") || !support::have("nginx") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("film-1");
    std::fs::create_dir_all(&folder).unwrap();
    film(&folder, "first.mp4", "-movflags +faststart");
    film(&folder, "last.mp4", "");
    let stack = origins::start(Kind::Nginx, &folder, &[]).unwrap();
    for name in ["first.mp4", "last.mp4"] {
        let of_it = |log: &[(String, String, u16, u64)]| log.iter().filter(|l| l.0 == format!("/{name}")).count();
        let started = std::time::Instant::now();
        let playlist = stack.server.get(&format!("{name}/v1/index.m3u8"));
        let took = started.elapsed();
        assert!(playlist.text().matches(".m4s").count() >= 1790, "{}", playlist.text().len());
        let requests = of_it(&origin_log(&stack));
        println!("{name}: first playlist after {requests} requests, {} ms", took.as_millis());
        assert!(requests <= 3, "{name}: {requests} requests");
        let probe = std::process::Command::new(env!("CARGO_BIN_EXE_millpond"))
            .args(["probe", "--json", folder.join(name).to_str().unwrap()])
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&probe.stdout).unwrap();
        let memory = report["index"]["bytes-in-memory"].as_u64().unwrap();
        println!("{name}: index of {memory} bytes in memory");
        assert!(memory <= 2_000_000, "{memory}");
        assert!(report["index"]["round-trips"].as_u64().unwrap() <= 2);
    }
}
