//! The list of metadata in the form of iTunes: `udta/meta/ilst` (QuickTime File Format, "Metadata Item List Atom").

use crate::{
    boxes::Node,
    movie::tags::{TagName, Tags, utf16},
};

/// Bytes of version and flags. The `meta` box of ISO files has them, that of QuickTime has not.
const FULL: usize = 4;
/// Bytes of type and locale before a value.
pub(super) const VALUE_HEADER: usize = 8;
/// Most values of an item.
const MOST_VALUES: usize = 32;
/// Bytes of a text that are decoded.
const MOST_TEXT: usize = 2048;
/// Types of values: text in UTF-8, and in UTF-16. Some writers state none.
const NONE: [u8; 4] = [0, 0, 0, 0];
const UTF8: [u8; 4] = [0, 0, 0, 1];
const UTF16: [u8; 4] = [0, 0, 0, 2];

/// Returns the list of a movie box.
pub(super) fn of<'a>(moov: &Node<'a>) -> Option<Node<'a>> {
    let meta = moov.child(b"udta")?.child(b"meta")?;
    meta.child_after(FULL, b"ilst").or_else(|| meta.child(b"ilst"))
}

/// Reads the tags of a movie box.
pub(super) fn tags(moov: &Node<'_>) -> Tags {
    let mut tags = Tags::default();
    let Some(list) = of(moov) else { return tags };
    let names = [(b"\xa9nam", TagName::Title), (b"\xa9ART", TagName::Artist), (b"\xa9alb", TagName::Album)];
    for (kind, name) in names {
        let Some(item) = list.child(kind) else { continue };
        for value in item.children_of(b"data").take(MOST_VALUES) {
            let Some((kind, text)) = value.body.split_first_chunk::<4>().zip(value.body.get(VALUE_HEADER..)) else {
                continue;
            };
            let text = text.get(..MOST_TEXT).unwrap_or(text);
            match kind.0 {
                &NONE | &UTF8 => tags.add(name, &String::from_utf8_lossy(text)),
                &UTF16 => tags.add(name, &utf16(text)),
                _ => {}
            }
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len() + 8).unwrap();
        [&size.to_be_bytes()[..], kind, body].concat()
    }

    #[test]
    fn texts_of_the_list_are_tags() {
        let value = |kind: u8, text: &[u8]| boxed(b"data", &[&[0, 0, 0, kind, 0, 0, 0, 0][..], text].concat());
        let list = [
            boxed(b"\xa9nam", &value(1, "Träume".as_bytes())),
            boxed(b"\xa9ART", &[value(1, b"one"), value(2, b"\0t\0w\0o"), value(13, b"no text")].concat()),
            boxed(b"\xa9alb", &boxed(b"data", &[0; 5])),
        ];
        let meta = boxed(b"meta", &[&[0; 4][..], &boxed(b"ilst", &list.concat())].concat());
        let moov = boxed(b"moov", &boxed(b"udta", &meta));
        let tags = tags(&Node::new(&moov, 0, "moov").unwrap());
        assert_eq!(
            (tags.title.as_deref(), tags.artist.as_deref(), tags.album),
            (Some("Träume"), Some("one; two"), None)
        );
    }
}
