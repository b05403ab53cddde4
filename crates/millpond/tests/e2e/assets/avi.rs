//! AVI files: HLS has the packets of the file, and players show its pictures in the order and at the distances at which ffmpeg shows them.

use crate::support::{Server, clips, decode, have, missing};
use serde_json::Value;
use std::{path::Path, process::Command};

/// Clips: names, arguments, and whether a transport stream carries all tracks.
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
    clips::served(CLIPS.iter().map(|(name, args, _)| (*name, *args)))
}

/// Hashes of the packets of a stream that ffmpeg copies. `filters` bring the packets of all containers into one form.
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
        // The filters remove parameter sets, supplemental messages and delimiters, which MP4 has in other places.
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
fn pictures_are_shown_at_the_distances_of_ffmpeg() {
    let Some((folder, server)) = served() else { return };
    for (name, ..) in CLIPS {
        let file = folder.path().join(name);
        let expected = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
        for tail in ["index.m3u8", "index.mpd"] {
            let ours = decode::video(&["-i", &server.url(&format!("{name}/{tail}"))], "0:v").unwrap();
            // AVI states no times of presentation. ffmpeg delays pictures, but not sound, by the reordering that the parameter sets
            // permit. Here the first picture is shown at the beginning of the file.
            assert!(ours[0].time.abs() < 0.001, "{name}/{tail}: pictures begin at {} s", ours[0].time);
            decode::same_video(&ours, &expected, -expected[0].time, 0.001)
                .unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
        }
    }
}

#[test]
fn a_flash_and_a_beep_come_together() {
    if !have("ffmpeg") {
        return missing("ffmpeg");
    }
    let folder = tempfile::tempdir().unwrap();
    let flash = "color=black:size=320x180:rate=25:duration=3,drawbox=color=white:thickness=fill:enable='gte(t,1)'";
    let beep = "aevalsrc='if(gte(t,1),0.5*sin(2000*t+1),0)':sample_rate=48000:duration=3";
    for (name, options) in
        [("some", &["-bf", "3"][..]), ("few", &["-bf", "2", "-x264-params", "b-pyramid=none"]), ("none", &["-bf", "0"])]
    {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-f", "lavfi", "-i", flash, "-f", "lavfi", "-i", beep]);
        command.args(["-pix_fmt", "yuv420p", "-c:v", "libx264", "-qp", "20", "-g", "50"]).args(options);
        let made = command.args(["-c:a", "pcm_s16le"]).arg(folder.path().join(format!("{name}.avi"))).status().unwrap();
        assert!(made.success(), "{name}");
    }
    // The fourth picture, a B-frame, is damaged. The index tells that its time passes.
    let mut damaged = std::fs::read(folder.path().join("few.avi")).unwrap();
    let movi = damaged.windows(4).position(|four| four == b"movi").unwrap();
    let pictures: Vec<_> = (movi..damaged.len() - 4).filter(|at| &damaged[*at..*at + 4] == b"00dc").collect();
    damaged[pictures[3]..pictures[3] + 8].fill(0xff);
    std::fs::write(folder.path().join("damaged.avi"), damaged).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for name in ["some", "few", "none", "damaged"] {
        for tail in ["index.m3u8", "index.mpd"] {
            let url = server.url(&format!("{name}.avi/{tail}"));
            let pictures = decode::video(&["-i", &url], "0:v").unwrap();
            let flash = pictures.iter().find(|picture| picture.hash != pictures[0].hash).unwrap().time;
            let sound = decode::audio(&["-i", &url], "0:a").unwrap();
            let silent = sound.samples.iter().take_while(|byte| **byte == 0).count() / (4 * sound.channels);
            let beep = sound.start + silent as f64 / f64::from(sound.rate);
            assert!((flash - beep).abs() < 0.005, "{name}.avi/{tail}: a flash at {flash} s, a beep at {beep} s");
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

/// The report of `millpond probe --json` about a file.
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
