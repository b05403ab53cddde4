//! `Tags` (RFC 9559 5.1.8): durations of tracks, which muxers state as statistics; title, artist and album (Matroska Tag Specifications).

use super::{ebml::Element, ids};
use crate::movie::tags::{TagName, Tags};

/// Most tags that are read.
const MOST: usize = 4096;
const SECOND: u64 = 1_000_000_000;
/// Greatest type of targets that are one piece of music, or a part of it; and the type where none is stated: an album or a film.
const TRACK: u64 = 30;
const ALBUM: u64 = 50;
/// Targets that are not the whole file.
const PARTS: [u32; 4] = [ids::TAG_TRACK_UID, ids::TAG_EDITION_UID, ids::TAG_CHAPTER_UID, ids::TAG_ATTACHMENT_UID];

/// Duration of a track, by its `TrackUID`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackDuration {
    pub(super) uid: u64,
    pub(super) nanoseconds: u64,
}

/// Reads the tags "DURATION" of tracks. Tags that can't be read count for nothing.
pub(super) fn durations(tags: &Element<'_>) -> Vec<TrackDuration> {
    let tags = tags.children().filter(|element| element.id == ids::TAG).take(MOST);
    tags.filter_map(|tag| {
        let uid = tag.child(ids::TARGETS)?.child(ids::TAG_TRACK_UID)?.unsigned().ok()?;
        let simple = tag.children().filter(|element| element.id == ids::SIMPLE_TAG);
        let named = simple.filter(|tag| tag.child(ids::TAG_NAME).is_some_and(|name| name.body == b"DURATION"));
        let nanoseconds = named.filter_map(|tag| nanoseconds(&tag.child(ids::TAG_STRING)?.text())).next()?;
        Some(TrackDuration { uid, nanoseconds })
    })
    .collect()
}

/// Names of a file's content, by what they name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Names of a piece of music.
    piece: Tags,
    /// Names of an album or a film.
    whole: Tags,
}

impl Names {
    /// Adds the tags that hold for the whole file.
    pub(super) fn add(&mut self, tags: &Element<'_>) {
        for tag in tags.children().filter(|element| element.id == ids::TAG).take(MOST) {
            let targets = tag.child(ids::TARGETS);
            // A UID of 0 means all parts.
            let is_part =
                |target: Element<'_>| PARTS.contains(&target.id) && target.unsigned().is_ok_and(|uid| uid > 0);
            if targets.as_ref().is_some_and(|targets| targets.children().any(is_part)) {
                continue;
            }
            let level = targets.and_then(|targets| targets.child(ids::TARGET_TYPE_VALUE)?.unsigned().ok());
            let names = if level.unwrap_or(ALBUM) <= TRACK { &mut self.piece } else { &mut self.whole };
            for simple in tag.children().filter(|element| element.id == ids::SIMPLE_TAG).take(MOST) {
                let name = simple.child(ids::TAG_NAME).and_then(|name| TagName::of_text(name.body));
                if let Some((name, text)) = name.zip(simple.child(ids::TAG_STRING)) {
                    names.add(name, &text.text());
                }
            }
        }
    }

    /// Returns the tags of a file whose `Info` states this title. Beside the title of a piece, another title is that of its album.
    pub(super) fn finish(self, title: Option<String>) -> Tags {
        let Self { piece, whole } = self;
        let mut stated = Tags::default();
        stated.add(TagName::Title, &title.unwrap_or_default());
        let album = whole.album.or_else(|| whole.title.clone().filter(|_| piece.title.is_some()));
        piece.or(stated).or(Tags { album, ..whole })
    }
}

/// Reads `HH:MM:SS.nnnnnnnnn`.
fn nanoseconds(text: &str) -> Option<u64> {
    let mut parts = text.trim().splitn(3, ':');
    let (hours, minutes, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (seconds, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number < 1 << 20);
    let whole = number(hours)? * 3600 + number(minutes)? * 60 + number(seconds)?;
    let digits: String = fraction.chars().take(9).chain(std::iter::repeat('0')).take(9).collect();
    Some(whole * SECOND + digits.parse::<u64>().ok()?)
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

    #[test]
    fn names_of_pieces_precede_those_of_albums() {
        let tag = |targets: &[u8], texts: &[(&str, &str)]| {
            let simple = |(name, text): &(&str, &str)| {
                let parts = [element(ids::TAG_NAME, name.as_bytes()), element(ids::TAG_STRING, text.as_bytes())];
                element(ids::SIMPLE_TAG, &parts.concat())
            };
            let texts: Vec<u8> = texts.iter().flat_map(simple).collect();
            element(ids::TAG, &[element(ids::TARGETS, targets), texts].concat())
        };
        let found = |tags: &[Vec<u8>], title: Option<&str>| {
            let (body, mut names) = (tags.concat(), Names::default());
            names.add(&Element { id: ids::TAGS, body: &body, offset: 0 });
            let Tags { title, artist, album } = names.finish(title.map(str::to_owned));
            [title, artist, album].map(Option::unwrap_or_default)
        };
        let level = |level: u8| element(ids::TARGET_TYPE_VALUE, &[level]);
        let album = tag(&level(50), &[("TITLE", "album"), ("ARTIST", "band")]);
        let piece = tag(&level(30), &[("TITLE", "piece"), ("artist", "singer")]);
        let of_track = tag(&element(ids::TAG_TRACK_UID, &[1]), &[("TITLE", "stereo")]);
        assert_eq!(found(&[album.clone(), piece, of_track.clone()], None), ["piece", "singer", "album"]);
        assert_eq!(found(&[album, of_track], None), ["album", "band", ""]);
        let plain = tag(&[], &[("ARTIST", "a"), ("ALBUM", "b"), ("DURATION", "1")]);
        assert_eq!(found(&[plain], Some("c")), ["c", "a", "b"]);
    }

    #[test]
    fn durations_are_read_as_muxers_write_them() {
        assert_eq!(nanoseconds("00:01:02.500000000"), Some(62_500_000_000));
        assert_eq!(nanoseconds("02:00:00.04"), Some(7_200_040_000_000));
        assert_eq!(nanoseconds("00:00:07"), Some(7_000_000_000));
        assert_eq!([nanoseconds("1:2"), nanoseconds("a:b:c"), nanoseconds("0:0:0.x"), nanoseconds("")], [None; 4]);
    }
}
