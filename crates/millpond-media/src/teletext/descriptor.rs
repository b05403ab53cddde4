//! Pages that a teletext descriptor announces (ETSI EN 300 468 6.2.43).

use super::packet::Number;
use serde::{Deserialize, Serialize};

/// Bytes of an entry.
const ENTRY: usize = 5;
/// Most pages of a stream that become text tracks.
const MOST_PAGES: usize = 16;

/// A page with subtitles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeletextPage {
    /// Language as in the descriptor: three lower-case letters of ISO 639-2; `None` where it has none.
    pub language: Option<String>,
    /// Whether the subtitles are for people who are deaf or hard of hearing.
    pub is_for_deaf: bool,
    /// Magazine and digits.
    number: Number,
}

impl TeletextPage {
    /// Returns the pages with subtitles that the body of a descriptor announces, each once.
    #[must_use]
    pub fn announced(descriptor: &[u8]) -> Vec<Self> {
        let mut pages: Vec<Self> = Vec::new();
        for entry in descriptor.as_chunks::<ENTRY>().0 {
            let [language @ .., kind, digits] = entry;
            // `teletext_type`: subtitles, and subtitles for hearing impaired people.
            let is_for_deaf = match kind >> 3 {
                2 => false,
                5 => true,
                _ => continue,
            };
            let page = Self { language: letters(language), is_for_deaf, number: number(kind & 7, *digits) };
            if pages.len() < MOST_PAGES && pages.iter().all(|known| known.number != page.number) {
                pages.push(page);
            }
        }
        pages
    }

    /// Returns the language of the first entry of a descriptor.
    pub(super) fn first_language(descriptor: &[u8]) -> Option<String> {
        letters(descriptor.first_chunk::<3>()?)
    }

    /// A page that no descriptor announces.
    pub(super) fn found(number: Number, language: Option<String>) -> Self {
        Self { language, is_for_deaf: false, number }
    }

    /// Number of the page: the magazine in its first hexadecimal digit.
    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// Number as viewers know it, such as `888`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{:X}", self.number)
    }
}

fn number(magazine: u8, digits: u8) -> Number {
    let magazine = if magazine == 0 { 8 } else { u16::from(magazine) };
    magazine << 8 | u16::from(digits)
}

fn letters(code: &[u8]) -> Option<String> {
    let is_code = code.len() == 3 && code.iter().all(u8::is_ascii_alphabetic);
    is_code.then(|| code.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtitle_pages_are_announced() {
        // Of a French broadcast: subtitles for hearing impaired people on page 888, others on page 889. Then an initial page, page
        // 888 again, and three bytes.
        let descriptor = b"fra\x28\x88fra\x10\x89fra\x09\x00deu\x10\x88xyz";
        let pages = TeletextPage::announced(descriptor);
        let found: Vec<_> =
            pages.iter().map(|page| (page.name(), page.language.as_deref(), page.is_for_deaf)).collect();
        assert_eq!(found, [("888".to_owned(), Some("fra"), true), ("889".to_owned(), Some("fra"), false)]);
        assert_eq!(TeletextPage::announced(b"\xf5nd\x11\x50")[0].language, None);
        assert_eq!(TeletextPage::announced(b"DEU\x11\x50")[0].language.as_deref(), Some("deu"));
        assert!(TeletextPage::announced(b"").is_empty());
    }
}
