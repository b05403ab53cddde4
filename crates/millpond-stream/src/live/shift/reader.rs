//! Parts on the disk as samples.

use bytes::Bytes;
use millpond_media::fragment_stream::{FragmentEvent, FragmentStream, StreamedSample};

/// Reads the parts of one track in an epoch, one after another.
#[derive(Debug)]
pub(crate) struct PartReader {
    init: Bytes,
    stream: FragmentStream,
}

impl PartReader {
    /// Makes a reader of the parts that follow an init segment.
    pub(crate) fn new(init: Bytes) -> Self {
        let mut reader = Self { init, stream: FragmentStream::new() };
        reader.reset();
        reader
    }

    fn reset(&mut self) {
        self.stream = FragmentStream::new();
        // Errors of an init segment come back with each part.
        let _ = self.stream.push(&self.init, &mut Vec::new());
    }

    /// Returns the samples of a part in decode order. Damaged bytes give none.
    pub(crate) fn samples(&mut self, part: &[u8]) -> Vec<StreamedSample> {
        let mut events = Vec::new();
        if self.stream.push(part, &mut events).is_err() {
            self.reset();
        }
        self.stream.end_piece(&mut Vec::new());
        let sample = |event| match event {
            FragmentEvent::Sample(sample) => Some(sample),
            _ => None,
        };
        events.into_iter().filter_map(sample).collect()
    }
}
