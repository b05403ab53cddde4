//! The audio track that is muxed into the transport stream segments of video tracks.

use crate::presentation::counters::TsLayout;

/// The audio track that is muxed into the video's segments.
#[derive(Debug)]
pub(crate) struct MuxedAudio {
    /// Index in the tracks of the presentation.
    pub(crate) place: usize,
    /// First ordinal of each video segment, and the end of the last.
    pub(crate) ordinals: Box<[u32]>,
    pub(crate) layout: TsLayout,
}

impl MuxedAudio {
    pub(crate) fn heap_bytes(&self) -> usize {
        self.ordinals.len() * size_of::<u32>() + self.layout.heap_bytes()
    }
}
