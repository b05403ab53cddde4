//! Texts of ID3: frames of ID3v2 (id3.org, 2.4.0 section 4.2), and the tag of ID3v1.

use crate::movie::tags::{TagName, Tags, latin1, unmarked, utf16};

/// Bytes of each text in an ID3v1 tag, which follow its signature of three bytes.
const ID3V1_TEXT: usize = 30;
const ID3V1_SIGNATURE: usize = 3;

/// Returns the tag of a frame's name, which has three letters in 2.2.
pub(super) fn name(frame: &[u8]) -> Option<TagName> {
    match frame {
        b"TIT2" | b"TT2" => Some(TagName::Title),
        b"TPE1" | b"TP1" => Some(TagName::Artist),
        b"TALB" | b"TAL" => Some(TagName::Album),
        _ => None,
    }
}

/// Adds the values in the body of a frame: an encoding, then texts with zeros between them.
pub(super) fn add(tags: &mut Tags, name: TagName, body: &[u8]) {
    let Some((encoding, text)) = body.split_first() else { return };
    let text = match encoding {
        0 => latin1(text),
        1 | 2 => utf16(text),
        3 => String::from_utf8_lossy(text).into_owned(),
        _ => return,
    };
    // A byte order mark may stand before each value.
    text.split('\0').for_each(|value| tags.add(name, value.trim_start_matches('\u{feff}')));
}

/// Reads an ID3v1 tag.
pub(super) fn of_id3v1(tag: &[u8]) -> Tags {
    let mut tags = Tags::default();
    let texts = tag.get(ID3V1_SIGNATURE..).unwrap_or_default().chunks_exact(ID3V1_TEXT);
    for (name, text) in [TagName::Title, TagName::Artist, TagName::Album].into_iter().zip(texts) {
        tags.add(name, &unmarked(text));
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_texts_in_four_encodings() {
        for body in
            [&b"\0b\xf6se"[..], b"\x01\xff\xfeb\0\xf6\0s\0e\0\0\0", b"\x02\0b\0\xf6\0s\0e", "\u{3}böse\0".as_bytes()]
        {
            let mut tags = Tags::default();
            add(&mut tags, TagName::Title, body);
            assert_eq!(tags.title.as_deref(), Some("böse"), "{body:?}");
        }
        let mut tags = Tags::default();
        add(&mut tags, TagName::Artist, b"\x03one\0two\0");
        add(&mut tags, TagName::Artist, b"\x01\xff\xfet\0h\0r\0e\0e\0\0\0\xff\xfef\0o\0u\0r\0");
        add(&mut tags, TagName::Album, b"\x04no encoding");
        add(&mut tags, TagName::Album, b"");
        assert_eq!(tags.artist.as_deref(), Some("one; two; three; four"));
        assert_eq!(tags.album, None);
    }

    #[test]
    fn the_tag_behind_the_sound_has_three_texts() {
        let text = |text: &str| [text.as_bytes(), &vec![0; 30 - text.len()]].concat();
        let tag = [&b"TAG"[..], &text("title"), &text("an artist of exactly 30 letters"[..30].trim_end()), &[b' '; 30]];
        let tags = of_id3v1(&tag.concat());
        assert_eq!(tags.title.as_deref(), Some("title"));
        assert_eq!(tags.artist.as_deref(), Some("an artist of exactly 30 letter"));
        assert_eq!((tags.album, of_id3v1(b"TAG")), (None, Tags::default()));
    }
}
