//! Sound files through the indexer and the packager: MPEG audio, ADTS, FLAC, WAVE, AIFF, Ogg.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_media::{Indexer, Movie, Step, Work};
use millpond_package::{Presentation, PresentationOptions, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

/// Most segments of a track that are made.
const SEGMENTS: u32 = 8;
/// Steps of work for each byte, and for an object without any.
const STEPS: u64 = 16;

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

fn packaged(object: &[u8], movie: Movie) {
    let mut pieces = movie.artwork.iter().flat_map(|artwork| &artwork.pieces);
    assert!(pieces.all(|piece| piece.end <= object.len() as u64));
    for track in &movie.tracks {
        assert!(track.samples.heap_bytes() <= 64 * (object.len() + 1024));
        let mut last = None;
        for sample in &track.samples {
            assert!(sample.range.end <= object.len() as u64);
            assert!(last.is_none_or(|last| sample.dts >= last));
            last = Some(sample.dts);
        }
    }
    let source = SourceObject::new(Arc::new(movie), "fuzz".to_owned());
    let options = PresentationOptions { target_duration: 4.0 };
    let Ok(presentation) = Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()) else { return };
    let _ = (dash::mpd(&presentation), hls::multivariant(&presentation, hls::Container::Fmp4));
    for track in presentation.tracks() {
        let _ = hls::media(&presentation, track, hls::Container::Fmp4);
        let _ = fmp4::init(&presentation, track);
        for number in 1..=track.segment_count().min(SEGMENTS) {
            drop(fmp4::segment(&presentation, track, number));
        }
    }
}

fuzz_target!(|object: &[u8]| {
    if let Some(movie) = indexed(object) {
        packaged(object, movie);
    }
});
