//! Artwork of MP4: `covr` in the list of metadata.

use super::item_list::{self, VALUE_HEADER};
use crate::{boxes::Node, movie::artwork::ImageRange, units::ByteRange};

/// Most pictures that are examined.
const MOST_PICTURES: usize = 32;

/// Returns the first picture of a movie box whose format is known.
pub(crate) fn listed(moov: &Node<'_>) -> Option<ImageRange> {
    let mut values = item_list::of(moov)?.child(b"covr")?.children_of(b"data").take(MOST_PICTURES);
    values.find_map(|value| {
        let image = value.body.get(VALUE_HEADER..)?;
        let place = ByteRange::at(value.body_offset() + VALUE_HEADER as u64, image.len() as u64);
        ImageRange::of(place, image)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::movie::artwork::ImageKind;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len() + 8).unwrap();
        [&size.to_be_bytes()[..], kind, body].concat()
    }

    fn value(image: &[u8]) -> Vec<u8> {
        boxed(b"data", &[&[0, 0, 0, 14, 0, 0, 0, 0][..], image].concat())
    }

    /// Returns a movie box with a list of metadata in a `meta` that begins with `version`.
    fn movie_box(version: &[u8], list: &[u8]) -> Vec<u8> {
        let list = boxed(b"ilst", list);
        let handler = boxed(b"hdlr", &[0; 25]);
        boxed(b"moov", &boxed(b"udta", &boxed(b"meta", &[version, &handler, &list].concat())))
    }

    fn found(moov: &[u8]) -> Option<ImageRange> {
        listed(&Node::new(moov, 1000, "moov").unwrap())
    }

    #[test]
    fn the_first_image_of_the_list_is_found() {
        let pictures = [value(b"BM, a bitmap"), value(PNG)].concat();
        let list = [boxed(b"\xa9nam", &value(b"A title of a film")), boxed(b"covr", &pictures)];
        for version in [&[0, 0, 0, 0][..], &[]] {
            let moov = movie_box(version, &list.concat());
            let start = 1000 + u64::try_from(moov.len() - PNG.len()).unwrap();
            let expected = ImageRange { range: ByteRange::at(start, PNG.len() as u64), kind: ImageKind::Png };
            assert_eq!(found(&moov), Some(expected));
        }
    }

    #[test]
    fn movies_without_a_known_image_have_none() {
        assert_eq!(found(&movie_box(&[0; 4], &boxed(b"covr", &value(b"GIF89a and what follows")))), None);
        assert_eq!(found(&movie_box(&[0; 4], &boxed(b"covr", &boxed(b"data", &[0; 4])))), None);
        assert_eq!(found(&boxed(b"moov", &[])), None);
        let whole = movie_box(&[0; 4], &boxed(b"covr", &value(PNG)));
        for cut in 8..whole.len() {
            let cut = whole.get(..cut).unwrap();
            assert!(found(cut).is_none_or(|artwork| artwork.range.end <= 1000 + cut.len() as u64));
        }
    }
}
