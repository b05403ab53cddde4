//! Whole objects through the indexer, and what comes out through the packager.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_package::{Presentation, PresentationOptions, SourceObject, dash, fmp4, hls};
use std::sync::Arc;

fuzz_target!(|object: &[u8]| {
    let Ok(movie) = millpond_media::index_bytes(object) else { return };
    for track in &movie.tracks {
        // Compact tables may describe more than the file holds, never without bound.
        assert!(track.samples.heap_bytes() < 64 << 20);
        let mut last = None;
        for sample in track.samples.iter().take(1000) {
            assert!(movie.external_media.is_some() || sample.range.end <= object.len() as u64);
            assert!(last.is_none_or(|last| sample.dts >= last));
            last = Some(sample.dts);
        }
        let _ = millpond_media::spans(track, movie.timescale);
        let _ = track.codec.parameter();
    }
    let source = SourceObject {
        movie: Arc::new(movie),
        label: "fuzz".to_owned(),
        language: None,
        named: Vec::new(),
        bandwidth: None,
        use_video: true,
        use_audio: true,
        use_text: true,
    };
    let Ok(presentation) = Presentation::build(
        vec![source],
        Vec::new(),
        &PresentationOptions { target_duration: 4.0 },
        &millpond_media::Work::unlimited(),
    ) else {
        return;
    };
    let _ = dash::mpd(&presentation);
    for container in [hls::Container::Fmp4, hls::Container::Ts] {
        let _ = hls::multivariant(&presentation, container);
    }
    for track in presentation.tracks() {
        let _ = hls::media(&presentation, track, hls::Container::Fmp4);
        let _ = hls::iframes(&presentation, track, hls::Container::Fmp4);
        if track.source_track().is_some() {
            let _ = fmp4::init(&presentation, track);
        }
        for n in 1..=track.segment_count().min(8) {
            let _ = fmp4::segment(&presentation, track, n);
            let _ = millpond_package::transport::segment(&presentation, track, n);
        }
    }
});
