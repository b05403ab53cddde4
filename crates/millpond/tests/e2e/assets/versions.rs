//! Files that are replaced: what a URL with a version stands for never changes, not in caches either.

use crate::support::{
    self, Response, Server, clips, get,
    origins::{self, Kind},
    request,
};
use std::{
    io::{BufReader, Read as _, Seek as _, Write as _},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

over_every_storage! {
    a_version_that_is_gone_is_not_found
}

/// The path that a relative reference leads to.
fn join(base: &str, reference: &str) -> String {
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    parts.extend(reference.split('/'));
    parts.join("/")
}

/// The URIs of a playlist or an MPD, its templates filled in with the first segment of `v1`.
fn uris(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '<', ' ']));
    let quoted = |name: &str| {
        text.split(&format!("{name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>()
    };
    let attributes = ["URI", "initialization", "media"].into_iter().flat_map(quoted);
    let all = lines.chain(attributes).map(|uri| uri.replace("$RepresentationID$", "v1").replace("$Number$", "1"));
    all.collect()
}

/// Everything below an asset that its playlists lead to, from any of them.
fn versioned(port: u16, asset: &str) -> Vec<String> {
    let mut all = Vec::new();
    for top in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
        let top = format!("/{asset}/{top}");
        for list in uris(&get(port, &top, &[]).text()) {
            let list = join(&top, &list);
            if list.ends_with(".m3u8") {
                let reply = get(port, &list, &[]);
                assert_eq!(reply.status, 200, "{list}");
                all.extend(uris(&reply.text()).iter().map(|uri| join(&list, uri)));
            }
            all.push(list);
        }
    }
    all.sort();
    all.dedup();
    all
}

fn cache_control(reply: &Response) -> &str {
    reply.header("cache-control").unwrap()
}

/// Asks until an asset has another entity tag than `before`.
fn changed(port: u16, asset: &str, before: &Response) -> Response {
    let started = Instant::now();
    loop {
        let now = get(port, &format!("/{asset}/index.m3u8"), &[]);
        if now.status == 200 && now.header("etag") != before.header("etag") {
            return now;
        }
        assert!(started.elapsed() < Duration::from_secs(40), "the change is not seen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn a_version_that_is_gone_is_not_found(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let subtitles = "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n";
    std::fs::write(folder.path().join("a.en.vtt"), subtitles).unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("a.mp4")).unwrap();
    let Some(stack) = origins::start(kind, folder.path(), &[]) else { return };
    let port = stack.server.port;
    let before = get(port, "/a.mp4/index.m3u8", &[]);
    assert_eq!(cache_control(&before), "public, max-age=10");
    let old = versioned(port, "a.mp4");
    assert!(old.len() >= 10, "{old:?}");
    for path in &old {
        let reply = get(port, path, &[]);
        assert_eq!((reply.status, cache_control(&reply)), (200, "public, max-age=31536000, immutable"), "{path}");
        let (_, tail) = path.split_once("/~").unwrap();
        let (_, tail) = tail.split_once('/').unwrap();
        let ts = if path.starts_with("/a.mp4/ts/") { "ts/" } else { "" };
        let now = get(port, &format!("/a.mp4/{ts}{tail}"), &[]);
        assert_eq!((now.status, cache_control(&now)), (200, "public, max-age=10"), "{ts}{tail}");
        assert!(now.body == reply.body, "{ts}{tail}");
    }
    stack.put("a.mp4", &clips::folder().join("h264_moov_first.mp4"));
    changed(port, "a.mp4", &before);
    for path in &old {
        let gone = get(port, path, &[]);
        assert_eq!((gone.status, cache_control(&gone)), (404, "no-store"), "{path}");
        assert_eq!(gone.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(request(port, "HEAD", path, &[]).status, 404, "{path}");
    }
    let new = versioned(port, "a.mp4");
    assert!(new.iter().all(|path| !old.contains(path) && get(port, path, &[]).status == 200));
}

#[test]
fn a_cache_behind_never_mixes_versions() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let film = folder.path().join("a.mp4");
    std::fs::copy(clips::folder().join("h264_aac.mp4"), &film).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--playlist-lifetime", "1s"]);
    let Some((_cdn, cdn)) = origins::cdn(server.port, scratch.path()) else { return };
    let before = get(cdn, "/a.mp4/index.m3u8", &[]);
    let paths: Vec<String> = versioned(server.port, "a.mp4")
        .into_iter()
        .filter(|path| path.ends_with(".m4s") || path.ends_with(".ts"))
        .collect();
    assert!(paths.len() >= 4, "{paths:?}");
    let (kept, others) = paths.split_at(paths.len() / 2);
    let old: Vec<Response> = kept.iter().map(|path| get(cdn, path, &[])).collect();
    let copy = folder.path().join("part");
    std::fs::copy(clips::folder().join("h264_moov_first.mp4"), &copy).unwrap();
    std::fs::rename(copy, film).unwrap();
    changed(cdn, "a.mp4", &before);
    for (path, old) in kept.iter().zip(&old) {
        let now = get(cdn, path, &[]);
        assert_eq!((now.status, now.header("x-cache")), (200, Some("HIT")), "{path}");
        assert!(now.body == old.body, "{path} is what it was");
    }
    for path in others {
        assert_eq!(get(cdn, path, &[]).status, 404, "{path}");
    }
    for path in versioned(cdn, "a.mp4") {
        let (through, direct) = (get(cdn, &path, &[]), get(server.port, &path, &[]));
        assert_eq!((through.status, direct.status), (200, 200), "{path}");
        assert!(through.body == direct.body && through.header("etag") == direct.header("etag"), "{path}");
    }
}

#[test]
fn servers_of_one_origin_have_the_same_versions_and_learn_of_new_ones() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let clip = |name: &str| clips::folder().join(name);
    std::fs::copy(clip("h264_aac.mp4"), folder.path().join("a.mp4")).unwrap();
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let place = format!("http://127.0.0.1:{port}");
    let [one, other] = [(); 2].map(|()| Server::start(&[&place]));
    let before = one.get("a.mp4/index.m3u8");
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(other.get("a.mp4/index.m3u8").body, before.body);
    std::fs::copy(clip("h264_moov_first.mp4"), folder.path().join("part")).unwrap();
    std::fs::rename(folder.path().join("part"), folder.path().join("a.mp4")).unwrap();
    changed(one.port, "a.mp4", &before);
    // The other one would trust what it knows for some seconds more.
    for path in versioned(one.port, "a.mp4") {
        let (first, second) = (get(one.port, &path, &[]), get(other.port, &path, &[]));
        assert_eq!((first.status, second.status), (200, 200), "{path}");
        assert!(first.body == second.body, "{path}");
    }
}

/// A film whose first segment is much larger than what sockets hold.
fn large(file: &Path) {
    let picture = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=5,noise=alls=100:allf=t";
    clips::make(file, &format!("{picture} -c:v libx264 -preset ultrafast -qp 0 -g 100 -movflags +faststart"));
}

/// Asks for a path and gives the reader behind the first bytes of the body, and the length that the head promises.
fn slow(port: u16, path: &str) -> (BufReader<TcpStream>, Vec<u8>, usize) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 256 << 10).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    (&stream).write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::with_capacity(1024, stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let (_, rest) = head.split_once("content-length: ").unwrap_or_else(|| panic!("{head}"));
    let len = rest.split("\r\n").next().unwrap().parse().unwrap();
    let mut first = vec![0; 1000];
    reader.read_exact(&mut first).unwrap();
    (reader, first, len)
}

#[test]
fn a_reply_under_way_is_of_one_version_to_its_end() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("a.mp4");
    large(&film);
    let bytes = std::fs::read(&film).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for ending in ["/v1/1.m4s", "/v1/1.ts"] {
        let paths = versioned(server.port, "a.mp4");
        let path = paths.iter().find(|path| path.ends_with(ending)).unwrap();
        let whole = get(server.port, path, &[("Cache-Control", "no-cache")]).body;
        assert!(whole.len() > 8 << 20, "{path}: {}", whole.len());

        // Another file takes its name.
        let (mut reader, mut body, len) = slow(server.port, path);
        std::fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("part")).unwrap();
        std::fs::rename(folder.path().join("part"), &film).unwrap();
        reader.read_to_end(&mut body).unwrap();
        assert!(len == whole.len() && body == whole, "{path}: {} of {len} bytes", body.len());
        gone(server.port, path);

        // Its bytes become others where they are.
        std::fs::write(folder.path().join("part"), &bytes).unwrap();
        std::fs::rename(folder.path().join("part"), &film).unwrap();
        let path = &versioned_when(server.port, ending, whole.len());
        let (mut reader, mut body, len) = slow(server.port, path);
        let mut file = std::fs::OpenOptions::new().write(true).open(&film).unwrap();
        file.seek(std::io::SeekFrom::Start(bytes.len() as u64 / 2)).unwrap();
        file.write_all(&vec![0; bytes.len() / 4]).unwrap();
        let _ = reader.read_to_end(&mut body);
        assert!(body.len() < len, "{path}: a mixture of {len} bytes was sent as a whole");
        gone(server.port, path);
        std::fs::write(folder.path().join("part"), &bytes).unwrap();
        std::fs::rename(folder.path().join("part"), &film).unwrap();
        // Segments of the mixture are as long. The server looks at files again after a second.
        std::thread::sleep(Duration::from_secs(2));
        versioned_when(server.port, ending, whole.len());
    }
}

fn gone(port: u16, path: &str) {
    let started = Instant::now();
    while get(port, path, &[]).status != 404 {
        assert!(started.elapsed() < Duration::from_secs(40), "{path} is still there");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The path of a segment, once it has as many bytes as expected.
fn versioned_when(port: u16, ending: &str, len: usize) -> String {
    let started = Instant::now();
    loop {
        let container = if ending.ends_with(".ts") { "ts/" } else { "" };
        let list = get(port, &format!("/a.mp4/{container}index.m3u8"), &[]);
        let path = uris(&list.text())
            .into_iter()
            .find(|uri| uri.ends_with("v1/index.m3u8"))
            .map(|uri| join(&format!("/a.mp4/{container}index.m3u8"), &uri.replace("/v1/index.m3u8", ending)));
        if let Some(path) = path
            && request(port, "HEAD", &path, &[]).header("content-length").is_some_and(|found| found == len.to_string())
        {
            return path;
        }
        assert!(started.elapsed() < Duration::from_secs(40), "the change is not seen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Places of the movie fragments of a file.
fn fragments(file: &[u8]) -> Vec<usize> {
    let (mut at, mut all) = (0, Vec::new());
    while let Some(head) = file.get(at..at + 8) {
        if &head[4..] == b"moof" {
            all.push(at);
        }
        at += u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
    }
    all
}

#[test]
fn viewers_of_a_growing_file_keep_their_version() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (whole, file) = (folder.path().join("whole"), folder.path().join("a.mp4"));
    let film = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=24 -f lavfi -i sine=frequency=440:sample_rate=48000:duration=24";
    let coded = "-c:v libx264 -pix_fmt yuv420p -g 25 -c:a aac -movflags frag_keyframe+empty_moov -f mp4";
    clips::make(&whole, &format!("{film} {coded}"));
    let whole = std::fs::read(whole).unwrap();
    let fragments = fragments(&whole);
    assert!(fragments.len() > 20, "{fragments:?}");
    std::fs::write(&file, &whole[..fragments[8]]).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    let port = server.port;
    let mut current = get(port, "/a.mp4/index.m3u8", &[]);
    let mut held: Vec<(String, Vec<u8>)> = Vec::new();
    for grown in [12, 16, 20] {
        for path in versioned(port, "a.mp4").into_iter().filter(|path| path.contains("/~")) {
            let reply = get(port, &path, &[]);
            assert_eq!(reply.status, 200, "{path}");
            held.push((path, reply.body));
        }
        std::fs::write(&file, &whole[..fragments[grown]]).unwrap();
        current = changed(port, "a.mp4", &current);
        for (path, body) in &held {
            let reply = get(port, path, &[]);
            assert_eq!((reply.status, reply.body == *body), (200, true), "{path} after growth to {grown}");
        }
    }
    // Another film of the name ends all of them.
    std::fs::remove_file(&file).unwrap();
    clips::make(
        &file,
        &format!("{} -c:v libx264 -pix_fmt yuv420p -g 50 -c:a aac", film.replace("testsrc2", "testsrc")),
    );
    changed(port, "a.mp4", &current);
    assert!(held.iter().all(|(path, _)| get(port, path, &[]).status == 404));
}

/// The path of the pictures' playlist that a multivariant playlist names, and the playlist.
fn pictures(port: u16, asset: &str, multivariant: &Response) -> (String, String) {
    let uri = uris(&multivariant.text()).into_iter().find(|uri| uri.ends_with("v1/index.m3u8")).unwrap();
    let path = join(&format!("/{asset}/index.m3u8"), &uri);
    let reply = get(port, &path, &[]);
    assert_eq!(reply.status, 200, "{path}");
    (path, reply.text())
}

#[test]
fn a_growing_transport_stream_is_served_as_far_as_it_reaches() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole"), folder.path().join("a.ts"));
    clips::make(&whole, "V S -c:v libx264 -g 25 -bf 2 -c:a aac -f mpegts");
    let whole = std::fs::read(whole).unwrap();
    // Recorders write in pieces, which end anywhere within packets.
    let (begins, ends) = whole.split_at(whole.len() / 2 + 77);
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(begins).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "1"]);
    let port = server.port;
    let seconds = |playlist: &str| -> f64 {
        let duration = |line: &str| line.strip_prefix("#EXTINF:")?.strip_suffix(',')?.parse::<f64>().ok();
        playlist.lines().filter_map(duration).sum()
    };
    let current = get(port, "/a.ts/index.m3u8", &[]);
    let (former, playlist) = pictures(port, "a.ts", &current);
    assert!(playlist.ends_with("#EXT-X-ENDLIST\n") && (3.0..7.0).contains(&seconds(&playlist)), "{playlist}");
    file.write_all(ends).unwrap();
    let grew = Instant::now();
    let (now, longer) = pictures(port, "a.ts", &changed(port, "a.ts", &current));
    assert!(grew.elapsed() < Duration::from_secs(10), "{:?}", grew.elapsed());
    assert!(longer.ends_with("#EXT-X-ENDLIST\n") && (seconds(&longer) - 9.0).abs() < 0.3, "{longer}");
    assert_ne!(former, now);
    // The last frames of the former version may have been cut: no cache mixes both.
    assert_eq!(get(port, &former, &[]).status, 404, "{former}");
    assert_eq!(get(port, &former.replace("index.m3u8", "1.m4s"), &[]).status, 404, "{former}");
}
