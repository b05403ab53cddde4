//! From `SegmentTemplate` and `SegmentList` (ISO/IEC 23009-1 5.3.9) to the list of segments.

use url::Url;

use super::{MAX_SEGMENTS, MpdError, Segment, byte_range, error, join, number};
use crate::resource::Resource;
use crate::xml::Element;

/// The addressing elements that apply to a representation, the outermost first. An attribute or child of an
/// inner one overrides that of an outer one (5.3.9.1).
#[derive(Clone, Default)]
pub(crate) struct Addressing<'a> {
    templates: Vec<&'a Element>,
    lists: Vec<&'a Element>,
}

/// Times and numbers of segments, in the timescale of their element.
struct TimelineEntry {
    time: u64,
    number: u64,
    duration: f64,
}

impl<'a> Addressing<'a> {
    /// Returns what applies within `element`.
    pub(crate) fn refine(mut self, element: &'a Element) -> Result<Self, MpdError> {
        self.templates.extend(element.child("SegmentTemplate"));
        self.lists.extend(element.child("SegmentList"));
        if let Some(single) = element.child("SegmentBase") {
            return Err(error(single, "segments found by an index inside one file are not played"));
        }
        Ok(self)
    }

    /// The init segment and all media segments of a representation in a period of this length.
    pub(crate) fn resolve(
        self,
        representation: &Element,
        id: &str,
        bandwidth: u64,
        base: &Url,
        period: f64,
    ) -> Result<(Option<Resource>, Vec<Segment>), MpdError> {
        if !self.templates.is_empty() {
            return Template { levels: &self.templates, id, bandwidth, base, period }.resolve();
        }
        if !self.lists.is_empty() {
            return list(&self.lists, base, period);
        }
        if representation.child("BaseURL").is_none() {
            return Err(error(representation, "expected SegmentTemplate, SegmentList or a BaseURL of its own"));
        }
        // 5.3.9.1: a BaseURL alone is one segment, the whole resource.
        let whole = Segment { resource: Resource::new(base.clone(), None), duration: period };
        Ok((None, vec![whole]))
    }
}

/// The innermost level that has an attribute.
fn level_with<'a>(levels: &[&'a Element], name: &str) -> Option<&'a Element> {
    levels.iter().rev().find(|level| level.attribute(name).is_some()).copied()
}

fn level_number(levels: &[&Element], name: &str) -> Result<Option<u64>, MpdError> {
    level_with(levels, name).map_or(Ok(None), |level| number(level, name))
}

fn level_child<'a>(levels: &[&'a Element], name: &str) -> Option<&'a Element> {
    levels.iter().rev().find_map(|level| level.child(name))
}

/// A `SegmentTemplate` as it applies to one representation (5.3.9.4).
struct Template<'a> {
    levels: &'a [&'a Element],
    id: &'a str,
    bandwidth: u64,
    base: &'a Url,
    period: f64,
}

impl Template<'_> {
    fn resolve(&self) -> Result<(Option<Resource>, Vec<Segment>), MpdError> {
        let init = match level_with(self.levels, "initialization") {
            Some(level) => Some(self.resource(level, "initialization", 0, 0)?),
            None => initialization(self.levels, self.base)?,
        };
        let Some(media) = level_with(self.levels, "media") else {
            let innermost = self.levels.last().map_or(1, |level| level.line);
            return Err(MpdError { line: innermost, what: "SegmentTemplate: expected the attribute media".to_owned() });
        };
        let last = level_number(self.levels, "endNumber")?;
        let segments = entries(self.levels, self.period, None)?
            .into_iter()
            .take_while(|entry| last.is_none_or(|last| entry.number <= last))
            .map(|entry| {
                let resource = self.resource(media, "media", entry.number, entry.time)?;
                Ok(Segment { resource, duration: entry.duration })
            })
            .collect::<Result<_, MpdError>>()?;
        Ok((init, segments))
    }

    fn resource(&self, level: &Element, name: &str, number: u64, time: u64) -> Result<Resource, MpdError> {
        let template = level.attribute(name).unwrap_or_default();
        let reference = self
            .fill(template, number, time)
            .ok_or_else(|| error(level, format!("{name}={template:?}: identifier not known or not closed")))?;
        Ok(Resource::new(join(level, self.base, &reference)?, None))
    }

    /// 5.3.9.4.4: `$$`, `$RepresentationID$`, and `$Number$`, `$Time$`, `$Bandwidth$` with an optional `%0Nd`.
    fn fill(&self, template: &str, segment: u64, time: u64) -> Option<String> {
        let mut filled = String::with_capacity(template.len() + 16);
        let mut pieces = template.split('$');
        filled.push_str(pieces.next()?);
        while let Some(identifier) = pieces.next() {
            let (name, format) = identifier.split_once('%').unwrap_or((identifier, "01d"));
            let width: usize = format.strip_suffix('d')?.parse().ok().filter(|&width| width <= 32)?;
            match name {
                "" => filled.push('$'),
                "RepresentationID" => filled.push_str(self.id),
                "Number" => filled.push_str(&format!("{segment:0width$}")),
                "Time" => filled.push_str(&format!("{time:0width$}")),
                "Bandwidth" => filled.push_str(&format!("{:0width$}", self.bandwidth)),
                _ => return None,
            }
            filled.push_str(pieces.next()?);
        }
        Some(filled)
    }
}

/// The `Initialization` element (5.3.9.2.2), of which `sourceURL` defaults to the base URL itself.
fn initialization(levels: &[&Element], base: &Url) -> Result<Option<Resource>, MpdError> {
    let Some(element) = level_child(levels, "Initialization") else { return Ok(None) };
    let url = join(element, base, element.attribute("sourceURL").unwrap_or_default())?;
    Ok(Some(Resource::new(url, byte_range(element, "range")?)))
}

/// A `SegmentList` (5.3.9.3).
fn list(levels: &[&Element], base: &Url, period: f64) -> Result<(Option<Resource>, Vec<Segment>), MpdError> {
    let urls: Vec<&Element> = levels
        .iter()
        .rev()
        .find(|level| level.child("SegmentURL").is_some())
        .map(|level| level.children("SegmentURL").collect())
        .unwrap_or_default();
    let entries = entries(levels, period, Some(urls.len()))?;
    let mut segments = Vec::with_capacity(urls.len());
    for (url, entry) in urls.iter().zip(entries) {
        let location = join(url, base, url.attribute("media").unwrap_or_default())?;
        let resource = Resource::new(location, byte_range(url, "mediaRange")?);
        segments.push(Segment { resource, duration: entry.duration });
    }
    Ok((initialization(levels, base)?, segments))
}

/// Returns when the segments begin and how long they are: from `SegmentTimeline`, else from `@duration`. `count` says
/// how many there are where that is known from elsewhere.
fn entries(levels: &[&Element], period: f64, count: Option<usize>) -> Result<Vec<TimelineEntry>, MpdError> {
    let Some(&innermost) = levels.last() else { return Ok(Vec::new()) };
    let timescale = level_number(levels, "timescale")?.unwrap_or(1);
    if timescale == 0 {
        return Err(error(innermost, "timescale=\"0\""));
    }
    let first = level_number(levels, "startNumber")?.unwrap_or(1);
    let offset = level_number(levels, "presentationTimeOffset")?.unwrap_or(0);
    let clock = Clock { timescale: timescale as f64, first, offset, period };
    if let Some(timeline) = level_child(levels, "SegmentTimeline") {
        return clock.timeline(timeline);
    }
    match (level_number(levels, "duration")?, count) {
        (Some(duration), count) if duration > 0 => clock.regular(innermost, duration, count),
        // 5.3.9.3.1: a list of one segment needs no duration.
        (None, Some(1)) => Ok(vec![TimelineEntry { time: 0, number: first, duration: period }]),
        _ => Err(error(innermost, "expected a SegmentTimeline or a duration above 0")),
    }
}

/// The rule that turns media time into segments.
struct Clock {
    timescale: f64,
    first: u64,
    offset: u64,
    /// Seconds.
    period: f64,
}

impl Clock {
    /// 5.3.9.6: each `S` stands for `r + 1` segments of length `d` from `t` or from where the one before ended.
    fn timeline(&self, timeline: &Element) -> Result<Vec<TimelineEntry>, MpdError> {
        let rows: Vec<&Element> = timeline.children("S").collect();
        let mut entries = Vec::new();
        let mut time = 0_u64;
        let mut segment = self.first;
        for (index, row) in rows.iter().enumerate() {
            time = number(row, "t")?.unwrap_or(time);
            segment = number(row, "n")?.unwrap_or(segment);
            let duration: u64 = number(row, "d")?.filter(|&d| d > 0).ok_or_else(|| error(row, "expected d above 0"))?;
            let repeat: i64 = number(row, "r")?.unwrap_or(0);
            let count = match u64::try_from(repeat) {
                Ok(repeat) => repeat.saturating_add(1),
                Err(_) => {
                    let end = match rows.get(index + 1) {
                        Some(next) => {
                            number(next, "t")?.ok_or_else(|| error(row, "r below 0 needs t in the next S"))?
                        }
                        None => self.offset.saturating_add((self.period * self.timescale) as u64),
                    };
                    end.saturating_sub(time).div_ceil(duration)
                }
            };
            for _ in 0..count {
                self.push(
                    row,
                    &mut entries,
                    TimelineEntry { time, number: segment, duration: duration as f64 / self.timescale },
                )?;
                time = time.checked_add(duration).ok_or_else(|| error(row, "time beyond 2^64"))?;
                segment = segment.saturating_add(1);
            }
        }
        Ok(entries)
    }

    /// Segments of equal length to the end of the period, the last one shorter.
    fn regular(&self, element: &Element, duration: u64, count: Option<usize>) -> Result<Vec<TimelineEntry>, MpdError> {
        let seconds = duration as f64 / self.timescale;
        // A thousandth of a segment at the end is rounding in the period's duration, not one more segment.
        let fitting = (self.period / seconds - 0.001).ceil().max(1.0);
        let count = count.map_or(fitting, |count| count as f64);
        let mut entries = Vec::new();
        for index in 0..count as u64 {
            let left = self.period - index as f64 * seconds;
            let entry = TimelineEntry {
                time: self.offset.saturating_add(duration.saturating_mul(index)),
                number: self.first.saturating_add(index),
                duration: if left > 0.0 { seconds.min(left) } else { seconds },
            };
            self.push(element, &mut entries, entry)?;
        }
        Ok(entries)
    }

    fn push(&self, element: &Element, entries: &mut Vec<TimelineEntry>, entry: TimelineEntry) -> Result<(), MpdError> {
        if entries.len() >= MAX_SEGMENTS {
            return Err(error(element, format!("more than {MAX_SEGMENTS} segments")));
        }
        entries.push(entry);
        Ok(())
    }
}
