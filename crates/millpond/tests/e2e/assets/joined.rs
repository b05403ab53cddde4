//! Clips that were joined into one file, each with its own sample entry (`MP4Box -add a -cat b`).

use crate::support::{
    self, Server, clips,
    decode::{self, Frame},
};
use std::{path::Path, process::Command};

pub(super) const BASELINE: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -f lavfi -i sine=440:sample_rate=48000:duration=4 \
    -c:v libx264 -pix_fmt yuv420p -profile:v baseline -g 25 -c:a aac -aac_pns 0";
/// Delimiters precede the parameter sets of a picture.
pub(super) const LARGE: &str = "-f lavfi -i testsrc=size=640x360:rate=25:duration=4 -f lavfi -i sine=880:sample_rate=48000:duration=4 \
    -c:v libx264 -pix_fmt yuv420p -bf 3 -g 50 -x264-params aud=1 -c:a aac -aac_pns 0 -b:a 96k";
const HEVC: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -c:v libx265 -tag:v hvc1 -x265-params log-level=error:keyint=25";
const VP9: &str =
    "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -c:v libvpx-vp9 -g 25 -deadline realtime -cpu-used 8";
const AV1: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -c:v libsvtav1 -g 25 -preset 12";

/// Makes a clip of each of `all`, and joins them as `name`. Returns the pictures of the clips.
pub(super) fn join(folder: &Path, name: &str, all: &[&str]) -> Vec<Frame> {
    let scratch = tempfile::tempdir().unwrap();
    let mut pictures: Vec<Frame> = Vec::new();
    let mut files = Vec::new();
    for (number, args) in all.iter().enumerate() {
        let file = scratch.path().join(format!("{number}.mp4"));
        clips::make(&file, args);
        let start = pictures.len() as f64 / 25.0;
        let own = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap_or_default();
        pictures.extend(own.into_iter().map(|frame| Frame { time: frame.time + start, ..frame }));
        files.push(file);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/support/join.py");
    let status = Command::new("python3").arg(script).arg(folder.join(name)).args(&files).status().unwrap();
    assert!(status.success(), "{name}");
    pictures
}

/// Whether two lists of pictures have the same hashes.
pub(super) fn same(ours: &[Frame], expected: &[Frame]) -> Result<(), String> {
    let hashes = |frames: &[Frame]| frames.iter().map(|frame| frame.hash.clone()).collect::<Vec<_>>();
    let (ours, expected) = (hashes(ours), hashes(expected));
    if ours == expected {
        return Ok(());
    }
    let first = ours.iter().zip(&expected).position(|(a, b)| a != b);
    Err(format!("{} pictures, expected {}, first other {first:?}", ours.len(), expected.len()))
}

#[test]
fn pictures_of_joined_clips_are_those_of_the_clips() {
    if !support::have("ffmpeg") || !support::have("python3") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let small = LARGE.replace("640x360", "320x180");
    let large_hevc = HEVC.replace("320x180", "640x360");
    let (large_vp9, large_av1) = (VP9.replace("320x180", "640x360"), AV1.replace("320x180", "640x360"));
    let everywhere = ["index.m3u8", "index.mpd", "ts/index.m3u8", "rtsp"];
    let joined: [(&str, &[&str], &str, &[&str]); 5] = [
        ("alike.mp4", &[BASELINE, &small], "avc3.64", &everywhere),
        ("sizes.mp4", &[BASELINE, LARGE, BASELINE], "avc3.64", &everywhere),
        ("hevc.mp4", &[HEVC, &large_hevc], "hev1.1", &everywhere),
        ("vp9.mp4", &[VP9, &large_vp9], "vp09.00", &["index.m3u8", "index.mpd", "rtsp"]),
        ("av1.mp4", &[AV1, &large_av1], "av01.0", &["index.m3u8", "index.mpd"]),
    ];
    let expected: Vec<_> = joined.iter().map(|(name, all, ..)| join(folder, name, all)).collect();
    let server = Server::start(&[folder.to_str().unwrap(), "--segment-duration", "2"]);
    for ((name, all, codec, tails), pictures) in joined.iter().zip(&expected) {
        assert_eq!(pictures.len(), 100 * all.len(), "{name}");
        for tail in *tails {
            let url = match *tail {
                "rtsp" => format!("rtsp://127.0.0.1:{}/{name}", server.rtsp),
                tail => server.url(&format!("{name}/{tail}")),
            };
            let input: &[&str] = if *tail == "rtsp" { &["-rtsp_transport", "tcp", "-i", &url] } else { &["-i", &url] };
            let ours = decode::video(input, "0:v").unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            same(&ours, pictures).unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            if let "index.m3u8" | "index.mpd" = *tail {
                decode::same_video(&ours, pictures, 0.0, 0.001)
                    .unwrap_or_else(|error| panic!("{name}/{tail}: {error}"));
            }
        }
        let playlist = server.get(&format!("{name}/index.m3u8")).text();
        assert!(playlist.contains(&format!("CODECS=\"{codec}")), "{name}: {playlist}");
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        assert!(mpd.contains(&format!("codecs=\"{codec}")), "{name}: {mpd}");
    }
    for name in ["alike.mp4", "sizes.mp4"] {
        let file = folder.join(name);
        let sound = decode::audio(&["-i", file.to_str().unwrap()], "0:a").unwrap();
        let url = server.url(&format!("{name}/index.m3u8"));
        let heard = decode::audio(&["-i", &url], "0:a").unwrap();
        decode::same_audio(&heard, &sound, 0.0, 1.0 / 48_000.0).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    parts_stand_alone(&server, folder, &expected[1]);
}

/// Segments, single pictures and thumbnails of the second clip in `sizes.mp4` need nothing of the first.
fn parts_stand_alone(server: &Server, folder: &Path, pictures: &[Frame]) {
    let decoded = |name: &str, parts: &[&str]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| server.get(&format!("sizes.mp4/{part}")).body).collect();
        let file = folder.join(name);
        std::fs::write(&file, bytes).unwrap();
        let frames = decode::video(&["-i", file.to_str().unwrap()], "0:v");
        std::fs::remove_file(file).unwrap();
        frames.unwrap_or_else(|error| panic!("{parts:?}: {error}"))
    };
    same(&decoded("part.mp4", &["v1/init.mp4", "v1/4.m4s"]), &pictures[150..200]).unwrap();
    same(&decoded("part.ts", &["ts/v1/4.ts"]), &pictures[150..200]).unwrap();
    // A key frame each second, then each two seconds.
    same(&decoded("still.mp4", &["v1/i6.mp4"]), &pictures[150..151]).unwrap();
    same(&decoded("again.mp4", &["v1/i7.mp4"]), &pictures[200..201]).unwrap();
    let image = |number: u32| server.get(&format!("sizes.mp4/v1/i{number}.jpg"));
    for number in [1, 5, 6, 7] {
        assert_eq!(image(number).status, 200, "{number}: {}", image(number).text());
    }
    // At any place a player is sent the parameter sets of that place.
    let url = format!("rtsp://127.0.0.1:{}/sizes.mp4", server.rtsp);
    let ours = decode::video(&["-rtsp_transport", "tcp", "-ss", "6", "-i", &url], "0:v").unwrap();
    same(&ours, &pictures[150..]).unwrap();
}

#[test]
fn what_cannot_follow_is_left_out_and_named() {
    if !support::have("ffmpeg") || !support::have("python3") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let longer = BASELINE.replace("duration=4", "duration=8");
    // Layer and rate of MPEG audio are told by its frames, which are not read for each clip.
    let other = LARGE.replace("-c:a aac -aac_pns 0 -b:a 96k", "-c:a libmp3lame");
    let pictures = join(place.path(), "rates.mp4", &[&longer, &other]);
    let file = place.path().join("rates.mp4").display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["probe", &file]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = "expected entries whose samples can follow those of entry 1 (mp4a.40.2, 48000 Hz, 1 channels): they are left out";
    assert!(text.contains(line), "{text}");
    let server = Server::start(&[place.path().to_str().unwrap()]);
    let url = server.url("rates.mp4/index.m3u8");
    same(&decode::video(&["-i", &url], "0:v").unwrap(), &pictures).unwrap();
    let sound = decode::audio(&["-i", &url], "0:a").unwrap();
    let seconds = sound.samples.len() as f64 / 4.0 / 48_000.0;
    assert!((8.0..8.1).contains(&seconds), "{seconds} s of sound");
    assert!(server.log_text().contains("they are left out"), "{}", server.log_text());
}
