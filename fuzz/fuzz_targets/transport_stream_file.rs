//! Stored transport streams through the indexer and the extractor. The first eight bytes choose the ranges that are extracted.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{ByteRange, Extraction, Extractor, Indexer, Movie, Step};

/// Most bytes of an extracted object that is extracted as a whole.
const WHOLE: u64 = 1 << 20;

fn indexed(object: &[u8]) -> Option<Movie> {
    let mut indexer = Indexer::new(object.len() as u64);
    loop {
        match indexer.poll().ok()? {
            Step::Done(movie) => return Some(movie),
            Step::Need(ranges) => {
                for range in ranges {
                    let bytes = object.get(range.start as usize..range.end as usize).unwrap_or_default();
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
    let bytes = extractor.finish().ok()?;
    assert!(bytes.len() as u64 == range.len());
    Some(bytes)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choices, object)) = bytes.split_first_chunk::<8>() else { return };
    let Some(movie) = indexed(object) else { return };
    // Objects that begin with a box are MP4 files.
    let Some(extraction) = &movie.extraction else { return };
    assert!(movie.heap_bytes() <= 64 * (object.len() + 65536));
    for track in &movie.tracks {
        let mut last = None;
        for sample in &track.samples {
            assert!(sample.range.end <= extraction.len());
            assert!(last.is_none_or(|last| sample.dts > last));
            last = Some(sample.dts);
        }
    }
    let whole = extracted(object, extraction, ByteRange::new(0, extraction.len().min(WHOLE)), 4096);
    for pair in choices.windows(2) {
        let start = extraction.len() * u64::from(pair[0]) / 256;
        let end = (start + u64::from(pair[1]) * u64::from(pair[1])).min(extraction.len());
        let part = extracted(object, extraction, ByteRange::new(start, end), usize::from(pair[1]) + 1);
        if let (Some(whole), Some(part)) = (&whole, part)
            && end <= whole.len() as u64
        {
            assert!(whole[start as usize..end as usize] == part, "a part differs from the whole");
        }
    }
});
