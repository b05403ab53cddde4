//! AVI files that ffmpeg makes of MP4 files have their samples, in the same order of presentation.

#[path = "support/avi.rs"]
mod avi;
#[path = "support/count_resets.rs"]
mod count_resets;
#[path = "support/frames.rs"]
mod frames;
#[path = "support/media_bytes.rs"]
mod media_bytes;
#[path = "support/samples.rs"]
mod samples;

use frames::{ticks, without_sets};
use media_bytes::media_bytes;
use millpond_media::{Movie, NalSyntax, Track, index_bytes};
use samples::{clip, copied};
use std::path::Path;

/// Times of decoding and presentation in ticks of 90 kHz since the first sample was decoded.
fn times(track: &Track) -> Vec<(i64, i64)> {
    let start = track.samples.start_dts();
    let of = |time: i64| ticks(time - start, track.timescale);
    track.samples.iter().map(|sample| (of(sample.dts), of(sample.pts()))).collect()
}

fn assert_alike(name: &str, (mp4, original): (&[u8], &Movie), (avi, movie): (&[u8], &Movie)) {
    assert_eq!(movie.tracks.len(), original.tracks.len(), "{name}");
    for (track, expected) in movie.tracks.iter().zip(&original.tracks) {
        let name = format!("{name}: {}", track.codec.name());
        assert_eq!(track.codec.name(), expected.codec.name(), "{name}");
        assert_eq!(track.samples.len(), expected.samples.len(), "{name}");
        for (sample, other) in track.samples.iter().zip(&expected.samples) {
            let bytes = &mp4[other.range.start as usize..other.range.end as usize];
            let syntax = NalSyntax::of(&expected.codec);
            let bytes = syntax.map_or(bytes.to_vec(), |(syntax, _)| without_sets(syntax, bytes));
            assert!(media_bytes(avi, movie, sample.range) == bytes, "{name}: sample {} has other bytes", sample.index);
            assert_eq!((sample.sync, sample.index), (other.sync, other.index), "{name}");
        }
        let (ours, theirs) = (times(track), times(expected));
        // MP4 states a delay of presentation, which may exceed what the pictures need.
        let delay = theirs[0].1 - ours[0].1;
        for (number, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
            let (decoded, shown) = (ours.0 - theirs.0, ours.1 + delay - theirs.1);
            assert!(decoded.abs() <= 1 && shown.abs() <= 1, "{name}: sample {number}: {decoded} {shown}");
        }
    }
}

#[test]
fn files_have_the_samples_of_their_originals() {
    let clips = [
        ("avi_h264_aac.mp4", "V S -c:v libx264 -g 25 -bf 3 -c:a aac -ac 2", ""),
        (
            "avi_h264_open.mp4",
            "V S -c:v libx264 -x264-params keyint=25:open-gop=1:bframes=4:b-pyramid=strict -c:a libmp3lame",
            "",
        ),
        ("avi_h264_slices.mp4", "V -c:v libx264 -g 25 -slices 4 -bf 2", ""),
        ("avi_h264_baseline.mp4", "V S -c:v libx264 -profile:v baseline -g 25 -c:a ac3", ""),
        (
            "avi_hevc.mp4",
            "V -c:v libx265 -x265-params log-level=error:info=0:keyint=25:bframes=3 -tag:v hvc1",
            "-vtag HEVC",
        ),
        ("avi_mp3.mp4", "S -c:a libmp3lame -ac 2", ""),
    ];
    for (name, make, mux) in clips {
        let (mp4, path) = clip(name, make);
        let avi = copied(&path, "avi", mux);
        let (original, movie) = (index_bytes(&mp4).unwrap(), index_bytes(&avi).unwrap());
        assert_eq!(movie.skipped, [], "{name}");
        assert_alike(name, (&mp4, &original), (&avi, &movie));
    }
}

#[test]
fn chunks_that_are_samples_are_told_by_the_index() {
    let clips = [
        ("avi_vp9.mp4", "V -c:v libvpx-vp9 -b:v 200k -g 25 -deadline realtime -cpu-used 8"),
        ("avi_aac.mp4", "S -c:a aac -ac 2"),
    ];
    for (name, make) in clips {
        let (mp4, path) = clip(name, make);
        let avi = copied(&path, "avi", "");
        let (original, movie) = (index_bytes(&mp4).unwrap(), index_bytes(&avi).unwrap());
        assert!(movie.extraction.is_none(), "{name}");
        assert_alike(name, (&mp4, &original), (&avi, &movie));
        // The same without an index.
        let mut broken = avi.clone();
        let is_index = |at: &usize| matches!(&avi[*at..*at + 4], b"idx1" | b"indx");
        let indexes: Vec<_> = (0..avi.len() - 4).filter(is_index).collect();
        indexes.into_iter().for_each(|at| broken[at..at + 4].copy_from_slice(b"JUNK"));
        let movie = index_bytes(&broken).unwrap();
        assert!(movie.extraction.is_some(), "{name}");
        assert_alike(name, (&mp4, &original), (&broken, &movie));
    }
}

/// Numbers of a track's pictures, by the order of decoding, in the order of presentation.
fn shown(track: &Track) -> Vec<usize> {
    let mut pictures: Vec<_> = track.samples.iter().map(|sample| (sample.pts(), sample.index as usize)).collect();
    pictures.sort_unstable();
    pictures.into_iter().map(|(_, number)| number).collect()
}

/// Asserts that the pictures of a file are shown in the order of ffmpeg, without gaps.
fn assert_order(file: &Path, movie: &Movie) {
    let track = &movie.tracks[0];
    assert_eq!(shown(track), avi::shown(file), "{}", file.display());
    let mut times: Vec<_> = track.samples.iter().map(|sample| sample.pts()).collect();
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 1), "{times:?}");
}

#[test]
fn pictures_that_reset_counts_are_shown_after_all_earlier_ones() {
    let (stream, path) = clip(
        "avi_resets.264",
        "V -c:v libx264 -x264-params keyint=25:min-keyint=25:scenecut=0:bframes=3:b-pyramid=normal:aud=1",
    );
    let file = path.with_extension("avi");
    let object = avi::avi(&[], &count_resets::with_resets(&stream));
    std::fs::write(&file, &object).unwrap();
    // The changed slices are decoded to the same pictures. ffmpeg predicts the B-frames after them by other distances.
    let (expected, changed) = (avi::hashes(&path), avi::hashes(&file));
    assert_eq!((expected.len(), changed.len()), (75, 75));
    assert!(expected[..26] == changed[..26] && expected[50] == changed[50], "{changed:?}");
    let movie = index_bytes(&object).unwrap();
    assert_eq!(movie.tracks[0].samples.iter().filter(|sample| sample.sync).count(), 1, "one IDR picture");
    assert_order(&file, &movie);
}

#[test]
fn a_length_that_looks_like_a_start_code_is_a_length() {
    let (mp4, path) = clip("avi_lengths.mp4", "V -c:v libx264 -g 25 -bf 2");
    let original = index_bytes(&mp4).unwrap();
    let at = mp4.windows(4).position(|four| four == b"avcC").unwrap();
    let size = u32::from_be_bytes(*mp4[at - 4..].first_chunk().unwrap()) as usize;
    let configuration = &mp4[at + 4..at - 4 + size];
    let samples = original.tracks[0].samples.iter();
    let mut pictures: Vec<_> =
        samples.map(|sample| mp4[sample.range.start as usize..sample.range.end as usize].to_vec()).collect();
    // A message of 300 bytes, which is not registered: its length is 00 00 01 2c.
    let message = [&[0, 0, 1, 0x2c, 6, 5, 0xff, 40][..], &[0x55; 295], &[0x80]].concat();
    pictures[0].splice(0..0, message);
    let object = avi::avi(configuration, &pictures);
    let file = path.with_extension("avi");
    std::fs::write(&file, &object).unwrap();
    let movie = index_bytes(&object).unwrap();
    assert_eq!(movie.skipped, []);
    for (sample, picture) in movie.tracks[0].samples.iter().zip(&pictures) {
        assert!(media_bytes(&object, &movie, sample.range) == *picture, "sample {} has other bytes", sample.index);
    }
    assert_eq!(shown(&movie.tracks[0]), shown(&original.tracks[0]));
    assert_order(&file, &movie);
}

/// Offset of the header of chunk `number` of a kind.
fn chunk_at(avi: &[u8], kind: &[u8; 4], number: usize) -> usize {
    let mut at = avi.windows(4).position(|four| four == b"movi").unwrap() + 4;
    let mut left = number;
    loop {
        if &avi[at..at + 4] == kind {
            if left == 0 {
                return at;
            }
            left -= 1;
        }
        let size = u32::from_le_bytes(*avi[at + 4..].first_chunk().unwrap()) as usize;
        at += 8 + size.next_multiple_of(2);
    }
}

#[test]
fn time_passes_for_damaged_chunks() {
    let (whole, _) = clip("avi_damaged.avi", "V S -c:v libx264 -g 25 -bf 3 -c:a pcm_s16le");
    let original = index_bytes(&whole).unwrap();
    let mut damaged = whole.clone();
    // The headers of two pictures and of a chunk of sound.
    let places = [chunk_at(&whole, b"00dc", 30), chunk_at(&whole, b"00dc", 31)];
    let sound = chunk_at(&whole, b"01wb", 10);
    places.iter().chain([&sound]).for_each(|at| damaged[*at..*at + 8].fill(0xff));
    let movie = index_bytes(&damaged).unwrap();
    let (pictures, expected) = (&movie.tracks[0].samples, &original.tracks[0].samples);
    assert_eq!(pictures.len() + 2, expected.len());
    let delay = original.tracks[0].edits[0].media_time.unwrap() - movie.tracks[0].edits[0].media_time.unwrap();
    let step = expected.get(1).unwrap().dts - expected.get(0).unwrap().dts;
    assert!(delay.abs() <= 2 * step, "the track is later by {delay} ticks");
    for sample in pictures {
        let number = if sample.index < 30 { sample.index } else { sample.index + 2 };
        let expected = expected.get(number).unwrap();
        assert_eq!(sample.dts, expected.dts, "picture {number}");
        // Pictures of the damaged group share the times that are left.
        if !(25..50).contains(&number) {
            assert_eq!(sample.pts() + delay, expected.pts(), "picture {number}");
        }
    }
    let (sound, expected) = (&movie.tracks[1].samples, &original.tracks[1].samples);
    assert!(sound.len() < expected.len());
    assert_eq!(sound.end_dts(), expected.end_dts());
}
