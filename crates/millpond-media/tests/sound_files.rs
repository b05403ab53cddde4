//! Sound files and FLV files that ffmpeg makes have the packets that ffprobe finds in them.

use millpond_media::{Movie, TrackKind, index_bytes};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A tone whose frames differ in length.
const SOUND: &str = "-f lavfi -i aevalsrc=0.4*sin(440*2*PI*t)+0.3*sin(999*2*PI*t*t)|0.3*sin(3*2*PI*t*t*t):s=RATE:d=3";
const PICTURE: &str = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=3";

/// Place, size, decoding and presentation time in seconds.
type Packet = (u64, u64, f64, f64);

/// Makes a file by way of another name, so that no other test run sees a part of it.
fn made(name: &str, rate: u32, arguments: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sound-files-1");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    if !file.exists() {
        let part = folder.join(format!("{}.{name}", std::process::id()));
        let arguments = arguments.replace("S ", &format!("{SOUND} ")).replace("V ", &format!("{PICTURE} "));
        let arguments = arguments.replace("RATE", &rate.to_string());
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y"]).args(arguments.split_whitespace()).arg(&part);
        assert!(command.status().expect("ffmpeg is installed").success(), "{arguments}");
        std::fs::rename(part, &file).unwrap();
    }
    file
}

/// Packets of a stream, such as `a:0`.
fn probed(file: &Path, stream: &str) -> Vec<Packet> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-select_streams", stream, "-show_entries", "packet=pts_time,dts_time,size,pos"]);
    let output = command.args(["-of", "csv=p=0"]).arg(file).output().expect("ffprobe is installed");
    let packet = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let time = |field: &str| field.parse().unwrap_or(f64::NAN);
        (fields[3].parse().unwrap_or(0), fields[2].parse().unwrap(), time(fields[1]), time(fields[0]))
    };
    String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.is_empty()).map(packet).collect()
}

fn packets(movie: &Movie, is_video: bool) -> Vec<Packet> {
    let track = movie.tracks.iter().find(|track| matches!(track.kind, TrackKind::Video { .. }) == is_video).unwrap();
    let seconds = |ticks| track.timescale.seconds(ticks);
    let packet = |sample: millpond_media::Sample| {
        (sample.range.start, sample.range.len(), seconds(sample.dts), seconds(sample.pts()))
    };
    track.samples.iter().map(packet).collect()
}

/// Compares a track with a stream. `header` are the bytes before each sample that ffprobe counts too; places of `None` are not compared.
fn compare(file: &Path, is_video: bool, header: (Option<u64>, u64), tick: f64) {
    let movie =
        index_bytes(&std::fs::read(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (found, expected) = (packets(&movie, is_video), probed(file, if is_video { "v:0" } else { "a:0" }));
    let name = file.display();
    assert!(found.len() == expected.len() && found.len() > 20, "{name}: {} and {}", found.len(), expected.len());
    let begin = expected[0].3 - found[0].3;
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.1 + header.1, expected.1, "{name}: sizes of {found:?}, {expected:?}");
        assert!(header.0.is_none_or(|header| found.0 == expected.0 + header), "{name}: {found:?}, {expected:?}");
        assert!((found.3 + begin - expected.3).abs() <= tick, "{name}: {found:?}, {expected:?}");
        assert!((found.2 + begin - expected.2).abs() <= tick, "{name}: {found:?}, {expected:?}");
    }
}

const EXACT: f64 = 1e-5;
const MILLISECOND: f64 = 0.001_01;

#[test]
fn mpeg_audio() {
    for (name, rate, arguments) in [
        ("cbr.mp3", 44_100, "S -c:a libmp3lame -b:a 128k"),
        ("vbr.mp3", 48_000, "S -ac 1 -c:a libmp3lame -q:a 4"),
        ("low.mp3", 16_000, "S -c:a libmp3lame"),
        ("lowest.mp3", 8000, "S -c:a libmp3lame -write_xing 0 -id3v2_version 0"),
        ("layer.mp2", 24_000, "S -c:a mp2"),
    ] {
        compare(&made(name, rate, arguments), false, (Some(0), 0), EXACT);
    }
    let movie = index_bytes(&std::fs::read(made("cbr.mp3", 44_100, "S -c:a libmp3lame -b:a 128k")).unwrap()).unwrap();
    assert_eq!(movie.duration, 3 * 44_100, "padding is cut off");
}

#[test]
fn tags_are_those_that_were_written() {
    let expected = ["Träume (live)", "Nina & Band", "Lieder — 2"];
    let [title, artist, album] = expected;
    for (name, arguments, author) in [
        ("tags.mp3", "-c:a libmp3lame", "artist"),
        ("tags-3.mp3", "-c:a libmp3lame -id3v2_version 3 -write_id3v1 1", "artist"),
        ("tags.aac", "-c:a aac -write_id3v2 1", "artist"),
        ("tags.flac", "-c:a flac", "artist"),
        ("tags.opus", "-c:a libopus", "artist"),
        ("tags.oga", "-c:a flac", "artist"),
        ("tags.wav", "-c:a pcm_s16le", "artist"),
        ("tags.aiff", "-c:a pcm_s16be", "author"),
        ("tags.m4a", "-c:a aac", "artist"),
        ("tags-first.m4a", "-c:a alac -movflags +faststart", "artist"),
        ("tags-fragments.mp4", "-c:a aac -movflags +frag_keyframe+empty_moov", "artist"),
        ("tags.mka", "-c:a libopus", "artist"),
        ("tags-ulaw.mka", "-ar 8000 -c:a pcm_mulaw -live 1", "artist"),
    ] {
        let file = made_with_tags(name, arguments, &[("title", title), (author, artist), ("album", album)]);
        let movie = index_bytes(&std::fs::read(&file).unwrap()).unwrap();
        let tags = [movie.tags.title, movie.tags.artist, movie.tags.album].map(Option::unwrap_or_default);
        // AIFF has no album.
        let expected = [title, artist, if name == "tags.aiff" { "" } else { album }];
        assert_eq!(tags, expected, "{name}");
    }
    // ffmpeg writes no ID3v1 tag without one of ID3v2.
    let mut old = std::fs::read(made("old.mp3", 44_100, "S -c:a libmp3lame -id3v2_version 0")).unwrap();
    old.extend(format!("TAG{:125}", "an old title").bytes());
    let movie = index_bytes(&old).unwrap();
    assert_eq!((movie.tags.title.as_deref(), movie.tags.artist), (Some("an old title"), None));
    let plain = index_bytes(&std::fs::read(made("cbr.mp3", 44_100, "S -c:a libmp3lame -b:a 128k")).unwrap()).unwrap();
    assert!(plain.tags.is_empty(), "{:?}", plain.tags);
}

/// Makes a sound file with tags.
fn made_with_tags(name: &str, arguments: &str, tags: &[(&str, &str)]) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.{name}", std::process::id()));
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", "sine=duration=2"]);
    command.args(arguments.split_whitespace());
    for (name, value) in tags {
        command.args(["-metadata", &format!("{name}={value}")]);
    }
    assert!(command.arg(&file).status().expect("ffmpeg is installed").success(), "{name}");
    file
}

#[test]
fn adts() {
    for (name, rate, arguments) in [
        ("stereo.aac", 44_100, "S -c:a aac"),
        ("mono.aac", 22_050, "S -ac 1 -c:a aac"),
        ("surround.aac", 48_000, "S -ac 6 -c:a aac"),
    ] {
        compare(&made(name, rate, arguments), false, (Some(7), 7), EXACT);
    }
}

#[test]
fn flac() {
    for (name, rate, arguments) in [
        ("plain.flac", 44_100, "S -c:a flac"),
        ("deep.flac", 96_000, "S -sample_fmt s32 -c:a flac"),
        ("short.flac", 48_000, "S -c:a flac -frame_size 576"),
    ] {
        compare(&made(name, rate, arguments), false, (Some(0), 0), EXACT);
    }
}

#[test]
fn ogg() {
    for (name, arguments) in [
        ("short.opus", "S -c:a libopus -frame_duration 2.5"),
        ("usual.opus", "S -c:a libopus"),
        ("long.opus", "S -c:a libopus -frame_duration 60"),
        ("flac.oga", "S -c:a flac -page_duration 1"),
    ] {
        // ffprobe states the places of pages.
        compare(&made(name, 48_000, arguments), false, (None, 0), EXACT);
    }
}

#[test]
fn flv() {
    let file = made("pictures.flv", 44_100, "V S -c:v libx264 -bf 3 -g 30 -c:a aac");
    compare(&file, true, (Some(16), 0), EXACT);
    compare(&file, false, (Some(13), 0), MILLISECOND);
    let file = made("mp3.flv", 22_050, "V S -c:v libx264 -c:a libmp3lame");
    compare(&file, false, (Some(12), 0), MILLISECOND);
}

#[test]
fn pcm() {
    for (name, arguments) in [
        ("16.wav", "S -c:a pcm_s16le"),
        ("24.wav", "S -c:a pcm_s24le"),
        ("float.wav", "S -c:a pcm_f32le"),
        ("law.wav", "S -c:a pcm_alaw"),
        ("16.aiff", "S -c:a pcm_s16be"),
        ("8.aiff", "S -c:a pcm_s8"),
    ] {
        let file = made(name, 44_100, arguments);
        let movie = index_bytes(&std::fs::read(&file).unwrap()).unwrap();
        let (found, expected) = (packets(&movie, false), probed(&file, "a:0"));
        let bytes = |packets: &[Packet]| packets.iter().map(|packet| packet.1).sum::<u64>();
        assert_eq!((found[0].0, bytes(&found)), (expected[0].0, bytes(&expected)), "{name}");
        assert_eq!(movie.duration, 3 * 44_100, "{name}");
    }
}
