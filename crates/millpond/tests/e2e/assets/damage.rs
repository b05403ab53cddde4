//! Files that break while the server runs: slabs of the disk cache, and files of a folder that is served.

use crate::support::{Server, clips, get, have, origins};
use std::{
    fs::OpenOptions,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Cuts all slabs of a server off.
fn cut(server: &Server) {
    let slabs = files(server.cache.path());
    let slabs: Vec<_> =
        slabs.iter().filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("slab-")).collect();
    assert!(!slabs.is_empty());
    for slab in slabs {
        OpenOptions::new().write(true).open(slab).unwrap().set_len(70_000).unwrap();
    }
}

fn written(server: &Server, slices: f64) {
    for _ in 0..3000 {
        if server.metric("millpond_disk_slices", "") >= slices {
            std::thread::sleep(Duration::from_millis(100));
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} slices on the disk", server.metric("millpond_disk_slices", ""));
}

/// A body, made anew instead of taken from memory.
fn fresh(server: &Server, path: &str) -> Vec<u8> {
    let reply = get(server.port, &format!("/{path}"), &[("Cache-Control", "no-cache")]);
    assert_eq!(reply.status, 200, "{path}");
    reply.body
}

#[test]
fn a_slab_cut_under_a_running_server_is_mended_in_the_same_reply() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes: Vec<u8> = (0..5_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(folder.path().join("film.bin"), &bytes).unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("film.mp4")).unwrap();
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}"), "--prefetch", "on-demand"]);
    assert!(server.get("film.bin").body == bytes);
    written(&server, 10.0);
    let whole = fresh(&server, "film.mp4");
    let made: Vec<_> = ["film.mp4/v1/1.m4s", "film.mp4/ts/v1/1.ts"].map(|path| (path, fresh(&server, path))).into();
    written(&server, 11.0);
    cut(&server);
    let reply = server.get("film.bin");
    assert!(reply.body == bytes, "right to the last byte");
    assert!(server.metric("millpond_disk_damaged_total", "") >= 1.0);
    assert!(server.log_text().contains("slab-0000"), "{}", server.log_text());
    for (path, body) in made.iter().chain([&("film.mp4", whole)]) {
        assert!(fresh(&server, path) == *body, "{path}");
        written(&server, 1.0);
        cut(&server);
        assert!(fresh(&server, path) == *body, "{path} from a file that was cut off");
    }
    if have("curl") {
        assert!(server.get("film.bin").body == bytes);
        written(&server, 10.0);
        cut(&server);
        let url = server.url("film.bin");
        let curl = Command::new("curl").args(["-sS", "--http2-prior-knowledge", &url]).output().unwrap();
        assert!(curl.stdout == bytes, "HTTP/2: {}", String::from_utf8_lossy(&curl.stderr));
    }
    assert_eq!(server.metric("millpond_responses_broken_total", ""), 0.0);
    assert!(!server.log_text().contains("broken off"));
}

#[test]
fn a_local_file_that_gets_shorter_is_a_failure_of_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("big.bin")).unwrap();
    file.set_len(256 << 20).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /big.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    file.set_len(1 << 20).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 256 << 20, "the connection is closed");
    assert_eq!(server.metric("millpond_responses_broken_total", ""), 1.0);
    assert_eq!(server.metric("millpond_origin_errors_total", "error=\"truncated\""), 1.0);
    assert!(server.log_text().contains("broken off"), "{}", server.log_text());
    assert_eq!(get(server.port, "/big.bin", &[]).body.len(), 1 << 20, "the next reply is of what is there");
}

/// Hashes of the packets of a stream that ffmpeg copies.
fn packets(input: &str, map: &str) -> Vec<String> {
    let args = ["-v", "error", "-nostdin", "-i", input, "-map", map, "-c", "copy", "-f", "framemd5", "-"];
    let output = Command::new("ffmpeg").args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let packets = text.lines().filter(|line| !line.starts_with('#'));
    packets.filter_map(|line| line.split(',').nth(5)).map(|hash| hash.trim().to_owned()).collect()
}

#[test]
fn a_picture_with_a_damaged_byte_costs_a_transport_stream_no_other_frame() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.mp4");
    std::fs::copy(clips::folder().join("h264_aac.mp4"), &whole).unwrap();
    let args = ["-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pos", "-of", "csv=p=0"];
    let places = Command::new("ffprobe").args(args).arg(&whole).output().unwrap();
    let places = String::from_utf8(places.stdout).unwrap();
    // The length of the only NAL unit of a picture between key frames.
    let place: usize = places.lines().nth(20).unwrap().trim_end_matches(',').parse().unwrap();
    let mut damaged = std::fs::read(&whole).unwrap();
    damaged[place] ^= 0x40;
    std::fs::write(folder.path().join("damaged.mp4"), &damaged).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let outputs = ["whole.mp4", "damaged.mp4"].map(|name| server.url(&format!("{name}/ts/index.m3u8")));
    let [sound, heard] = outputs.each_ref().map(|url| packets(url, "0:a"));
    assert!(!sound.is_empty() && heard == sound, "{} frames of {}", heard.len(), sound.len());
    let [pictures, shown] = outputs.each_ref().map(|url| packets(url, "0:v"));
    let lost = pictures.iter().filter(|picture| !shown.contains(picture)).count();
    // ffmpeg joins a picture without slices to the next one.
    assert!((1..=2).contains(&lost), "{lost} of {} pictures", pictures.len());
    assert_eq!(server.metric("millpond_responses_broken_total", ""), 0.0);
    assert!(server.log_text().contains("damaged parts of samples were left out"), "{}", server.log_text());
}
