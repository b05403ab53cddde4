//! Tags: title, artist and album, as a file states them.

use serde::{Deserialize, Serialize};

/// Most bytes of a value. The rest of a longer one is cut off.
const MOST_BYTES: usize = 512;
/// Text between two values of one tag.
const BETWEEN: &str = "; ";

/// Names that a file states of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tags {
    /// Title in one line.
    pub title: Option<String>,
    /// Artists in one line, with semicolons between them.
    pub artist: Option<String>,
    /// Album in one line.
    pub album: Option<String>,
}

/// A tag that the index has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagName {
    Title,
    Artist,
    Album,
}

impl TagName {
    /// Returns the tag of a name in Vorbis comments and in Matroska, in any case.
    pub(crate) fn of_text(name: &[u8]) -> Option<Self> {
        let names = [(&b"TITLE"[..], Self::Title), (b"ARTIST", Self::Artist), (b"ALBUM", Self::Album)];
        names.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, tag)| tag)
    }
}

impl Tags {
    /// Whether the file states none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a value. A tag may have several; equal and empty ones count once.
    pub(crate) fn add(&mut self, name: TagName, value: &str) {
        let line: String = value.chars().take(MOST_BYTES).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = line.trim();
        let line = line.get(..line.floor_char_boundary(MOST_BYTES)).unwrap_or_default();
        let known = match name {
            TagName::Title => &mut self.title,
            TagName::Artist => &mut self.artist,
            TagName::Album => &mut self.album,
        };
        match known {
            _ if line.is_empty() => {}
            None => *known = Some(line.to_owned()),
            Some(known) if known.len() + BETWEEN.len() + line.len() > MOST_BYTES => {}
            Some(known) if known.split(BETWEEN).any(|one| one == line) => {}
            Some(known) => known.extend([BETWEEN, line]),
        }
    }

    /// Returns these tags, with those of `other` where these have none.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            title: self.title.or(other.title),
            artist: self.artist.or(other.artist),
            album: self.album.or(other.album),
        }
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        [&self.title, &self.artist, &self.album].into_iter().flatten().map(String::capacity).sum()
    }
}

/// Returns a text whose encoding no field states: UTF-8 where it is valid, else Latin-1. A zero byte ends it.
pub(crate) fn unmarked(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let bytes = bytes.get(..end).unwrap_or_default();
    std::str::from_utf8(bytes).map_or_else(|_| latin1(bytes), str::to_owned)
}

/// Reads Latin-1.
pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Reads UTF-16. A mark at its beginning states the order of the bytes; without one, the greater byte is first.
pub(crate) fn utf16(bytes: &[u8]) -> String {
    let (of, text): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, text @ ..] => (u16::from_le_bytes, text),
        [0xfe, 0xff, text @ ..] => (u16::from_be_bytes, text),
        text => (u16::from_be_bytes, text),
    };
    let units: Vec<u16> = text.as_chunks().0.iter().map(|unit| of(*unit)).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_line_and_a_bound() {
        let mut tags = Tags::default();
        for value in [" Nina\r\nSimone ", "", "\u{1b}", "Nina  Simone", "Hal Mooney"] {
            tags.add(TagName::Artist, value);
        }
        tags.add(TagName::Title, &"ä".repeat(1000));
        tags.add(TagName::Title, "more");
        assert_eq!(tags.artist.as_deref(), Some("Nina  Simone; Hal Mooney"));
        assert_eq!(tags.title.as_deref(), Some(&*"ä".repeat(MOST_BYTES / 2)));
        let other = Tags { title: Some("other".to_owned()), album: Some("album".to_owned()), artist: None };
        let both = tags.clone().or(other);
        assert_eq!((&both.title, both.album.as_deref()), (&tags.title, Some("album")));
        assert!(!tags.is_empty() && Tags::default().is_empty());
    }

    #[test]
    fn texts_are_read_in_their_encodings() {
        assert_eq!([unmarked(b"gr\xfcn\0x"), unmarked("grün".as_bytes())], ["grün", "grün"]);
        let both = [&b"\xff\xfea\0\xfc\0"[..], b"\xfe\xff\0a\0\xfc", b"\0a\0\xfc"].map(utf16);
        assert_eq!(both, ["aü"; 3]);
        assert_eq!([TagName::of_text(b"Title"), TagName::of_text(b"SUBTITLE")], [Some(TagName::Title), None]);
    }
}
