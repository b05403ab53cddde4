//! Frames of transport stream files, AVI files and Matroska files with header stripping, as objects of their own.

use bytes::Bytes;
use millpond_media::{ByteRange, Extraction, Extractor, Movie};
use millpond_store::{Derivation, Making};
use std::{ops::Range, sync::Arc};

/// The frames of a file that has them scattered over packets, in chunks of another form, or without their common beginning.
#[derive(Debug)]
pub(super) struct Frames {
    movie: Arc<Movie>,
    /// Name of the object, with the number of the programme where one was chosen.
    name: String,
}

impl Frames {
    /// Returns the frames of a file, or of the programme that was chosen in it; `None` where frames are ranges of the file itself.
    pub(super) fn of(movie: &Arc<Movie>, programme: Option<u16>) -> Option<Self> {
        let name = programme.map_or_else(|| "frames".to_owned(), |number| format!("frames-{number}"));
        movie.extraction.as_ref().map(|_| Self { movie: movie.clone(), name })
    }

    fn extraction(&self) -> Result<&Extraction, String> {
        self.movie.extraction.as_deref().ok_or_else(|| "no frames".to_owned())
    }
}

impl Derivation for Frames {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.movie.extraction.as_ref().map_or(0, |extraction| extraction.len())
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
