//! Segments of Matroska through the indexer, with and without outline, through the loader and the packager.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{ByteRange, Extractor, FragmentLoader, Indexer, LoadStep, Movie, Step, Work};
use millpond_package::{Presentation, PresentationOptions, SegmentFragments, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

/// An EBML header of the document type "matroska", and the header of a segment without size.
const HEAD: &[u8] = b"\x1a\x45\xdf\xa3\x8b\x42\x82\x88matroska\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff";
/// Most segments of a track that are made.
const SEGMENTS: u32 = 8;
/// Most bytes that are extracted.
const EXTRACTED: u64 = 64 << 10;

fn indexed(object: &[u8], mut indexer: Indexer) -> Option<Movie> {
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

fn loaded(object: &[u8], movie: &Arc<Movie>, wanted: &SegmentFragments) -> Option<Movie> {
    let mut loader = FragmentLoader::new(movie.clone(), wanted.fragments.clone(), Work::unlimited())?;
    loop {
        match loader.poll().ok()? {
            LoadStep::Done(movie) => return Some(*movie),
            LoadStep::Need(range) => {
                assert!(range.start <= range.end && range.end <= object.len() as u64);
                loader.supply(Bytes::copy_from_slice(object.get(range.start as usize..range.end as usize)?));
            }
        }
    }
}

/// Asserts that a part of the extracted object can be made; returns the length of the object in which samples lie.
fn extracted(object: &[u8], movie: &Movie) -> u64 {
    let Some(extraction) = &movie.extraction else { return object.len() as u64 };
    let range = ByteRange::new(extraction.len() / 3, extraction.len().min(extraction.len() / 3 + EXTRACTED));
    if let Ok(mut extractor) = Extractor::new(extraction, range) {
        let source = extractor.source();
        object[source.start as usize..source.end as usize].chunks(100).for_each(|piece| extractor.supply(piece));
        let bytes = extractor.finish().expect("the frames that were indexed");
        assert!(bytes.len() as u64 == range.len());
    }
    extraction.len()
}

fn packaged(object: &[u8], movie: Movie) {
    let len = extracted(object, &movie);
    let mut pieces = movie.artwork.iter().flat_map(|artwork| &artwork.pieces);
    assert!(pieces.all(|piece| piece.end <= len));
    for track in &movie.tracks {
        assert!(track.samples.heap_bytes() <= 64 * (object.len() + 1024));
        let mut last = None;
        for sample in &track.samples {
            assert!(sample.range.end <= len);
            assert!(last.is_none_or(|last| sample.dts >= last));
            last = Some(sample.dts);
        }
    }
    let movie = Arc::new(movie);
    let source = SourceObject::new(movie.clone(), "fuzz".to_owned());
    let options = PresentationOptions { target_duration: 4.0 };
    let Ok(presentation) = Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()) else { return };
    let _ = (dash::mpd(&presentation), hls::multivariant(&presentation, hls::Container::Fmp4));
    for track in presentation.tracks() {
        let _ = hls::media(&presentation, track, hls::Container::Fmp4);
        let _ = fmp4::init(&presentation, track);
        for number in 1..=track.segment_count().min(SEGMENTS) {
            match track.fragments(number) {
                None => drop(fmp4::segment(&presentation, track, number)),
                Some(wanted) => {
                    if let Some(loaded) = loaded(object, &movie, &wanted) {
                        let _ = fmp4::loaded_segment(track, number, &Arc::new(loaded));
                    }
                }
            }
        }
    }
}

fuzz_target!(|segment: &[u8]| {
    let object = [HEAD, segment].concat();
    let indexers = [Indexer::new(object.len() as u64), Indexer::new(object.len() as u64).outlining()];
    for indexer in indexers {
        if let Some(movie) = indexed(&object, indexer) {
            packaged(&object, movie);
        }
    }
});
