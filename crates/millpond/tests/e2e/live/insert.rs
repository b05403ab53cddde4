//! Clips in live streams: what viewers of RTSP, HLS and DASH get, and which clips are refused.

use crate::support::{
    Server,
    api::{body, send},
    clips, get, request,
    rtsp::Client,
};
use serde_json::Value;
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const LIVE: &str = "h264_aac.mp4";
/// 3 seconds of other pictures in another profile, and other sound.
const AD: &str = "-f lavfi -i testsrc=size=320x180:rate=25:duration=3 -f lavfi -i sine=frequency=880:sample_rate=48000:duration=3 \
                  -pix_fmt yuv420p -c:v libx264 -profile:v main -bf 2 -g 30 -c:a aac -aac_pns 0 -ac 2";
/// Pictures of [`AD`].
const PICTURES: usize = 75;

/// A server with a channel, and an edge with that as a live stream and a folder of clips.
struct Servers {
    origin: Server,
    edge: Server,
    clips: tempfile::TempDir,
}

fn servers() -> Servers {
    let origin = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", LIVE]);
    let folder = tempfile::tempdir().unwrap();
    clips::make(&folder.path().join("ad.mp4"), AD);
    let cams = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let films = format!("films={}", folder.path().display());
    let edge = Server::start(&[&cams, &films, "--source-transport", "tcp"]);
    Servers { origin, edge, clips: folder }
}

fn path() -> String {
    format!("cams/{LIVE}")
}

/// Asks for an insertion; returns the status and the reply.
fn insert(edge: &Server, clip: &str, more: &str) -> (u16, Value) {
    let reply = send(edge.admin, "POST", "insertions", &body(&format!("path={}&clip={clip}{more}", path())), &[]);
    (reply.status, serde_json::from_str(&reply.text()).unwrap())
}

fn insertion(edge: &Server, id: &Value) -> Value {
    let all: Value = crate::support::api::items(edge.admin, "insertions");
    all.as_array().unwrap().iter().find(|one| one["id"] == *id).unwrap().clone()
}

/// Waits until an insertion is in a state.
#[track_caller]
fn until(edge: &Server, id: &Value, state: &str) -> Value {
    let began = Instant::now();
    loop {
        let found = insertion(edge, id);
        if found["state"] == state {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "not {state}: {found} {}", edge.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A reader of the hashes of frames: of decoded pictures, or of coded sound.
fn reader(input: &[&str], track: &str, count: usize) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", track, "-fps_mode", "passthrough"]);
    if track == "0:a" {
        command.args(["-c", "copy"]);
    }
    let frames = if track == "0:v" { "-frames:v" } else { "-frames:a" };
    command.args([frames, &count.to_string(), "-f", "framemd5", "-"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn hashes(reader: Child) -> Vec<String> {
    let output = reader.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.split(',').nth(5).unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

fn of_file(path: &Path, track: &str) -> Vec<String> {
    hashes(reader(&["-i", path.to_str().unwrap()], track, 10_000))
}

/// Checks that pictures are those of the live stream, from a key frame on.
#[track_caller]
fn assert_live(pictures: &[String], source: &[String]) {
    let offset = source.iter().position(|hash| *hash == pictures[0]).expect("a picture of the source");
    assert!(offset.is_multiple_of(50), "a key frame first, not picture {offset}");
    let same = source.iter().cycle().skip(offset).zip(pictures).take_while(|(a, b)| a == b).count();
    assert_eq!(same, pictures.len(), "picture {same} differs");
}

/// Splits pictures into those before, of and after a clip, and checks all.
#[track_caller]
fn assert_inserted(pictures: &[String], source: &[String], clip: &[String]) {
    let at = pictures.iter().position(|hash| *hash == clip[0]).expect("the clip");
    assert_live(&pictures[..at], source);
    assert_eq!(pictures[at..at + clip.len()], *clip, "the whole clip");
    assert_live(&pictures[at + clip.len()..], source);
}

#[test]
fn viewers_by_rtsp_see_the_stream_the_clip_and_the_stream() {
    let Servers { origin: _origin, edge, clips: folder } = servers();
    let url = format!("rtsp://127.0.0.1:{}/{}", edge.rtsp, path());
    let viewer = reader(&["-rtsp_transport", "tcp", "-i", &url], "0:v", 400);
    let began = Instant::now();
    // The viewer has begun before the clip does.
    while edge.metric("millpond_rtsp_playing", "") != 1.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", edge.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, asked) = insert(&edge, "films/ad.mp4", "&at=2s");
    assert_eq!((status, &asked["state"]), (201, &"waiting".into()), "{asked}");
    // The graph while it plays, which is three seconds.
    let (began, mut graph) = (Instant::now(), String::new());
    while !(graph.contains("\"kind\": \"splice\"") && graph.contains("films/ad.mp4")) {
        assert!(began.elapsed() < Duration::from_secs(60), "{graph}");
        std::thread::sleep(Duration::from_millis(20));
        graph = get(edge.admin, "/api/v1/graph", &[]).text();
    }
    let done = until(&edge, &asked["id"], "complete");
    assert!(done["frames"].as_u64() > Some(PICTURES as u64) && done["replaced-frames"].as_u64() > Some(50), "{done}");
    let pictures = hashes(viewer);
    let source = of_file(&clips::folder().join(LIVE), "0:v");
    let clip = of_file(&folder.path().join("ad.mp4"), "0:v");
    assert_eq!((pictures.len(), clip.len()), (400, PICTURES));
    assert_inserted(&pictures, &source, &clip);
    assert_eq!(edge.metric("millpond_live_insertions_total", ""), 1.0);
    assert!(!get(edge.admin, "/api/v1/graph", &[]).text().contains("films/ad.mp4"));
}

/// Media of a playlist between two discontinuities: the init segment and the segments, in one file each.
fn stretches(edge: &Server, track: &str, folder: &Path) -> Vec<std::path::PathBuf> {
    let text = get(edge.port, &format!("/{}/{track}/index.m3u8", path()), &[]).text();
    let load = |uri: &str| {
        let path = format!("/{}/{}", path(), uri.strip_prefix("../").unwrap());
        let reply = get(edge.port, &path, &[]);
        assert_eq!(reply.status, 200, "{path}");
        reply.body
    };
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    let mut is_gap = false;
    for line in text.lines() {
        if line == "#EXT-X-DISCONTINUITY" {
            all.push(Vec::new());
        } else if line == "#EXT-X-GAP" {
            is_gap = true;
        } else if let Some(map) = line.strip_prefix("#EXT-X-MAP:URI=\"") {
            let init = load(map.split('"').next().unwrap());
            all.last_mut().unwrap().extend(init);
        } else if line.starts_with("../") && !std::mem::take(&mut is_gap) {
            all.last_mut().unwrap().extend(load(line));
        }
    }
    assert_eq!(all.len(), 3, "two discontinuities: {text}");
    assert_eq!(text.matches("#EXT-X-MAP").count(), 3, "{text}");
    let write = |(number, bytes): (usize, Vec<u8>)| {
        let file = folder.join(format!("{track}-{number}.mp4"));
        std::fs::write(&file, bytes).unwrap();
        file
    };
    all.into_iter().enumerate().map(write).collect()
}

#[test]
fn playlists_and_manifests_have_the_clip_between_discontinuities() {
    let Servers { origin: _origin, edge, clips: folder } = servers();
    let list = |track: &str| get(edge.port, &format!("/{}/{track}/index.m3u8", path()), &[]).text();
    assert!(list("v1").contains("#EXTINF") && list("a1").contains("#EXTINF"), "{}", edge.log_text());
    let (status, asked) = insert(&edge, "films/ad.mp4", "");
    assert_eq!(status, 201, "{asked}");
    until(&edge, &asked["id"], "complete");
    // Segments of the stream follow in both playlists.
    let began = Instant::now();
    let follow = |text: String| {
        let last = text.rsplit("#EXT-X-DISCONTINUITY\n").next().unwrap().to_owned();
        text.matches("#EXT-X-DISCONTINUITY\n").count() == 2 && last.matches("#EXTINF").count() > 1
    };
    while !(follow(list("v1")) && follow(list("a1"))) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", list("v1"));
        std::thread::sleep(Duration::from_millis(200));
    }
    let ad = folder.path().join("ad.mp4");
    // All of one moment: a stream that nobody asks for ends.
    let (video, sound) = (stretches(&edge, "v1", folder.path()), stretches(&edge, "a1", folder.path()));
    let manifest = get(edge.port, &format!("/{}/index.mpd", path()), &[]).text();
    let source = of_file(&clips::folder().join(LIVE), "0:v");
    assert_live(&of_file(&video[0], "0:v"), &source);
    assert_eq!(of_file(&video[1], "0:v"), of_file(&ad, "0:v"), "the whole clip");
    assert_live(&of_file(&video[2], "0:v"), &source);
    let sound = of_file(&sound[1], "0:a");
    let clip = of_file(&ad, "0:a");
    // The frame that primes the decoder is left out.
    assert!(
        sound.len() + 4 > clip.len() && clip.ends_with(&sound),
        "{} of {} frames of sound",
        sound.len(),
        clip.len()
    );

    let periods: Vec<&str> = manifest.split("<Period ").skip(1).collect();
    assert_eq!(periods.len(), 3, "{manifest}");
    let start = |period: &&str| {
        let start = period.split("start=\"PT").nth(1).unwrap().split('S').next().unwrap();
        start.parse::<f64>().unwrap()
    };
    let starts: Vec<f64> = periods.iter().map(start).collect();
    assert!(starts[1] > starts[0] && starts[2] >= starts[1] + 2.9, "{starts:?}");
    // A player goes over all of it.
    let played = Command::new("ffmpeg")
        .args(["-v", "fatal", "-nostdin", "-live_start_index", "0", "-i"])
        .arg(edge.url(&format!("{}/index.m3u8", path())))
        .args(["-t", "10", "-c", "copy", "-f", "null", "-"])
        .output()
        .unwrap();
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
}

#[test]
fn clips_that_viewers_could_not_play_are_refused() {
    let Servers { origin, edge, clips: folder } = servers();
    let refused = |clip: &str, more: &str, status: u16, words: &str| {
        let (found, problem) = insert(&edge, clip, more);
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(found == status && detail.contains(words), "{clip}: {found} {problem}");
    };
    refused("films/ad.mp4", "", 409, "does not run");
    let mut viewer = Client::new(&edge, &path());
    assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(viewer.ask("PLAY", "", "").status, 200);
    for name in ["hevc_hvc1.mp4", "aac_44100.m4a"] {
        std::fs::copy(clips::folder().join(name), folder.path().join(name)).unwrap();
    }
    clips::make(&folder.path().join("low.mp4"), &AD.replace("-c:a aac", "-ar 44100 -c:a aac"));
    refused("films/hevc_hvc1.mp4", "", 422, "HEVC");
    refused("films/aac_44100.m4a", "", 422, "no pictures");
    refused("films/low.mp4", "", 422, "44100 Hz");
    refused("films/none.mp4", "", 404, "none.mp4");
    refused("films/ad.mp4", "&at=tomorrow", 400, "a time such as");
    let stored = send(edge.admin, "POST", "insertions", &body("path=films/ad.mp4&clip=films/ad.mp4"), &[]);
    assert_eq!(stored.status, 409, "{}", stored.text());
    assert_eq!(request(edge.admin, "PUT", "/api/v1/insertions", &[]).status, 405);
    assert_eq!(request(edge.admin, "DELETE", "/api/v1/insertions/77", &[]).status, 404);
    let foreign = [("Origin", "http://page.example")];
    assert_eq!(send(edge.admin, "POST", "insertions", &body("path=x&clip=y"), &foreign).status, 403);

    // A clip is cancelled while it waits, and another one while it plays: the stream goes on at once.
    let (_, later) = insert(&edge, "films/ad.mp4", "&at=1h");
    clips::make(&folder.path().join("long.mp4"), &AD.replace("duration=3", "duration=20"));
    let (_, now) = insert(&edge, "films/long.mp4", "");
    until(&edge, &now["id"], "playing");
    for id in [&later["id"], &now["id"]] {
        let reply = request(edge.admin, "DELETE", &format!("/api/v1/insertions/{id}"), &[]);
        assert!(reply.status == 200 && reply.text().contains("cancelled"), "{}", reply.text());
    }
    let before = viewer.packets.len();
    viewer.receive(|packets| packets.len() > before + 100);
    // A stream that ends takes its clips along.
    let (_, lost) = insert(&edge, "films/ad.mp4", "&at=1h");
    drop((viewer, origin));
    until(&edge, &lost["id"], "stream-ended");
}
