//! Channels of several assets, and clips in channels: frames of RTSP, multicast, HLS and long responses equal the assets'.

use crate::support::{
    self, Server,
    api::{body, send},
    clips, get,
};
use serde_json::Value;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// 2 s of pictures, 25 a second, key frames a second apart, and AAC.
const FIRST: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=2 -f lavfi -i sine=frequency=440:sample_rate=48000:duration=2 \
                     -c:v libx264 -g 25 -bf 2 -c:a aac -aac_pns 0 -ac 2";
/// 3 s of other pictures in another profile, in another clock, and other sound.
const SECOND: &str = "-f lavfi -i testsrc=size=320x180:rate=25:duration=3 -f lavfi -i sine=frequency=880:sample_rate=48000:duration=3 \
                      -pix_fmt yuv420p -c:v libx264 -profile:v main -bf 0 -g 25 -video_track_timescale 90000 -c:a aac -aac_pns 0 -ac 2";
/// 3 s of pictures that neither of the others has.
const AD: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=3 -f lavfi -i sine=frequency=220:sample_rate=48000:duration=3 \
                  -vf hue=h=90 -pix_fmt yuv420p -c:v libx264 -bf 2 -g 30 -c:a aac -aac_pns 0 -ac 2";
/// Pictures of each.
const PICTURES: [usize; 3] = [50, 75, 75];

/// A folder with the three assets.
struct Films(tempfile::TempDir);

impl Films {
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, args) in [("a.mp4", FIRST), ("b.mp4", SECOND), ("ad.mp4", AD)] {
            clips::make(&folder.path().join(name), args);
        }
        Self(folder)
    }

    fn place(&self) -> String {
        format!("films={}", self.0.path().display())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Pictures of the files.
    fn pictures<const N: usize>(&self, names: [&str; N]) -> [Vec<String>; N] {
        names.map(|name| {
            let all = hashes(reader(&["-i", self.file(name).to_str().unwrap()], 10_000));
            assert!(PICTURES.contains(&all.len()), "{name}: {}", all.len());
            all
        })
    }
}

/// A reader of the hashes of decoded pictures.
fn reader(input: &[&str], count: usize) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(input).args(["-map", "0:v", "-fps_mode", "passthrough"]);
    command.args(["-frames:v", &count.to_string(), "-f", "framemd5", "-"]);
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

/// Checks that pictures are those of a round that is repeated, from a key frame on. Returns the number of the first one.
fn part_of(pictures: &[String], round: &[String]) -> Result<usize, String> {
    let offset = pictures.first().and_then(|first| round.iter().position(|hash| hash == first));
    let offset = offset.ok_or("no picture of the round")?;
    if !offset.is_multiple_of(25) {
        return Err(format!("not a key frame first, but picture {offset}"));
    }
    let same = round.iter().cycle().skip(offset).zip(pictures).take_while(|(a, b)| a == b).count();
    if same < pictures.len() {
        return Err(format!("picture {same} of {} differs, from {offset} on", pictures.len()));
    }
    Ok(offset)
}

#[track_caller]
fn assert_part_of(pictures: &[String], round: &[String]) -> usize {
    part_of(pictures, round).unwrap()
}

/// Splits pictures into those before, of and after a clip, and checks all.
fn inserted(pictures: &[String], round: &[String], clip: &[String]) -> Result<(), String> {
    let at = pictures.iter().position(|hash| *hash == clip[0]).ok_or("no first picture of the clip")?;
    let end = at + clip.len();
    if at == 0 || pictures.len() <= end + 25 {
        return Err(format!("the clip is at {at} of {} pictures", pictures.len()));
    }
    part_of(&pictures[..at], round).map_err(|error| format!("before the clip: {error}"))?;
    if pictures[at..end] != *clip {
        return Err("not the whole clip".to_owned());
    }
    part_of(&pictures[end..], round).map_err(|error| format!("after the clip: {error}"))?;
    Ok(())
}

#[track_caller]
fn assert_inserted(pictures: &[String], round: &[String], clip: &[String]) {
    inserted(pictures, round, clip).unwrap();
}

/// Waits until a server has a number of RTSP viewers that play.
#[track_caller]
fn until_playing(server: &Server, count: f64) {
    let began = Instant::now();
    while server.metric("millpond_rtsp_playing", "") < count {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks for an insertion; returns the status and the reply.
fn insert(server: &Server, path: &str, more: &str) -> (u16, Value) {
    let reply = send(server.admin, "POST", "insertions", &body(&format!("path={path}&clip=films/ad.mp4{more}")), &[]);
    (reply.status, serde_json::from_str(&reply.text()).unwrap())
}

/// Waits until an insertion is complete.
#[track_caller]
fn until_complete(server: &Server, id: &Value) {
    let began = Instant::now();
    loop {
        let all: Value = support::api::items(server.admin, "insertions");
        let one = all.as_array().unwrap().iter().find(|one| one["id"] == *id).unwrap();
        if one["state"] == "complete" {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{one} {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn rtsp(server: &Server, path: &str) -> String {
    format!("rtsp://127.0.0.1:{}/{path}", server.rtsp)
}

#[test]
fn a_list_plays_in_order_and_again_and_skips_what_is_broken() {
    let films = Films::make();
    std::fs::write(films.file("broken.mp4"), "nothing").unwrap();
    std::fs::copy(clips::folder().join("hevc_hvc1.mp4"), films.file("hevc.mp4")).unwrap();
    let list = "news=films/a.mp4 films/none.mp4 films/broken.mp4 films/hevc.mp4 films/b.mp4";
    let server = Server::start(&[&films.place(), "--rtsp-channels", list]);
    let url = rtsp(&server, "news");
    let by_rtsp = reader(&["-rtsp_transport", "tcp", "-i", &url], 300);
    until_playing(&server, 1.0);
    let by_hls = reader(&["-live_start_index", "0", "-i", &server.url("news/ts/index.m3u8")], 300);
    let by_http = reader(&["-i", &server.url("news/stream.ts")], 300);
    let (by_rtsp, by_hls, by_http) = (hashes(by_rtsp), hashes(by_hls), hashes(by_http));
    let round = films.pictures(["a.mp4", "b.mp4"]).concat();
    for pictures in [by_rtsp, by_hls, by_http] {
        assert_eq!(pictures.len(), 300, "more than two rounds");
        assert_part_of(&pictures, &round);
    }
    let log = server.log_text();
    for (asset, why) in
        [("films/none.mp4", "none.mp4"), ("films/broken.mp4", "broken.mp4"), ("films/hevc.mp4", "it has HEVC")]
    {
        let lines: Vec<_> =
            log.lines().filter(|line| line.contains("skips an asset") && line.contains(asset)).collect();
        assert!((1..=4).contains(&lines.len()) && lines[0].contains(why), "{asset}: {lines:?} {log}");
    }
    assert!(log.lines().any(|line| line.contains("it has HEVC") && line.contains("the channel has H.264")), "{log}");
}

/// Writes the media of a playlist between two discontinuities: the init segment and the segments, in one file each.
fn stretches(server: &Server, path: &str, folder: &Path) -> Vec<PathBuf> {
    let text = get(server.port, &format!("/{path}/v1/index.m3u8"), &[]).text();
    let load = |uri: &str| get(server.port, &format!("/{path}/{}", uri.strip_prefix("../").unwrap()), &[]).body;
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    for line in text.lines() {
        if line == "#EXT-X-DISCONTINUITY" {
            all.push(Vec::new());
        } else if let Some(map) = line.strip_prefix("#EXT-X-MAP:URI=\"") {
            all.last_mut().unwrap().extend(load(map.split('"').next().unwrap()));
        } else if line.starts_with("../") {
            all.last_mut().unwrap().extend(load(line));
        }
    }
    let write = |(number, bytes): (usize, Vec<u8>)| {
        let file = folder.join(format!("stretch-{number}.mp4"));
        std::fs::write(&file, bytes).unwrap();
        file
    };
    all.into_iter().enumerate().map(write).collect()
}

#[test]
fn each_asset_of_a_list_is_a_discontinuity_and_a_period() {
    let films = Films::make();
    let server = Server::start(&[&films.place(), "--rtsp-channels", "news=films/a.mp4 films/b.mp4"]);
    let list = || get(server.port, "/news/v1/index.m3u8", &[]).text();
    let began = Instant::now();
    while list().matches("#EXT-X-DISCONTINUITY\n").count() < 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} {}", list(), server.log_text());
        std::thread::sleep(Duration::from_millis(500));
    }
    let stretches = stretches(&server, "news", films.0.path());
    // All of one moment: a stream that nobody asks for ends.
    let manifest = get(server.port, "/news/index.mpd", &[]).text();
    let streams: Value = support::api::items(server.admin, "streams");
    let whole = &stretches[1..stretches.len() - 1];
    let [first, second] = films.pictures(["a.mp4", "b.mp4"]);
    let mut expected = [&second, &first].into_iter().cycle();
    for stretch in whole {
        let pictures = hashes(reader(&["-i", stretch.to_str().unwrap()], 10_000));
        assert_eq!(pictures, *expected.next().unwrap(), "{}", stretch.display());
    }
    assert!(manifest.matches("<Period ").count() >= 5, "{manifest}");
    let news = &streams[0];
    assert_eq!(
        (&news["path"], &news["kind"], &news["epoch"]["reason"]),
        (&"news".into(), &"channel".into(), &"asset".into())
    );
}

#[test]
fn a_list_without_a_playable_asset_is_refused_and_tried_again_slowly() {
    let films = Films::make();
    let server = Server::start(&[&films.place(), "--rtsp-channels", "news=films/none.mp4 films/nothing.mp4"]);
    let began = Instant::now();
    let reply = get(server.port, "/news/stream.mp4", &[]);
    assert_eq!(reply.status, 404, "{}", reply.text());
    assert!(reply.text().contains("none.mp4"), "{}", reply.text());
    let mut text = String::new();
    for _ in 0..20 {
        write!(text, "{}", get(server.port, "/news/stream.mp4", &[]).status).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(text, "404".repeat(20));
    let tries = server.log_text().matches("skips an asset").count();
    // Two assets a second.
    let most = 2 * (4 + began.elapsed().as_secs() as usize);
    assert!((2..=most).contains(&tries), "{tries} of {most}");
    std::fs::copy(films.file("a.mp4"), films.file("none.mp4")).unwrap();
    // A failure is remembered for a second, and players give up at the first 404.
    let began = Instant::now();
    while get(server.port, "/news/index.m3u8", &[]).status != 200 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(hashes(reader(&["-i", &server.url("news/stream.mp4")], 30)).len(), 30);
}

#[test]
fn a_clip_in_a_channel_is_exact_for_all_viewers() {
    let films = Films::make();
    let lists = "news=films/a.mp4 films/b.mp4,films/a.mp4";
    let server = Server::start(&[&films.place(), "--rtsp-channels", lists]);
    let [first, second, ad] = films.pictures(["a.mp4", "b.mp4", "ad.mp4"]);
    for (path, ts, round) in [
        ("news", "news/stream.ts", [&first[..], &second[..]].concat()),
        ("films/a.mp4", "films/a.mp4/stream.ts", first.clone()),
    ] {
        let by_rtsp = reader(&["-rtsp_transport", "tcp", "-i", &rtsp(&server, path)], 500);
        let by_http = reader(&["-i", &server.url(ts)], 500);
        until_playing(&server, 1.0);
        let began = Instant::now();
        while server.metric("millpond_http_stream_viewers", "") < 1.0 {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
            std::thread::sleep(Duration::from_millis(50));
        }
        let (status, asked) = insert(&server, path, "&at=2s");
        assert_eq!(status, 201, "{asked}");
        until_complete(&server, &asked["id"]);
        for pictures in [hashes(by_rtsp), hashes(by_http)] {
            assert_eq!(pictures.len(), 500);
            assert_inserted(&pictures, &round, &ad);
        }
        // The viewers of the next round are counted anew.
        let began = Instant::now();
        while server.metric("millpond_rtsp_playing", "") + server.metric("millpond_http_stream_viewers", "") > 0.0 {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // A folder of its own has the playlists of a channel whose name is that of an asset.
    let list = || get(server.port, "/films/a.mp4/live/v1/index.m3u8", &[]).text();
    assert!(list().contains("#EXTINF"));
    let (status, asked) = insert(&server, "films/a.mp4", "");
    assert_eq!(status, 201, "{asked}");
    until_complete(&server, &asked["id"]);
    // The asset follows the clip in the playlist.
    let began = Instant::now();
    let follows =
        |text: &str| text.rsplit("#EXT-X-DISCONTINUITY\n").next().is_some_and(|last| last.contains("#EXTINF"));
    while list().matches("#EXT-X-DISCONTINUITY\n").count() < 2 || !follows(&list()) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", list());
        std::thread::sleep(Duration::from_millis(200));
    }
    let stretches = stretches(&server, "films/a.mp4/live", films.0.path());
    assert_eq!(hashes(reader(&["-i", stretches[1].to_str().unwrap()], 10_000)), ad, "the whole clip");
}

/// GStreamer, which writes the pictures that a multicast group gets, as H.264.
fn group_reader(url: &str, file: &Path) -> support::Running {
    let mut player = Command::new("gst-launch-1.0");
    player.args(["rtspsrc", &format!("location={url}"), "protocols=udp-mcast", "name=s"]);
    player.args(["multicast-iface=lo", "s.", "!", "application/x-rtp,media=audio", "!", "fakesink", "sync=false"]);
    player.args(["s.", "!", "application/x-rtp,media=video", "!", "rtph264depay", "!", "h264parse", "!"]);
    player.args(["video/x-h264,stream-format=byte-stream,alignment=au", "!", "filesink", "buffer-mode=unbuffered"]);
    player.arg(format!("location={}", file.display()));
    support::Running(player.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Puts a clip into a channel while a player receives its multicast group, and checks the player's pictures.
fn clip_by_multicast(server: &Server, films: &Films) -> Result<(), String> {
    let file = films.file("got.h264");
    // Of the receiver before.
    let _ = std::fs::remove_file(&file);
    let player = group_reader(&rtsp(server, "news"), &file);
    let began = Instant::now();
    let too_late = || began.elapsed() > Duration::from_secs(60);
    let written = || std::fs::metadata(&file).map_or(0, |file| file.len());
    // Some pictures, or the reader below fails.
    while written() < 50_000 {
        if too_late() {
            return Err(format!("the receiver has {} bytes", written()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(get(server.admin, "/api/v1/graph", &[]).text().contains("\"kind\": \"multicast\""));
    let (status, asked) = insert(server, "news", "&at=1s");
    assert_eq!(status, 201, "{asked}");
    let [first, second, ad] = films.pictures(["a.mp4", "b.mp4", "ad.mp4"]);
    until_complete(server, &asked["id"]);
    loop {
        let mut pictures = hashes(reader(&["-i", file.to_str().unwrap()], 10_000));
        // The last picture is not whole yet, and some that are shown before it are not there.
        pictures.truncate(pictures.len().saturating_sub(4));
        if pictures.iter().position(|hash| *hash == ad[0]).is_some_and(|at| pictures.len() > at + ad.len() + 25) {
            drop(player);
            return inserted(&pictures, &[first, second].concat(), &ad);
        }
        if too_late() {
            return Err(format!("the clip is not among {} pictures of {} bytes", pictures.len(), written()));
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_clip_in_a_channel_reaches_its_multicast_group() {
    if !support::have("gst-launch-1.0") {
        return;
    }
    let films = Films::make();
    let groups = format!("239.202.{}.1:{}/1", std::process::id() as u8, support::free_port() & !1);
    let list = ["--rtsp-channels", "news=films/a.mp4 films/b.mp4", "--rtsp-multicast", &groups];
    let server = Server::start(&[&[&*films.place()], &list[..]].concat());
    // A receiver that gets no processor for long loses datagrams, and nobody repeats those of a group. It is not the server that
    // is wrong then: the next receiver gets all pictures.
    let mut faults = Vec::new();
    while let Err(fault) = clip_by_multicast(&server, &films) {
        faults.push(fault);
        assert!(faults.len() < 4, "{faults:#?} {}", server.log_text());
    }
}

/// Numbers of the modules of a kind.
fn modules(server: &Server, kind: &str) -> Vec<u64> {
    let graph: Value = support::api::api(server.admin, "graph");
    let of_kind = graph["modules"].as_array().unwrap().iter().filter(|module| module["kind"] == kind);
    of_kind.map(|module| module["id"].as_u64().unwrap()).collect()
}

/// Waits until there are some modules of a kind, and returns the last one.
#[track_caller]
fn until_modules(server: &Server, kind: &str, count: usize) -> u64 {
    let began = Instant::now();
    loop {
        let found = modules(server, kind);
        if found.len() == count {
            return found[count - 1];
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{found:?} {}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_clip_for_one_viewer_is_seen_by_nobody_else() {
    let films = Films::make();
    let server = Server::start(&[&films.place(), "--rtsp-channels", "news=films/a.mp4 films/b.mp4"]);
    let [first, second, ad] = films.pictures(["a.mp4", "b.mp4", "ad.mp4"]);
    let round = [first, second].concat();
    let by_rtsp = || reader(&["-rtsp_transport", "tcp", "-i", &rtsp(&server, "news")], 700);
    let by_http = || reader(&["-i", &server.url("news/stream.ts")], 700);
    let one = by_rtsp();
    let of_one = until_modules(&server, "transmission", 1);
    let other = by_rtsp();
    until_modules(&server, "transmission", 2);
    let long = by_http();
    let of_long = until_modules(&server, "viewing", 1);
    let beside = by_http();
    until_modules(&server, "viewing", 2);
    let of_all = get(server.port, "/news/index.m3u8", &[]);
    assert_eq!(of_all.status, 200, "{}", of_all.text());
    for (session, status, words) in [
        (modules(&server, "segmenter")[0], 409, "segmenter"),
        (modules(&server, "channel")[0], 409, "channel"),
        (9999, 404, "no viewer 9999"),
    ] {
        let (found, problem) = insert(&server, "news", &format!("&session={session}"));
        assert!(found == status && problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    assert_eq!(insert(&server, "news", "&session=one").0, 400);
    let ids = [of_one, of_long].map(|session| {
        let (status, asked) = insert(&server, "news", &format!("&at=1s&session={session}"));
        assert_eq!((status, &asked["session"]), (201, &session.into()), "{asked}");
        asked["id"].clone()
    });
    ids.iter().for_each(|id| until_complete(&server, id));
    let discontinuities = get(server.port, "/news/v1/index.m3u8", &[]).text();
    for (viewer, has_clip) in [(one, true), (other, false), (long, true), (beside, false)] {
        let pictures = hashes(viewer);
        assert_eq!(pictures.len(), 700);
        if has_clip {
            assert_inserted(&pictures, &round, &ad);
        } else {
            assert_part_of(&pictures, &round);
        }
    }
    assert!(discontinuities.contains("#EXTINF"), "{discontinuities}");
    // A viewer that leaves takes its clips along.
    let began = Instant::now();
    while !modules(&server, "viewing").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(20));
    }
    let leaving = by_http();
    let session = until_modules(&server, "viewing", 1);
    let (status, asked) = insert(&server, "news", &format!("&at=1h&session={session}"));
    assert_eq!(status, 201, "{asked}");
    drop(support::Running(leaving));
    let began = Instant::now();
    loop {
        let all = get(server.admin, "/api/v1/insertions", &[]).text();
        if all.contains("stream-ended") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{all}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
