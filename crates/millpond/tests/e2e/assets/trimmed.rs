//! Films that were cut without coding them anew. Their first picture needs pictures that nobody may see.

use crate::support::{self, Server, clips, decode};
use std::path::Path;

const FILM: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=14";
const SOUND: &str = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=14";
/// Without noise substitution, which is random.
const AAC: &str = "-c:a aac -aac_pns 0";

/// Cuts a film of these arguments at `second`. `timescale` is that of its pictures.
fn cut(folder: &Path, name: &str, args: &str, second: f64, timescale: &str) {
    let source = folder.join(format!("source_{name}"));
    clips::make(&source, args);
    let of = format!("-ss {second} -i {} -c copy {timescale}", source.display());
    clips::make(&folder.join(name), &of);
    std::fs::remove_file(source).unwrap();
}

/// The time at which players are told to start.
fn start(playlist: &str) -> f64 {
    let line = playlist.lines().find_map(|line| line.strip_prefix("#EXT-X-START:TIME-OFFSET=")).expect(playlist);
    line.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_film_begins_with_the_picture_of_its_edit() {
    if !support::have("ffmpeg") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let avc = "-c:v libx264 -pix_fmt yuv420p -sc_threshold 0";
    cut(folder, "groups.mp4", &format!("{FILM} {SOUND} {avc} -g 50 -bf 3 {AAC}"), 3.3, "");
    cut(folder, "one.mp4", &format!("{FILM} {SOUND} {avc} -g 1000 {AAC}"), 8.3, "");
    // Cameras of phones count 600 ticks a second.
    cut(folder, "coarse.mp4", &format!("{FILM} {SOUND} {avc} -g 1000 -bf 2 {AAC}"), 8.3, "-video_track_timescale 600");
    let late = SOUND.replace("-f lavfi", "-itsoffset 5 -f lavfi");
    cut(folder, "late.mp4", &format!("{FILM} {late} {avc} -g 50 {AAC}"), 3.3, "");
    let hevc = "-c:v libx265 -x265-params log-level=error:keyint=50:bframes=3 -tag:v hvc1";
    cut(folder, "hevc.mp4", &format!("{FILM} {SOUND} {hevc} {AAC}"), 3.3, "");
    let server = Server::start(&[folder.to_str().unwrap(), "--segment-duration", "2"]);
    for name in ["groups.mp4", "one.mp4", "coarse.mp4", "late.mp4", "hevc.mp4"] {
        let file = folder.join(name);
        let input = ["-i", file.to_str().unwrap()];
        let pictures = decode::video(&input, "0:v").unwrap();
        let sound = decode::audio(&input, "0:a").unwrap();
        for (tail, base) in [("index.m3u8", 0.0), ("index.mpd", 0.0), ("ts/index.m3u8", 10.0)] {
            let url = server.url(&format!("{name}/{tail}"));
            let ours = decode::video(&["-i", &url], "0:v").unwrap();
            assert!(decode::hidden(&ours, base) > 10, "{name}/{tail}: no hidden pictures");
            assert!(ours.iter().all(|frame| frame.time >= base), "{name}/{tail}: players drop pictures before 0");
            decode::same_video(&ours, &pictures, base, 1.0 / 600.0).unwrap_or_else(|e| panic!("{name}/{tail}: {e}"));
            let heard = decode::audio(&["-i", &url], "0:a").unwrap();
            decode::same_audio(&heard, &sound, base, 1.0 / 48_000.0).unwrap_or_else(|e| panic!("{name}/{tail}: {e}"));
        }
        // Players start while the first picture is shown, so that they show none of the hidden ones.
        for tail in ["v1/index.m3u8", "a1/index.m3u8", "ts/v1/index.m3u8"] {
            let start = start(&server.get(&format!("{name}/{tail}")).text());
            assert!((0.02..0.04).contains(&start), "{name}/{tail}: {start}");
        }
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        assert!(!mpd.contains("t=\"0\""), "{name}: {mpd}");
    }
}
