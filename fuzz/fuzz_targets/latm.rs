//! Elements of AAC in LATM, and configurations beside them: frames are parts of their element.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::latm::{LatmReader, StreamMux};

/// Elements of the input, each after its length of 8 bits.
fn read(mut reader: LatmReader, mut bytes: &[u8]) {
    while let [length, rest @ ..] = bytes {
        let (element, after) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = after;
        if let Ok(frames) = reader.element(element) {
            assert!(frames.iter().all(|frame| !frame.is_empty()));
            assert!(frames.iter().map(Vec::len).sum::<usize>() <= element.len());
            assert!(reader.mux().is_some_and(|mux| mux.sample_rate > 0 && mux.samples > 0));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(LatmReader::in_band(), bytes);
    if let Ok(mux) = StreamMux::new(bytes) {
        assert!(mux.audio_specific_config.len() <= bytes.len());
        read(LatmReader::configured(mux), bytes);
    }
});
