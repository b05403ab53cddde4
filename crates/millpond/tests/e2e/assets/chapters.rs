//! Chapters of files, compared with those that ffprobe finds.

use crate::support::{self, Server, clips};
use serde_json::Value;
use std::{path::Path, process::Command};

/// Chapters as ffmpeg reads them.
const CHAPTERS: &str = ";FFMETADATA1
[CHAPTER]
TIMEBASE=1/1000
START=0
END=1500
title=Opening
[CHAPTER]
TIMEBASE=1/1000
START=1500
END=4000
title=Zw\u{f6}lf, \"zwei\" & <drei>
[CHAPTER]
TIMEBASE=1/1000
START=4000
END=6000
title=End
";

/// Files with chapters. Without its list (`chpl`), an MP4 file has them in a track of text alone.
const FILES: [(&str, &str); 4] =
    [("list.mp4", ""), ("track.mp4", "-movflags disable_chpl"), ("quicktime.mov", ""), ("matroska.mkv", "")];

fn json_of(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command:?}: {error}"))
}

/// Start and title of each chapter that ffprobe finds.
fn probed(file: &Path) -> Vec<(f64, String)> {
    let found = json_of(Command::new("ffprobe").args(["-v", "error", "-show_chapters", "-of", "json"]).arg(file));
    let chapter = |chapter: &Value| {
        let start = chapter["start_time"].as_str().unwrap().parse().unwrap();
        (start, chapter["tags"]["title"].as_str().unwrap().to_owned())
    };
    found["chapters"].as_array().unwrap().iter().map(chapter).collect()
}

/// Start and title of each chapter of a list of ours.
fn ours(list: &Value) -> Vec<(f64, String)> {
    let chapter = |chapter: &Value| (chapter["start"].as_f64().unwrap(), chapter["title"].as_str().unwrap().to_owned());
    list.as_array().unwrap_or_else(|| panic!("{list}")).iter().map(chapter).collect()
}

#[test]
fn chapters_are_those_that_ffprobe_finds() {
    if !support::have("ffmpeg") || !support::have("ffprobe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let chapters = folder.path().join("chapters.txt");
    std::fs::write(&chapters, CHAPTERS).unwrap();
    for (name, options) in FILES {
        let input = clips::folder().join("h264_aac.mp4");
        let output = Command::new("ffmpeg")
            .args(["-v", "error", "-i"])
            .arg(input)
            .arg("-i")
            .arg(&chapters)
            .args(["-map", "0:v", "-map", "0:a", "-map_chapters", "1", "-c", "copy"])
            .args(options.split_whitespace())
            .arg(folder.path().join(name))
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
    }
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for (name, _) in FILES {
        let file = folder.path().join(name);
        let expected = probed(&file);
        assert_eq!(expected.len(), 3, "{name}: {expected:?}");
        let asset: Value = serde_json::from_slice(&server.get(&format!(".millpond/asset?path={name}")).body).unwrap();
        assert_eq!(ours(&asset["chapters"]), expected, "{name}: {asset}");
        let report = json_of(Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(&file));
        assert_eq!(ours(&report["chapters"]), expected, "{name}: {report}");
        // Titles of chapters are no subtitles, and no fault of the file.
        let kinds: Vec<&str> =
            asset["tracks"].as_array().unwrap().iter().map(|track| track["kind"].as_str().unwrap()).collect();
        assert_eq!((kinds, &report["left-out"]), (vec!["video", "audio"], &Value::Array(Vec::new())), "{name}");
        let list = server.get(&format!("{name}/index.m3u8")).text();
        assert!(!list.contains("SUBTITLES"), "{name}: {list}");
    }
    let plain = clips::folder().join("h264_aac.mp4");
    let report = json_of(Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(&plain));
    assert_eq!(report["chapters"], Value::Array(Vec::new()));
}
