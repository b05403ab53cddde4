//! DASH manifests (ISO/IEC 23009-1), as much of them as a player of static presentations needs: periods,
//! `SegmentTemplate` with `SegmentTimeline` or `@duration`, `SegmentList`, and `BaseURL`.

mod template;

use url::Url;

use crate::resource::{ByteSpan, Resource};
use crate::xml::{self, Element};

pub(crate) use template::Addressing;

/// Segments that are listed at most, of all representations together: a week of 4-second segments in six of them.
const MAX_SEGMENTS: usize = 1_000_000;

/// Base URLs of an MPD that are read beside the first one.
const MAX_SERVERS: usize = 8;

/// A static presentation.
#[derive(Debug)]
pub(crate) struct Mpd {
    /// In order; there is at least one.
    pub(crate) periods: Vec<Period>,
    /// The same at the servers of the other base URLs of the MPD.
    pub(crate) others: Vec<Mpd>,
}

/// One period (5.3.2).
#[derive(Debug)]
pub(crate) struct Period {
    /// Seconds.
    pub(crate) duration: f64,
    pub(crate) sets: Vec<AdaptationSet>,
}

/// One adaptation set (5.3.3).
#[derive(Debug)]
pub(crate) struct AdaptationSet {
    pub(crate) kind: ContentType,
    /// In the order of the MPD.
    pub(crate) representations: Vec<Representation>,
}

/// Content type of an adaptation set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    Video,
    Audio,
    /// Subtitles, thumbnails, trick play: a player does not fetch them to start.
    Other,
}

/// One representation (5.3.5) with all its segments.
#[derive(Debug)]
pub(crate) struct Representation {
    /// Bits per second.
    pub(crate) bandwidth: u64,
    pub(crate) init: Option<Resource>,
    pub(crate) segments: Vec<Segment>,
}

/// One media segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) resource: Resource,
    /// Seconds.
    pub(crate) duration: f64,
}

/// A fault of an MPD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MPD line {line}: {what}")]
pub struct MpdError {
    /// Counted from 1.
    pub line: usize,
    /// Found and expected values.
    pub what: String,
}

fn error(element: &Element, what: impl std::fmt::Display) -> MpdError {
    MpdError { line: element.line, what: format!("{}: {what}", element.name) }
}

/// Reads an MPD that was fetched from `location`.
///
/// # Errors
/// The first element that breaks a rule a player depends on.
pub(crate) fn parse(text: &str, location: &Url) -> Result<Mpd, MpdError> {
    let root = xml::parse(text).map_err(|problem| MpdError { line: problem.line, what: problem.what })?;
    if root.name != "MPD" {
        return Err(error(&root, "expected MPD as the root element"));
    }
    if root.attribute("type") == Some("dynamic") {
        return Err(error(&root, "type=\"dynamic\": live presentations are not played"));
    }
    let mut bases = root.children("BaseURL").map(|base| join(base, location, base.text.trim()));
    let first = bases.next().transpose()?.unwrap_or_else(|| location.clone());
    let mut mpd = at(&root, &first)?;
    mpd.others = bases.take(MAX_SERVERS).map(|base| at(&root, &base?)).collect::<Result<_, _>>()?;
    Ok(mpd)
}

/// Reads an MPD whose references are relative to `base`.
fn at(root: &Element, base: &Url) -> Result<Mpd, MpdError> {
    let total = optional_duration(root, "mediaPresentationDuration")?;
    let elements: Vec<&Element> = root.children("Period").collect();
    let mut periods = Vec::new();
    let mut end = 0.0;
    let mut listed = 0;
    for (index, element) in elements.iter().enumerate() {
        let start = optional_duration(element, "start")?.unwrap_or(end);
        let next = match elements.get(index + 1) {
            Some(next) => optional_duration(next, "start")?,
            None => total,
        };
        // 5.3.2.1: a period lasts as it says, else to the next period's start, else to the end of all.
        let duration = match (optional_duration(element, "duration")?, next) {
            (Some(duration), _) => duration,
            (None, Some(next)) if next > start => next - start,
            _ => return Err(error(element, "no duration, and none follows from what comes after it")),
        };
        end = start + duration;
        periods.push(period(element, base, duration, &mut listed)?);
    }
    if periods.is_empty() {
        return Err(error(root, "expected a Period"));
    }
    Ok(Mpd { periods, others: Vec::new() })
}

fn period(element: &Element, base: &Url, duration: f64, listed: &mut usize) -> Result<Period, MpdError> {
    let base = base_url(element, base)?;
    let above = Addressing::default().refine(element)?;
    let mut sets = Vec::new();
    for set in element.children("AdaptationSet") {
        let base = base_url(set, &base)?;
        let above = above.clone().refine(set)?;
        let mut representations = Vec::new();
        for representation in set.children("Representation") {
            let read = self::representation(representation, &base, above.clone(), duration)?;
            *listed += read.segments.len();
            if *listed > MAX_SEGMENTS {
                return Err(error(representation, format!("more than {MAX_SEGMENTS} segments in all")));
            }
            representations.push(read);
        }
        if !representations.is_empty() {
            sets.push(AdaptationSet { kind: kind(set), representations });
        }
    }
    Ok(Period { duration, sets })
}

fn representation(
    element: &Element,
    base: &Url,
    above: Addressing<'_>,
    period: f64,
) -> Result<Representation, MpdError> {
    let base = base_url(element, base)?;
    let bandwidth = number(element, "bandwidth")?.ok_or_else(|| error(element, "expected the attribute bandwidth"))?;
    let id = element.attribute("id").unwrap_or_default();
    let (init, segments) = above.refine(element)?.resolve(element, id, bandwidth, &base, period)?;
    Ok(Representation { bandwidth, init, segments })
}

/// 5.3.3 and 5.3.7: by content type, else by the MIME type of the set or its first representation.
fn kind(set: &Element) -> ContentType {
    let trick = |property: &Element| property.attribute("schemeIdUri").is_some_and(|uri| uri.contains("trickmode"));
    if set.children("EssentialProperty").any(trick) {
        return ContentType::Other;
    }
    let mime = || {
        let own = set.attribute("mimeType");
        own.or_else(|| set.child("Representation").and_then(|first| first.attribute("mimeType")))
    };
    let text = set.attribute("contentType").or_else(mime).unwrap_or_default();
    match text.split('/').next() {
        Some("video") => ContentType::Video,
        Some("audio") => ContentType::Audio,
        _ => ContentType::Other,
    }
}

/// 5.6.4: the first `BaseURL` of an element, against that of the element above.
fn base_url(element: &Element, above: &Url) -> Result<Url, MpdError> {
    match element.child("BaseURL") {
        Some(base) => join(base, above, base.text.trim()),
        None => Ok(above.clone()),
    }
}

/// A reference in `element`, resolved.
fn join(element: &Element, base: &Url, reference: &str) -> Result<Url, MpdError> {
    base.join(reference).map_err(|problem| error(element, format!("URL {reference:?}: {problem}")))
}

fn number<T: std::str::FromStr>(element: &Element, name: &str) -> Result<Option<T>, MpdError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    let wrong = |_| error(element, format!("{name}={text:?}, expected an integer"));
    text.trim().parse().map(Some).map_err(wrong)
}

/// `first-last`, both included (Annex E).
fn byte_range(element: &Element, name: &str) -> Result<Option<ByteSpan>, MpdError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    let span = text
        .split_once('-')
        .and_then(|(first, last)| ByteSpan::inclusive(first.trim().parse().ok()?, last.trim().parse().ok()?));
    span.map(Some).ok_or_else(|| error(element, format!("{name}={text:?}, expected first-last")))
}

fn optional_duration(element: &Element, name: &str) -> Result<Option<f64>, MpdError> {
    let Some(text) = element.attribute(name) else { return Ok(None) };
    let wrong = || error(element, format!("{name}={text:?}, expected a duration such as PT1H2M3.5S"));
    iso_duration(text.trim()).map(Some).ok_or_else(wrong)
}

/// An `xs:duration` in seconds, up to 10 years; years and months have no fixed length and are not taken.
fn iso_duration(text: &str) -> Option<f64> {
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days, time),
        None => (text.strip_prefix('P')?, ""),
    };
    let mut total = match days {
        "" => 0.0,
        days => quantity(days.strip_suffix('D')?)? * 86_400.0,
    };
    let mut rest = time;
    for (unit, seconds) in [('H', 3600.0), ('M', 60.0), ('S', 1.0)] {
        if let Some((value, after)) = rest.split_once(unit) {
            total += quantity(value)? * seconds;
            rest = after;
        }
    }
    (rest.is_empty() && text.len() > 2 && total <= 10.0 * 366.0 * 86_400.0).then_some(total)
}

/// Digits with at most one point.
fn quantity(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
