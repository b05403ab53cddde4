//! The outputs that `millpond probe` reports, compared with the manifests and DESCRIBE replies of a server.

use crate::support::{self, Server, clips, rtsp::Client};
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Clips whose tracks are not in all outputs: names and arguments.
const CLIPS: &[(&str, &str)] = &[
    ("silent.mp4", "V -t 4 -c:v libx264 -preset ultrafast"),
    ("door.mkv", "V S -t 9 -c:v libx264 -preset ultrafast -g 50 -ar 8000 -c:a pcm_mulaw"),
    ("sound.mka", "S -t 9 -ar 16000 -c:a pcm_alaw"),
    ("float.wav", "S -t 2 -c:a pcm_f32le"),
    ("two.mkv", "V S -t 4 -map 0 -map 1 -map 1 -c:v libx264 -preset ultrafast -c:a:0 pcm_mulaw -c:a:1 aac"),
    ("vorbis.mkv", "V S -t 4 -c:v libx264 -preset ultrafast -c:a libvorbis"),
    ("dts.mkv", "V S -t 4 -c:v libx264 -preset ultrafast -strict -2 -ar 48000 -ac 2 -c:a dca"),
    ("layer2.mkv", "V S -t 4 -c:v libx264 -preset ultrafast -c:a mp2"),
    ("layer2.ts", "V S -t 4 -c:v libx264 -preset ultrafast -c:a mp2"),
    ("opus.mkv", "V S -t 4 -c:v libx264 -preset ultrafast -c:a libopus"),
    ("flac.mkv", "V S -t 4 -c:v libx264 -preset ultrafast -c:a flac"),
    ("vp9.mp4", "V S -t 2 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a aac"),
    ("vp8.webm", "V -t 2 -c:v libvpx -deadline realtime"),
];

fn probed(target: &Path) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(target).output().unwrap();
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// The names of a list of a report.
fn names(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Names of the tracks whose playlists a multivariant playlist lists.
fn listed(playlist: &str) -> BTreeSet<String> {
    let mut before: Vec<&str> = playlist.split("/index.m3u8").collect();
    before.pop();
    before.into_iter().map(|text| text.rsplit(['/', '"', '\n']).next().unwrap().to_owned()).collect()
}

/// Compares a report with the replies of a server.
fn compare(server: &Server, path: &str, report: &Value) {
    let outputs = &report["outputs"];
    let is_there = |key: &str| outputs[key]["available"] != "no";
    let [hls, ts, dash, rtsp] = ["hls-fmp4", "hls-ts", "dash", "rtsp"].map(|key| names(&outputs[key]["tracks"]));
    for (key, tail) in [("hls-fmp4", "index.m3u8"), ("hls-ts", "ts/index.m3u8"), ("dash", "index.mpd")] {
        let reply = server.get(&format!("{path}/{tail}"));
        assert_eq!(reply.status == 200, is_there(key), "{path}/{tail}: {outputs}: {}", reply.text());
        if reply.status != 200 {
            let why = outputs[key]["why"].as_str().unwrap();
            assert!(reply.text().contains(&why.replace('"', "\\\"")), "{path}: {why}: {}", reply.text());
        }
    }
    if is_there("hls-fmp4") {
        assert_eq!(listed(&server.get(&format!("{path}/index.m3u8")).text()), hls, "{path}: {outputs}");
    }
    if is_there("dash") {
        let mpd = server.get(&format!("{path}/index.mpd")).text();
        // The part of a track in a period has the number of the period behind its name.
        let ids = mpd.split("<Representation id=\"").skip(1).map(|text| text.split(['"', 'p']).next().unwrap());
        let ids: BTreeSet<String> = ids.filter(|id| id.starts_with(['v', 'a'])).map(str::to_owned).collect();
        let media = dash.into_iter().filter(|name| name.starts_with(['v', 'a'])).collect::<BTreeSet<_>>();
        assert_eq!(ids, media, "{path}: {mpd}");
    }
    if is_there("hls-ts") {
        // A sound may be muxed into the segments of video.
        let own = listed(&server.get(&format!("{path}/ts/index.m3u8")).text());
        let muxed: Vec<_> = ts.difference(&own).collect();
        let is_muxed = muxed.is_empty() || (muxed.len() == 1 && muxed[0].starts_with('a') && own.contains("v1"));
        assert!(own.is_subset(&ts) && is_muxed, "{path}: {own:?}: {outputs}");
    }
    let reply = Client::new(server, path).ask("DESCRIBE", "", "");
    assert_eq!(reply.status, if is_there("rtsp") { 200 } else { 415 }, "{path}: {outputs}");
    let controls = reply.body.lines().filter_map(|line| line.strip_prefix("a=control:"));
    let controls: BTreeSet<String> = controls.filter(|name| *name != "*").map(str::to_owned).collect();
    assert_eq!(controls, rtsp, "{path}: {}", reply.body);
    for name in names(&outputs["rtsp"]["apart"]) {
        let reply = Client::new(server, path).ask("DESCRIBE", &format!("/{name}"), "");
        assert!(reply.body.contains(&format!("a=control:{name}")), "{path}/{name}: {}", reply.body);
    }
    for track in report["presentation"]["tracks"].as_array().unwrap() {
        let name = track["name"].as_str().unwrap();
        if hls.contains(name) {
            let playlist = server.get(&format!("{path}/{name}/index.m3u8")).text();
            let count = playlist.matches("#EXTINF").count() as u64;
            assert_eq!(track["segments"].as_u64(), Some(count), "{path}: {track}: {playlist}");
        }
    }
}

#[test]
fn probe_tells_the_tracks_of_each_output() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in CLIPS {
        clips::make(&folder.path().join(name), arguments);
    }
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let report = |name: &str| probed(&folder.path().join(name)).unwrap_or_else(|| panic!("{name}"));
    for (name, _) in CLIPS {
        compare(&server, name, &report(name));
    }
    let without = |name: &str, output: &str| report(name)["outputs"][output]["without"][0]["why"].to_string();
    assert!(without("door.mkv", "hls-ts").contains("is not in MPEG-2 TS"));
    assert!(without("flac.mkv", "rtsp").contains("RTP has no payload format of it"));
    assert!(without("layer2.mkv", "hls-fmp4").contains("browsers can't decode it"));
    assert!(without("two.mkv", "dash").contains("only where all sound of the title is PCM or G.711"));
    assert_eq!(report("layer2.mkv")["outputs"]["hls-ts"]["available"], "yes");
    for (name, output, available) in
        [("silent.mp4", "hls-ts", "yes"), ("opus.mkv", "hls-ts", "in part"), ("float.wav", "rtsp", "no")]
    {
        assert_eq!(report(name)["outputs"][output]["available"], available, "{name}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("probe").arg(folder.path().join("two.mkv")).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("  RTSP: yes: v1, a1; by its own path: a2\n"), "{text}");
    assert!(text.contains("  HLS fMP4: in part: v1, a2; a1 is not listed"), "{text}");
}

#[test]
fn probe_agrees_with_the_server_about_files_of_others() {
    if !support::have("ffmpeg") {
        return;
    }
    for folder in [Some(clips::folder().to_owned()), support::shared_media()].into_iter().flatten() {
        let server = Server::start(&[folder.to_str().unwrap()]);
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if !entry.file_type().unwrap().is_file() || name.contains("part") || name.ends_with(".tsv") {
                continue;
            }
            match probed(&entry.path()) {
                Some(report) => compare(&server, &name, &report),
                None => assert_ne!(server.get(&format!("{name}/index.m3u8")).status, 200, "{name}"),
            }
        }
    }
}

#[test]
fn probe_takes_hls_folders_and_server_manifests() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let show = folder.path().join("show");
    fs::create_dir(&show).unwrap();
    clips::make(&folder.path().join("film.mp4"), "V S -t 9 -c:v libx264 -preset ultrafast -g 25 -c:a aac");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(folder.path().join("film.mp4"));
    command.args(["-c", "copy", "-f", "hls", "-hls_time", "2", "-hls_list_size", "0"]);
    assert!(command.arg(show.join("show.m3u8")).status().unwrap().success());
    let smil = "<smil><body><switch><video src=\"film.mp4\"/><audio src=\"film.mp4\"/></switch></body></smil>";
    fs::write(folder.path().join("film.smil"), smil).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for path in ["show/show.m3u8", "film.smil"] {
        let report = probed(&folder.path().join(path)).unwrap_or_else(|| panic!("{path}"));
        compare(&server, path, &report);
        assert_eq!(report["outputs"]["rtsp"]["available"], "yes", "{report}");
        let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("probe").arg(folder.path().join(path)).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains(": refers to media, as ") && text.contains("  RTSP: yes: v1, a1\n"), "{text}");
    }
}
