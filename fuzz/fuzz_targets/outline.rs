//! Whole objects through the outlining indexer, and their fragments through the loader and the packager.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{FragmentLoader, Indexer, LoadStep, Movie, Step, Work};
use millpond_package::{Presentation, PresentationOptions, SegmentFragments, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

/// Most segments of a track that are made.
const SEGMENTS: u32 = 8;

fn outlined(object: &[u8]) -> Option<Movie> {
    let mut indexer = Indexer::new(object.len() as u64).outlining();
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
                assert!(range.start >= wanted.range.start && range.end <= object.len() as u64);
                loader.supply(Bytes::copy_from_slice(object.get(range.start as usize..range.end as usize)?));
            }
        }
    }
}

fuzz_target!(|object: &[u8]| {
    let Some(movie) = outlined(object).filter(|movie| movie.outline.is_some()) else { return };
    let movie = Arc::new(movie);
    let source = SourceObject::new(movie.clone(), "fuzz".to_owned());
    let options = PresentationOptions { target_duration: 4.0 };
    let Ok(presentation) = Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()) else { return };
    let _ = (dash::mpd(&presentation), hls::multivariant(&presentation, hls::Container::Fmp4));
    for track in presentation.tracks() {
        let _ = hls::media(&presentation, track, hls::Container::Fmp4);
        let _ = fmp4::init(&presentation, track);
        for number in 1..=track.segment_count().min(SEGMENTS) {
            let Some(wanted) = track.fragments(number) else { continue };
            assert!(wanted.range.end <= object.len() as u64);
            if let Some(loaded) = loaded(object, &movie, &wanted) {
                let _ = fmp4::loaded_segment(track, number, &Arc::new(loaded));
            }
        }
    }
});
