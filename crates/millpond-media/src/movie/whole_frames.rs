//! Frames that are ranges of the file, behind a prefix that they share. They are appended to the extracted object as they are read.

use super::extraction::{ExtractedStreamBuilder, FramePlace, UnitPlace};
use crate::units::ByteRange;

/// The extracted object while it grows.
#[derive(Debug, Default)]
pub(crate) struct Extracted {
    /// Its length so far.
    pub(crate) len: u64,
}

impl Extracted {
    /// Appends a frame; returns its place.
    pub(crate) fn append(&mut self, length: u64) -> ByteRange {
        let place = ByteRange::at(self.len, length);
        self.len = place.end;
        place
    }
}

/// The frames of a track whose units are whole frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct WholeFrames {
    source: ExtractedStreamBuilder,
    /// Length of the elementary stream so far.
    position: u64,
}

impl WholeFrames {
    /// Creates the frames of a track that has `prefix` before each frame in the extracted object.
    pub(crate) fn behind(prefix: Vec<u8>) -> Self {
        Self { source: ExtractedStreamBuilder::behind(prefix), position: 0 }
    }

    /// Bytes before each frame that the file does not store.
    pub(crate) fn prefix(&self) -> &[u8] {
        self.source.prefix()
    }

    /// Appends a frame that the file stores at `stored`. Returns its place in the extracted object, which includes the prefix.
    pub(crate) fn append(&mut self, stored: ByteRange, extracted: &mut Extracted) -> ByteRange {
        let source = ByteRange::at(self.position, stored.len());
        self.position = source.end;
        self.source.push_unit(UnitPlace { packets: stored, payload: source });
        let place = extracted.append(stored.len().saturating_add(self.prefix().len() as u64));
        self.source.push_frame(FramePlace { extracted: place, source });
        place
    }

    /// Whether no frame was appended.
    pub(crate) fn is_empty(&self) -> bool {
        self.position == 0
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.source.heap_bytes()
    }

    /// Returns the map of the frames.
    pub(crate) fn into_source(self) -> ExtractedStreamBuilder {
        self.source
    }
}
