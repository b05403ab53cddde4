//! `Tags` (RFC 9559 5.1.8): durations of tracks, which muxers state as statistics.

use super::{ebml::Element, ids};

/// Most tags that are read.
const MOST: usize = 4096;
const SECOND: u64 = 1_000_000_000;

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

    #[test]
    fn durations_are_read_as_muxers_write_them() {
        assert_eq!(nanoseconds("00:01:02.500000000"), Some(62_500_000_000));
        assert_eq!(nanoseconds("02:00:00.04"), Some(7_200_040_000_000));
        assert_eq!(nanoseconds("00:00:07"), Some(7_000_000_000));
        assert_eq!([nanoseconds("1:2"), nanoseconds("a:b:c"), nanoseconds("0:0:0.x"), nanoseconds("")], [None; 4]);
    }
}
