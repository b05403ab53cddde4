//! `PICTURE` blocks of FLAC (RFC 9639 8.8).

use super::id3::{FRONT_COVER, TaggedPicture};
use crate::{bits::BitReader, movie::artwork::ImageRange, units::ByteRange};

/// Type of the block.
pub(super) const PICTURE: u8 = 6;
/// Bytes of a block that are read: its texts, and the beginning of the image.
pub(super) const LOOKED: u64 = 4096;
/// Size of the fields width, height, depth and number of colours, in bits.
const FACTS: usize = 4 * 32;

/// Returns the picture of a block whose body is at `place` and begins with `body`.
pub(super) fn picture(body: &[u8], place: ByteRange) -> Option<TaggedPicture> {
    let mut fields = BitReader::new(body);
    let is_front = fields.bits(32)? == FRONT_COVER;
    for _ in ["media type", "description"] {
        let length = usize::try_from(fields.bits(32)?).ok()?;
        fields.skip(length.checked_mul(8)?)?;
    }
    fields.skip(FACTS)?;
    let length = u64::from(fields.bits(32)?);
    let image = fields.rest();
    let start = place.start + (body.len() - image.len()) as u64;
    let range = ByteRange::at(start, length);
    let artwork = ImageRange::of(range, image).filter(|_| range.end <= place.end)?;
    Some(TaggedPicture { is_front, artwork })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0";

    fn block(kind: u8, description: &str, image: &[u8]) -> Vec<u8> {
        let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
        let length = (image.len() as u32).to_be_bytes();
        [&[0, 0, 0, kind][..], &text("image/jpeg"), &text(description), &[0; 16], &length, image].concat()
    }

    #[test]
    fn the_image_is_found_behind_its_texts() {
        for (kind, description) in [(3, ""), (4, "die Rückseite")] {
            let block = block(kind, description, JPEG);
            let place = ByteRange::at(70, block.len() as u64);
            let found = picture(&block, place).unwrap();
            assert_eq!((found.is_front, found.artwork.range), (kind == 3, ByteRange::new(place.end - 14, place.end)));
        }
    }

    #[test]
    fn damaged_blocks_have_no_picture_outside_of_them() {
        let whole = block(3, "front", JPEG);
        let place = ByteRange::at(70, whole.len() as u64);
        assert_eq!(picture(&block(3, "front", b"no picture at all"), ByteRange::at(70, 100)), None);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            assert!(picture(&damaged, place).is_none_or(|found| found.artwork.range.end <= place.end));
            assert!(picture(&whole[..at], place).is_none_or(|found| found.artwork.range.end <= place.end));
        }
    }
}
