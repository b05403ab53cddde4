//! Transport stream files that ffmpeg makes have the samples of the MP4 files that they were made of.

#[path = "support/frames.rs"]
mod frames;
#[path = "support/samples.rs"]
mod samples;

use frames::{ticks, without_sets};
use millpond_media::{ByteRange, Extractor, Movie, NalSyntax, Track, index_bytes};
use samples::{clip, copied};

/// Extracts a range of the extracted object of a file.
fn extracted(file: &[u8], movie: &Movie, range: ByteRange) -> Vec<u8> {
    let extraction = movie.extraction.as_deref().expect("an extraction");
    let mut extractor = Extractor::new(extraction, range).unwrap();
    let source = extractor.source();
    extractor.supply(&file[source.start as usize..source.end as usize]);
    extractor.finish().unwrap().to_vec()
}

/// When the first sample in decoding order would be presented, in ticks of 90 kHz.
fn begin(movie: &Movie, track: &Track) -> i64 {
    let waits: u64 = track.edits.iter().filter(|edit| edit.media_time.is_none()).map(|edit| edit.duration).sum();
    let shown = track.edits.iter().find_map(|edit| edit.media_time).unwrap_or(0);
    let first = track.samples.get(0).unwrap().pts();
    ticks(waits as i64, movie.timescale) + ticks(first - shown, track.timescale)
}

fn assert_alike(name: &str, (mp4, original): (&[u8], &Movie), (ts, movie): (&[u8], &Movie)) {
    assert_eq!(movie.tracks.len(), original.tracks.len(), "{name}");
    let distance = begin(movie, &movie.tracks[0]) - begin(original, &original.tracks[0]);
    for (track, expected) in movie.tracks.iter().zip(&original.tracks) {
        let name = format!("{name}: {}", track.codec.name());
        assert_eq!(track.codec.name(), expected.codec.name(), "{name}");
        assert_eq!(track.samples.len(), expected.samples.len(), "{name}");
        let late = begin(movie, track) - begin(original, expected) - distance;
        assert!(late.abs() <= 90, "{name} is {late} ticks late");
        let first = expected.samples.start_dts();
        for (sample, other) in track.samples.iter().zip(&expected.samples) {
            let bytes = &mp4[other.range.start as usize..other.range.end as usize];
            let syntax = NalSyntax::of(&expected.codec);
            let bytes = syntax.map_or(bytes.to_vec(), |(syntax, _)| without_sets(syntax, bytes));
            assert!(extracted(ts, movie, sample.range) == bytes, "{name}: sample {} has other bytes", sample.index);
            assert_eq!((sample.sync, sample.index), (other.sync, other.index), "{name}");
            let decoded = ticks(sample.dts, track.timescale) - ticks(other.dts - first, expected.timescale);
            let composed =
                ticks(sample.composition.into(), track.timescale) - ticks(other.composition.into(), expected.timescale);
            assert!(decoded.abs() <= 1 && composed.abs() <= 1, "{name}: sample {}: {decoded} {composed}", sample.index);
        }
    }
}

#[test]
fn files_have_the_samples_of_their_originals() {
    let clips = [
        ("file_h264_aac.mp4", "V S -c:v libx264 -g 25 -bf 3 -c:a aac -ac 2", ""),
        (
            "file_hevc_ac3.mp4",
            "V S -c:v libx265 -x265-params log-level=error:info=0:keyint=25:bframes=3 -tag:v hvc1 -c:a ac3",
            "",
        ),
        ("file_m2ts.mp4", "V S -c:v libx264 -g 25 -slices 4 -bf 2 -c:a ac3", "-mpegts_m2ts_mode 1"),
        ("file_latm.mp4", "S -c:a aac -ac 2", "-mpegts_flags latm"),
        ("file_mp3.mp4", "S -c:a libmp3lame -ac 2", ""),
        ("file_eac3.mp4", "S -c:a eac3 -ac 6", ""),
        ("file_opus.mp4", "S -c:a libopus -ac 2", ""),
        ("file_44100.mp4", "S -c:a aac -ar 44100", ""),
    ];
    for (name, make, mux) in clips {
        let (mp4, path) = clip(name, make);
        let ts = copied(&path, "mpegts", mux);
        let (original, movie) = (index_bytes(&mp4).unwrap(), index_bytes(&ts).unwrap());
        assert_eq!(movie.skipped, [], "{name}");
        assert_alike(name, (&mp4, &original), (&ts, &movie));
    }
}

#[test]
fn joined_recordings_are_one_timeline() {
    let (_, path) = clip("file_joined.mp4", "V S -c:v libx264 -g 25 -bf 2 -c:a aac -ac 2");
    let part = copied(&path, "mpegts", "");
    let once = index_bytes(&part).unwrap();
    let twice = index_bytes(&[&part[..], &part].concat()).unwrap();
    for (track, single) in twice.tracks.iter().zip(&once.tracks) {
        // Packets may be missing between the parts: the last picture before them may be cut, and is left out.
        let cut = u32::from(NalSyntax::of(&track.codec).is_some());
        assert_eq!(track.samples.len(), 2 * single.samples.len() - cut, "{}", track.codec.name());
        let lasts = track.timescale.seconds(track.samples.end_dts());
        let expected = 2.0 * single.timescale.seconds(single.samples.end_dts());
        assert!((lasts - expected).abs() < 0.2, "{lasts} s, expected {expected} s");
    }
}
