//! AVI files through the indexer, the packager and the extractor. The first eight bytes choose the ranges that are extracted.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{ByteRange, Extraction, Extractor, Indexer, Movie, Step, Work};
use millpond_package::{Presentation, PresentationOptions, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

/// Most bytes that are extracted at once, to be compared with ranges.
const WHOLE: u64 = 1 << 20;
/// Most segments of a track that are made.
const SEGMENTS: u32 = 8;
/// Steps of work for each byte of the object, which counts as 1024 bytes longer.
const STEPS: u64 = 1024;

fn indexed(object: &[u8]) -> Option<Movie> {
    let work = Work::new((object.len() as u64 + 1024) * STEPS);
    let mut indexer = Indexer::new(object.len() as u64).with_work(work);
    loop {
        match indexer.poll().ok()? {
            Step::Done(movie) => return Some(movie),
            Step::Need(ranges) => {
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
    let Some(movie) = indexed(object) else { return };
    assert!(movie.heap_bytes() <= 64 * (object.len() + 65536));
    let len = movie.extraction.as_ref().map_or(object.len() as u64, |extraction| extraction.len());
    for track in &movie.tracks {
        let mut last = None;
        for sample in &track.samples {
            assert!(sample.range.end <= len);
            assert!(last.is_none_or(|last| sample.dts >= last));
            last = Some(sample.dts);
        }
    }
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
