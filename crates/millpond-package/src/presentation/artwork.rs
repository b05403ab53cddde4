//! The picture of an asset: its bytes as they are in a file, or decoded from base64 text on the way.

use crate::{
    ObjectIndex, PackageError,
    plan::{ObjectRange, Plan, PlanItem, Rewrite, reads},
    presentation::track::MediaTrack,
};
use millpond_media::{Artwork, ByteRange, ImageDecoder, ImageKind, ImageText};

/// The picture that an object has beside its media.
#[derive(Clone, Copy, Debug)]
pub struct PresentedArtwork<'a> {
    artwork: &'a Artwork,
    media: &'a MediaTrack,
}

impl<'a> PresentedArtwork<'a> {
    pub(super) fn of(media: &'a MediaTrack) -> Option<Self> {
        Some(Self { artwork: media.movie.artwork.as_ref()?, media })
    }

    /// Returns the format.
    #[must_use]
    pub fn kind(&self) -> ImageKind {
        self.artwork.kind
    }

    /// Returns the plan of the bytes.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let pieces = self.artwork.pieces.iter().map(|piece| self.media.place(*piece));
        match self.artwork.text {
            None => Plan::Items(pieces.map(PlanItem::Object).collect()),
            Some(text) => Plan::Rewrite(Box::new(Decoding::new(pieces.collect(), text))),
        }
    }
}

/// A picture whose text is decoded.
struct Decoding {
    pieces: Vec<ObjectRange>,
    /// Pieces that were decoded.
    done: usize,
    /// The last read, which counts as one piece.
    pending: Option<(usize, ObjectRange)>,
    len: u64,
    /// The decoder; `None` at the end.
    decoder: Option<ImageDecoder>,
}

impl Decoding {
    fn new(pieces: Vec<ObjectRange>, text: ImageText) -> Self {
        Self { pieces, done: 0, pending: None, len: text.len, decoder: Some(ImageDecoder::new(text)) }
    }

    /// Returns the error of the piece that was decoded last.
    fn refused(&self) -> PackageError {
        let piece = self.pieces.get(self.done.saturating_sub(1)).copied();
        let empty = ObjectRange { object: ObjectIndex(0), range: ByteRange::new(0, 0) };
        let ObjectRange { object, range } = piece.unwrap_or(empty);
        let found = "other bytes".to_owned();
        PackageError::Sample { object, range, offset: 0, found, expected: "base64 of the whole picture" }
    }
}

impl Rewrite for Decoding {
    fn len(&self) -> Option<u64> {
        Some(self.len)
    }

    fn covering(&self) -> Vec<ObjectRange> {
        reads::cover(self.pieces.iter().copied())
    }

    fn next_read(&mut self) -> Option<ObjectRange> {
        if self.pending.is_none() {
            self.pending = self.pieces.get(self.done).map(|piece| (1, *piece));
        }
        self.pending.map(|(_, read)| read)
    }

    fn floor(&self, object: ObjectIndex) -> u64 {
        // Pages follow one another.
        let next = self.pieces.get(self.done).filter(|piece| piece.object == object);
        next.map_or(u64::MAX, |piece| piece.range.start)
    }

    fn push(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), PackageError> {
        self.done += reads::claim(&mut self.pending, text)?;
        let decoded = self.decoder.as_mut().and_then(|decoder| decoder.push(text, out));
        decoded.ok_or_else(|| self.refused())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        reads::check_finished(self.pieces.len().saturating_sub(self.done))?;
        let finished = self.decoder.take().and_then(|decoder| decoder.finish(out));
        finished.ok_or_else(|| self.refused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::made;

    fn decoding(pieces: &[(u64, u64)], text: ImageText) -> Box<dyn Rewrite> {
        let piece =
            |(start, end): &(u64, u64)| ObjectRange { object: ObjectIndex(0), range: ByteRange::new(*start, *end) };
        Box::new(Decoding::new(pieces.iter().map(piece).collect(), text))
    }

    #[test]
    fn pieces_of_text_become_the_picture() {
        let pieces = [(10, 15), (40, 41), (60, 70)];
        let rewrite = decoding(&pieces, ImageText { skip: 1, len: 8 });
        assert_eq!((rewrite.len(), rewrite.floor(ObjectIndex(0))), (Some(8), 10));
        assert_eq!(rewrite.covering()[0].range, ByteRange::new(10, 70));
        assert_eq!(made(rewrite, b"MDEyMzQ1Njc4OQ==").unwrap(), b"12345678");
    }

    #[test]
    fn a_file_that_changed_is_refused() {
        let other =
            |text: &[u8]| made(decoding(&[(10, 14), (40, 44)], ImageText { skip: 0, len: 6 }), text).unwrap_err();
        assert!(matches!(other(b"MDEyM\0Q1"), PackageError::Sample { .. }));
        assert!(matches!(other(b"MDEyMzQ="), PackageError::Sample { .. }), "one byte too few");
        assert!(matches!(other(b"MDEyMz"), PackageError::Call { .. }));
    }
}
