//! Stored titles of RTSP servers: whole, with seeking, and from the cache. The servers are GStreamer's and another Millpond, the judge is
//! ffmpeg.

use super::sources::{Source, has_gstreamer};
use crate::support::{
    Server,
    api::{items, send},
    free_port, get,
    rtsp::Client,
};
use serde_json::json;
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// Frames of the film: 25 a second.
const FRAMES: usize = 40 * 25;

/// A film of 40 s with reordered pictures, a key frame every two seconds, and sound.
fn film(folder: &Path) -> String {
    let film = folder.join("film.mp4").display().to_string();
    let pictures = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=40"];
    let sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=40"];
    let codecs = ["-c:v", "libx264", "-g", "50", "-sc_threshold", "0", "-bf", "3", "-c:a", "aac", "-aac_pns", "0"];
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y"]).args(pictures).args(sound).args(codecs).args(["-ac", "2"]).arg(&film);
    assert!(command.status().unwrap().success());
    film
}

fn launch(film: &str) -> String {
    format!(
        "filesrc location={film} ! qtdemux name=d d.video_0 ! queue ! rtph264pay name=pay0 pt=96 config-interval=-1 \
         d.audio_0 ! queue ! rtpmp4gpay name=pay1 pt=97"
    )
}

/// Hashes of the decoded pictures of an input, or of its sound as it is.
fn hashes(input: &[&str], track: &str, more: &[&str]) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", track, "-fps_mode", "passthrough"]);
    if track == "0:a" {
        command.args(["-c", "copy"]);
    }
    let output = command.args(more).args(["-f", "framemd5", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Side data may follow the hash.
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

fn origin_bytes(edge: &Server) -> f64 {
    edge.metric("millpond_origin_bytes_total", "place=\"cams\"")
}

/// Checks that an edge serves the film of another server as the file has it.
///
/// `cuts` tells how many sessions the server has played: at each of them it may repeat two frames of sound, or leave them out.
fn assert_served(film: &str, edge: &Server, path: &str, cuts: impl Fn() -> usize) {
    let direct = hashes(&["-i", film], "0:v", &[]);
    assert_eq!(direct.len(), FRAMES);
    let hls = edge.url(&format!("{path}/index.m3u8"));
    let list = edge.get(&format!("{path}/v1/index.m3u8")).text();
    assert!(list.contains("#EXT-X-PLAYLIST-TYPE:VOD") && list.contains("#EXT-X-ENDLIST"), "{list}");
    assert!(!list.contains("PROGRAM-DATE-TIME") && !list.contains("INDEPENDENT"), "{list}");
    let lasts: f64 =
        list.lines().filter_map(|line| line.strip_prefix("#EXTINF:")?.strip_suffix(',')?.parse::<f64>().ok()).sum();
    assert!((lasts - 40.0).abs() < 0.1, "{lasts}: {list}");
    // A seek, before anything near it was fetched. In HLS with fragmented MP4, Debian's ffmpeg loses the init segment.
    let dash = edge.url(&format!("{path}/index.mpd"));
    let one = ["-frames:v", "1"];
    let sought = hashes(&["-ss", "30", "-i", &dash], "0:v", &one);
    assert_eq!(sought, hashes(&["-ss", "30", "-i", film], "0:v", &one), "30 s into the film");
    assert_eq!(hashes(&["-i", &hls], "0:v", &[]), direct, "pictures by HLS");
    let before = origin_bytes(edge);
    for (name, input) in [("index.mpd", ["-i", ""]), ("stream.mp4", ["-i", ""]), ("index.m3u8", ["-i", ""])] {
        let url = edge.url(&format!("{path}/{name}"));
        assert_eq!(hashes(&[input[0], &url], "0:v", &[]), direct, "pictures by {name}");
    }
    let cuts = 2 * cuts();
    let (sound, file) = (hashes(&["-i", &hls], "0:a", &[]), hashes(&["-i", film], "0:a", &[]));
    assert!(
        sound.len().abs_diff(file.len()) <= cuts,
        "{} and {} frames of sound, {cuts} cuts",
        sound.len(),
        file.len()
    );
    let same = file.iter().filter(|hash| sound.contains(hash)).count();
    assert!(same + cuts >= file.len(), "{same} of {} frames of sound, {cuts} cuts", file.len());
    assert_eq!(origin_bytes(edge), before, "further viewers cost nothing");
}

#[test]
fn a_film_of_gstreamer_is_served_as_the_file_has_it() {
    if !has_gstreamer() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let film = film(folder.path());
    let source = Source::stored(free_port(), &[("film", launch(&film))]);
    let edge = Server::start(&[&format!("cams=rtsp://127.0.0.1:{}/", source.port)]);
    assert_served(&film, &edge, "cams/film", || source.count("play /film"));
    let played = source.count("play /film");
    // Viewers by RTSP begin at the beginning, seek, and read what is cached.
    let mut client = Client::new(&edge, "cams/film");
    let described = client.ask("DESCRIBE", "", "");
    assert!(described.body.contains("a=range:npt=0-40"), "{}", described.body);
    let rtsp = format!("rtsp://127.0.0.1:{}/cams/film", edge.rtsp);
    let input = ["-rtsp_transport", "tcp", "-i", &rtsp];
    let few = ["-frames:v", "50"];
    assert_eq!(hashes(&input, "0:v", &few), hashes(&["-i", &film], "0:v", &few), "the first pictures by RTSP");
    // ffmpeg shows the key frame first, as it does not know its time yet, then leaves out what is before the time.
    let sought = hashes(&["-rtsp_transport", "tcp", "-ss", "20", "-i", &rtsp], "0:v", &few);
    let file = hashes(&["-i", &film], "0:v", &[]);
    let at = file.iter().position(|hash| *hash == sought[0]).expect("a picture of the film");
    assert!([450, 500].contains(&at), "picture {at}");
    let next = (at + 1).max(500);
    assert_eq!(sought[1..], file[next..next + sought.len() - 1], "the pictures behind a seek");
    assert_eq!(source.count("play /film"), played, "all of it is cached");
    drop(source);
    assert_eq!(edge.get("cams/film/v1/index.m3u8").status, 200, "the server is gone");
}

#[test]
fn a_film_of_another_millpond_is_served_as_the_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let film = film(folder.path());
    let upstream = Server::start(&[folder.path().to_str().unwrap()]);
    let edge = Server::start(&[&format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp)]);
    // The commands of the cache, for a stored title.
    let warmed = send(edge.admin, "POST", "cache/warm", &json!({ "path": "cams/film.mp4" }), &[]);
    let warmed: serde_json::Value = serde_json::from_str(&warmed.text()).unwrap();
    assert!(warmed["objects"].as_u64() > Some(2) && warmed["bytes"] == 0, "{warmed}");
    let cached = || items(edge.admin, "cache/objects?prefix=cams/film.mp4").as_array().unwrap().len() as u64;
    let until_cached = || {
        let began = Instant::now();
        while Some(cached()) < warmed["objects"].as_u64() {
            assert!(began.elapsed() < Duration::from_secs(60), "{} of {warmed}", cached());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    until_cached();
    // Warming fetches the purged segments again.
    let body = json!({ "path": "cams/film.mp4" });
    let purged = send(edge.admin, "POST", "cache/purge", &body, &[]);
    // A slice that waited for the disk may be written later.
    assert!(purged.status == 200 && Some(cached()) < warmed["objects"].as_u64(), "{}", purged.text());
    assert_eq!(send(edge.admin, "POST", "cache/warm", &body, &[]).status, 200);
    until_cached();
    // The server's own error, and the places.
    for (path, told) in [("cams/none.mp4", "DESCRIBE: 404"), ("film.mp4", "there are cams")] {
        let refused = send(edge.admin, "POST", "cache/warm", &json!({ "path": path }), &[]);
        let text = refused.text();
        assert!(refused.status == 404 && text.contains(told) && !text.contains("cache warm"), "{text}");
    }
    for path in ["cache/map?path=cams/film.mp4", "explain?url=cams/film.mp4/index.m3u8"] {
        let refused = get(edge.admin, &format!("/api/v1/{path}"), &[]);
        let told = refused.text();
        assert!(refused.status == 404 && told.contains("stored title") && told.contains("cache warm"), "{told}");
    }
    let pinned = send(edge.admin, "POST", "cache/pins", &json!({ "path": "cams/film.mp4" }), &[]);
    assert!(pinned.status == 404 && pinned.text().contains("stored title"), "{}", pinned.text());
    let without = edge.get("cams/film.mp4/nothing.txt");
    let told = without.text();
    assert!(without.status == 404 && told.contains("a stored title has no such resource"), "{told}");
    assert_served(&film, &edge, "cams/film.mp4", || 0);
}
