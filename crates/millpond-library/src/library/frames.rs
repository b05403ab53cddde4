//! Frames of transport stream files and AVI files, as objects of their own.

use bytes::Bytes;
use millpond_media::{ByteRange, Extraction, Extractor, Movie};
use millpond_store::{Derivation, Making};
use std::{ops::Range, sync::Arc};

/// The frames of a file in which they are scattered over packets, or lie in chunks in another form.
#[derive(Debug)]
pub(super) struct Frames(Arc<Movie>);

impl Frames {
    /// Returns the frames of a file; `None` where they are ranges of the file itself.
    pub(super) fn of(movie: &Arc<Movie>) -> Option<Self> {
        movie.extraction.as_ref().map(|_| Self(movie.clone()))
    }

    fn extraction(&self) -> Result<&Extraction, String> {
        self.0.extraction.as_deref().ok_or_else(|| "no frames".to_owned())
    }
}

impl Derivation for Frames {
    fn name(&self) -> &'static str {
        "frames"
    }

    fn length(&self) -> u64 {
        self.0.extraction.as_ref().map_or(0, |extraction| extraction.len())
    }

    fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String> {
        let source = self.extraction()?.source(ByteRange::new(range.start, range.end));
        source.map(|source| source.start..source.end).map_err(|error| error.to_string())
    }

    fn begin(&self, range: &Range<u64>) -> Result<Box<dyn Making>, String> {
        let extractor = Extractor::new(self.extraction()?, ByteRange::new(range.start, range.end));
        Ok(Box::new(ExtractedRange(extractor.map_err(|error| error.to_string())?)))
    }
}

/// A range of the frames that is being extracted.
struct ExtractedRange(Extractor);

impl Making for ExtractedRange {
    fn memory(&self) -> u64 {
        self.0.memory()
    }

    fn supply(&mut self, part: &[u8]) {
        self.0.supply(part);
    }

    fn finish(self: Box<Self>) -> Result<Bytes, String> {
        self.0.finish().map_err(|error| error.to_string())
    }
}
