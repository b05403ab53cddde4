//! Sound that ends within a packet (`DiscardPadding` of Matroska), compared with what ffmpeg decodes.

use crate::support::{self, Server, decode};
use serde_json::Value;
use std::{path::Path, process::Command};

const OPUS: &str = "-f lavfi -i sine=sample_rate=48000:duration=3.3";
const FILM: &str = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=3";
/// Samples of a packet, and samples that Opus decodes before the first one that is heard.
const PACKET: usize = 960;
const PRE_SKIP: usize = 312;
/// Seconds by which times of Matroska differ from the true ones.
const ROUNDED: f64 = 0.0025;

/// Duration of a file as `millpond probe` tells it: its index has all samples.
fn probed(file: &Path) -> f64 {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", "--json"]).arg(file).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["presentation"]["duration"].as_f64().unwrap()
}

/// Sum of the durations of a playlist's segments.
fn listed(playlist: &str) -> f64 {
    let durations = playlist.lines().filter_map(|line| line.strip_prefix("#EXTINF:")?.split(',').next());
    durations.map(|duration| duration.parse::<f64>().unwrap()).sum()
}

#[test]
fn sound_ends_where_the_file_says() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A file that is written live has neither cues nor tags: all of it is read.
    for (name, args) in [
        ("sound.mka", format!("{OPUS} -c:a libopus -ac 2")),
        ("live.mka", format!("{OPUS} -c:a libopus -ac 2 -live 1")),
        ("film.mkv", format!("{FILM} {OPUS} -c:v libx264 -preset ultrafast -g 25 -c:a libopus -ac 2")),
    ] {
        let output = folder.path().join(name);
        let made = Command::new("ffmpeg").args(["-v", "error"]).args(args.split_whitespace()).arg(output).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{name}: {made:?}");
    }
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for name in ["sound.mka", "live.mka", "film.mkv"] {
        let file = folder.path().join(name);
        let source = decode::audio(&["-i", file.to_str().unwrap()], "0:a").unwrap();
        let frame = 4 * source.channels;
        let count = source.samples.len() / frame;
        // The file has more packets than sound: otherwise this proves nothing.
        assert_ne!(count % PACKET, PACKET - PRE_SKIP, "{name}");
        let seconds = count as f64 / 48_000.0;
        let all = probed(&file);
        assert!((all - seconds).abs() < ROUNDED, "{name}: {all} s, ffmpeg decodes {seconds} s");
        let list = server.get(&format!("{name}/a1/index.m3u8")).text();
        assert!((listed(&list) - seconds).abs() < ROUNDED, "{name}: {list}, ffmpeg decodes {seconds} s");
        for tail in ["index.m3u8", "index.mpd"] {
            let url = server.url(&format!("{name}/{tail}"));
            let heard = decode::audio(&["-i", &url], "0:a").unwrap();
            decode::same_audio(&heard, &source, 0.0, 0.002).unwrap_or_else(|e| panic!("{name}/{tail}: {e}"));
            // ffmpeg decodes the whole of the last packet: fragments have no padding.
            let more = heard.samples.len() / frame - count;
            assert!(more < PACKET + PRE_SKIP, "{name}/{tail}: {more} samples more than the file");
        }
    }
}
