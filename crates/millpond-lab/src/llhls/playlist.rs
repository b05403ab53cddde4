//! Media playlists of live streams with all that Low-Latency HLS adds (draft-pantos-hls-rfc8216bis 4.4).

use crate::m3u8::attributes;

/// Greatest sequence number: sums stay within 64 bits.
const MOST: u64 = 1 << 53;
/// Greatest duration: a day.
const MOST_SECONDS: f64 = 86_400.0;

/// A live media playlist.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LivePlaylist {
    pub(crate) version: u64,
    /// `EXT-X-TARGETDURATION` in seconds.
    pub(crate) target: f64,
    /// `PART-TARGET` in seconds.
    pub(crate) part_target: Option<f64>,
    pub(crate) sequence: u64,
    pub(crate) discontinuity_sequence: u64,
    pub(crate) independent_segments: bool,
    pub(crate) control: Control,
    /// `SKIPPED-SEGMENTS`.
    pub(crate) skipped: u64,
    /// Listed segments, after those skipped.
    pub(crate) segments: Vec<Segment>,
    /// Parts after the last segment.
    pub(crate) open: Vec<Part>,
    /// Whether a discontinuity stands before these.
    pub(crate) open_discontinuity: bool,
    /// `EXT-X-PROGRAM-DATE-TIME` of these in seconds since the Unix epoch.
    pub(crate) open_date: Option<f64>,
    /// URI of the hinted part.
    pub(crate) hint: Option<String>,
    pub(crate) reports: Vec<RenditionReport>,
    /// URI of the newest `EXT-X-MAP`.
    pub(crate) map: Option<String>,
    pub(crate) ended: bool,
}

/// `EXT-X-SERVER-CONTROL`; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Control {
    pub(crate) can_block: bool,
    pub(crate) skip_until: Option<f64>,
    pub(crate) hold_back: Option<f64>,
    pub(crate) part_hold_back: Option<f64>,
}

/// A media segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Segment {
    pub(crate) uri: String,
    pub(crate) duration: f64,
    pub(crate) discontinuity: bool,
    /// `EXT-X-PROGRAM-DATE-TIME` in seconds since the Unix epoch.
    pub(crate) date: Option<f64>,
    /// URI of its `EXT-X-MAP`; `None` also where the playlist skips it.
    pub(crate) map: Option<String>,
    pub(crate) parts: Vec<Part>,
}

/// A partial segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) uri: String,
    pub(crate) range: Option<String>,
    pub(crate) duration: f64,
    pub(crate) independent: bool,
    pub(crate) gap: bool,
}

/// `EXT-X-RENDITION-REPORT`. Attributes that are missing have the values of the playlist that contains the tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RenditionReport {
    pub(crate) uri: String,
    pub(crate) last_segment: Option<u64>,
    pub(crate) last_part: Option<u64>,
}

impl LivePlaylist {
    /// Number of the segment after the last whole one.
    pub(crate) fn end(&self) -> u64 {
        self.sequence.saturating_add(self.skipped).saturating_add(self.segments.len() as u64)
    }

    /// Numbers of the last segment and part, as rendition reports tell them (4.4.5.4); `None` without segments.
    pub(crate) fn last(&self) -> Option<(u64, Option<u64>)> {
        if let Some(last) = self.open.len().checked_sub(1) {
            return Some((self.end(), Some(last as u64)));
        }
        let parts = self.segments.last().map_or(0, |segment| segment.parts.len());
        Some((self.end().checked_sub(1)?, parts.checked_sub(1).map(|last| last as u64)))
    }

    /// Reads a playlist.
    ///
    /// # Errors
    /// The first line that can't be read.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.lines().next().map(str::trim_end) != Some("#EXTM3U") {
            return Err("line 1: expected #EXTM3U".to_owned());
        }
        let (mut list, mut next) = (Self::default(), Segment::default());
        for (line, text) in text.lines().enumerate() {
            list.line(text.trim(), &mut next).map_err(|what| format!("line {}: {what}", line + 1))?;
        }
        (list.open, list.open_discontinuity, list.open_date) = (next.parts, next.discontinuity, next.date);
        Ok(list)
    }

    fn line(&mut self, line: &str, next: &mut Segment) -> Result<(), String> {
        if !line.starts_with('#') {
            if !line.is_empty() {
                line.clone_into(&mut next.uri);
                next.map.clone_from(&self.map);
                self.segments.push(std::mem::take(next));
            }
            return Ok(());
        }
        let (tag, value) = line.split_once(':').unwrap_or((line, ""));
        match tag {
            "#EXT-X-VERSION" => self.version = number(value)?,
            "#EXT-X-TARGETDURATION" => self.target = seconds(value)?,
            "#EXT-X-MEDIA-SEQUENCE" => self.sequence = count(value)?,
            "#EXT-X-DISCONTINUITY-SEQUENCE" => self.discontinuity_sequence = count(value)?,
            "#EXT-X-INDEPENDENT-SEGMENTS" => self.independent_segments = true,
            "#EXT-X-ENDLIST" => self.ended = true,
            "#EXT-X-DISCONTINUITY" => next.discontinuity = true,
            "#EXTINF" => next.duration = seconds(value.split(',').next().unwrap_or_default())?,
            "#EXT-X-PROGRAM-DATE-TIME" => next.date = Some(date(value)?),
            _ => self.attributes(tag, value, next)?,
        }
        Ok(())
    }

    /// Tags with attribute lists.
    fn attributes(&mut self, tag: &str, value: &str, next: &mut Segment) -> Result<(), String> {
        let read = || attributes(0, value).map_err(|error| error.what);
        match tag {
            "#EXT-X-PART-INF" => self.part_target = find(&read()?, "PART-TARGET").map(seconds).transpose()?,
            "#EXT-X-SKIP" => self.skipped = count(required(&read()?, "SKIPPED-SEGMENTS")?)?,
            "#EXT-X-SERVER-CONTROL" => {
                let found = read()?;
                self.control = Control {
                    can_block: find(&found, "CAN-BLOCK-RELOAD") == Some("YES"),
                    skip_until: find(&found, "CAN-SKIP-UNTIL").map(seconds).transpose()?,
                    hold_back: find(&found, "HOLD-BACK").map(seconds).transpose()?,
                    part_hold_back: find(&found, "PART-HOLD-BACK").map(seconds).transpose()?,
                };
            }
            "#EXT-X-PART" => {
                let found = read()?;
                next.parts.push(Part {
                    uri: required(&found, "URI")?.to_owned(),
                    range: find(&found, "BYTERANGE").map(str::to_owned),
                    duration: seconds(required(&found, "DURATION")?)?,
                    independent: find(&found, "INDEPENDENT") == Some("YES"),
                    gap: find(&found, "GAP") == Some("YES"),
                });
            }
            "#EXT-X-MAP" => self.map = Some(required(&read()?, "URI")?.to_owned()),
            "#EXT-X-PRELOAD-HINT" => {
                let found = read()?;
                if find(&found, "TYPE") == Some("PART") {
                    self.hint = Some(required(&found, "URI")?.to_owned());
                }
            }
            "#EXT-X-RENDITION-REPORT" => {
                let found = read()?;
                self.reports.push(RenditionReport {
                    uri: required(&found, "URI")?.to_owned(),
                    last_segment: optional(find(&found, "LAST-MSN"))?,
                    last_part: optional(find(&found, "LAST-PART"))?,
                });
            }
            _ => {}
        }
        Ok(())
    }
}

fn find<'a>(attributes: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
}

fn required<'a>(attributes: &[(&str, &'a str)], name: &str) -> Result<&'a str, String> {
    find(attributes, name).ok_or_else(|| format!("expected {name}"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("found {text:?}, expected a number"))
}

/// A number of things that playlists can have.
fn count(text: &str) -> Result<u64, String> {
    let count: u64 = number(text)?;
    if count <= MOST { Ok(count) } else { Err(format!("found {count}, expected at most {MOST}")) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = number(text)?;
    if (0.0..=MOST_SECONDS).contains(&seconds) { Ok(seconds) } else { Err(format!("found {seconds} seconds")) }
}

fn optional<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, String> {
    text.map(number).transpose()
}

/// Seconds since the Unix epoch of a date in UTC, such as `2026-11-22T10:00:00.123Z`.
fn date(text: &str) -> Result<f64, String> {
    let wall = Some(text.trim()).filter(|text| text.ends_with('Z')).and_then(millpond_utc::parse);
    wall.map(|wall| wall.as_secs_f64()).ok_or_else(|| format!("found {text:?}, expected a date and time in UTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        for line in [
            "#EXT-X-MEDIA-SEQUENCE:18446744073709551615",
            "#EXT-X-SKIP:SKIPPED-SEGMENTS=9007199254740993",
            "#EXT-X-TARGETDURATION:NaN",
            "#EXTINF:-1,",
            "#EXT-X-PART:DURATION=inf,URI=\"a\"",
        ] {
            let error = LivePlaylist::read(&format!("#EXTM3U\n{line}\n")).expect_err(line);
            assert!(error.starts_with("line 2: found"), "{error}");
        }
    }

    #[test]
    fn dates_are_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T12:00:00.5Z", 951_825_600.5),
            ("2026-11-22T20:05:01.250Z", 1_795_377_901.25),
        ] {
            assert_eq!(date(text), Ok(seconds), "{text}");
        }
        for text in ["", "2026-11-22", "2026-11-22T20:05Z", "2026-11-22T20:05:00+01:00"] {
            assert!(date(text).is_err(), "{text}");
        }
    }
}
