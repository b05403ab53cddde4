//! Recordings of transport streams: several programmes in one file, and several recordings that were joined.

use super::{
    joined::{BASELINE, LARGE, same},
    joined_periods::{decoded, stretches},
};
use crate::support::{self, Server, clips, decode};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

/// Two programmes with numbers and names, and with different pictures and sound. One name needs a character table.
const MULTIPLEX: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -f lavfi -i sine=440:sample_rate=48000:duration=4 \
    -f lavfi -i testsrc=size=192x108:rate=25:duration=4 -f lavfi -i sine=880:sample_rate=44100:duration=4 \
    -map 0 -map 1 -map 2 -map 3 -c:v libx264 -pix_fmt yuv420p -g 25 -bf 2 -c:a aac -aac_pns 0 \
    -program title=Eins:program_num=7:st=0:st=1 -program title=Südwest:program_num=8:st=2:st=3";

fn json_of(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command:?}: {error}"))
}

fn probed(target: &Path) -> Value {
    json_of(Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(target))
}

/// Number and name of each programme that ffprobe finds.
fn programmes_of(file: &Path) -> Vec<(u64, String)> {
    let found = json_of(Command::new("ffprobe").args(["-v", "error", "-show_programs", "-of", "json"]).arg(file));
    let programme = |programme: &Value| {
        let name = programme["tags"]["service_name"].as_str().unwrap().to_owned();
        (programme["program_id"].as_u64().unwrap(), name)
    };
    found["programs"].as_array().unwrap().iter().map(programme).collect()
}

/// Number and name of each programme of a list of ours.
fn listed(list: &Value) -> Vec<(u64, String)> {
    let programme = |p: &Value| (p["number"].as_u64().unwrap(), p["name"].as_str().unwrap_or_default().to_owned());
    list.as_array().unwrap_or_else(|| panic!("{list}")).iter().map(programme).collect()
}

#[test]
fn a_viewer_chooses_a_programme_of_a_multiplex() {
    if !support::have("ffmpeg") || !support::have("ffprobe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mux.ts");
    clips::make(&file, MULTIPLEX);
    let expected = programmes_of(&file);
    assert_eq!(expected, [(7, "Eins".to_owned()), (8, "Südwest".to_owned())]);
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    let input = ["-i", file.to_str().unwrap()];
    for (name, number, rate) in [("mux.ts", 0, 48_000), ("mux.ts/7", 0, 48_000), ("mux.ts/8", 1, 44_100)] {
        let pictures = decode::video(&input, &format!("0:v:{number}")).unwrap();
        assert_eq!(pictures.len(), 100);
        for tail in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
            let url = server.url(&format!("{name}/{tail}"));
            let ours = decode::video(&["-i", &url], "0:v").unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            same(&ours, &pictures).unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            let sound = decode::audio(&["-i", &url], "0:a").unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            assert_eq!(sound.rate, rate, "{name}/{tail}");
        }
        let url = format!("rtsp://127.0.0.1:{}/{name}", server.rtsp);
        let ours = decode::video(&["-rtsp_transport", "tcp", "-i", &url], "0:v").unwrap();
        same(&ours, &pictures).unwrap_or_else(|error| panic!("{name} by RTSP: {error}"));
        assert_eq!(server.get(&format!("{name}/v1/i1.jpg")).status, 200, "{name}");
        let asset: Value = serde_json::from_slice(&server.get(&format!(".millpond/asset?path={name}")).body).unwrap();
        assert_eq!(listed(&asset["programmes"]), expected, "{name}: {asset}");
        let paths: Vec<&Value> = asset["programmes"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
        // The first one plays without its number too: then its index serves both.
        let path_of = |place: usize| if place == number { name } else { ["mux.ts", "mux.ts/8"][place] };
        assert_eq!(paths, [&json!(path_of(0)), &json!(path_of(1))], "{name}");
    }
    let missing = server.get("mux.ts/9/index.m3u8");
    let why = missing.text();
    assert!(missing.status == 404 && why.contains("no programme 9") && why.contains("7 (Eins), 8 ("), "{why}");
    // Guessed numbers cost nothing. Of a file that nobody has opened, the beginning is read once.
    fs::copy(&file, folder.path().join("new.ts")).unwrap();
    let failed = || server.metric("millpond_index_builds_total", "outcome=\"failed\"");
    let before = failed();
    for number in (100..160).chain([65_535, 99_999]) {
        for name in ["mux.ts", "new.ts"] {
            assert_eq!(server.get(&format!("{name}/{number}/index.m3u8")).status, 404, "{name}/{number}");
        }
    }
    assert_eq!(failed() - before, 1.0);
    assert_eq!(server.get("other.ts/7/index.m3u8").status, 404);
    for (target, width) in [("mux.ts", "320x180"), ("mux.ts/8", "192x108")] {
        let report = probed(&folder.path().join(target));
        assert_eq!(listed(&report["programmes"]), expected, "{target}: {report}");
        assert_eq!(report["tracks"][0]["what"], width, "{target}: {report}");
        assert_eq!(report["left-out"], json!([]), "{target}");
    }
}

/// Makes clips as transport streams, and joins their bytes as `name`. Returns the pictures and the sound of each.
fn join(folder: &Path, name: &str, all: &[&str]) -> Vec<(Vec<decode::Frame>, decode::Sound)> {
    let scratch = tempfile::tempdir().unwrap();
    let (mut bytes, mut clips) = (Vec::new(), Vec::new());
    for (number, args) in all.iter().enumerate() {
        let file = scratch.path().join(format!("{number}.ts"));
        clips::make(&file, args);
        let input = ["-i", file.to_str().unwrap()];
        clips.push((decode::video(&input, "0:v").unwrap(), decode::audio(&input, "0:a").unwrap()));
        bytes.extend(fs::read(file).unwrap());
    }
    fs::write(folder.join(name), bytes).unwrap();
    clips
}

/// Asserts that pictures are the pictures of a recording. The last picture may be missing where the next recording begins.
fn assert_recorded(ours: &[decode::Frame], recorded: &[decode::Frame], name: &str) {
    assert!((recorded.len() - 1..=recorded.len()).contains(&ours.len()), "{name}: {} pictures", ours.len());
    same(ours, &recorded[..ours.len()]).unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn joined_recordings_of_two_sizes_are_periods() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let slower = LARGE.replace("-b:a 96k", "-ar 44100");
    let all: [(&str, &str, [u32; 2]); 2] = [("sizes.ts", LARGE, [48_000; 2]), ("rates.ts", &slower, [48_000, 44_100])];
    let recorded: Vec<_> = all.iter().map(|(name, args, _)| join(place.path(), name, &[BASELINE, args])).collect();
    let server = Server::start(&[place.path().to_str().unwrap(), "--segment-duration", "2"]);
    for ((name, _, rates), clips) in all.iter().zip(&recorded) {
        let video = stretches(&server, name, "v1/index.m3u8");
        let audio = stretches(&server, name, "a1/index.m3u8");
        assert_eq!((video.len(), audio.len()), (2, 2), "{name}");
        for (number, (pictures, sound)) in clips.iter().enumerate() {
            let ours = decoded(scratch.path(), &video[number], |input| decode::video(input, "0:v"));
            assert_recorded(&ours, pictures, &format!("{name}, recording {number}"));
            let heard = decoded(scratch.path(), &audio[number], |input| decode::audio(input, "0:a"));
            assert_eq!((heard.rate, heard.channels), (rates[number], sound.channels), "{name}, recording {number}");
            // ffmpeg shows pictures late where composition offsets are below 0.
            let late = (heard.start - ours[0].time) - (sound.start - pictures[0].time);
            assert!(late.abs() < 0.15, "{name}, recording {number}: sound is late by {late} s");
            assert!((ours[0].time - 4.0 * number as f64).abs() < 0.3, "{name}: {} s", ours[0].time);
        }
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        assert_eq!(mpd.matches("<Period").count(), 2, "{name}: {mpd}");
        // ffmpeg plays one period.
        let url = server.url(&format!("{name}/index.mpd"));
        let ours = decode::video(&["-i", &url], "0:v").unwrap();
        assert!(clips.iter().any(|(pictures, _)| ours[0].hash == pictures[0].hash), "{name}");
        let text = probed(&place.path().join(name)).to_string();
        assert!(text.contains("they are played by HLS and DASH, and left out of RTSP"), "{name}: {text}");
    }
}

#[test]
fn joined_recordings_of_one_size_are_one_timeline() {
    if !support::have("ffmpeg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    // The second recording has earlier times, and other PIDs.
    let second = BASELINE.replace("testsrc2", "testsrc") + " -mpegts_start_pid 0x200";
    let clips = join(place.path(), "joined.ts", &[BASELINE, &second]);
    let server = Server::start(&[place.path().to_str().unwrap(), "--segment-duration", "2"]);
    for tail in ["index.m3u8", "ts/index.m3u8", "index.mpd"] {
        let ours = decode::video(&["-i", &server.url(&format!("joined.ts/{tail}"))], "0:v").unwrap();
        let (first, last) = ours.split_at(ours.len() - 100);
        assert_recorded(first, &clips[0].0, tail);
        same(last, &clips[1].0).unwrap_or_else(|error| panic!("{tail}: {error}"));
        let pauses = ours.windows(2).map(|two| two[1].time - two[0].time);
        let longest = pauses.fold(0.0, f64::max);
        assert!(longest < 0.15, "{tail}: a pause of {longest} s");
    }
    let list = server.get("joined.ts/v1/index.m3u8").text();
    assert!(!list.contains("DISCONTINUITY"), "{list}");
    assert_eq!(server.get("joined.ts/index.m3u8").text().matches("v1/index.m3u8").count(), 1);
}
