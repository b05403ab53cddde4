//! Streams of fragmented MP4: the same events in pieces of any size, and no more media than the stream has. The first byte
//! is the size of the pieces.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::fragment_stream::{FragmentEvent, FragmentStream};

fn events(bytes: &[u8], size: usize) -> (Vec<FragmentEvent>, bool) {
    let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
    let is_whole = bytes.chunks(size).all(|piece| stream.push(piece, &mut events).is_ok());
    (events, is_whole)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, stream)) = bytes.split_first() else { return };
    let found = events(stream, usize::from(*size) + 1);
    assert!(found == events(stream, stream.len().max(1)), "the events depend on the pieces");
    let (mut tracks, mut media) = (0, 0);
    for event in found.0 {
        match event {
            FragmentEvent::Tracks { tracks: found, .. } => tracks = found.len(),
            FragmentEvent::Sample(sample) => {
                assert!(sample.track < tracks);
                media += sample.data.len();
            }
            FragmentEvent::Fault(why) => assert!(!why.is_empty()),
        }
    }
    assert!(media <= stream.len());
});
