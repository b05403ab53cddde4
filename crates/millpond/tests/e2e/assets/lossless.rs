//! PCM and G.711 become FLAC in HLS and DASH, without a change of a value.

use crate::support::{self, Server, clips, get};
use serde_json::Value;
use std::process::Command;

/// Names and arguments of clips, and bits of a value as FLAC.
const CLIPS: &[(&str, &str, u32)] = &[
    ("stereo.wav", "N -ar 44100 -ac 2 -c:a pcm_s16le", 16),
    ("surround.wav", "N -ac 6 -c:a pcm_s24le", 24),
    ("bytes.wav", "N -ar 22050 -c:a pcm_u8", 8),
    ("tone.aiff", "S -ac 2 -c:a pcm_s16be", 16),
    ("twos.mov", "N -ar 48000 -ac 2 -c:a pcm_s16be", 16),
    ("sowt.mov", "S -ac 1 -c:a pcm_s16le", 16),
    ("in24.mov", "N -ar 48000 -ac 2 -c:a pcm_s24le", 24),
    ("ulaw.mov", "N -ar 8000 -c:a pcm_mulaw", 16),
    ("alaw.mov", "N -ar 16000 -ac 2 -c:a pcm_alaw", 16),
    // Matroska with cues: the blocks of a segment are read with it.
    ("film.mkv", "V N -t 4 -ar 48000 -ac 2 -c:v libx264 -preset ultrafast -g 50 -bf 2 -c:a pcm_s16le", 16),
    ("in24.mkv", "V N -t 4 -ar 44100 -ac 2 -c:v libx264 -preset ultrafast -g 25 -c:a pcm_s24le", 24),
    ("door.mkv", "V N -t 4 -ar 8000 -c:v libx264 -preset ultrafast -g 50 -c:a pcm_mulaw", 16),
    ("alaw.mka", "N -ar 16000 -ac 2 -c:a pcm_alaw", 16),
    // Matroska with neither sizes nor cues.
    ("live.mkv", "V N -t 4 -ar 48000 -c:v libx264 -preset ultrafast -g 50 -c:a pcm_s16le -live 1", 16),
    ("film.mov", "V N -t 4 -ar 48000 -ac 2 -c:v libx264 -preset ultrafast -g 50 -bf 2 -c:a pcm_s16le", 16),
];

/// A folder with the clips, and a server of it. `None` where ffmpeg is missing.
fn served() -> Option<(tempfile::TempDir, Server)> {
    clips::served(CLIPS.iter().map(|(name, args, _)| (*name, *args)))
}

/// The values of the sound of an input, in 32 bits each.
fn values(input: &str) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i", input, "-map", "0:a", "-f", "s32le", "-"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !output.stdout.is_empty(), "{input}: {errors}");
    output.stdout
}

#[test]
fn hls_and_dash_have_the_values_of_the_file() {
    let Some((folder, server)) = served() else { return };
    for (clip, _, bits) in CLIPS {
        let expected = values(folder.path().join(clip).to_str().unwrap());
        for tail in ["index.m3u8", "index.mpd"] {
            let manifest = server.get(&format!("{clip}/{tail}"));
            assert_eq!(manifest.status, 200, "{clip}/{tail}: {}", manifest.text());
            assert!(manifest.text().contains("fLaC"), "{clip}: {}", manifest.text());
            let found = values(&server.url(&format!("{clip}/{tail}")));
            // An edit list may end the file's sound a few values early.
            let more = found.len().saturating_sub(expected.len());
            let is_same = found.starts_with(&expected) && more <= 2048;
            assert!(is_same, "{clip}/{tail}: {} bytes, the file has {}", found.len(), expected.len());
        }
        let init = server.get(&format!("{clip}/a1/init.mp4")).body;
        let info = init.windows(4).position(|four| four == b"dfLa").unwrap() + 4 + 4 + 4;
        // Bits per value less one, behind 20 bits of rate and 3 of channels (RFC 9639 8.2).
        let told = (u32::from(init[info + 12] & 1) << 4 | u32::from(init[info + 13] >> 4)) + 1;
        assert_eq!(told, *bits, "{clip}");
        let asset = server.get(&format!(".millpond/asset?path={clip}")).text();
        assert!(asset.contains("\"warnings\":[]") && asset.contains("\"codec\":\"fLaC\""), "{asset}");
    }
}

#[test]
fn probe_and_the_page_tell_the_codecs_of_the_manifests() {
    let beside = [
        ("two.mkv", "V N -t 4 -map 0 -map 1 -map 1 -c:v libx264 -preset ultrafast -c:a:0 pcm_mulaw -c:a:1 aac"),
        ("nine.wav", "-f s16le -ar 48000 -ac 9 -t 4 -i /dev/zero -c:a pcm_s16le"),
    ];
    let clips = CLIPS.iter().map(|(name, args, _)| (*name, *args)).chain(beside);
    let Some((folder, server)) = clips::served(clips.clone()) else { return };
    std::fs::copy(clips::folder().join("ipcm.mp4"), folder.path().join("ipcm.mp4")).unwrap();
    for clip in clips.map(|(name, _)| name).chain(["ipcm.mp4"]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
        let output = command.args(["probe", "--json"]).arg(folder.path().join(clip)).output().unwrap();
        let probed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let asset: Value = serde_json::from_slice(&server.get(&format!(".millpond/asset?path={clip}")).body).unwrap();
        let [list, mpd] = ["index.m3u8", "index.mpd"].map(|tail| server.get(&format!("{clip}/{tail}")).text());
        let (probed, asset) =
            (probed["presentation"]["tracks"].as_array().unwrap(), asset["tracks"].as_array().unwrap());
        assert_eq!(probed.len(), asset.len(), "{clip}");
        for (probed, asset) in probed.iter().zip(asset) {
            for field in ["name", "codec", "codec-name", "stored-codec", "becomes-flac", "listed"] {
                assert_eq!(probed[field], asset[field], "{clip}: {field}");
            }
            let (codec, is_listed) = (probed["codec"].as_str().unwrap(), probed["listed"] == true);
            assert_eq!(probed["becomes-flac"] == true, codec == "fLaC", "{clip}: {probed}");
            for manifest in [&list, &mpd] {
                assert_eq!(manifest.contains(codec), is_listed, "{clip}: {probed}: {manifest}");
            }
        }
    }
}

#[test]
fn values_of_more_than_24_bits_are_rounded() {
    let clips = [
        ("in32.mov", "N -ar 48000 -ac 2 -c:a pcm_s32le"),
        ("float.wav", "N -ar 44100 -c:a pcm_f32le"),
        ("double.mkv", "N -ar 48000 -c:a pcm_f64le"),
    ];
    let Some((folder, server)) = clips::served(clips) else { return };
    let of = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|four| i32::from_le_bytes(*four)).collect::<Vec<i32>>();
    for (clip, _) in clips {
        let expected = of(&values(folder.path().join(clip).to_str().unwrap()));
        let found = of(&values(&server.url(&format!("{clip}/index.m3u8"))));
        assert!(found.len().abs_diff(expected.len()) <= 512, "{clip}: {} values, {}", found.len(), expected.len());
        let most = found.iter().zip(&expected).map(|(found, expected)| found.abs_diff(*expected)).max();
        assert!(most.is_some_and(|most| most <= 256), "{clip}: {most:?} of 2^31");
        let asset = server.get(&format!(".millpond/asset?path={clip}")).text();
        assert!(asset.contains("rounded to 24 bits") && asset.contains("\"codec\":\"fLaC\""), "{asset}");
    }
}

#[test]
fn segments_have_a_length_ranges_and_the_same_bytes_each_time() {
    let Some((folder, server)) = served() else { return };
    for clip in ["stereo.wav", "film.mkv"] {
        assert_same_each_time(&server, folder.path().to_str().unwrap(), &format!("/{clip}/a1/1.m4s"));
    }
    assert_eq!(get(server.port, "/stereo.wav/a1/9.m4s", &[]).status, 404);
    // A tone takes much less than its values.
    let tone: usize = (1..=4).map(|number| server.get(&format!("tone.aiff/a1/{number}.m4s")).body.len()).sum();
    assert!(tone < 8 * 48_000 * 4 / 4, "{tone} bytes for 8 s");
}

/// Noise in eight channels: a segment has up to 8 MiB of frames, and `--memory` permits bodies of an eighth.
#[test]
fn segments_that_may_exceed_the_memory_are_refused_before_they_are_read() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let noise = "-f lavfi -i anoisesrc=a=0.9:r=96000:d=8 -ac 8 -c:a pcm_s24le";
    clips::make(&folder.path().join("hall.mov"), noise);
    let server = Server::start(&[folder.path().to_str().unwrap(), "--memory", "40MiB"]);
    let refused = server.get("hall.mov/a1/1.m4s");
    let text = refused.text();
    // Another attempt would fail too.
    assert_eq!((refused.status, refused.header("retry-after")), (500, None), "{text}");
    let told = " bytes of memory, expected at most 5242880: an eighth of the budget of 41943040 (memory)";
    assert!(text.contains(told), "{text}");
}

fn assert_same_each_time(server: &Server, folder: &str, path: &str) {
    let first = get(server.port, path, &[]);
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.header("content-length"), Some(&*first.body.len().to_string()));
    assert_eq!(first.header("content-type"), Some("audio/mp4"));
    for _ in 0..3 {
        assert!(get(server.port, path, &[]).body == first.body, "made anew, packed, and read from the pack");
    }
    let part = get(server.port, path, &[("Range", "bytes=1000-1999")]);
    assert!(part.status == 206 && part.body == first.body[1000..2000], "{}", part.status);
    let other = Server::start(&[folder, "--segment-duration", "2"]);
    assert!(get(other.port, path, &[]).body == first.body, "by another server");
}

/// The distance of cues is that of clusters here: 32 seconds of eight channels are 37 MB of FLAC.
#[test]
fn a_segment_of_flac_that_is_too_long_is_divided() {
    if !support::have("ffmpeg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("long.mkv");
    let form = "-c:a pcm_s24le -cluster_time_limit 32000 -cluster_size_limit 100000000";
    clips::make(&file, &format!("-f lavfi -i anullsrc=cl=7.1:r=48000:d=36 {form}"));
    let server = Server::start(&[place.path().to_str().unwrap(), "--memory", "1GiB"]);
    let count = || server.get("long.mkv/a1/index.m3u8").text().matches("#EXTINF").count();
    assert_eq!(count(), 2);
    let reply = server.get("long.mkv/a1/1.m4s");
    let told = "expected at most 33554432; load the playlist or manifest again";
    assert!(reply.status == 404 && reply.text().contains(told), "{}", reply.text());
    // From then on, the title plays with an index of all samples.
    assert_eq!(count(), 9);
    assert_eq!(server.get("long.mkv/a1/1.m4s").status, 200);
}
