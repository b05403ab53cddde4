//! AVI files through the indexer, the packager and the extractor. The first eight bytes choose the ranges that are extracted.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{ByteRange, Extraction, Extractor, Indexer, Movie, Step, Track, Work, movie::TrackKind};
use millpond_package::{Presentation, PresentationOptions, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

/// Most bytes that are extracted at once, to be compared with ranges.
const WHOLE: u64 = 1 << 20;
/// Most segments of a track that are made.
const SEGMENTS: u32 = 8;
/// Bytes of memory for each byte that is read, and for an object without any.
const MEMORY_A_BYTE: usize = 2;
const MEMORY: usize = 256 << 10;
/// Steps of work for each byte of the object, which counts as 1024 bytes longer.
const STEPS: u64 = 1024;

/// Indexes an object. Returns the movie, and the memory that the server charges for it before the last step.
fn indexed(object: &[u8]) -> Option<(Movie, usize)> {
    let work = Work::new((object.len() as u64 + 1024) * STEPS);
    let mut indexer = Indexer::new(object.len() as u64).with_work(work);
    let (mut kept, mut charged) = (MEMORY, 0);
    loop {
        match indexer.poll().ok()? {
            Step::Done(movie) => return Some((movie, charged)),
            Step::Need(ranges) => {
                let wanted = ranges.iter().map(|range| range.len() as usize).sum::<usize>() * MEMORY_A_BYTE;
                if indexer.is_scanning() {
                    charged = kept + indexer.scanned_bytes() + wanted;
                } else {
                    kept += wanted;
                    charged = kept;
                }
                for range in ranges {
                    assert!(range.start < range.end && range.end <= object.len() as u64);
                    let bytes = object.get(range.start as usize..range.end as usize)?;
                    indexer.supply(range, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
}

fn extracted(object: &[u8], extraction: &Extraction, range: ByteRange, piece: usize) -> Option<Bytes> {
    let mut extractor = Extractor::new(extraction, range).ok()?;
    let source = extractor.source();
    assert!(source.end <= object.len() as u64);
    object[source.start as usize..source.end as usize].chunks(piece).for_each(|piece| extractor.supply(piece));
    let bytes = extractor.finish().expect("the chunks that were indexed");
    assert!(bytes.len() as u64 == range.len());
    Some(bytes)
}

/// Asserts that the samples of a track lie within `len` bytes, and that their times rise.
fn assert_samples(track: &Track, len: u64) {
    let is_video = matches!(track.kind, TrackKind::Video { .. });
    let (mut last, mut shown, mut is_exact) = (None, Vec::new(), true);
    for sample in &track.samples {
        assert!(sample.range.start < sample.range.end && sample.range.end <= len, "sample {}", sample.index);
        assert!(last.is_none_or(|last| sample.dts > last), "sample {} is decoded too early", sample.index);
        assert!(sample.composition >= 0 && (is_video || sample.composition == 0), "sample {}", sample.index);
        last = Some(sample.dts);
        // Offsets have 31 bits.
        is_exact &= sample.composition < i32::MAX;
        shown.push(sample.pts());
    }
    assert!(last.is_none_or(|last| track.samples.end_dts() > last), "the last sample has no duration");
    shown.sort_unstable();
    assert!(!is_exact || shown.windows(2).all(|pair| pair[0] < pair[1]), "two samples are shown at once");
    // Pictures begin with a key frame.
    assert!(track.samples.get(0).is_none_or(|first| first.sync), "the first sample is no key frame");
}

/// Asserts that no two samples share bytes of the extracted object.
fn assert_apart(movie: &Movie) {
    if movie.extraction.is_none() {
        return;
    }
    let mut ranges: Vec<_> = movie.tracks.iter().flat_map(|track| &track.samples).map(|sample| sample.range).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "two samples share bytes");
}

fn packaged(movie: Movie) {
    let source = SourceObject::new(Arc::new(movie), "fuzz".to_owned());
    let options = PresentationOptions { target_duration: 4.0 };
    let Ok(presentation) = Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()) else { return };
    let _ = (dash::mpd(&presentation), hls::multivariant(&presentation, hls::Container::Fmp4));
    for track in presentation.tracks() {
        let _ = hls::media(&presentation, track, hls::Container::Fmp4);
        for number in 1..=track.segment_count().min(SEGMENTS) {
            drop(fmp4::segment(&presentation, track, number));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choices, object)) = bytes.split_first_chunk::<8>() else { return };
    // Other targets read objects of other formats.
    if !object.starts_with(b"RIFF") || object.get(8..12) != Some(b"AVI ") {
        return;
    }
    let Some((movie, charged)) = indexed(object) else { return };
    assert!(movie.heap_bytes() <= charged, "{} bytes of memory, {charged} are charged", movie.heap_bytes());
    let len = movie.extraction.as_ref().map_or(object.len() as u64, |extraction| extraction.len());
    movie.tracks.iter().for_each(|track| assert_samples(track, len));
    assert_apart(&movie);
    if let Some(extraction) = &movie.extraction {
        let whole = extracted(object, extraction, ByteRange::new(0, len.min(WHOLE)), 4096);
        for pair in choices.windows(2) {
            let start = len * u64::from(pair[0]) / 256;
            let end = (start + u64::from(pair[1]) * u64::from(pair[1])).min(len);
            let part = extracted(object, extraction, ByteRange::new(start, end), usize::from(pair[1]) + 1);
            if let (Some(whole), Some(part)) = (&whole, part)
                && end <= whole.len() as u64
            {
                assert!(whole[start as usize..end as usize] == part, "a part differs from the whole");
            }
        }
    }
    packaged(movie);
});
