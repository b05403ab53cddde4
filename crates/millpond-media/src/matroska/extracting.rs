//! The extracted object of a file in which frames lack their common beginning (header stripping, RFC 9559 5.1.4.1.31.6).
//!
//! The frames of all tracks that play, texts and the cover are appended to it in the order of the file. So a part of it is made of about
//! as many bytes of the file.

use super::lane::Lane;
use crate::{
    codec::StreamForm,
    movie::{
        artwork::ImageRange,
        extraction::{ExtractedStream, Extraction, PacketForm},
        whole_frames::{Extracted, WholeFrames},
    },
    units::ByteRange,
};

/// Bytes of a cover that are extracted together.
const PIECE: u64 = 64 << 10;
/// Most bytes between a cover and the frames beside it in the extracted object. These bytes are read with both.
const MOST_APART: u64 = 64 << 20;

/// The extracted object and its map while they grow.
#[derive(Debug)]
pub(super) struct Extracting {
    file_len: u64,
    extracted: Extracted,
    /// End in the file of the last frame.
    end: u64,
    streams: Vec<ExtractedStream>,
    /// The cover of the file, and its place in the extracted object once it is there.
    artwork: Option<ImageRange>,
    extracted_artwork: Option<ImageRange>,
}

impl Extracting {
    /// Begins where the first cluster is at `start`; `None` where all frames are stored whole.
    pub(super) fn new(lanes: &[Lane], artwork: Option<ImageRange>, (start, file_len): (u64, u64)) -> Option<Self> {
        if !lanes.iter().any(Lane::is_stripped) {
            return None;
        }
        let (extracted, streams) = (Extracted::default(), Vec::new());
        let mut extracting = Self { file_len, extracted, end: start, streams, artwork, extracted_artwork: None };
        extracting.append_artwork();
        Some(extracting)
    }

    /// Appends the frame of a track that the file stores at `stored`. Returns its place in the extracted object; an empty one for a frame
    /// without stored bytes, which is left out: hundreds of them fit a block of six bytes.
    pub(super) fn append(&mut self, frames: &mut WholeFrames, stored: ByteRange) -> ByteRange {
        let length = stored.len().saturating_add(frames.prefix().len() as u64);
        if stored.is_empty() || u32::try_from(length).is_err() {
            return ByteRange::at(self.extracted.len, 0);
        }
        self.end = stored.end;
        frames.append(stored, &mut self.extracted)
    }

    /// Takes the frames of a track. Those of a track that is left out are in the extracted object too.
    pub(super) fn end(&mut self, frames: WholeFrames) {
        if frames.is_empty() {
            return;
        }
        let number = u16::try_from(self.streams.len()).unwrap_or(u16::MAX);
        self.streams.push(frames.into_source().finish(number, StreamForm::Plain));
    }

    /// Returns the map, and the place of the cover.
    pub(super) fn finish(mut self) -> (Extraction, Option<ImageRange>) {
        self.append_artwork();
        let lengths = (self.file_len, self.extracted.len);
        (Extraction::new(lengths, PacketForm::Chunks, 0, self.streams), self.extracted_artwork)
    }

    /// Appends the cover, if it is near the last frame.
    fn append_artwork(&mut self) {
        let (near, start) = (self.end, self.extracted.len);
        let Some(artwork) = self.artwork.take_if(|artwork| artwork.range.start.abs_diff(near) <= MOST_APART) else {
            return;
        };
        let (mut pieces, mut at) = (WholeFrames::default(), artwork.range.start);
        while at < artwork.range.end {
            let piece = ByteRange::new(at, at.saturating_add(PIECE).min(artwork.range.end));
            pieces.append(piece, &mut self.extracted);
            at = piece.end;
        }
        self.end(pieces);
        self.extracted_artwork = Some(ImageRange { range: ByteRange::new(start, self.extracted.len), ..artwork });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{movie::artwork::ImageKind, ts_file::Extractor};

    fn extracting(artwork: ByteRange) -> Extracting {
        let artwork = Some(ImageRange { range: artwork, kind: ImageKind::Png });
        let (extracted, streams) = (Extracted::default(), Vec::new());
        let mut extracting =
            Extracting { file_len: 1 << 40, extracted, end: 1000, streams, artwork, extracted_artwork: None };
        extracting.append_artwork();
        extracting
    }

    #[test]
    fn a_cover_is_beside_the_frames_that_are_near_it() {
        let place = |artwork: ByteRange| {
            let (mut extracting, mut frames) = (extracting(artwork), WholeFrames::default());
            for at in [1000, 1 << 30] {
                extracting.append(&mut frames, ByteRange::at(at, 10));
            }
            extracting.finish().1.map(|artwork| artwork.range)
        };
        assert_eq!(place(ByteRange::at(100, 800)), Some(ByteRange::at(0, 800)), "before the clusters");
        assert_eq!(place(ByteRange::at((1 << 30) + 500, 800)), Some(ByteRange::at(20, 800)), "behind them");
        assert_eq!(place(ByteRange::at(1 << 29, 800)), None, "far from both ends");
    }

    #[test]
    fn frames_without_stored_bytes_are_left_out() {
        let (mut extracting, mut frames) =
            (extracting(ByteRange::at(1 << 30, 99)), WholeFrames::behind(b"abc".to_vec()));
        let mut append = |at: u64, length: u64| extracting.append(&mut frames, ByteRange::at(at, length));
        assert_eq!((append(2000, 0), append(2000, 2)), (ByteRange::at(0, 0), ByteRange::at(0, 5)));
        assert!(append(2002, u64::from(u32::MAX) - 2).is_empty(), "no sample is as long");
        assert_eq!(append(2010, 1), ByteRange::at(5, 4));
        extracting.end(frames);
        let (extraction, artwork) = extracting.finish();
        assert_eq!((extraction.len(), artwork), (9, None));
        for (range, expected) in [(0..9, &b"abcdeabcf"[..]), (1..2, b"b"), (2..6, b"cdea"), (5..8, b"abc"), (4..4, b"")]
        {
            let mut extractor = Extractor::new(&extraction, ByteRange::new(range.start, range.end)).unwrap();
            let source = extractor.source();
            assert!(extractor.memory() <= 2 * source.len() + expected.len() as u64);
            let file = |at: u64| b"de--------f".get((at - 2000) as usize).copied().unwrap_or(0);
            extractor.supply(&(source.start..source.end).map(file).collect::<Vec<_>>());
            assert_eq!(extractor.finish().unwrap(), expected, "{range:?}");
        }
    }
}
