//! Sample entries of QuickTime files are served in the form of ISO base media files, and samples of no duration get one.

use crate::support::{self, Server, clips, decode};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Arguments for which `X` stands in those of a clip.
const CODED: &str = "-t 6 -c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p";

/// A folder with a clip of each kind of sample entry, and a server of it.
struct Clips {
    folder: tempfile::TempDir,
    server: Server,
}

impl Clips {
    /// `None` where ffmpeg is missing.
    fn of(clips: &[(&str, &str)]) -> Option<Self> {
        if !support::have("ffmpeg") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, args) in clips {
            clips::make(&folder.path().join(name), &args.replace('X', CODED));
        }
        let server = Server::start(&[folder.path().to_str().unwrap()]);
        Some(Self { folder, server })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        let reply = self.server.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.body
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    /// The sample entry of an init segment.
    fn entry(&self, path: &str) -> Vec<u8> {
        let init = self.bytes(path);
        let at = place(&init, b"stsd") + 12;
        let size = u32::from_be_bytes(init[at..at + 4].try_into().unwrap()) as usize;
        init[at..at + size].to_vec()
    }

    /// Bytes of the samples of all segments of a track.
    fn media(&self, track: &str) -> Vec<u8> {
        let list = self.text(&format!("{track}/index.m3u8"));
        let segments = list.lines().filter(|line| line.ends_with(".m4s"));
        let samples = |segment: &str| {
            let bytes = self.bytes(&format!("{track}/{segment}"));
            bytes[place(&bytes, b"mdat") + 4..].to_vec()
        };
        segments.flat_map(samples).collect()
    }
}

fn place(bytes: &[u8], kind: &[u8; 4]) -> usize {
    bytes.windows(4).position(|four| four == kind).unwrap_or_else(|| panic!("no {}", kind.escape_ascii()))
}

/// Types of the boxes behind the fields of a sample entry, which they must fill.
fn boxes(entry: &[u8], fields: usize) -> Vec<String> {
    let (mut at, mut kinds) = (8 + fields, Vec::new());
    while at < entry.len() {
        kinds.push(String::from_utf8_lossy(&entry[at + 4..at + 8]).into_owned());
        at += u32::from_be_bytes(entry[at..at + 4].try_into().unwrap()) as usize;
    }
    assert_eq!(at, entry.len(), "{kinds:?}");
    kinds
}

#[test]
fn sounds_of_quicktime_have_entries_of_iso() {
    let Some(clips) = Clips::of(&[
        ("aac.mov", "V S X -c:a aac -ac 2"),
        ("aac_96000.mov", "N -c:a aac -ac 2"),
        ("alac.mov", "S -t 4 -c:a alac -ac 2"),
        ("mp3.mov", "S -t 4 -c:a libmp3lame -ac 1"),
        ("ac3.mov", "S -t 4 -c:a ac3 -ac 6"),
        ("twos.mov", "S -t 4 -c:a pcm_s16be"),
        ("in24.mov", "S -t 4 -c:a pcm_s24le"),
        ("in32.mov", "S -t 4 -c:a pcm_s32le"),
        ("fl32.mov", "S -t 4 -c:a pcm_f32le"),
        ("lpcm.mov", "N -c:a pcm_s24le -ac 6"),
    ]) else {
        return;
    };
    for (clip, codec, rate, kinds) in [
        ("aac.mov", "mp4a", 48_000, ["esds"].as_slice()),
        ("aac_96000.mov", "mp4a", 0, &["esds"]),
        ("alac.mov", "alac", 48_000, &["alac"]),
        ("mp3.mov", "mp4a", 48_000, &["esds"]),
        ("ac3.mov", "ac-3", 48_000, &["dac3"]),
        ("twos.mov", "fLaC", 48_000, &["dfLa"]),
        ("in24.mov", "fLaC", 48_000, &["dfLa"]),
        ("in32.mov", "fLaC", 48_000, &["dfLa"]),
        ("fl32.mov", "fLaC", 48_000, &["dfLa"]),
        ("lpcm.mov", "fLaC", 0, &["dfLa"]),
    ] {
        let entry = clips.entry(&format!("{clip}/a1/init.mp4"));
        assert_eq!(String::from_utf8_lossy(&entry[4..8]), codec, "{clip}");
        assert_eq!(entry[16..24], [0; 8], "{clip}: version 0, nothing of QuickTime");
        assert_eq!(entry[32..36], [(rate >> 8) as u8, rate as u8, 0, 0], "{clip}");
        assert_eq!(boxes(&entry, 28), kinds, "{clip}");
    }
    for clip in ["aac.mov", "aac_96000.mov", "alac.mov", "mp3.mov", "ac3.mov"] {
        let file = clips.file(clip);
        let tick = 1.0 / 44_100.0;
        let expected = decode::audio(&["-i", file.to_str().unwrap()], "0:a:0").unwrap();
        let url = clips.server.url(&format!("{clip}/a1/index.m3u8"));
        let got = decode::audio(&["-i", &url], "0:a:0").unwrap();
        decode::same_audio(&got, &expected, 0.0, tick).unwrap_or_else(|error| panic!("{clip}: {error}"));
    }
}

#[test]
fn pcm_goes_out_value_for_value() {
    // Beside AAC, which browsers decode, PCM does not become FLAC.
    let Some(clips) = Clips::of(&[
        ("s32be.mov", "S -t 6 -map 0:a -map 0:a -c:a aac -c:a:0 pcm_s32be"),
        ("s32le.mov", "S -t 6 -ac 2 -map 0:a -map 0:a -c:a aac -c:a:0 pcm_s32le"),
        ("f32le.mov", "S -t 6 -map 0:a -map 0:a -c:a aac -c:a:0 pcm_f32le"),
        ("film.mov", "V S X -c:a pcm_f32le"),
    ]) else {
        return;
    };
    for (clip, form, pcmc) in
        [("s32be.mov", "s32be", [0, 32]), ("s32le.mov", "s32le", [1, 32]), ("f32le.mov", "f32le", [1, 32])]
    {
        let entry = clips.entry(&format!("{clip}/a1/init.mp4"));
        let config = place(&entry, b"pcmC") + 8;
        assert_eq!(entry[config..config + 2], pcmc, "{clip}: byte order and bits");
        let file = clips.file(clip).display().to_string();
        let args = ["-v", "error", "-nostdin", "-i", &file, "-map", "0:a:0", "-c", "copy", "-f", form, "-"];
        let expected = Command::new("ffmpeg").args(args).output().unwrap().stdout;
        assert!(!expected.is_empty() && clips.media(&format!("{clip}/a1")) == expected, "{clip}");
    }
    for list in ["film.mov/index.m3u8", "film.mov/index.mpd"] {
        let list = clips.text(list);
        assert!(list.contains("avc1") && list.contains("fLaC") && !list.contains("fpcm"), "{list}");
    }
    assert!(clips.text("s32le.mov/index.m3u8").contains("CODECS=\"ipcm\""));
    assert!(clips.text("s32le.mov/index.mpd").contains("codecs=\"ipcm\""));
}

#[test]
fn pictures_of_quicktime_have_entries_of_iso() {
    let color = "-color_primaries bt709 -color_trc bt709 -colorspace bt709 -movflags write_colr+write_gama";
    let Some(clips) = Clips::of(&[("phone.mov", &format!("V X -vf setsar=4/3 {color}"))]) else { return };
    let file = std::fs::read(clips.file("phone.mov")).unwrap();
    assert!(place(&file, b"nclc") > 0 && place(&file, b"gama") > 0, "ffmpeg writes what is to be left out");
    let entry = clips.entry("phone.mov/v1/init.mp4");
    assert_eq!(entry[16..32], [0; 16], "no vendor, no quality");
    assert_eq!(boxes(&entry, 78), ["avcC", "colr", "pasp"]);
    let colr = place(&entry, b"colr") + 4;
    assert_eq!(entry[colr..colr + 11], *b"nclx\0\x01\0\x01\0\x01\0");
    let input = clips.file("phone.mov");
    let expected = decode::video(&["-i", input.to_str().unwrap()], "0:v:0").unwrap();
    let got = decode::video(&["-i", &clips.server.url("phone.mov/index.m3u8")], "0:v:0").unwrap();
    decode::same_video(&got, &expected, 0.0, 1.0 / 12_800.0).unwrap();
}

#[test]
fn mp3_is_announced_as_its_frames_are() {
    let Some(clips) = Clips::of(&[
        ("mono.mp4", "S -t 4 -c:a libmp3lame -ac 1"),
        ("low.mov", "S -t 4 -c:a libmp3lame -ac 2 -ar 22050"),
        ("two.mp4", "S S -map 0 -map 1 -t 4 -c:a libmp3lame -ac 1"),
    ]) else {
        return;
    };
    let entry = clips.entry("mono.mp4/a1/init.mp4");
    assert_eq!(entry[24..26], [0, 1], "ffmpeg writes two channels into every file of MP4");
    assert!(clips.text("mono.mp4/index.m3u8").contains("CODECS=\"mp4a.6B\""));
    let mpd = clips.text("mono.mp4/index.mpd");
    assert!(mpd.contains("codecs=\"mp4a.6B\" audioSamplingRate=\"48000\""), "{mpd}");
    assert!(mpd.contains("audio_channel_configuration:2011\" value=\"1\""), "{mpd}");
    assert!(clips.text("low.mov/index.mpd").contains("codecs=\"mp4a.69\" audioSamplingRate=\"22050\""));
    assert_eq!(clips.text("two.mp4/index.m3u8").matches("CHANNELS=\"1\"").count(), 2);
}

/// Gives the samples of the only track these durations (`stts`), run by run.
fn set_durations(file: &Path, runs: &[(u32, u32)]) {
    let mut bytes = std::fs::read(file).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let table = place(&bytes, b"stts") - 4;
    let size = word(&bytes, table);
    let mut entries = [0, 0, 0, 0].to_vec();
    entries.extend((runs.len() as u32).to_be_bytes());
    entries.extend(runs.iter().flat_map(|(count, ticks)| [count.to_be_bytes(), ticks.to_be_bytes()]).flatten());
    let more = entries.len() as u32 + 8 - size;
    // The movie box is behind the media: no place of a sample moves.
    for kind in [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stts"] {
        let at = place(&bytes, kind) - 4;
        let grown = word(&bytes, at) + more;
        bytes[at..at + 4].copy_from_slice(&grown.to_be_bytes());
    }
    bytes.splice(table + 8..table + size as usize, entries);
    std::fs::write(file, bytes).unwrap();
}

/// Decode and presentation times of what ffmpeg reads.
fn packets(url: &str, more: &[&str]) -> Vec<(f64, f64)> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error"]).args(more);
    command.args(["-select_streams", "v", "-show_entries", "packet=dts_time,pts_time", "-of", "csv=p=0", url]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = |value: Option<&str>| value.and_then(|value| value.trim().parse().ok());
    let row = |line: &str| {
        let mut values = line.split(',');
        // By RTSP, ffmpeg tells no time of the first one.
        let pts = time(values.next()).unwrap_or(0.0);
        (time(values.next()).unwrap_or(pts), pts)
    };
    text.lines().filter(|line| !line.is_empty()).map(row).collect()
}

/// Seconds between the pictures that are shown.
fn gaps(packets: &[(f64, f64)]) -> Vec<f64> {
    let mut shown: Vec<f64> = packets.iter().map(|(_, pts)| *pts).collect();
    shown.sort_by(f64::total_cmp);
    shown.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn samples_of_no_duration_share_the_time_they_have() {
    let pictures = "V -c:v libx264 -preset ultrafast -g 8 -bf 0 -an";
    let Some(clips) = Clips::of(&[
        ("pairs.mp4", &format!("{pictures} -frames:v 40")),
        ("none.mp4", &format!("{pictures} -frames:v 5")),
    ]) else {
        return;
    };
    if !support::have("ffprobe") {
        return;
    }
    // Of each two pictures the first one has no duration, and the second one that of both.
    set_durations(&clips.file("pairs.mp4"), &[(1, 0), (1, 1024)].repeat(20));
    set_durations(&clips.file("none.mp4"), &[(5, 0)]);
    // The server has seen the clips at its start, and looks again after a second.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    for (clip, count) in [("pairs.mp4", 40), ("none.mp4", 5)] {
        for tail in ["ts/index.m3u8", "index.m3u8"] {
            let found = packets(&clips.server.url(&format!("{clip}/{tail}")), &[]);
            assert_eq!(found.len(), count, "{clip}/{tail}");
            assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "{clip}/{tail}: decode times rise: {found:?}");
            let gaps = gaps(&found);
            assert!(gaps.iter().all(|gap| (gap - 0.04).abs() < 0.002), "{clip}/{tail}: {gaps:?}");
        }
        let url = format!("rtsp://127.0.0.1:{}/{clip}", clips.server.rtsp);
        let found = packets(&url, &["-rtsp_transport", "tcp"]);
        assert_eq!(found.len(), count, "{clip} by RTSP: {found:?}");
        let times: std::collections::HashSet<u64> =
            found.iter().map(|(_, pts)| (pts * 90_000.0).round() as u64).collect();
        assert_eq!(times.len(), count, "{clip} by RTSP: each picture has a time of its own");
    }
}

#[test]
fn sound_that_a_broken_writer_put_into_an_instant_stops_no_session() {
    let sound = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=15 -map 1:a -map 0:v";
    let coded = "-c:v libx264 -preset ultrafast -g 25 -c:a libopus -frame_duration 2.5 -frames:v 75";
    let Some(clips) = Clips::of(&[("dense.mp4", &format!("V {sound} {coded}"))]) else { return };
    if !support::have("ffprobe") {
        return;
    }
    let bytes = std::fs::read(clips.file("dense.mp4")).unwrap();
    let sizes = place(&bytes, b"stsz");
    let frames = u32::from_be_bytes(bytes[sizes + 12..sizes + 16].try_into().unwrap());
    // Five thousand frames in a tenth of a second. The others have their times.
    set_durations(&clips.file("dense.mp4"), &[(5000, 1), (frames - 5000, 120)]);
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let url = format!("rtsp://127.0.0.1:{}/dense.mp4", clips.server.rtsp);
    for (url, more) in [(url, &["-rtsp_transport", "tcp"][..]), (clips.server.url("dense.mp4/index.m3u8"), &[])] {
        let found = packets(&url, more);
        assert_eq!(found.len(), 75, "{url}: {}", clips.server.log_text());
    }
}

#[test]
fn durations_of_no_header_are_needed() {
    let coded = "V S -t 4 -c:v libx264 -preset ultrafast -g 25 -bf 2 -c:a aac -aac_pns 0";
    let Some(clips) = Clips::of(&[
        ("plain.mp4", coded),
        ("fragments.mp4", &format!("{coded} -movflags +frag_keyframe+empty_moov+default_base_moof+delay_moov")),
    ]) else {
        return;
    };
    for name in ["plain.mp4", "fragments.mp4"] {
        let whole = std::fs::read(clips.file(name)).unwrap();
        // All zeros are no duration, all ones an unknown one. The edits of `elst` are left out where they last no time.
        for (value, kinds) in [(0, &[b"mvhd", b"tkhd", b"mdhd", b"elst"][..]), (0xff, &[b"mvhd", b"tkhd", b"mdhd"])] {
            let mut bytes = whole.clone();
            kinds.iter().for_each(|kind| set_header(&mut bytes, kind, value));
            std::fs::write(clips.file(&format!("{value}_{name}")), &bytes).unwrap();
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    for name in ["plain.mp4", "fragments.mp4"] {
        let file = clips.file(name);
        let pictures = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap();
        for name in [0, 255].map(|value| format!("{value}_{name}")) {
            for (tail, base) in [("index.m3u8", 0.0), ("ts/index.m3u8", 10.0)] {
                let url = clips.server.url(&format!("{name}/{tail}"));
                let ours = decode::video(&["-i", &url], "0:v").unwrap();
                decode::same_video(&ours, &pictures, base, 0.001).unwrap_or_else(|e| panic!("{name}/{tail}: {e}"));
            }
            let mpd = clips.text(&format!("{name}/index.mpd"));
            assert!(mpd.contains("mediaPresentationDuration=\"PT4"), "{mpd}");
        }
    }
}

/// Fills the duration of all headers of a kind, of version 0, with a byte.
fn set_header(bytes: &mut [u8], kind: &[u8; 4], value: u8) {
    let at = match kind {
        b"tkhd" => 24,
        b"elst" => 12,
        _ => 20,
    };
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|place| bytes[*place..].starts_with(kind)).collect();
    assert!(!places.is_empty() || kind == b"elst", "no {}", kind.escape_ascii());
    for place in places {
        bytes[place + at..place + at + 4].fill(value);
    }
}

#[test]
fn a_file_of_subtitles_alone_is_an_asset() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let srt = folder.path().join("text.srt");
    std::fs::write(&srt, "1\n00:00:01,000 --> 00:00:03,500\nHello\n\n2\n00:00:05,000 --> 00:00:09,000\nGood bye\n")
        .unwrap();
    let media = tempfile::tempdir().unwrap();
    clips::make(&media.path().join("text.mp4"), &format!("-i {} -c:s mov_text", srt.display()));
    let server = Server::start(&[media.path().to_str().unwrap()]);
    let text = |path: &str| {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.text()
    };
    for list in ["text.mp4/index.m3u8", "text.mp4/ts/index.m3u8"] {
        let list = text(list);
        assert!(
            list.contains("#EXT-X-STREAM-INF") && list.contains("CODECS=\"wvtt\"") && list.contains("s1/index.m3u8"),
            "{list}"
        );
    }
    let list = text("text.mp4/s1/index.m3u8");
    assert_eq!(list.matches("#EXTINF").count(), 2, "{list}");
    assert!(text("text.mp4/s1/1.vtt").contains("Hello"));
    assert!(text("text.mp4/s1/2.vtt").contains("Good bye"));
    assert!(text("text.mp4/s1/all.vtt").contains("Good bye"));
    assert!(
        text("text.mp4/index.mpd").contains("mediaPresentationDuration=\"PT9S\""),
        "{}",
        text("text.mp4/index.mpd")
    );
    assert!(text(".millpond/asset?path=text.mp4").contains("\"s1\""));
    let reply = support::rtsp::Client::new(&server, "text.mp4").ask("DESCRIBE", "", "");
    assert!((400..500).contains(&reply.status), "RTSP sends no text: {}", reply.status);
}
