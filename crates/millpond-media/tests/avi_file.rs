//! AVI files that ffmpeg makes of MP4 files have their samples, in the same order of presentation.

#[path = "support/frames.rs"]
mod frames;
#[path = "support/samples.rs"]
mod samples;

use frames::{ticks, without_sets};
use millpond_media::{ByteRange, Extractor, Movie, NalSyntax, Track, index_bytes};
use samples::{clip, copied};

/// Returns the bytes of a sample.
fn sample_bytes(file: &[u8], movie: &Movie, range: ByteRange) -> Vec<u8> {
    let Some(extraction) = movie.extraction.as_deref() else {
        return file[range.start as usize..range.end as usize].to_vec();
    };
    let mut extractor = Extractor::new(extraction, range).unwrap();
    let source = extractor.source();
    file[source.start as usize..source.end as usize].chunks(999).for_each(|piece| extractor.supply(piece));
    extractor.finish().unwrap().to_vec()
}

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
            assert!(sample_bytes(avi, movie, sample.range) == bytes, "{name}: sample {} has other bytes", sample.index);
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
