//! `Chapters` (RFC 9559 5.1.7).

use super::{ebml::Element, ids};
use crate::movie::chapter::{Chapter, MOST_CHAPTERS, in_order};
use std::time::Duration;

/// Most editions that are looked at.
const MOST_EDITIONS: usize = 64;

/// Reads the chapters of the default edition, or of the first one if none is the default. Hidden editions and chapters count for nothing,
/// and neither do chapters within chapters.
pub(super) fn read(chapters: &Element<'_>) -> Vec<Chapter> {
    let editions = chapters.children().filter(|element| element.id == ids::EDITION_ENTRY).take(MOST_EDITIONS);
    let shown: Vec<Element<'_>> =
        editions.filter(|edition| !is_set(edition, ids::EDITION_FLAG_HIDDEN, false)).collect();
    let default = shown.iter().find(|edition| is_set(edition, ids::EDITION_FLAG_DEFAULT, false));
    let Some(edition) = default.or(shown.first()) else { return Vec::new() };
    let atoms = edition.children().filter(|element| element.id == ids::CHAPTER_ATOM).take(MOST_CHAPTERS);
    in_order(atoms.filter_map(|atom| chapter(&atom)))
}

/// Reads a chapter; `None` where it is hidden or has no time.
fn chapter(atom: &Element<'_>) -> Option<Chapter> {
    let is_shown = !is_set(atom, ids::CHAPTER_FLAG_HIDDEN, false) && is_set(atom, ids::CHAPTER_FLAG_ENABLED, true);
    let start = atom.child(ids::CHAPTER_TIME_START)?.unsigned().ok()?;
    let display = atom.child(ids::CHAPTER_DISPLAY);
    let title = display.and_then(|display| display.child(ids::CHAP_STRING)).map(|text| text.text());
    is_shown.then(|| Chapter { start: Duration::from_nanos(start), title: title.unwrap_or_default() })
}

/// Whether a flag is set. Flags that are absent or can't be read have their `default`.
fn is_set(element: &Element<'_>, id: u32, default: bool) -> bool {
    element.child(id).and_then(|flag| flag.unsigned().ok()).map_or(default, |value| value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(id: u32, body: &[u8]) -> Vec<u8> {
        let id = id.to_be_bytes();
        let id: Vec<u8> = id.into_iter().skip_while(|byte| *byte == 0).collect();
        let length = 0x1000_0000 | u32::try_from(body.len()).unwrap();
        [&id[..], &length.to_be_bytes(), body].concat()
    }

    fn atom(start: u64, title: &str, more: &[u8]) -> Vec<u8> {
        let display = element(ids::CHAPTER_DISPLAY, &element(ids::CHAP_STRING, title.as_bytes()));
        let time = element(ids::CHAPTER_TIME_START, &start.to_be_bytes());
        element(ids::CHAPTER_ATOM, &[&time[..], &display, more].concat())
    }

    fn edition(parts: &[Vec<u8>]) -> Vec<u8> {
        element(ids::EDITION_ENTRY, &parts.concat())
    }

    fn titles(editions: &[Vec<u8>]) -> Vec<String> {
        let body = editions.concat();
        let chapters = Element { id: ids::CHAPTERS, body: &body, offset: 0 };
        read(&chapters).into_iter().map(|chapter| format!("{:?} {}", chapter.start, chapter.title)).collect()
    }

    #[test]
    fn the_default_edition_counts() {
        let set = |id| element(id, &[1]);
        let plain = edition(&[atom(2_500_000_000, "b", &[]), atom(0, "a", &[])]);
        assert_eq!(titles(std::slice::from_ref(&plain)), ["0ns a", "2.5s b"]);
        let default = edition(&[set(ids::EDITION_FLAG_DEFAULT), atom(0, "default", &[])]);
        assert_eq!(titles(&[plain.clone(), default]), ["0ns default"]);
        let hidden = edition(&[set(ids::EDITION_FLAG_HIDDEN), atom(0, "hidden", &[])]);
        assert_eq!(titles(&[hidden.clone(), plain]), ["0ns a", "2.5s b"]);
        assert!(titles(&[hidden]).is_empty() && titles(&[]).is_empty());
    }

    #[test]
    fn hidden_chapters_and_chapters_without_times_are_left_out() {
        let hidden = atom(1, "hidden", &element(ids::CHAPTER_FLAG_HIDDEN, &[1]));
        let disabled = atom(2, "disabled", &element(ids::CHAPTER_FLAG_ENABLED, &[0]));
        let timeless = element(ids::CHAPTER_ATOM, &element(ids::CHAPTER_FLAG_HIDDEN, &[0]));
        let nameless = element(ids::CHAPTER_ATOM, &element(ids::CHAPTER_TIME_START, &[3]));
        assert_eq!(titles(&[edition(&[hidden, disabled, timeless, nameless])]), ["3ns "]);
    }
}
