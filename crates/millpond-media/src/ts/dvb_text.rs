//! Texts of DVB tables (ETSI EN 300 468 annex A): the first bytes name the character table.
//!
//! Many broadcasters write UTF-8 or ISO/IEC 8859 without saying so, therefore a text is read leniently. Bytes without a character
//! become U+FFFD, and no text is an error.

use super::{iso6937, iso8859};

/// Most characters of a text.
const MOST_CHARS: usize = 128;
/// Marks of emphasis in tables of one byte: begin and end (annex A.1).
const EMPHASIS: std::ops::RangeInclusive<char> = '\u{86}'..='\u{87}';
/// The end of a line in tables of one byte (annex A.1), and in tables of two bytes (annex A.2).
const LINE_ENDS: [char; 2] = ['\u{8a}', '\u{e08a}'];
/// Marks of emphasis in tables of two bytes.
const WIDE_EMPHASIS: std::ops::RangeInclusive<char> = '\u{e086}'..='\u{e087}';

/// Decodes a text, without its marks and control characters. `None` if nothing else is in it, and for tables that are not read: of
/// Korean, Chinese and compressed texts.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
    let text = match bytes {
        // Selected tables (tables A.3 and A.4).
        [table @ 0x01..=0x0b, rest @ ..] if *table != 0x08 => of_part(u16::from(*table) + 4, rest)?,
        [0x10, high, low, rest @ ..] => of_part(u16::from_be_bytes([*high, *low]), rest)?,
        [0x11, rest @ ..] => wide(rest),
        [0x15, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0x00..=0x1f, ..] => return None,
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => usual(bytes),
        },
    };
    let is_mark = |c: &char| EMPHASIS.contains(c) || WIDE_EMPHASIS.contains(c);
    let spaced = text.chars().map(|c| if LINE_ENDS.contains(&c) { ' ' } else { c });
    let plain: String = spaced.filter(|c| !is_mark(c) && !c.is_control()).take(MOST_CHARS).collect();
    let plain = plain.trim();
    (!plain.is_empty()).then(|| plain.to_owned())
}

/// Decodes bytes of a part of ISO/IEC 8859.
fn of_part(part: u16, bytes: &[u8]) -> Option<String> {
    let upper: Vec<char> = iso8859::upper_half(part)?.chars().collect();
    let character = |byte: &u8| match byte.checked_sub(0xa0) {
        Some(place) => upper.get(usize::from(place)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
        None => char::from(*byte),
    };
    Some(bytes.iter().map(character).collect())
}

/// Decodes characters of two bytes (ISO/IEC 10646, basic multilingual plane).
fn wide(bytes: &[u8]) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    char::decode_utf16(units.iter().map(|unit| u16::from_be_bytes(*unit)))
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Decodes bytes of the usual table.
fn usual(bytes: &[u8]) -> String {
    let mut bytes = bytes.iter().copied().peekable();
    std::iter::from_fn(|| iso6937::next(&mut bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<String> {
        decode(bytes)
    }

    #[test]
    fn each_table_is_read() {
        let cases: [(&[u8], &str); 12] = [
            (b"Das Erste HD", "Das Erste HD"),
            (b"S\xc8udwest \xa4 \xc2e\xcfS", "Südwest € éŠ"),
            (b"\x01\xbc\xde\xe0\xd2", "Морв"),
            (b"\x05T\xfcrk\xe7e \xfe", "Türkçe ş"),
            (b"\x0b\xa4", "€"),
            (b"\x10\x00\x02\xb9\xe8", "šč"),
            (b"\x10\x00\x0f\xa4", "€"),
            (b"\x11\x04\x1f\xe0\x86\x04\x40", "Пр"),
            (b"\x15ZDF \xe2\x82\xac", "ZDF €"),
            ("ünder UTF-8".as_bytes(), "ünder UTF-8"),
            (b"\x86BBC\x87\x8aONE\x05 ", "BBC ONE"),
            (b"A\xc8\xe1B\xc8", "A\u{fffd}ÆB\u{fffd}"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(read(bytes).as_deref(), Some(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        let blank: [&[u8]; 3] = [b"", b"  ", b"\x86\x87"];
        let unread: [&[u8]; 6] = [b"\x12\xb0\xa1", b"\x13a", b"\x1f\x01a", b"\x10\x00\x0ca", b"\x08a", b"\x10"];
        for bytes in blank.into_iter().chain(unread) {
            assert_eq!(read(bytes), None, "{bytes:x?}");
        }
        assert_eq!(read(&[b'a'; 255]).map(|text| text.len()), Some(MOST_CHARS));
    }
}
