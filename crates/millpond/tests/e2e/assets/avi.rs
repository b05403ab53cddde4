//! AVI files: HLS has the packets of the file, and players show its pictures in the order and at the times at which ffmpeg shows them.

use crate::support::{self, Server, clips, decode};
use serde_json::Value;
use std::{path::Path, process::Command};

/// Names and arguments of clips, and whether a transport stream has all of their tracks.
const CLIPS: &[(&str, &str, bool)] = &[
    ("h264_mp3.avi", "V S -t 6 -c:v libx264 -preset veryfast -g 50 -bf 3 -c:a libmp3lame", true),
    ("h264_slices_ac3.avi", "V S -t 6 -c:v libx264 -preset ultrafast -g 50 -slices 4 -c:a ac3", true),
    (
        "hevc_mp3.avi",
        "V S -t 6 -c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=3 -vtag HEVC -c:a libmp3lame",
        true,
    ),
    ("h264_pcm.avi", "V N -t 6 -c:v libx264 -preset veryfast -g 50 -bf 2 -ar 48000 -ac 2 -c:a pcm_s16le", false),
    ("vp8_pcm.avi", "V N -t 6 -c:v libvpx -b:v 500k -g 50 -deadline realtime -ar 48000 -ac 2 -c:a pcm_s16le", false),
];

/// A folder with the clips, and a server of it. `None` where ffmpeg is missing.
fn served() -> Option<(tempfile::TempDir, Server)> {
    if !support::have("ffmpeg") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, args, _) in CLIPS {
        clips::make(&folder.path().join(name), args);
    }
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    Some((folder, server))
}

/// Hashes of the packets of a stream that ffmpeg copies. Filters make packets of all containers alike.
fn packets(input: &str, map: &str, filters: &str) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", map, "-c", "copy"]);
    if !filters.is_empty() {
        command.args(["-bsf", filters]);
    }
    let output = command.args(["-f", "framemd5", "-"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let packets = text.lines().filter(|line| !line.starts_with('#'));
    let hashes: Vec<_> = packets.filter_map(|line| line.split(',').nth(5)).map(|hash| hash.trim().to_owned()).collect();
    assert!(!hashes.is_empty(), "{input} {map}: {}", String::from_utf8_lossy(&output.stderr));
    hashes
}

#[test]
fn hls_has_the_packets_of_the_file() {
    let Some((folder, server)) = served() else { return };
    for (name, _, fits_ts) in CLIPS {
        let file = folder.path().join(name);
        let file = file.to_str().unwrap();
        // Without parameter sets, supplements and delimiters, which stand elsewhere in MP4.
        let filters = match name {
            name if name.starts_with("h264") => "h264_mp4toannexb,filter_units=remove_types=6-9",
            name if name.starts_with("hevc") => "hevc_mp4toannexb,filter_units=remove_types=32-35|39-40",
            _ => "",
        };
        let outputs: &[&str] = if *fits_ts { &["index.m3u8", "ts/index.m3u8"] } else { &["index.m3u8"] };
        for tail in outputs {
            let url = server.url(&format!("{name}/{tail}"));
            assert!(packets(&url, "0:v", filters) == packets(file, "0:v", filters), "{name}/{tail}: pictures differ");
            if *fits_ts {
                assert!(packets(&url, "0:a", "") == packets(file, "0:a", ""), "{name}/{tail}: sound differs");
            }
        }
    }
}

#[test]
fn pictures_are_shown_when_ffmpeg_shows_them() {
    let Some((folder, server)) = served() else { return };
    for (name, ..) in CLIPS {
        let file = folder.path().join(name);
        let expected = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
        for tail in ["index.m3u8", "index.mpd"] {
            let ours = decode::video(&["-i", &server.url(&format!("{name}/{tail}"))], "0:v").unwrap();
            // AVI states no times. ffmpeg delays pictures by as many as the parameter sets permit to be reordered, and Millpond by as
            // many as are: the whole film may begin a picture earlier.
            let apart = expected.first().zip(ours.first()).map_or(0.0, |(theirs, ours)| theirs.time - ours.time);
            assert!((-0.001..0.041).contains(&apart), "{name}/{tail}: pictures begin {apart} s earlier");
            decode::same_video(&ours, &expected, -apart, 0.001)
                .unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
        }
    }
}

#[test]
fn sound_has_the_values_of_the_file() {
    let Some((folder, server)) = served() else { return };
    for (name, ..) in CLIPS {
        let file = folder.path().join(name);
        let expected = decode::audio(&["-i", file.to_str().unwrap()], "0:a").unwrap();
        let heard = decode::audio(&["-i", &server.url(&format!("{name}/index.m3u8"))], "0:a").unwrap();
        decode::same_audio(&heard, &expected, 0.0, 0.002).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// What `millpond probe --json` tells of a file.
fn probed(file: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(file).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn files_are_listed_and_others_named_with_the_command_that_helps() {
    let Some((folder, server)) = served() else { return };
    clips::make(&folder.path().join("old.avi"), "V S -t 2 -c:v mpeg4 -vtag XVID -c:a libmp3lame");
    let duration = probed(&folder.path().join("vp8_pcm.avi"))["presentation"]["duration"].as_f64().unwrap();
    assert!((duration - 6.0).abs() < 0.1, "{duration}");
    let listing: Value = serde_json::from_str(&server.get(".millpond/assets").text()).unwrap();
    let listed = listing["assets"].to_string();
    assert!(CLIPS.iter().all(|(name, ..)| listed.contains(name)), "{listing}");
    let refused = server.get("old.avi/index.m3u8");
    assert_eq!(refused.status, 422, "{}", refused.text());
    let told = refused.text();
    for part in ["MPEG-4 Part 2 video (XVID) is not supported", "ffmpeg -i old.avi ", "old.mp4"] {
        assert!(told.contains(part), "{told}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("probe").arg(folder.path().join("old.avi")).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("(XVID)") && errors.contains("ffmpeg -i "), "{errors}");
}
