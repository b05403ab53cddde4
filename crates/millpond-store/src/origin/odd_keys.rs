//! Names of objects that no path of a place can have: `films//a.mp4`, `films/../a.mp4`, `/a.mp4`, backslashes, control characters.
//!
//! The client library of clouds refuses a whole page for most of them. They are taken out of the page before it reads it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;

/// Elements of an object or folder, and the element in each that holds its key: S3 and Google's service, then Azure's.
const ELEMENTS: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];

/// Most keys that are remembered as told.
const MOST_TOLD: usize = 256;

/// Keys that the log has named. A lock: several listings of a place may run at once.
#[derive(Clone, Debug, Default)]
pub(super) struct OddKeys(Arc<Mutex<HashSet<String>>>);

impl OddKeys {
    /// Logs keys that are left out of a listing, each once. `host` is the place's host or folder.
    pub(super) fn tell(&self, host: &str, keys: &[String]) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if told.len() < MOST_TOLD && told.insert(key.clone()) {
                tracing::warn!(host, key, "a name that no path can have is left out of its folder: rename the object");
            }
        }
    }
}

/// An element with an odd key.
struct OddElement {
    range: Range<usize>,
    key: String,
}

/// Returns a page of a listing without odd keys, and those keys. A page that is no XML stays as it is.
pub fn without_odd_keys(page: Bytes) -> (Bytes, Vec<String>) {
    let odd = std::str::from_utf8(&page).ok().and_then(odd_elements).unwrap_or_default();
    if odd.is_empty() {
        return (page, Vec::new());
    }
    let (mut kept, mut from) = (Vec::with_capacity(page.len()), 0);
    for element in &odd {
        kept.extend_from_slice(page.get(from..element.range.start).unwrap_or_default());
        from = element.range.end;
    }
    kept.extend_from_slice(page.get(from..).unwrap_or_default());
    (kept.into(), odd.into_iter().map(|element| element.key).collect())
}

/// Returns the elements with odd keys in the order of the page, or `None` where it is no XML.
fn odd_elements(text: &str) -> Option<Vec<OddElement>> {
    // Azure's pages begin with a byte order mark, which the reader does not count.
    let xml = text.trim_start_matches('\u{feff}');
    let mark = text.len() - xml.len();
    let mut reader = Reader::from_str(xml);
    let mut odd = Vec::new();
    loop {
        let start = mark + position(&reader)?;
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                let Some((_, name)) = ELEMENTS.into_iter().find(|(name, _)| tag.local_name().as_ref() == *name) else {
                    continue;
                };
                let key = key(&mut reader, name)?;
                if is_odd(&key) {
                    odd.push(OddElement { range: start..mark + position(&reader)?, key });
                }
            }
            Event::Eof => return Some(odd),
            _ => {}
        }
    }
}

/// Reads the rest of an element. Returns the text of its children of a name.
fn key(reader: &mut Reader<&[u8]>, name: &str) -> Option<String> {
    let (mut key, mut depth, mut is_key) = (String::new(), 0_usize, false);
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                depth += 1;
                is_key |= depth == 1 && tag.local_name().as_ref() == name;
            }
            Event::End(_) if depth == 0 => return Some(key),
            Event::End(_) => {
                depth -= 1;
                is_key &= depth > 0;
            }
            Event::Text(text) if is_key => key.push_str(&text.xml10_content()),
            Event::CData(text) if is_key => key.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) if is_key => key.push(character(&reference)),
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Returns the character of a reference. An unknown one becomes NUL, which no path has.
fn character(reference: &BytesRef<'_>) -> char {
    match &**reference {
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "amp" => '&',
        _ => reference.resolve_char_ref().ok().flatten().unwrap_or('\0'),
    }
}

fn position(reader: &Reader<&[u8]>) -> Option<usize> {
    usize::try_from(reader.buffer_position()).ok()
}

/// Tells whether no path names the object of a key. The library takes `/a` for `a`.
fn is_odd(key: &str) -> bool {
    key.starts_with('/') || key.contains('\\') || Path::parse(key).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(page: &str) -> (String, Vec<String>) {
        let (page, odd) = without_odd_keys(Bytes::from(page.to_owned()));
        (String::from_utf8(page.to_vec()).unwrap(), odd)
    }

    #[test]
    fn odd_keys_are_taken_out_and_the_rest_stays_as_it_is() {
        let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
        let page = |keys: &[&str]| {
            let all: String = keys.iter().map(|key| object(key)).collect();
            format!("<ListBucketResult><Prefix>a//b/</Prefix>{all}<IsTruncated>false</IsTruncated></ListBucketResult>")
        };
        let plain = ["a/b.mp4", "a/x &amp; y.mp4", "a/ä.mp4", "a/"];
        assert_eq!(split(&page(&plain)), (page(&plain), vec![]));
        let (left, odd) =
            split(&page(&["a//b.mp4", "a/b.mp4", "a/./c.mp4", "a/d&#10;.mp4", "a/e.mp4", "a\\f.mp4", "a/.."]));
        assert_eq!(left, page(&["a/b.mp4", "a/e.mp4"]));
        assert_eq!(odd, ["a//b.mp4", "a/./c.mp4", "a/d\n.mp4", "a\\f.mp4", "a/.."]);
        let (left, odd) = split(&page(&["/a.mp4", "/", "a/&#0;", "a/&what;", "a/x"]));
        assert_eq!(left, page(&["a/x"]));
        assert_eq!(odd, ["/a.mp4", "/", "a/\0", "a/\0"]);
    }

    #[test]
    fn other_forms_of_the_same_text_are_read() {
        let odd = "<s:Contents a='>'><!-- <Key>a</Key> --><Owner><Key>a</Key></Owner><s:Key><![CDATA[a/]]>&#x2f;b</s:Key></s:Contents>";
        let commented = "<!-- <Contents><Key>a//c</Key></Contents> -->";
        let page = |element: &str| {
            format!("\u{feff}<?xml version=\"1.0\"?>\r\n<L xmlns:s='x'>{element}{commented}<Contents/></L>\n")
        };
        assert_eq!(split(&page(odd)), (page(""), vec!["a//b".to_owned()]));
    }

    #[test]
    fn folders_and_blobs_have_keys_too() {
        let (left, odd) = split(
            "<R><CommonPrefixes><Prefix>a//</Prefix></CommonPrefixes><Blobs><Blob><Name>a//b</Name></Blob><BlobPrefix><Name>a/c/</Name></BlobPrefix></Blobs></R>",
        );
        assert_eq!(left, "<R><Blobs><BlobPrefix><Name>a/c/</Name></BlobPrefix></Blobs></R>");
        assert_eq!(odd, ["a//", "a//b"]);
    }

    #[test]
    fn texts_of_other_kinds_stay() {
        for text in ["", "<", "<Contents>", "<Contents><Key>a//b</Key>", "no XML &", "<Blob x"] {
            assert_eq!(split(text), (text.to_owned(), vec![]), "{text}");
        }
        let (bytes, odd) = without_odd_keys(Bytes::from_static(b"\xff<Contents><Key>a//b</Key></Contents>"));
        assert_eq!((bytes.len(), odd.len()), (37, 0));
    }
}
