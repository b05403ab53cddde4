//! Where decoding begins, what is said of it, and what a clock tells: files whose tables lie, as players see them.

use crate::support::{self, Server, clips, decode};
use std::{path::Path, process::Command};

/// Parts of a server's TS playlist, in order.
fn segments(server: &Server, playlist: &str) -> Vec<Vec<u8>> {
    let folder = playlist.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text = server.get(playlist).text();
    let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(|name| server.get(&format!("{folder}/{name}")).body).collect()
}

/// The first NAL unit types of an H.264 picture's start of a segment, up to its first slice.
fn first_units(segment: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    for packet in segment.chunks(188).filter(|p| p[1] & 0x1f == 1 && p[2] == 0).take(40) {
        let skip = if packet[3] & 0x20 != 0 { 1 + usize::from(packet[4]) } else { 0 };
        payload.extend_from_slice(&packet[4 + skip..]);
    }
    let mut units = Vec::new();
    for window in payload.windows(5).filter(|w| w[..4] == [0, 0, 0, 1]) {
        units.push(window[4] & 0x1f);
        if matches!(window[4] & 0x1f, 1..=5) {
            break;
        }
    }
    units
}

fn box_at(file: &[u8], kind: &[u8; 4]) -> usize {
    file.windows(4).position(|four| four == kind).unwrap() - 4
}

/// A clip of eight seconds with a key frame every two, changed by `change` into another file.
fn changed(folder: &Path, name: &str, args: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let source = folder.join(format!("source_{name}"));
    clips::make(&source, args);
    let mut file = std::fs::read(&source).unwrap();
    std::fs::remove_file(&source).unwrap();
    change(&mut file);
    std::fs::write(folder.join(name), file).unwrap();
}

const PICTURES: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=8 -c:v libx264 -g 50 -keyint_min 50 -bf 2";

fn durations(playlist: &str) -> Vec<f64> {
    let lines = playlist.lines().filter_map(|line| line.strip_prefix("#EXTINF:"));
    lines.map(|line| line.trim_end_matches(',').parse().unwrap()).collect()
}

#[test]
fn segments_begin_with_key_frames_where_all_samples_are_flagged() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Without a table of sync samples every sample is one (ISO/IEC 14496-12 8.6.2).
    changed(folder.path(), "lies.mp4", PICTURES, |file| {
        let stss = box_at(file, b"stss");
        file[stss + 4..stss + 8].copy_from_slice(b"free");
    });
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "1"]);
    let playlist = server.get("lies.mp4/v1/index.m3u8").text();
    assert_eq!(durations(&playlist), [2.0; 4], "{playlist}");
    assert!(playlist.contains("#EXT-X-INDEPENDENT-SEGMENTS"), "{playlist}");
    let segments = segments(&server, "lies.mp4/ts/v1/index.m3u8");
    assert_eq!(segments.len(), 4);
    for (number, segment) in segments.iter().enumerate() {
        let units = first_units(segment);
        assert_eq!(units.last(), Some(&5), "segment {number} begins with {units:?}");
        assert!(units.contains(&7) && units.contains(&8), "segment {number} begins with {units:?}");
        // Decoded alone, all its pictures come out.
        let file = folder.path().join("segment.ts");
        std::fs::write(&file, segment).unwrap();
        assert_eq!(decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap().len(), 50, "segment {number}");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_first_key_frame_that_no_table_lists_has_its_parameter_sets() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The table begins with the second key frame, the first entry repeated.
    changed(folder.path(), "late.mp4", PICTURES, |file| {
        let stss = box_at(file, b"stss");
        let second: [u8; 4] = file[stss + 20..stss + 24].try_into().unwrap();
        file[stss + 16..stss + 20].copy_from_slice(&second);
    });
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    let first = segments(&server, "late.mp4/ts/v1/index.m3u8").remove(0);
    let units = first_units(&first);
    assert!(units.contains(&7) && units.contains(&8) && units.contains(&5), "{units:?}");
    let url = server.url("late.mp4/ts/index.m3u8");
    assert_eq!(decode::video(&["-i", &url], "0:v").unwrap().len(), 200);
    assert!(server.get("late.mp4/index.mpd").text().contains("startWithSAP=\"1\""));
}

#[test]
fn open_groups_say_what_they_are() {
    if !support::have("ffmpeg") {
        return;
    }
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--segment-duration", "2"]);
    for (clip, sap) in [("h264_open_gop.mp4", 3), ("h264_aac.mp4", 1)] {
        let mpd = server.get(&format!("{clip}/index.mpd")).text();
        let set = mpd.lines().find(|line| line.contains("contentType=\"video\"")).unwrap();
        assert!(set.contains(&format!("startWithSAP=\"{sap}\"")), "{set}");
        for playlist in ["index.m3u8", "v1/index.m3u8", "ts/v1/index.m3u8"] {
            let text = server.get(&format!("{clip}/{playlist}")).text();
            assert_eq!(text.contains("#EXT-X-INDEPENDENT-SEGMENTS"), sap == 1, "{clip} {playlist}: {text}");
        }
        // A segment begins when its first picture shows, in all that is said of it.
        let mut start = 0.0;
        let playlist = server.get(&format!("{clip}/ts/v1/index.m3u8")).text();
        for (number, (segment, length)) in
            segments(&server, &format!("{clip}/ts/v1/index.m3u8")).iter().zip(durations(&playlist)).enumerate()
        {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("segment.ts");
            std::fs::write(&file, segment).unwrap();
            let first = earliest(&file) - 10.0;
            assert!((first - start).abs() < 0.001, "{clip}: segment {number} begins at {first}, said {start}");
            start += length;
        }
    }
}

/// The earliest presentation time of a file's pictures.
fn earliest(file: &Path) -> f64 {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.trim_matches(',').parse().ok()).fold(f64::MAX, f64::min)
}

#[test]
fn sound_that_is_cut_out_is_not_heard() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Without noise substitution, which is random: decoders that begin elsewhere give other noise.
    let sound = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=6 -c:a aac -aac_pns 0";
    changed(folder.path(), "cut.m4a", sound, |file| {
        let elst = box_at(file, b"elst");
        // One edit of version 0: duration, then media time.
        assert_eq!(file[elst + 12..elst + 16], [0, 0, 0, 1]);
        file[elst + 16..elst + 20].copy_from_slice(&5400_u32.to_be_bytes());
        file[elst + 20..elst + 24].copy_from_slice(&28_800_u32.to_be_bytes());
    });
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let file = folder.path().join("cut.m4a");
    let reference = decode::audio(&["-i", file.to_str().unwrap()], "0:a").unwrap();
    for (tail, base, tick) in [("ts/index.m3u8", 10.0, 1.0 / 90_000.0), ("index.m3u8", 0.0, 1.0 / 48_000.0)] {
        let ours = decode::audio(&["-i", &server.url(&format!("cut.m4a/{tail}"))], "0:a").unwrap();
        decode::same_audio(&ours, &reference, base, tick).unwrap();
        let early = base - ours.start;
        assert!(early < 2.0 * 1024.0 / 48_000.0 + 0.001, "{tail}: {early} s of what was cut out are heard");
    }
}

/// Program clock references of a transport stream, in seconds.
fn clocks(stream: &[u8]) -> Vec<f64> {
    let has_clock = |p: &&[u8]| p[3] & 0x20 != 0 && p[4] > 0 && p[5] & 0x10 != 0;
    let base = |p: &[u8]| p[6..11].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)) >> 7;
    stream.chunks(188).filter(has_clock).map(|p| base(p) as f64 / 90_000.0).collect()
}

#[test]
fn clocks_are_at_most_100_ms_apart() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slow = "-f lavfi -i testsrc2=size=160x90:rate=2:duration=12";
    clips::make(&folder.path().join("slow.mp4"), &format!("{slow} -c:v libx264 -g 4"));
    clips::make(&folder.path().join("slow_sound.mp4"), &format!("{slow} S -c:v libx264 -g 4 -c:a aac"));
    let rate = |rate: u32| format!("-f lavfi -i sine=frequency=440:sample_rate={rate}:duration=9 -c:a aac -ar {rate}");
    clips::make(&folder.path().join("sound.m4a"), &rate(48_000));
    clips::make(&folder.path().join("low.m4a"), &rate(8_000));
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    for (clip, track) in [("slow.mp4", "v1"), ("slow_sound.mp4", "v1"), ("sound.m4a", "a1"), ("low.m4a", "a1")] {
        let stream = segments(&server, &format!("{clip}/ts/{track}/index.m3u8")).concat();
        let clocks = clocks(&stream);
        let longest = clocks.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(clocks.len() > 80 && longest <= 0.1 + 1e-9, "{clip}: {} clocks, {longest} s apart", clocks.len());
        let file = folder.path().join("stream.ts");
        std::fs::write(&file, &stream).unwrap();
        let output = Command::new("ffmpeg").args(["-v", "warning", "-i"]).arg(&file).args(["-f", "null", "-"]).output();
        let told = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(told.is_empty(), "{clip}: {told}");
    }
}

#[test]
fn no_variant_says_less_than_its_segments_have() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A second of noise between still pictures: a peak far over the average.
    let noisy = "-f lavfi -i color=black:size=320x180:rate=25:duration=16 -f lavfi -i sine=duration=16 \
                 -vf noise=alls=100:allf=t:enable='between(t\\,8\\,10)' -c:v libx264 -g 50 -keyint_min 50 -c:a aac";
    clips::make(&folder.path().join("peak.mp4"), noisy);
    let smil = "<smil><body><switch><video src=\"peak.mp4\" systemBitrate=\"1000\"/></switch></body></smil>";
    std::fs::write(folder.path().join("peak.smil"), smil).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    for (asset, kind) in [("peak.mp4", "ts/"), ("peak.mp4", ""), ("peak.smil", "ts/"), ("peak.smil", "")] {
        let playlist = server.get(&format!("{asset}/{kind}index.m3u8")).text();
        let line = playlist.lines().find(|line| line.starts_with("#EXT-X-STREAM-INF")).unwrap();
        let number = |name: &str| -> f64 {
            let rest = line.split_once(name).unwrap().1;
            rest.split(',').next().unwrap().parse().unwrap()
        };
        let tracks: &[&str] = if kind.is_empty() { &["v1", "a1"] } else { &["v1"] };
        let (mut peak, mut average) = (0.0, 0.0);
        for track in tracks {
            let playlist = format!("{asset}/{kind}{track}/index.m3u8");
            let lengths = durations(&server.get(&playlist).text());
            let sizes: Vec<usize> = segments(&server, &playlist).iter().map(Vec::len).collect();
            // Shorter ones than half a target duration count with their neighbours only (RFC 8216 4.1).
            let whole = sizes.iter().zip(&lengths).filter(|(_, length)| **length >= 1.0);
            let rates = whole.map(|(size, length)| *size as f64 * 8.0 / length);
            peak += rates.fold(0.0, f64::max);
            average += sizes.iter().sum::<usize>() as f64 * 8.0 / lengths.iter().sum::<f64>();
        }
        assert!(number("BANDWIDTH=") >= peak - 1.0, "{asset} {kind}: {line}, measured {peak}");
        assert!(number("BANDWIDTH=") <= peak * 1.1, "{asset} {kind}: {line}, measured {peak}");
        assert!(number("AVERAGE-BANDWIDTH=") <= average * 1.05, "{asset} {kind}: {line}, measured {average}");
        assert!(peak > 2.0 * average, "the clip has a peak: {peak} over {average}");
    }
}

#[test]
fn a_size_that_only_the_parameter_sets_tell_is_said() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    changed(folder.path(), "unsized.mp4", PICTURES, |file| {
        let entry = box_at(file, b"stsd") + 16 + 32;
        assert_eq!(file[entry..entry + 4], [1, 64, 0, 180]);
        file[entry..entry + 4].fill(0);
        let tkhd = box_at(file, b"tkhd");
        file[tkhd + 84..tkhd + 92].fill(0);
    });
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let playlist = server.get("unsized.mp4/index.m3u8").text();
    assert!(playlist.contains("RESOLUTION=320x180"), "{playlist}");
    assert!(server.get("unsized.mp4/index.mpd").text().contains("width=\"320\" height=\"180\""));
    let init = server.get("unsized.mp4/v1/init.mp4").body;
    let entry = box_at(&init, b"stsd") + 16 + 32;
    assert_eq!(init[entry..entry + 4], [1, 64, 0, 180]);
}

/// The turn that a decoder hears of with a stream's first picture, in degrees counter-clockwise.
fn turn(args: &[&str], url: &str) -> String {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v:0", "-read_intervals", "%+#1"])
        .args(["-show_entries", "frame_side_data=rotation", "-of", "default=nokey=1:noprint_wrappers=1"])
        .args(args)
        .arg(url)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn rotated_pictures_tell_decoders_so_in_ts_and_rtsp() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hevc =
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=4 -c:v libx265 -x265-params log-level=error:keyint=25";
    for (name, args) in [("avc.mp4", PICTURES), ("hevc.mp4", hevc)] {
        for turns in [90, 180, 270] {
            changed(folder.path(), &format!("{turns}_{name}"), args, |file| {
                let matrix = box_at(file, b"tkhd") + 48;
                let (one, minus) = ([0, 1, 0, 0], [255, 255, 0, 0]);
                let zero = [0; 4];
                let [a, b, c, d] = match turns {
                    90 => [zero, one, minus, zero],
                    180 => [minus, zero, zero, minus],
                    _ => [zero, minus, one, zero],
                };
                for (place, value) in [(0, a), (4, b), (12, c), (16, d)] {
                    file[matrix + place..matrix + place + 4].copy_from_slice(&value);
                }
            });
        }
    }
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    for name in ["avc.mp4", "hevc.mp4"] {
        for (turns, told) in [(90, "-90"), (180, "-180"), (270, "90")] {
            let clip = format!("{turns}_{name}");
            let ts = turn(&[], &server.url(&format!("{clip}/ts/v1/2.ts")));
            assert_eq!(ts, told, "{clip}");
            let url = format!("rtsp://127.0.0.1:{}/{clip}", server.rtsp);
            let rtsp = turn(&["-rtsp_transport", "tcp"], &url);
            assert_eq!(rtsp, told, "{clip} over RTSP");
        }
    }
}
