//! Hostile covers in Ogg files: comments that lie about their number and length, and text of many megabytes.

use crate::measure::{Outcome, alone, measured};
use millpond_hostile::SparseObject;

const FIRST: u8 = 2;
const CONTINUED: u8 = 1;
/// Bytes of a header packet of 16 MiB.
const MANY: usize = 16 << 20;
/// Base64 of a `PICTURE` block of a front cover without texts up to its length, which is that of 4 GiB, and of a PNG behind it.
const ENDLESS: &[u8] = b"METADATA_BLOCK_PICTURE=AAAAAwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP////+JUE5HDQoaCgAAAA1JSERS";
/// The same without the block: base64 of the beginning of a PNG.
const IMAGE: &[u8] = b"COVERART=iVBORw0KGgoAAAANSUhEUg";

/// A page with `table` as the lengths of its segments.
fn page(flags: u8, table: &[u8], body: &[u8]) -> Vec<u8> {
    let head = [&b"OggS\0"[..], &[flags], &[0; 8], &[1, 0, 0, 0], &[0; 8], &[table.len() as u8]].concat();
    [&head, table, body].concat()
}

/// A file of Opus with a frame behind the packet with its comments, which lies in pages of `segments` segments.
fn opus(tags: &[u8], segments: usize) -> SparseObject {
    let mut bytes = page(FIRST, &[19], b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0");
    let whole = segments * 255;
    for (number, part) in tags.chunks(whole).enumerate() {
        let mut table = vec![255; part.len() / 255];
        if part.len() < whole {
            table.push((part.len() % 255) as u8);
        }
        bytes.extend(page(if number == 0 { 0 } else { CONTINUED }, &table, part));
    }
    if tags.len().is_multiple_of(whole) {
        bytes.extend(page(CONTINUED, &[0], &[]));
    }
    bytes.extend(page(0, &[40], &[0xfc; 40]));
    SparseObject { len: bytes.len() as u64, head: bytes.into() }
}

/// The packet with `count` comments, of which `comments` are the bytes.
fn tags(count: u32, comments: &[u8]) -> Vec<u8> {
    [&b"OpusTags\0\0\0\0"[..], &count.to_le_bytes(), comments].concat()
}

/// A comment whose stated length is `length`.
fn comment(length: u32, text: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), text].concat()
}

/// The sound plays, whatever its tags are.
fn plays(name: &str, object: &SparseObject) {
    let Outcome { result } = measured(name, object);
    assert!(result.is_ok(), "{name}: {result:?}");
}

#[test]
fn covers_that_lie_about_their_length() {
    let _alone = alone();
    for text in [ENDLESS, IMAGE] {
        for length in [0, 1, 9, 23, text.len() as u32, u32::MAX] {
            for count in [1, u32::MAX] {
                plays("a cover of another length", &opus(&tags(count, &comment(length, text)), 1));
            }
        }
    }
    plays("a vendor of 4 GiB", &opus(&[&b"OpusTags\xff\xff\xff\xff"[..], &vec![0; 1 << 20]].concat(), 255));
}

#[test]
fn headers_of_many_megabytes() {
    let _alone = alone();
    plays("comments without text", &opus(&tags(u32::MAX, &vec![0; MANY]), 255));
    let short = comment(IMAGE.len() as u32, IMAGE);
    plays("many covers", &opus(&tags(u32::MAX, &short.repeat(MANY / short.len())), 255));
    for segments in [1, 255] {
        for filling in [b'A', b'=', b'\n'] {
            for text in [ENDLESS, IMAGE] {
                let text = [text, &vec![filling; MANY]].concat();
                plays("a cover of 16 MiB", &opus(&tags(1, &comment(text.len() as u32, &text)), segments));
            }
        }
    }
}
