//! Stitched titles: files, and parts of them, that play one after the other.

use super::{
    joined::{BASELINE, LARGE, same},
    joined_periods::{HEVC, decoded, stretches},
};
use crate::support::{
    self, Server,
    api::api,
    clips,
    decode::{self, Frame, Sound},
    origins,
    rtsp::Client,
};
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// Runs `millpond stitch` in a folder.
fn stitch(folder: &Path, items: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond")).arg("stitch").args(items).current_dir(folder).output().unwrap()
}

/// Writes the manifest of items as people do.
fn manifest(folder: &Path, name: &str, items: &[&str]) -> String {
    let output = stitch(folder, items);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{items:?}: {told}");
    fs::write(folder.join(name), &output.stdout).unwrap();
    told
}

fn pictures(file: &Path) -> Vec<Frame> {
    decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap()
}

/// Returns the sample frame of the file with which our sound begins, found by its own samples after some of a decoder's start.
fn begins_at(ours: &Sound, file: &Sound) -> usize {
    assert_eq!((ours.rate, ours.channels), (file.rate, file.channels));
    let (frame, skipped) = (4 * ours.channels, 4096);
    let told = &ours.samples[skipped * frame..(skipped + 4096) * frame];
    let found = (0..file.samples.len() / frame).find(|number| file.samples[number * frame..].starts_with(told));
    found.expect("sound of the file") - skipped
}

/// Returns the MPD with one of its periods only, and with absolute addresses.
fn of_period(server: &Server, title: &str, mpd: &str, number: usize) -> String {
    let periods: Vec<&str> = mpd.split("<Period").collect();
    let period = periods[number].split("</Period>").next().unwrap();
    let base = format!("<BaseURL>{}/</BaseURL>", server.url(title));
    format!("{}{base}<Period{period}</Period></MPD>", periods[0])
}

#[test]
fn parts_of_files_play_one_after_the_other() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = place.path();
    clips::make(&folder.join("a.mp4"), BASELINE);
    clips::make(&folder.join("b.mp4"), LARGE);
    // The second item begins in the middle of a group of pictures.
    let told = manifest(folder, "evening.smil", &["a.mp4", "b.mp4@1s-3s", "a.mp4@2s-"]);
    assert!(told.contains("3 items, 8.000 s") && !told.contains("RTSP"), "{told}");
    let (a, b) = (pictures(&folder.join("a.mp4")), pictures(&folder.join("b.mp4")));
    let items = [&a[..], &b[25..75], &a[50..]];
    let server = Server::start(&[folder.to_str().unwrap(), "--segment-duration", "2"]);
    let video = stretches(&server, "evening.smil", "v1/index.m3u8");
    let audio = stretches(&server, "evening.smil", "a1/index.m3u8");
    assert_eq!((video.len(), audio.len()), (3, 3), "a discontinuity for each joint");
    let hidden = [0, 25, 0];
    for (place, bytes) in video.iter().enumerate() {
        let ours = decoded(scratch.path(), bytes, |input| decode::video(input, "0:v"));
        same(&ours[hidden[place]..], items[place]).unwrap_or_else(|error| panic!("item {place}: {error}"));
        let start = ours[hidden[place]].time;
        assert!((start - [0.0, 4.0, 6.0][place]).abs() < 0.13, "item {place} at {start} s");
    }
    let of_b = decode::audio(&["-i", folder.join("b.mp4").to_str().unwrap()], "0:a").unwrap();
    let heard = decoded(scratch.path(), &audio[1], |input| decode::audio(input, "0:a"));
    let first = begins_at(&heard, &of_b);
    let end = first + heard.samples.len() / 4 / heard.channels;
    // A frame that the decoder needs, and the rest of the frame in which the part ends.
    assert!((48_000 - 3 * 1024..=48_000).contains(&first), "from sample {first}");
    assert!((3 * 48_000..=3 * 48_000 + 2048).contains(&end), "to sample {end}");

    let mpd = server.get("evening.smil/index.mpd").text();
    for part in ["<Period id=\"2\" start=\"PT4S\">", "<Period id=\"3\" start=\"PT6S\">", "=\"PT8S\""] {
        assert!(mpd.contains(part), "{part} in {mpd}");
    }
    for (number, item) in (1..).zip(items) {
        let file = scratch.path().join("period.mpd");
        fs::write(&file, of_period(&server, "evening.smil", &mpd, number)).unwrap();
        let input = ["-protocol_whitelist", "file,http,tcp,crypto,data", "-i", file.to_str().unwrap()];
        let ours = decode::video(&input, "0:v").unwrap_or_else(|error| panic!("period {number}: {error}"));
        same(&ours[hidden[number - 1]..], item).unwrap_or_else(|error| panic!("period {number}: {error}"));
    }
    let ts = stretches(&server, "evening.smil", "ts/v1/index.m3u8");
    assert_eq!(ts.len(), 3);
    for (place, bytes) in ts.iter().enumerate() {
        let ours = decoded(scratch.path(), bytes, |input| decode::video(input, "0:v"));
        same(&ours[hidden[place]..], items[place]).unwrap_or_else(|error| panic!("item {place} in TS: {error}"));
    }
    let url = format!("rtsp://127.0.0.1:{}/evening.smil", server.rtsp);
    let ours = decode::video(&["-rtsp_transport", "tcp", "-i", &url], "0:v").unwrap();
    same(&ours, &[&a[..], &b[..75], &a[50..]].concat()).unwrap_or_else(|error| panic!("RTSP: {error}"));
    // From the middle of the third item on.
    let ours = decode::video(&["-rtsp_transport", "tcp", "-ss", "7", "-i", &url], "0:v").unwrap();
    same(&ours, &a[75..]).unwrap_or_else(|error| panic!("RTSP from 7 s on: {error}"));
}

#[test]
fn items_of_other_codecs_play_by_hls_and_dash() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = place.path();
    clips::make(&folder.join("a.mp4"), BASELINE);
    clips::make(&folder.join("c.mp4"), HEVC);
    let told = manifest(folder, "evening.smil", &["a.mp4", "c.mp4@2s-4s"]);
    assert!(told.contains("RTSP does not, as item 2 (c.mp4): found hvc1"), "{told}");
    let items = [pictures(&folder.join("a.mp4")), pictures(&folder.join("c.mp4"))[50..].to_vec()];
    let server = Server::start(&[folder.to_str().unwrap()]);
    let video = stretches(&server, "evening.smil", "v1/index.m3u8");
    assert_eq!(video.len(), 2);
    for (bytes, item) in video.iter().zip(&items) {
        let ours = decoded(scratch.path(), bytes, |input| decode::video(input, "0:v"));
        same(&ours, item).unwrap();
    }
    let variants = server.get("evening.smil/index.m3u8").text();
    assert!(variants.contains("avc1.42") && variants.contains("hvc1"), "{variants}");
    let refused = Client::new(&server, "evening.smil").ask("DESCRIBE", "", "Accept: application/sdp\r\n");
    assert!(refused.status >= 400, "{}", refused.status);
    let why = "RTSP plays a title with one decoder for each track: item 2 (c.mp4): found hvc1";
    assert!(refused.body.contains(why) || server.log_text().contains(why), "{}{}", refused.body, server.log_text());
}

#[test]
fn an_item_without_sound_is_a_gap() {
    if !support::have("ffmpeg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    clips::make(&folder.join("a.mp4"), BASELINE);
    let source = folder.join("a.mp4");
    let silent = folder.join("silent.mp4");
    let mut copy = Command::new("ffmpeg");
    copy.args(["-v", "error", "-i"]).arg(&source).args(["-map", "0:v", "-c", "copy"]).arg(&silent);
    assert!(copy.status().unwrap().success());
    for (name, items) in [
        ("first.smil", ["silent.mp4", "a.mp4", "a.mp4"]),
        ("middle.smil", ["a.mp4", "silent.mp4", "a.mp4"]),
        ("last.smil", ["a.mp4", "a.mp4", "silent.mp4"]),
    ] {
        manifest(folder, name, &items);
    }
    let server = Server::start(&[folder.to_str().unwrap(), "--segment-duration", "2"]);
    for (lacking, name) in ["first.smil", "middle.smil", "last.smil"].into_iter().enumerate() {
        let sound = server.get(&format!("{name}/a1/index.m3u8")).text();
        let items: Vec<&str> = sound.split("#EXT-X-DISCONTINUITY\n").collect();
        let gaps: Vec<bool> = items.iter().map(|item| item.contains("#EXT-X-GAP")).collect();
        assert_eq!(gaps, (0..3).map(|item| item == lacking).collect::<Vec<_>>(), "{name}: {sound}");
        let durations = items[lacking].lines().filter_map(|line| line.strip_prefix("#EXTINF:"));
        let seconds: f64 = durations.map(|text| text.trim_end_matches(',').parse::<f64>().unwrap()).sum();
        assert!((seconds - 4.0).abs() < 0.01, "{name}: {seconds} s in {sound}");
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        let periods: Vec<&str> = mpd.split("<Period ").skip(1).collect();
        let silent: Vec<bool> = periods.iter().map(|period| !period.contains("contentType=\"audio\"")).collect();
        assert_eq!(silent, gaps, "{name}: {mpd}");
        // One timeline with a pause.
        let url = format!("rtsp://127.0.0.1:{}/{name}", server.rtsp);
        let ours = decode::video(&["-rtsp_transport", "tcp", "-i", &url], "0:v").unwrap();
        assert_eq!(ours.len(), 3 * pictures(&source).len(), "{name}");
    }
}

#[test]
fn faults_name_manifest_item_and_cure() {
    if !support::have("ffmpeg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    clips::make(&folder.join("a.mp4"), BASELINE);
    for (items, why) in [
        (&["a.mp4", "b.mp4"][..], "b.mp4"),
        (&["a.mp4@1s-40s"], "item 1 (a.mp4): found the range 1s-40s, expected one between 0s and 4.000s"),
        (&["a.mp4@abc"], "a.mp4@abc: found the part \"abc\", expected FROM-TO, such as 10s-40s"),
        (&["a.mp4@1s"], "a.mp4@1s: found the part \"1s\", expected 1s- for the file from there on"),
        (&["a.mp4@3s-1s"], "a.mp4@3s-1s: found the part \"3s-1s\", which ends before it begins"),
        (&["a.mp4@3s-3.5s"], "item 1 (a.mp4): found 0.500 s to show, expected at least 1 s"),
        (&["../a.mp4"], "expected a path that stays in the manifest's folder"),
        (&["/a.mp4"], "expected a path relative to the manifest"),
    ] {
        let output = stitch(folder, items);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty() && told.contains(why), "{items:?}: {told}");
    }
    let many = format!("<seq>{}</seq>", "<video src=\"a.mp4\"/>".repeat(999));
    let manifests = [
        ("missing", "<seq><video src=\"a.mp4\"/><video src=\"b.mp4\"/></seq>", "b.mp4"),
        ("beyond", "<seq><video src=\"a.mp4\" clipEnd=\"40s\"/></seq>", "item 1 (a.mp4): found the range 0s-40s"),
        ("empty", "<seq></seq>", "<seq> without items"),
        ("misspelt", "<seq><video src=\"a.mp4\" clipbegin=\"1s\"/></seq>", "clipbegin, expected clipBegin"),
        ("nested", "<seq><seq/></seq>", "<seq> in <seq>"),
        ("itself", "<seq><video src=\"itself.smil\"/></seq>", "item 1: found itself.smil, expected a media file"),
        ("many", &many, "found 999 items in <seq>, expected at most 256"),
    ];
    for (name, body, _) in manifests {
        fs::write(folder.join(format!("{name}.smil")), format!("<smil><body>{body}</body></smil>")).unwrap();
    }
    let server = Server::start(&[folder.to_str().unwrap()]);
    for (name, _, why) in manifests {
        let reply = server.get(&format!("{name}.smil/index.m3u8"));
        let text = reply.text();
        assert_eq!(reply.status, 422, "{name}: {text}");
        assert!(text.contains(&format!("{name}.smil")) && text.contains(why), "{name}: {text}");
        assert!(!text.contains(folder.to_str().unwrap()), "viewers read no folder: {text}");
    }
}

#[test]
fn the_origin_sends_what_explain_predicts() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = place.path();
    // Long enough that the parts are some slices of the files.
    let long = |args: &str| {
        args.replace("duration=4", "duration=40")
            .replace("-g ", "-b:v 3M -minrate 3M -maxrate 3M -bufsize 3M -x264-params nal-hrd=cbr -g ")
    };
    clips::make(&folder.join("a.mp4"), &long(BASELINE));
    manifest(folder, "evening.smil", &["a.mp4@2s-8s", "a.mp4@30s-36s", "a.mp4@2s-8s"]);
    let Some((_origin, port)) = origins::nginx(folder, scratch.path(), "") else { return };
    let server = Server::start(&[&format!("films=http://127.0.0.1:{port}"), "--prefetch", "on-demand"]);
    let sent = || -> u64 {
        let log = origins::settled_log(scratch.path());
        let media = log.lines().filter(|line| line.contains("a.mp4"));
        media.filter_map(|line| line.rsplit('|').next()?.parse::<u64>().ok()).sum()
    };
    // The index is read with the playlist.
    let playlist = server.get("films/evening.smil/v1/index.m3u8").text();
    let before = sent();
    let (mut predicted, mut replies) = (0, 0);
    for uri in playlist.lines().filter(|line| !line.starts_with('#')) {
        let path = format!("films/evening.smil/{}", uri.strip_prefix("../").unwrap());
        let explained = api(server.admin, &format!("explain?url={path}"));
        let (bytes, origin) = (explained["bytes"].as_u64().unwrap(), explained["origin-bytes"].as_u64().unwrap());
        if origin > 0 {
            let efficiency = explained["efficiency"].as_f64().unwrap();
            assert!((efficiency - bytes as f64 / origin as f64).abs() < 1e-9, "{explained}");
        }
        let reply = server.get(&path);
        assert_eq!((reply.status, reply.body.len() as u64), (200, bytes), "{path}");
        (predicted, replies) = (predicted + origin, replies + bytes);
    }
    let measured = sent() - before;
    let (told, efficiency) = (replies as f64 / predicted as f64, replies as f64 / measured as f64);
    println!("{replies} bytes of replies, {measured} of the origin: efficiency {efficiency:.2}, predicted {told:.2}");
    // The origin also sends the rest of slices at the ends of reads.
    assert!((told / efficiency - 1.0).abs() < 0.2, "{efficiency:.2}, predicted {told:.2}");
    // Pictures of a part that plays twice are read once.
    assert!(efficiency > 1.0, "{efficiency}");
}
