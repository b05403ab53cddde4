//! Decodes the characters of text files.

use std::borrow::Cow;

/// Characters 0x80 to 0x9f of Windows-1252 (table of the WHATWG Encoding Standard).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Decodes UTF-16 with a byte order mark, else UTF-8 with or without one, else Windows-1252.
pub(super) fn any(bytes: &[u8]) -> Cow<'_, str> {
    if let Some(text) = utf16(bytes) {
        return Cow::Owned(text);
    }
    let bytes = without_mark(bytes);
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&byte| windows_1252(byte)).collect()),
    }
}

/// Decodes UTF-8 with or without a byte order mark. Invalid bytes become U+FFFD.
pub(super) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(without_mark(bytes))
}

/// Decodes UTF-16, if the bytes begin with a byte order mark.
pub(super) fn utf16(bytes: &[u8]) -> Option<String> {
    let (mark, rest) = bytes.split_first_chunk::<2>()?;
    let unit: fn([u8; 2]) -> u16 = match mark {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = rest.as_chunks::<2>().0.iter().map(|&pair| unit(pair));
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn windows_1252(byte: u8) -> char {
    byte.checked_sub(0x80).and_then(|n| WINDOWS_1252.get(usize::from(n)).copied()).unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_is_told_apart() {
        assert_eq!(any(b"\xef\xbb\xbfgr\xc3\xbcn"), "grün");
        assert_eq!(any(b"gr\xc3\xbcn"), "grün");
        assert_eq!(any(b"gr\xfcn \x80 \x97"), "grün € —");
        assert_eq!(any(b"\xff\xfeg\0\xfc\0\x3d\xd8\x00\xde"), "gü😀");
        assert_eq!(any(b"\xfe\xff\0g\0\xfc\xd8"), "gü");
        assert_eq!(any(b"\xfe\xff\xd8\x00"), "\u{fffd}");
        assert_eq!(any(b""), "");
        assert_eq!(utf8(b"a\xff"), "a\u{fffd}");
    }
}
