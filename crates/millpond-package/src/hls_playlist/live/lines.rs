//! The lines of a live playlist, one after the other.

use super::{Delivery, LivePart, LivePlaylist, LiveSegment, SegmentKey};
use crate::{
    PackageError,
    hls_playlist::{
        MOST_SEGMENTS, SegmentRange,
        attributes::value,
        lines::{bad_range, length_and_offset, range},
        refused, shown,
    },
};
use std::{sync::Arc, time::Duration};

/// Bounds of the target duration.
const TARGET: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(600));
/// Longest duration of a segment.
const LONGEST: f64 = 3600.0;
/// Expectation of a method of encryption.
const METHOD: &str = "METHOD=NONE or AES-128: other keys are those of players";

/// State of a playlist after some of its lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    segments: Vec<LiveSegment>,
    target: Option<Duration>,
    first: u64,
    discontinuities: u64,
    has_ended: bool,
    delivery: Delivery,
    map: Option<Arc<SegmentRange>>,
    key: Option<Arc<SegmentKey>>,
    /// Tags that were read since the last segment's URI: they belong to the next segment.
    next: Heading,
    /// Resource and end of the last range, for ranges without an offset.
    last_range: Option<(String, u64)>,
    last_part: Option<(String, u64)>,
    listed: usize,
}

/// Tags of one segment, before its URI.
#[derive(Debug, Default)]
struct Heading {
    duration: Option<Duration>,
    range: Option<(u64, Option<u64>)>,
    date: Option<Duration>,
    begins: bool,
    is_gap: bool,
    parts: Vec<LivePart>,
}

impl Lines {
    /// Takes a tag. `name` is without `#EXT`.
    pub(super) fn tag(&mut self, line: u32, name: &str, text: &str) -> Result<(), PackageError> {
        let named = || shown(&format!("#EXT{name}"));
        match name {
            "INF" => self.next.duration = Some(seconds(line, text.split(',').next().unwrap_or_default())?),
            "-X-TARGETDURATION" => self.target = Some(seconds(line, text)?.clamp(TARGET.0, TARGET.1)),
            "-X-MEDIA-SEQUENCE" => self.first = number(line, text)?,
            "-X-DISCONTINUITY-SEQUENCE" => self.discontinuities = number(line, text)?,
            "-X-ENDLIST" => self.has_ended = true,
            "-X-DISCONTINUITY" => self.next.begins = true,
            "-X-GAP" => self.next.is_gap = true,
            // Dates are for people: one that can't be read is none.
            "-X-PROGRAM-DATE-TIME" => self.next.date = date(text),
            "-X-BYTERANGE" => {
                self.next.range = Some(length_and_offset(text).ok_or_else(|| bad_range(line, text))?);
            }
            "-X-MAP" => self.map(line, text)?,
            "-X-KEY" => self.key(line, text)?,
            "-X-PART" => self.part(line, text)?,
            "-X-PART-INF" => self.delivery.part_target = duration(line, text, "PART-TARGET")?,
            "-X-SERVER-CONTROL" => {
                self.delivery.can_block = value(text, "CAN-BLOCK-RELOAD") == Some("YES");
                self.delivery.hold_back = duration(line, text, "HOLD-BACK")?;
                self.delivery.part_hold_back = duration(line, text, "PART-HOLD-BACK")?;
            }
            "-X-STREAM-INF" | "-X-MEDIA" => {
                return Err(refused(line, named(), "a media playlist: a multivariant playlist names no others"));
            }
            "-X-I-FRAMES-ONLY" => return Err(refused(line, named(), "a playlist of whole segments")),
            "-X-SKIP" => return Err(refused(line, named(), "a playlist with all of its segments")),
            "-X-DEFINE" => return Err(refused(line, named(), "URIs without variables")),
            _ => {}
        }
        Ok(())
    }

    /// Takes the URI of a segment.
    pub(super) fn uri(&mut self, line: u32, uri: &str) -> Result<(), PackageError> {
        let range = segment_range(line, uri, self.next.range.take(), &mut self.last_range)?;
        let duration = self.next.duration.take();
        let duration = duration.ok_or_else(|| refused(line, shown(uri), "#EXTINF before the URI of a segment"))?;
        let whole = LivePart { range, duration, is_independent: false, is_gap: self.next.is_gap };
        self.end_segment(line, Some(whole))
    }

    fn end_segment(&mut self, line: u32, whole: Option<LivePart>) -> Result<(), PackageError> {
        self.count(line)?;
        let Heading { date, begins, parts, .. } = std::mem::take(&mut self.next);
        let before = self.segments.last().map_or(self.discontinuities, |last| last.discontinuities);
        self.segments.push(LiveSegment {
            // It is known at the end.
            number: 0,
            discontinuities: before.saturating_add(begins.into()),
            begins,
            map: self.map.clone(),
            key: self.key.clone(),
            date,
            whole,
            parts,
        });
        Ok(())
    }

    fn count(&mut self, line: u32) -> Result<(), PackageError> {
        self.listed += 1;
        match self.listed > MOST_SEGMENTS {
            true => Err(refused(line, format!("more than {MOST_SEGMENTS} segments and parts"), "at most that")),
            false => Ok(()),
        }
    }

    fn map(&mut self, line: u32, list: &str) -> Result<(), PackageError> {
        let uri = uri(line, list, "the attribute URI of EXT-X-MAP")?;
        let bytes = value(list, "BYTERANGE");
        let stated = bytes.map(|text| length_and_offset(text).ok_or_else(|| bad_range(line, text))).transpose()?;
        let stated = stated.map(|(length, offset)| (length, Some(offset.unwrap_or(0))));
        let range = segment_range(line, uri, stated, &mut None)?;
        if self.map.as_ref().is_none_or(|known| (&known.uri, known.bytes) != (&range.uri, range.bytes)) {
            self.map = Some(Arc::new(range));
        }
        Ok(())
    }

    fn key(&mut self, line: u32, list: &str) -> Result<(), PackageError> {
        self.key = match value(list, "METHOD") {
            Some("NONE") => None,
            Some("AES-128") => {
                let uri = uri(line, list, "the attribute URI of EXT-X-KEY")?.to_owned();
                let iv = value(list, "IV").map(|text| vector(text).ok_or_else(|| bad_vector(line, text)));
                Some(Arc::new(SegmentKey { line, uri, iv: iv.transpose()? }))
            }
            found => {
                let found = format!("EXT-X-KEY with the METHOD {}", shown(found.unwrap_or_default()));
                return Err(refused(line, found, METHOD));
            }
        };
        Ok(())
    }

    fn part(&mut self, line: u32, list: &str) -> Result<(), PackageError> {
        self.count(line)?;
        let uri = uri(line, list, "the attribute URI of EXT-X-PART")?;
        let bytes = value(list, "BYTERANGE");
        let stated = bytes.map(|text| length_and_offset(text).ok_or_else(|| bad_range(line, text))).transpose()?;
        let range = segment_range(line, uri, stated, &mut self.last_part)?;
        let duration = duration(line, list, "DURATION")?
            .ok_or_else(|| refused(line, shown("#EXT-X-PART"), "the attribute DURATION"))?;
        let is = |name: &str| value(list, name) == Some("YES");
        self.next.parts.push(LivePart { range, duration, is_independent: is("INDEPENDENT"), is_gap: is("GAP") });
        Ok(())
    }

    /// Returns the playlist, after the line `last`.
    pub(super) fn finish(mut self, last: u32) -> Result<LivePlaylist, PackageError> {
        if !self.next.parts.is_empty() {
            self.end_segment(last, None)?;
        }
        let target = self.target.ok_or_else(|| {
            refused(last, "the end of the playlist", "#EXT-X-TARGETDURATION, which every HLS playlist has")
        })?;
        let Self { mut segments, first, has_ended, delivery, .. } = self;
        // EXT-X-MEDIA-SEQUENCE may stand behind the first segment, against the standard.
        for (number, segment) in (first..).zip(&mut segments) {
            segment.number = number;
        }
        Ok(LivePlaylist { target, segments, first, has_ended, delivery })
    }
}

/// Returns bytes of a resource. Without an offset they follow the `last` range of the same resource.
fn segment_range(
    line: u32,
    uri: &str,
    stated: Option<(u64, Option<u64>)>,
    last: &mut Option<(String, u64)>,
) -> Result<SegmentRange, PackageError> {
    let bytes = match stated {
        None => None,
        Some((length, offset)) => {
            let followed = last.as_ref().filter(|(known, _)| known == uri).map(|(_, end)| *end);
            let bytes = offset.or(followed).and_then(|start| range(start, length));
            Some(bytes.ok_or_else(|| bad_range(line, &length.to_string()))?)
        }
    };
    *last = bytes.map(|bytes| (uri.to_owned(), bytes.end));
    Ok(SegmentRange { line, uri: uri.to_owned(), bytes })
}

fn uri<'a>(line: u32, list: &'a str, expected: &'static str) -> Result<&'a str, PackageError> {
    value(list, "URI").filter(|uri| !uri.is_empty()).ok_or_else(|| refused(line, shown(list), expected))
}

fn number(line: u32, text: &str) -> Result<u64, PackageError> {
    // Numbers of segments behind it exist too.
    let number = text.trim().parse().ok().filter(|number| *number < u64::MAX / 2);
    number.ok_or_else(|| refused(line, shown(text), "a whole number"))
}

fn seconds(line: u32, text: &str) -> Result<Duration, PackageError> {
    let found = text.trim().parse().ok().filter(|seconds: &f64| (0.0..=LONGEST).contains(seconds));
    found.map(Duration::from_secs_f64).ok_or_else(|| refused(line, shown(text), "seconds, from 0 to 3600"))
}

fn duration(line: u32, list: &str, name: &str) -> Result<Option<Duration>, PackageError> {
    value(list, name).map(|text| seconds(line, text)).transpose()
}

/// Reads a date of RFC 3339, and the form without a colon in the zone that some servers write.
fn date(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Some(date) = millpond_utc::parse(text) {
        return Some(date);
    }
    let (local, zone) = text.split_at_checked(text.len().checked_sub(5)?)?;
    let (hours, minutes) = zone.split_at_checked(3)?;
    millpond_utc::parse(&format!("{local}{hours}:{minutes}"))
}

/// Reads `0x` and up to 32 hexadecimal digits.
fn vector(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let is_number = (1..=32).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| is_number).map(u128::to_be_bytes)
}

fn bad_vector(line: u32, text: &str) -> PackageError {
    refused(line, format!("the IV {}", shown(text)), "0x and at most 32 hexadecimal digits")
}
