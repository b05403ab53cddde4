//! Matroska files whose frames lack their common beginning have the samples of their originals, and those that ffmpeg reads.

#[path = "support/matroska.rs"]
mod matroska;
#[path = "support/media_bytes.rs"]
mod media_bytes;
#[path = "support/samples.rs"]
#[expect(dead_code, reason = "other tests need other containers")]
mod samples;

use matroska::{Block, File, element, number, stripping};
use media_bytes::media_bytes;
use millpond_media::{BlockEncoding, ByteRange, Codec, Indexer, Movie, Step, TextBlock, Track, index_bytes};
use samples::clip;
use std::{path::Path, process::Command};

/// `Attachments`.
const ATTACHMENTS: u32 = 0x1941_a469;

/// Returns the index that is made for the first viewer.
fn outlined(file: &[u8]) -> Movie {
    let mut indexer = Indexer::new(file.len() as u64).outlining();
    loop {
        match indexer.poll().unwrap() {
            Step::Done(movie) => return movie,
            Step::Need(ranges) => {
                for range in ranges {
                    let bytes = file[range.start as usize..range.end as usize].to_vec();
                    indexer.supply(range, bytes.into());
                }
            }
        }
    }
}

/// Fails unless both tracks have the same samples at the same times.
fn assert_alike(
    name: &str,
    (file, movie, track): (&[u8], &Movie, &Track),
    (whole, original, expected): (&[u8], &Movie, &Track),
) {
    assert_eq!((&track.codec, &track.sample_entry), (&expected.codec, &expected.sample_entry), "{name}");
    assert_eq!((&track.edits, track.captions), (&expected.edits, expected.captions), "{name}");
    assert_eq!(track.samples.len(), expected.samples.len(), "{name}");
    for (sample, other) in track.samples.iter().zip(&expected.samples) {
        let facts = |sample: &millpond_media::Sample| (sample.dts, sample.pts(), sample.duration, sample.sync);
        assert_eq!(facts(&sample), facts(&other), "{name}: sample {}", sample.index);
        let (bytes, others) = (media_bytes(file, movie, sample.range), media_bytes(whole, original, other.range));
        assert!(bytes == others, "{name}: sample {} has other bytes", sample.index);
    }
}

/// Sizes and checksums of all packets that ffmpeg reads, by stream.
fn packets(path: &Path) -> Vec<(usize, usize, u32)> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(path).args(["-map", "0:v?", "-map", "0:a?"]);
    let output = command.args(["-c", "copy", "-f", "framecrc", "-"]).output().expect("ffmpeg is installed");
    let lines = String::from_utf8(output.stdout).unwrap();
    let packet = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let crc = u32::from_str_radix(fields[5].trim_start_matches("0x"), 16).unwrap();
        (fields[0].parse().unwrap(), fields[4].parse().unwrap(), crc)
    };
    let mut packets: Vec<_> = lines.lines().filter(|line| !line.starts_with('#')).map(packet).collect();
    packets.sort_by_key(|(stream, _, _)| *stream);
    packets
}

/// The checksum of ffmpeg's `framecrc`: Adler-32 that begins with 0.
fn checksum(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((0_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

/// Fails unless ffmpeg reads the samples of a movie from a file.
fn assert_read_alike(name: &str, path: &Path, file: &[u8], movie: &Movie) {
    let of = |(stream, track): (usize, &Track)| -> Vec<(usize, usize, u32)> {
        let bytes = track.samples.iter().map(|sample| media_bytes(file, movie, sample.range));
        bytes.map(|bytes| (stream, bytes.len(), checksum(&bytes))).collect()
    };
    let ours: Vec<_> = movie.tracks.iter().enumerate().flat_map(of).collect();
    assert!(ours == packets(path), "{name}: ffmpeg reads other packets");
}

#[test]
fn stripped_files_have_the_samples_of_their_originals() {
    // The prefixes that muxers leave out begin each frame: sync words, and the zeros before the length of a short NAL unit.
    let clips: [(&str, &str, &[&[u8]]); 7] = [
        ("mkv_h264_ac3.mkv", "V S -c:v libx264 -g 25 -bf 3 -c:a ac3", &[&[0, 0], &[0x0b, 0x77]]),
        ("mkv_h264_mp3.mkv", "V S -c:v libx264 -g 25 -c:a libmp3lame -b:a 128k", &[&[], &[0xff, 0xfb]]),
        (
            "mkv_hevc_eac3.mkv",
            "V S -c:v libx265 -x265-params log-level=error:info=0:keyint=25:bframes=3 -c:a eac3",
            &[&[0, 0], &[0x0b, 0x77]],
        ),
        (
            "mkv_vp9_opus.mkv",
            "V S -c:v libvpx-vp9 -b:v 200k -g 25 -deadline realtime -cpu-used 8 -c:a libopus",
            &[&[], &[0xf8]],
        ),
        ("mkv_flac.mkv", "S -c:a flac", &[&[0xff, 0xf8]]),
        ("mkv_mp2.mkv", "S -c:a mp2", &[&[0xff, 0xfd]]),
        ("mkv_silence.mkv", "-f lavfi -i anullsrc=r=8000:cl=mono:d=2 -c:a pcm_s16le", &[&[0, 0, 0]]),
    ];
    for (name, make, prefixes) in clips {
        for is_laced in [false, true] {
            let (_, path) = clip(name, make);
            let mut file = File::read(&std::fs::read(&path).unwrap());
            let numbers = file.numbers();
            for number in numbers.iter().filter(|_| is_laced) {
                file.lace(*number);
            }
            let whole = file.written([&[]; 2]);
            for (number, prefix) in numbers.iter().zip(prefixes).filter(|(_, prefix)| !prefix.is_empty()) {
                let found = file.strip(*number, prefix.len());
                assert!(found == **prefix, "{name}: track {number} has frames that begin with {found:x?}");
            }
            let stripped = file.written([&[]; 2]);
            let (original, movie) = (index_bytes(&whole).unwrap(), index_bytes(&stripped).unwrap());
            assert_eq!(
                (movie.skipped.len(), movie.tracks.len()),
                (0, original.tracks.len()),
                "{name}: {:?}",
                movie.skipped
            );
            assert!(movie.extraction.is_some() && original.extraction.is_none(), "{name}");
            for (track, expected) in movie.tracks.iter().zip(&original.tracks) {
                assert_alike(name, (&stripped, &movie, track), (&whole, &original, expected));
            }
            // Cues name key frames, but no fragment can be read alone.
            let outlined = outlined(&stripped);
            assert!(outlined.outline.is_none() && outlined == movie && movie.is_indivisible, "{name}");
            if name != "mkv_silence.mkv" {
                let file = path.with_extension(if is_laced { "laced.mkv" } else { "stripped.mkv" });
                std::fs::write(&file, &stripped).unwrap();
                assert_read_alike(name, &file, &stripped, &movie);
            }
        }
    }
}

#[test]
fn texts_and_covers_of_stripped_files_are_kept() {
    let (_, path) = clip("mkv_h264_ac3.mkv", "V S -c:v libx264 -g 25 -bf 3 -c:a ac3");
    let mut file = File::read(&std::fs::read(&path).unwrap());
    file.strip(2, 2);
    file.add_track(3, &[number(0x83, 17), element(0x86, b"S_TEXT/UTF8"), stripping(b"He")]);
    let duration = number(0x9b, 500);
    let text =
        |frame: &[u8]| Block { track: 3, head: [0; 3], frames: vec![frame.to_vec()], rest: Some(duration.clone()) };
    file.clusters().iter_mut().for_each(|cluster| cluster.blocks.insert(1, text(b"llo")));
    let count = file.clusters().len();
    let jpeg: Vec<u8> = [0xff, 0xd8, 0xff, 0xe0].into_iter().chain((0..200_000).map(|n| (n % 251) as u8)).collect();
    let fields =
        [element(0x466e, b"cover.jpg"), element(0x4660, b"image/jpeg"), number(0x46ae, 7), element(0x465c, &jpeg)];
    let attachments = element(ATTACHMENTS, &element(0x61a7, &fields.concat()));
    for others in [[&attachments[..], &[]], [&[], &[]]] {
        let stripped = file.written(others);
        let movie = index_bytes(&stripped).unwrap();
        assert_eq!((movie.skipped.len(), movie.tracks.len()), (0, 3), "{:?}", movie.skipped);
        let track = &movie.tracks[2];
        let Codec::MatroskaText(codec) = &track.codec else { panic!("{:?}", track.codec) };
        assert_eq!(codec.encoding, BlockEncoding::Stripped(b"He".to_vec()));
        assert_eq!(track.samples.len() as usize, count);
        for sample in &track.samples {
            let bytes = media_bytes(&stripped, &movie, sample.range);
            assert_eq!(TextBlock::read(&bytes, 3).map(|block| block.text), Some(&b"llo"[..]));
        }
        let cover = movie.artwork.as_ref().map(|artwork| media_bytes(&stripped, &movie, artwork.pieces[0]));
        assert!(cover == (!others[0].is_empty()).then(|| jpeg.clone()), "the cover has other bytes");
        // All of the extracted object can be made, in any pieces.
        let extraction = movie.extraction.as_deref().unwrap();
        let all = media_bytes(&stripped, &movie, ByteRange::new(0, extraction.len()));
        for size in [1, 7, 1000, 65_536] {
            let mut at = extraction.len() / 3;
            while at < extraction.len().min(extraction.len() / 3 + 40 * size) {
                let range = ByteRange::new(at, (at + size).min(extraction.len()));
                assert!(media_bytes(&stripped, &movie, range) == all[at as usize..range.end as usize], "at {range}");
                at = range.end;
            }
        }
    }
}

#[test]
fn frames_that_cannot_be_restored_are_refused_by_name() {
    let (_, path) = clip("mkv_h264_ac3.mkv", "V S -c:v libx264 -g 25 -bf 3 -c:a ac3");
    let mut file = File::read(&std::fs::read(&path).unwrap());
    file.add_track(4, &[number(0x83, 2), element(0x86, b"A_AC3"), stripping(&[7; 257])]);
    let movie = index_bytes(&file.written([&[]; 2])).unwrap();
    assert!(movie.extraction.is_none());
    let [skipped] = &movie.skipped[..] else { panic!("{:?}", movie.skipped) };
    assert!(skipped.reason.contains("header stripping"), "{}", skipped.reason);
}

#[test]
fn short_frames_of_a_long_prefix_take_memory_in_proportion_to_the_file() {
    let (_, path) = clip("mkv_h264_ac3.mkv", "V S -c:v libx264 -g 25 -bf 3 -c:a ac3");
    let mut file = File::read(&std::fs::read(&path).unwrap());
    // Each block of 262 bytes has 256 frames of a byte each; each of six bytes has 256 frames without bytes.
    let sound = element(0xe1, &[number(0x6264, 32), element(0xb5, &8000_f64.to_be_bytes())].concat());
    file.add_track(3, &[number(0x83, 2), element(0x86, b"A_PCM/FLOAT/IEEE"), sound, stripping(&[0; 255])]);
    let laced = |size: usize| Block { track: 3, head: [0; 3], frames: vec![vec![7; size]; 256], rest: None };
    for (size, count) in [(1, 2000), (0, 20_000)] {
        let blocks = &mut file.clusters()[0].blocks;
        blocks.retain(|block| block.track != 3);
        blocks.extend(vec![laced(size); count]);
        let stripped = file.written([&[]; 2]);
        let movie = index_bytes(&stripped).unwrap();
        let bytes = movie.heap_bytes();
        assert!(bytes <= 16 * stripped.len(), "{bytes} bytes of memory for a file of {} bytes", stripped.len());
    }
}

#[test]
#[ignore = "reads the files that MILLPOND_MKV_FILES names"]
fn files_of_strangers_have_the_packets_that_ffmpeg_reads() {
    let folder = std::env::var("MILLPOND_MKV_FILES").expect("a folder of Matroska files");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::read(&path).unwrap();
        let Ok(movie) = index_bytes(&file) else { continue };
        if movie.extraction.is_some() && file.starts_with(b"\x1a\x45\xdf\xa3") {
            assert_read_alike(&path.display().to_string(), &path, &file, &movie);
            read += 1;
        }
    }
    println!("{read} files lack the common beginning of frames");
}
