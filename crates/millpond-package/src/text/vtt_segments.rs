//! WebVTT in the segments of an HLS playlist (RFC 8216 3.5), as the cues of one file.

use super::{Cue, MOST_WARNINGS, Subtitles, clock, vtt};
use crate::PackageError;
use std::collections::HashSet;

/// Ticks of 90 kHz after which a timestamp wraps (ISO/IEC 13818-1 2.4.3.7).
const WRAP: i64 = 1 << 33;
/// Ticks of 90 kHz of a millisecond.
const MILLI: i64 = 90;

/// Reads segments in order. `zero` is the timestamp of the time 0 of the presentation, in ticks of 90 kHz.
///
/// A cue that several segments repeat is taken once. Times of a segment without `X-TIMESTAMP-MAP` count from the start of the
/// presentation. By the standard, such times would count from the timestamp 0. But writers without the map, such as ffmpeg, know no
/// timestamps.
///
/// # Errors
/// A segment doesn't begin with `WEBVTT`.
pub fn parse<'a>(segments: impl Iterator<Item = &'a [u8]>, zero: u64) -> Result<Subtitles, PackageError> {
    let mut all = Subtitles::default();
    for (number, segment) in (1_u32..).zip(segments) {
        let (found, map) = vtt::read(segment).map_err(|error| in_segment(number, error))?;
        let later = map.map_or(0, |map| map.later(zero));
        for mut cue in found.cues {
            cue.start = cue.start.saturating_add(later).max(0);
            cue.end = cue.end.saturating_add(later);
            if cue.end > cue.start {
                all.cues.push(cue);
            }
        }
        let room = MOST_WARNINGS.saturating_sub(all.warnings.len());
        all.warnings.extend(found.warnings.into_iter().take(room).map(|why| format!("segment {number}, {why}")));
    }
    let mut is_new = first_of_each(&all.cues).into_iter();
    all.cues.retain(|_| is_new.next().unwrap_or(true));
    Ok(all.sorted())
}

/// Returns for each cue whether no earlier one is the same.
fn first_of_each(cues: &[Cue]) -> Vec<bool> {
    let mut seen = HashSet::new();
    cues.iter().map(|cue| seen.insert((cue.start, cue.end, cue.text.as_str(), cue.settings.as_str()))).collect()
}

/// Adds the number of the segment to an error.
fn in_segment(number: u32, error: PackageError) -> PackageError {
    match error {
        PackageError::Text { format, line, found, expected } => {
            PackageError::Text { format, line, found: format!("{found} in segment {number}"), expected }
        }
        other => other,
    }
}

/// `X-TIMESTAMP-MAP`: the timestamp of a time of the cues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimestampMap {
    /// Ticks of 90 kHz.
    timestamp: i64,
    /// Milliseconds on the clock of the cues.
    local: i64,
}

impl TimestampMap {
    /// Reads a line of the header; `None` for other lines.
    pub(super) fn of(line: &str) -> Option<Self> {
        let list = line.strip_prefix("X-TIMESTAMP-MAP=")?;
        let value = |name: &str| list.split(',').find_map(|pair| pair.trim().strip_prefix(name));
        let timestamp: u64 = value("MPEGTS:")?.trim().parse().ok()?;
        let (local, _) = clock::take(value("LOCAL:")?.trim())?;
        Some(Self { timestamp: (timestamp % WRAP as u64).cast_signed(), local })
    }

    /// Returns the milliseconds by which cues are shown later than on their clock.
    fn later(self, zero: u64) -> i64 {
        let zero = (zero % WRAP as u64).cast_signed();
        let ticks = (self.timestamp - zero).rem_euclid(WRAP);
        let ticks = if ticks >= WRAP / 2 { ticks - WRAP } else { ticks };
        (ticks + MILLI / 2).div_euclid(MILLI).saturating_sub(self.local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times and texts of the cues of segments.
    fn cues(segments: &[&str], zero: u64) -> Vec<(i64, i64, String)> {
        let found = parse(segments.iter().map(|text| text.as_bytes()), zero).unwrap();
        found.cues.into_iter().map(|cue| (cue.start, cue.end, cue.text)).collect()
    }

    #[test]
    fn cues_are_placed_by_the_timestamps_of_their_segment() {
        let a = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\n00:01.000 --> 00:05.000\na\n\n00:04.000 --> 00:09.000\nb\n";
        // The cue goes on, on another clock; and one ended before the presentation.
        let b = "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:01:00.000,MPEGTS:1260000\n\n01:00.000 --> 01:05.000 align:left\nb\n\n\
            01:02.000 --> 01:03.000\nc\n\n00:00.000 --> 00:01.000\ngone\n";
        let again = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\n00:04.000 --> 00:09.000\nb\n";
        let cue = |start, end, text: &str| (start, end, text.to_owned());
        let expected = [cue(500, 4500, "a"), cue(3500, 8500, "b"), cue(3500, 8500, "b"), cue(5500, 6500, "c")];
        assert_eq!(cues(&[a, again, b], 945_000), expected, "half a second before the presentation begins");
        let wrapped = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n00:01.000 --> 00:02.000\na\n";
        assert_eq!(cues(&[wrapped], (1 << 33) - 90_000), [cue(2000, 3000, "a")]);
    }

    #[test]
    fn times_without_a_map_are_those_of_the_presentation() {
        for header in
            ["WEBVTT\n", "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:x,LOCAL:00:00.000\n", "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:1\n"]
        {
            let text = format!("{header}\n00:01.000 --> 00:02.000\na\n");
            assert_eq!(cues(&[text.as_str(), "WEBVTT"], 900_000), [(1000, 2000, "a".to_owned())]);
        }
    }

    #[test]
    fn faults_name_the_segment() {
        let error = parse([&b"WEBVTT"[..], b"<tt>"].into_iter(), 0).unwrap_err().to_string();
        assert!(error.contains("line 1: found \"<tt>\" in segment 2, expected WEBVTT"), "{error}");
        let bad: &[u8] = b"WEBVTT\n\nbad --> 00:01.000\nx\n";
        let found = parse(std::iter::repeat_n(bad, 50), 0).unwrap();
        assert_eq!((found.warnings.len(), found.cues.len()), (MOST_WARNINGS, 0));
        assert!(found.warnings[1].starts_with("segment 2, line 3: "), "{:?}", found.warnings);
    }
}
