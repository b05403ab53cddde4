//! Files with cues or an index of fragments whose pictures or sound pause, compared packet by packet with what ffmpeg reads.

use crate::support::{self, Server, clips};
use std::{path::Path, process::Command};

/// Names of files, and the arguments by which ffmpeg makes them. Where pictures are reordered, the picture behind a pause is decoded
/// before the pause. The sound of the pause then follows that picture in the file.
const FILES: [(&str, &str); 3] = [
    (
        "pictures.mkv",
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=21 -f lavfi -i sine=sample_rate=48000:duration=24 -vf setpts='if(gte(T,9.9),PTS+3/TB,PTS)' -fps_mode vfr -c:v libx264 -preset ultrafast -bf 2 -g 50 -force_key_frames expr:gte(t,n_forced*2) -c:a aac -b:a 64k",
    ),
    (
        "at_first.mkv",
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=21 -f lavfi -i sine=sample_rate=48000:duration=24 -vf setpts='if(gte(T,1.9),PTS+3/TB,PTS)' -fps_mode vfr -c:v libx264 -preset ultrafast -bf 2 -g 50 -force_key_frames expr:gte(t,n_forced*2) -c:a aac -b:a 64k -cues_to_front 1",
    ),
    (
        "sound.mkv",
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=40 -f lavfi -i sine=sample_rate=48000:duration=24 -af asetpts='if(gte(T,9.5),PTS+13/TB,PTS)' -c:v libx264 -preset ultrafast -bf 2 -g 50 -c:a aac -b:a 64k",
    ),
];
/// Fragmented files of the last one, and how ffmpeg writes them. Pictures and sound end together.
const FRAGMENTED: [(&str, &str); 2] = [
    ("sidx.mp4", "-t 36 -c copy -movflags +frag_keyframe+dash+global_sidx"),
    ("mfra.mp4", "-t 36 -c copy -movflags +frag_keyframe+empty_moov+default_base_moof"),
];
/// Seconds by which packets may lie outside of the stated times of their segment.
const TOLERANCE: f64 = 0.6;

/// Decoding time in seconds, size and checksum of each packet of a track.
fn packets(file: &Path, options: &[&str], map: &str) -> Vec<(f64, String)> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-copyts"]).args(options).arg("-i").arg(file);
    let output = command.args(["-map", map, "-c", "copy", "-f", "framecrc", "-"]).output().unwrap();
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let base = text.lines().find_map(|line| line.strip_prefix("#tb 0: 1/")).unwrap();
    let base: f64 = base.parse().unwrap();
    let packet = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        (fields[1].parse::<f64>().unwrap() / base, format!("{} {}", fields[4], fields[5]))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(packet).collect()
}

/// Duration and path of each segment of a track, and the path of its init segment.
fn listed(server: &Server, name: &str, track: &str) -> (String, Vec<(f64, String)>) {
    let multivariant = server.get(&format!("{name}/index.m3u8")).text();
    let playlist = multivariant.split(['"', '\n']).find(|part| part.ends_with(&format!("{track}/index.m3u8"))).unwrap();
    let base = format!("{name}/{}", playlist.strip_suffix("index.m3u8").unwrap());
    let text = server.get(&format!("{base}index.m3u8")).text();
    let mut lines = text.lines();
    let mut segments = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(duration) = line.strip_prefix("#EXTINF:") {
            let duration = duration.trim_end_matches(',').parse().unwrap();
            segments.push((duration, format!("{base}{}", lines.next().unwrap())));
        }
    }
    (format!("{base}init.mp4"), segments)
}

/// Gets a file that a playlist lists.
fn got(server: &Server, path: &str) -> Vec<u8> {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.body
}

#[test]
fn all_that_the_first_viewer_is_told_is_served() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, args) in FILES {
        clips::make(&folder.path().join(name), args);
    }
    let paused = folder.path().join("sound.mkv");
    for (name, args) in FRAGMENTED {
        clips::make(&folder.path().join(name), &format!("-i {} {args}", paused.display()));
    }
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "4"]);
    let scratch = tempfile::tempdir().unwrap();
    let part = scratch.path().join("part.mp4");
    for (name, _) in FILES.into_iter().chain(FRAGMENTED) {
        let mut before = Vec::new();
        for (track, map) in [("a1", "0:a"), ("v1", "0:v")] {
            let (init, segments) = listed(&server, name, track);
            let init = got(&server, &init);
            let bodies: Vec<Vec<u8>> = segments.iter().map(|(_, path)| got(&server, path)).collect();
            std::fs::write(&part, [&init[..], &bodies.concat()].concat()).unwrap();
            let whole = packets(&part, &["-ignore_editlist", "1"], map);
            let options = if name.ends_with(".mp4") { &["-ignore_editlist", "1"][..] } else { &[] };
            let source = packets(&folder.path().join(name), options, map);
            let data = |packets: &[(f64, String)]| packets.iter().map(|(_, data)| data.clone()).collect::<Vec<_>>();
            assert!(data(&whole) == data(&source), "{name}, {track}: {} of {} packets", whole.len(), source.len());
            // Each segment has the packets between its stated times.
            let (mut start, mut empty) = (0.0, 0);
            for ((duration, path), body) in segments.iter().zip(&bodies) {
                let end = start + duration;
                std::fs::write(&part, [&init[..], body].concat()).unwrap();
                let times: Vec<f64> = match count(body) {
                    0 => Vec::new(),
                    _ => packets(&part, &["-ignore_editlist", "1"], map).into_iter().map(|(time, _)| time).collect(),
                };
                empty += usize::from(times.is_empty());
                let is_within = |time: &f64| (start - TOLERANCE..end + TOLERANCE).contains(time);
                assert!(times.iter().all(is_within), "{path}: {times:?}, expected {start} to {end}");
                start = end;
            }
            // Thirteen seconds without sound have two segments without samples at least.
            let pauses = !["pictures.mkv", "at_first.mkv"].contains(&name) && track == "a1";
            assert_eq!(empty > 1, pauses, "{name}, {track}: {empty} without samples");
            before.extend(segments.into_iter().map(|(_, path)| path).zip(bodies));
        }
        assert!(!server.log_text().contains("the index of fragments is not used"), "{name}");
        // Transport streams need all samples.
        assert_eq!(server.get(&format!("{name}/ts/v1/index.m3u8")).status, 200, "{name}");
        for (path, body) in &before {
            assert!(got(&server, path) == *body, "{path}: other bytes when all samples are known");
        }
    }
}

/// Number of samples in the first run of a segment (`trun`, ISO/IEC 14496-12 8.8.8).
fn count(segment: &[u8]) -> u32 {
    let place = segment.windows(4).position(|kind| kind == b"trun").unwrap();
    u32::from_be_bytes(segment[place + 8..place + 12].try_into().unwrap())
}
