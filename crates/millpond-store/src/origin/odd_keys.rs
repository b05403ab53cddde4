//! Names of objects that no path of a place can have: `films//a.mp4`, `films/../a.mp4`, backslashes, control characters.
//!
//! The client library of clouds refuses a whole page for most of them. They are taken out of the page before it reads it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::path::Path;

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

/// Returns a page of a listing without odd keys, and those keys. A page that is no XML text stays as it is.
pub(super) fn without_odd_keys(page: Bytes) -> (Bytes, Vec<String>) {
    let Ok(text) = std::str::from_utf8(&page) else { return (page, Vec::new()) };
    let (mut kept, mut odd) = (String::new(), Vec::new());
    // `from` is the end of what was kept or left out.
    let (mut from, mut at) = (0, 0);
    while let Some(start) = text.get(at..).and_then(|rest| rest.find('<')).map(|place| at + place) {
        let rest = text.get(start..).unwrap_or_default();
        let Some((element, key)) = opened(rest) else {
            at = start + 1;
            continue;
        };
        let end = format!("</{element}>");
        // Without an end here there is none behind either.
        let Some(length) = rest.find(&end).map(|place| place + end.len()) else { break };
        at = start + length;
        let key = rest.get(..length).and_then(|whole| inside(whole, key)).map(unescaped).unwrap_or_default();
        if Path::parse(&key).is_err() || key.contains('\\') {
            kept.push_str(text.get(from..start).unwrap_or_default());
            from = at;
            odd.push(key);
        }
    }
    if odd.is_empty() {
        return (page, odd);
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    (kept.into(), odd)
}

/// Returns the name of the element of an object or folder that a text begins with, and that of the element of its key.
fn opened(text: &str) -> Option<(&'static str, &'static str)> {
    let rest = text.strip_prefix('<')?;
    let begins = |name: &str| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['>', ' ']));
    ELEMENTS.into_iter().find(|(name, _)| begins(name))
}

/// Returns the text of the first element of a name.
fn inside<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}"))?;
    let (_, rest) = rest.split_once('>')?;
    rest.split_once("</").map(|(value, _)| value)
}

/// Resolves the references of XML in a key.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('&') {
        out.push_str(before);
        let (name, after) = from.split_once(';').unwrap_or((from, ""));
        let number = || match name.strip_prefix("#x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => name.strip_prefix('#')?.parse().ok(),
        };
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "amp" => '&',
            _ => number().and_then(char::from_u32).unwrap_or('\u{fffd}'),
        });
        rest = after;
    }
    out.push_str(rest);
    out
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
