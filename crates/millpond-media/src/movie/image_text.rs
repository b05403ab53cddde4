//! Images as base64 text (RFC 4648 4), such as covers in Vorbis comments.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::{Deserialize, Serialize};

/// Characters of a group, which stand for three bytes.
pub(crate) const GROUP_CHARACTERS: u64 = 4;
/// Bytes of a group.
pub(crate) const GROUP_BYTES: u64 = 3;

/// Writers may omit the padding, and may leave bits behind the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The part of decoded base64 text that is an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageText {
    /// Decoded bytes before the image: fewer than those of a group.
    pub skip: u8,
    /// Bytes of the image.
    pub len: u64,
}

/// Decodes the text of an image piece by piece.
#[derive(Debug)]
pub struct ImageDecoder {
    /// Characters of a group that is not complete.
    open: Vec<u8>,
    skip: usize,
    /// Bytes of the image that are still to come.
    left: u64,
}

impl ImageDecoder {
    /// Creates a decoder of a text from its beginning.
    #[must_use]
    pub fn new(text: ImageText) -> Self {
        Self { open: Vec::new(), skip: text.skip.into(), left: text.len }
    }

    /// Decodes the next characters, and appends bytes of the image to `out`. `None` where a character is not base64.
    #[must_use]
    pub fn push(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.open.extend_from_slice(text);
        let rest = self.open.split_off(self.open.len() - self.open.len() % GROUP_CHARACTERS as usize);
        let whole = std::mem::replace(&mut self.open, rest);
        self.decode(&whole, out)
    }

    /// Decodes the last group. `None` where bytes of the image are missing.
    #[must_use]
    pub fn finish(mut self, out: &mut Vec<u8>) -> Option<()> {
        let last = std::mem::take(&mut self.open);
        self.decode(&last, out)?;
        (self.left == 0).then_some(())
    }

    fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let bytes = decoded(text)?;
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let image = bytes.get(skipped..)?;
        let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(image.len());
        out.extend_from_slice(image.get(..taken)?);
        self.left -= taken as u64;
        Some(())
    }
}

/// Returns the bytes of base64 text; `None` for other text.
pub(crate) fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Whether a byte is one of the 64 characters.
pub(crate) fn is_character(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `0123456789` without its padding.
    const TEXT: &[u8] = b"MDEyMzQ1Njc4OQ";

    fn pieces(text: &[u8], size: usize, part: ImageText) -> Option<Vec<u8>> {
        let (mut decoder, mut out) = (ImageDecoder::new(part), Vec::new());
        for piece in text.chunks(size) {
            decoder.push(piece, &mut out)?;
        }
        decoder.finish(&mut out).map(|()| out)
    }

    #[test]
    fn pieces_of_any_size_give_the_same_image() {
        for size in 1..=TEXT.len() {
            assert_eq!(pieces(TEXT, size, ImageText { skip: 2, len: 8 }).as_deref(), Some(&b"23456789"[..]));
            assert_eq!(pieces(TEXT, size, ImageText { skip: 0, len: 4 }).as_deref(), Some(&b"0123"[..]));
        }
        assert_eq!(
            pieces(b"MDEyMw==", 3, ImageText { skip: 0, len: 4 }).as_deref(),
            Some(&b"0123"[..]),
            "with padding"
        );
    }

    #[test]
    fn other_text_and_missing_bytes_are_refused() {
        assert_eq!(pieces(TEXT, 5, ImageText { skip: 2, len: 9 }), None, "one byte too few");
        assert_eq!(pieces(b"MDEy\nMzQ1", 4, ImageText { skip: 0, len: 6 }), None);
        assert_eq!(pieces(b"MDEyM", 5, ImageText { skip: 0, len: 3 }), None, "a group of one character");
        assert!(TEXT.iter().all(|byte| is_character(*byte)) && !b"=-_ \n\0".iter().any(|byte| is_character(*byte)));
    }
}
