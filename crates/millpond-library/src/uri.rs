//! Paths and queries of URLs (RFC 3986).

use crate::url_list;
use std::borrow::Cow;

/// Decodes a percent-encoded path. Returns `None` if it is not UTF-8 text or contains a NUL.
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    url_list::decode_path(path).filter(|path| !path.contains('\0'))
}

/// Percent-encodes a path for a URL. Slashes stay.
pub fn encode(path: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b',');
    percent_encoding::utf8_percent_encode(path, KEEP).to_string()
}

/// Returns the decoded value of a query's first parameter of a name. Missing ones are empty.
pub fn parameter(query: &str, name: &str) -> String {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| {
            percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_path_decodes_to_itself() {
        for path in ["films/a b.mp4", "100%", "ü/é", "a?b#c", ""] {
            assert_eq!(decode_path(&encode(path)).as_deref(), Some(path));
        }
        assert_eq!(decode_path("%00"), None);
        assert_eq!(decode_path("%ff"), None);
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(parameter("a=1&folder=x%2Fy+z&folder=2", "folder"), "x/y z");
        assert_eq!(parameter("folder", "folder"), "");
        assert_eq!(parameter("", "folder"), "");
    }
}
