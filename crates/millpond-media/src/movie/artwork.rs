//! Artwork: a picture beside the media of a file, such as a cover or poster. The index has only the picture's places.

use crate::{movie::image_text::ImageText, units::ByteRange};
use serde::{Deserialize, Serialize};

/// Most bytes of a picture. Larger pictures are ignored.
pub(crate) const MOST_BYTES: u64 = 16 << 20;
/// Bytes that show the format of an image.
pub(crate) const MAGIC: usize = 12;

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ImageKind {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    Webp,
}

impl ImageKind {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Jpeg, Self::Png, Self::Webp];

    /// Returns the format of an image that begins with `head`; twelve bytes suffice. The media type that the file states is ignored.
    #[must_use]
    pub fn of_bytes(head: &[u8]) -> Option<Self> {
        let head: &[u8; MAGIC] = head.first_chunk()?;
        match head {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some(Self::Webp),
            _ => None,
        }
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the extension of file names.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
            Self::Webp => "webp",
        }
    }
}

/// A picture in a file: a whole image file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artwork {
    /// Format of the picture.
    pub kind: ImageKind,
    /// Places of its bytes in the object, in their order.
    pub pieces: Vec<ByteRange>,
    /// Part of the decoded bytes that is the picture, where the pieces are base64 text; `None` for the bytes as they are.
    pub text: Option<ImageText>,
}

impl Artwork {
    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<ByteRange>()
    }
}

impl From<ImageRange> for Artwork {
    fn from(ImageRange { range, kind }: ImageRange) -> Self {
        Self { kind, pieces: vec![range], text: None }
    }
}

/// A picture that is one range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageRange {
    /// Place of the picture: a whole image file.
    pub(crate) range: ByteRange,
    /// Format of the picture.
    pub(crate) kind: ImageKind,
}

impl ImageRange {
    /// Returns the picture at `range`, whose first bytes are `head`. `None` if its format is not known or it is too large.
    pub(crate) fn of(range: ByteRange, head: &[u8]) -> Option<Self> {
        let fits = (MAGIC as u64..=MOST_BYTES).contains(&range.len());
        let kind = ImageKind::of_bytes(head).filter(|_| fits)?;
        Some(Self { range, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_first_bytes() {
        let known = [
            (&b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01"[..], ImageKind::Jpeg),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ImageKind::Png),
            (b"RIFF\x10\0\0\0WEBPVP8 ", ImageKind::Webp),
        ];
        for (head, kind) in known {
            assert_eq!(ImageKind::of_bytes(head), Some(kind));
            assert_eq!(ImageKind::of_bytes(head.get(..11).unwrap()), None, "too short");
            assert_eq!(kind.media_type().split_once('/').map(|(kind, _)| kind), Some("image"));
        }
        for other in [&b"GIF89a\0\0\0\0\0\0"[..], b"<svg xmlns=\"http://www.w3.org\">", b"RIFF\0\0\0\0WAVEfmt ", b""] {
            assert_eq!(ImageKind::of_bytes(other), None);
        }
    }

    #[test]
    fn large_pictures_are_ignored() {
        let of = |length| ImageRange::of(ByteRange::at(100, length), b"\x89PNG\r\n\x1a\n\0\0\0\r");
        assert_eq!(of(MOST_BYTES), Some(ImageRange { range: ByteRange::at(100, MOST_BYTES), kind: ImageKind::Png }));
        assert_eq!([of(MOST_BYTES + 1), of(11), of(0)], [None; 3]);
    }
}
