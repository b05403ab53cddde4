//! The elements of a manifest, one after the other.

use super::{
    ClockSource, Common, Level, LiveManifest, MOST_BYTES, MOST_PERIODS, MOST_REPRESENTATIONS, MOST_RUNS, MOST_TEXT,
    PeriodElement, RepresentationElement, Run, SetElement, TemplateElement, refused, shown, values,
};
use crate::PackageError;
use millpond_media::Timescale;
use quick_xml::{
    XmlVersion,
    events::{BytesStart, Event},
    reader::Reader,
};
use std::{sync::Arc, time::Duration};

/// Deepest nesting of elements.
const MOST_DEPTH: usize = 32;
/// Most attributes of an element.
const MOST_ATTRIBUTES: usize = 64;
/// Most clocks.
const MOST_CLOCKS: usize = 8;
/// Longest `availabilityTimeOffset` that is followed.
const MOST_EARLY: Duration = Duration::from_secs(3600);
/// Scheme of properties that tell colours, which change nothing here.
const COLOURS: &str = "urn:mpeg:mpegB:cicp:";
/// Scheme of roles.
const ROLE: &str = "urn:mpeg:dash:role:2011";

/// Reads a manifest.
pub(super) fn parse(text: &str) -> Result<LiveManifest, PackageError> {
    if text.len() > MOST_BYTES {
        return Err(refused(1, format!("{} bytes", text.len()), "at most 4 MiB"));
    }
    let text = text.trim_start_matches('\u{feff}');
    let mut parser = Parser {
        text,
        reader: Reader::from_str(text),
        counted: 0,
        line: 1,
        open: Vec::new(),
        has_root: false,
        manifest: LiveManifest::default(),
        representations: 0,
        runs: 0,
        timeline: Vec::new(),
        base: None,
    };
    while parser.step()? {}
    if parser.has_root { Ok(parser.manifest) } else { Err(parser.error("no element", "<MPD>")) }
}

struct Parser<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Bytes up to which lines were counted, and the line there.
    counted: usize,
    line: u32,
    /// Names of the open elements.
    open: Vec<String>,
    has_root: bool,
    manifest: LiveManifest,
    representations: usize,
    /// Number of `S` elements.
    runs: usize,
    /// Runs of the open timeline.
    timeline: Vec<Run>,
    /// Text of the open `BaseURL`, and its offset of availability.
    base: Option<(String, Duration)>,
}

/// Attributes of an element.
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Parser<'_> {
    /// Takes one event; returns `false` at the end.
    fn step(&mut self) -> Result<bool, PackageError> {
        let event = self.reader.read_event();
        self.count_lines();
        match event.map_err(|error| self.error(error.to_string(), "well-formed XML"))? {
            Event::Start(element) => {
                self.start(&element)?;
                self.open.push(element.local_name().as_ref().to_owned());
                if self.open.len() > MOST_DEPTH {
                    return Err(self.error(format!("{MOST_DEPTH} elements in one another"), "fewer"));
                }
            }
            Event::Empty(element) => {
                self.start(&element)?;
                self.open.push(element.local_name().as_ref().to_owned());
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.push_text(&text.xml10_content())?,
            Event::CData(text) => self.push_text(&text.xml10_content())?,
            Event::GeneralRef(reference) => {
                let entity = format!("&{};", &*reference);
                let text = quick_xml::escape::unescape(&entity);
                let text = text.map_err(|error| self.error(error.to_string(), "references to characters only"))?;
                self.push_text(&text)?;
            }
            Event::DocType(_) => return Err(self.error("a document type definition", "none")),
            Event::Eof => match self.open.last() {
                Some(name) => {
                    return Err(self.error(format!("the end of the file in <{}>", shown(name)), "its end tag"));
                }
                None => return Ok(false),
            },
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
        Ok(true)
    }

    fn count_lines(&mut self) {
        let to = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX).min(self.text.len());
        if let Some(passed) = self.text.as_bytes().get(self.counted..to) {
            let lines = passed.iter().filter(|&&byte| byte == b'\n').count();
            self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            self.counted = to;
        }
    }

    /// Name of the element that the next one is in.
    fn parent(&self) -> &str {
        self.open.last().map_or("", String::as_str)
    }

    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let name = element.local_name();
        let name = name.as_ref();
        if self.open.is_empty() {
            if name != "MPD" || self.has_root {
                return Err(self.error(format!("<{}>", shown(name)), "<MPD> around everything"));
            }
            self.has_root = true;
            let attributes = self.attributes(element)?;
            return self.head(&attributes);
        }
        match (self.parent(), name) {
            ("MPD", "Period") => self.period(element),
            ("MPD", "UTCTiming") => self.clock(element),
            ("Period", "AdaptationSet") => self.set(element),
            ("AdaptationSet", "Representation") => self.representation(element),
            ("AdaptationSet", "Role") => self.role(element),
            ("AdaptationSet" | "Representation", "ContentProtection" | "EssentialProperty") => {
                self.property(element, name)
            }
            ("Period" | "AdaptationSet" | "Representation", "SegmentTemplate") => self.template(element),
            ("Period" | "AdaptationSet" | "Representation", "SegmentList") => self.other("SegmentList"),
            ("Period" | "AdaptationSet" | "Representation", "SegmentBase") => self.other("SegmentBase"),
            ("SegmentTimeline", "S") => self.run(element),
            ("MPD" | "Period" | "AdaptationSet" | "Representation", "BaseURL") => self.base(element),
            _ => Ok(()),
        }
    }

    fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        match (self.parent(), name.as_str()) {
            ("SegmentTemplate", "SegmentTimeline") => {
                let runs = std::mem::take(&mut self.timeline);
                let holder = self.open.iter().rev().nth(1).cloned().unwrap_or_default();
                if let Some(template) = self.level(&holder).and_then(|level| level.template.as_mut()) {
                    template.timeline = Some(runs.into());
                }
            }
            (parent, "BaseURL") => {
                let parent = parent.to_owned();
                let Some((text, early)) = self.base.take() else { return };
                if let Some(level) = self.level(&parent).filter(|level| level.base.is_none()) {
                    (level.base, level.early) = (Some(text.trim().into()), early);
                }
            }
            _ => {}
        }
    }

    /// The level of an open element.
    fn level(&mut self, name: &str) -> Option<&mut Level> {
        Some(match name {
            "MPD" => &mut self.manifest.level,
            "Period" => &mut self.manifest.periods.last_mut()?.level,
            "AdaptationSet" => &mut self.last_set()?.level,
            "Representation" => &mut self.last_set()?.representations.last_mut()?.level,
            _ => return None,
        })
    }

    fn last_set(&mut self) -> Option<&mut SetElement> {
        self.manifest.periods.last_mut()?.sets.last_mut()
    }

    fn head(&mut self, attributes: &Attributes) -> Result<(), PackageError> {
        self.manifest.is_dynamic = match attributes.get("type") {
            Some("dynamic") => true,
            Some("static") | None => false,
            Some(other) => return Err(self.error(format!("the type {:?}", shown(other)), "dynamic or static")),
        };
        let begins = attributes.get("availabilityStartTime");
        let begins = begins.map(|text| values::wall(text).ok_or_else(|| self.bad("availabilityStartTime", text, DATE)));
        let begins = begins.transpose()?;
        if self.manifest.is_dynamic && begins.is_none() {
            return Err(self.error("a dynamic MPD without availabilityStartTime", DATE));
        }
        let duration = |name: &str| self.duration(attributes, name);
        let (update, depth) = (duration("minimumUpdatePeriod")?, duration("timeShiftBufferDepth")?);
        let (delay, buffer) = (duration("suggestedPresentationDelay")?, duration("minBufferTime")?);
        let length = duration("mediaPresentationDuration")?;
        let buffer = buffer.unwrap_or_default();
        let manifest = std::mem::take(&mut self.manifest);
        self.manifest = LiveManifest { begins, update, depth, delay, buffer, length, ..manifest };
        Ok(())
    }

    fn period(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        if self.manifest.periods.len() >= MOST_PERIODS {
            return Err(self.error(format!("more than {MOST_PERIODS} Periods"), "at most that"));
        }
        let attributes = self.attributes(element)?;
        let id = self.name(&attributes, "id")?;
        let (start, duration) = (self.duration(&attributes, "start")?, self.duration(&attributes, "duration")?);
        self.manifest.periods.push(PeriodElement { id, start, duration, ..PeriodElement::default() });
        Ok(())
    }

    fn set(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        self.bounded()?;
        let attributes = self.attributes(element)?;
        let (content, language) = (self.name(&attributes, "contentType")?, self.name(&attributes, "lang")?);
        let common = self.common(&attributes)?;
        let set = SetElement { common, content, language, ..SetElement::default() };
        if let Some(period) = self.manifest.periods.last_mut() {
            period.sets.push(set);
        }
        Ok(())
    }

    fn representation(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        self.bounded()?;
        let attributes = self.attributes(element)?;
        let common = self.common(&attributes)?;
        let id = self.name(&attributes, "id")?.unwrap_or_default();
        let bandwidth = self.number(&attributes, "bandwidth")?.unwrap_or(0);
        let line = self.line;
        let representation = RepresentationElement { common, id, bandwidth, level: Level::default(), line };
        if let Some(set) = self.last_set() {
            set.representations.push(representation);
        }
        Ok(())
    }

    fn bounded(&mut self) -> Result<(), PackageError> {
        self.representations += 1;
        match self.representations > MOST_REPRESENTATIONS {
            true => Err(self
                .error(format!("more than {MOST_REPRESENTATIONS} AdaptationSets and Representations"), "at most that")),
            false => Ok(()),
        }
    }

    fn common(&self, attributes: &Attributes) -> Result<Common, PackageError> {
        let (media_type, codecs) = (self.name(attributes, "mimeType")?, self.name(attributes, "codecs")?);
        Ok(Common { media_type, codecs, ..Common::default() })
    }

    fn role(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        let is_alternate = attributes.get("schemeIdUri") == Some(ROLE) && attributes.get("value") != Some("main");
        if let Some(set) = self.last_set() {
            set.is_alternate |= is_alternate;
        }
        Ok(())
    }

    /// Takes a `ContentProtection` or an `EssentialProperty`.
    fn property(&mut self, element: &BytesStart<'_>, name: &str) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        let scheme = attributes.get("schemeIdUri").unwrap_or_default();
        let is_of_set = self.parent() == "AdaptationSet";
        let set = self.last_set();
        let common = match is_of_set {
            true => set.map(|set| &mut set.common),
            false => set.and_then(|set| set.representations.last_mut()).map(|last| &mut last.common),
        };
        let Some(common) = common else { return Ok(()) };
        if name == "ContentProtection" {
            let shown = shown(attributes.get("value").filter(|value| !value.is_empty()).unwrap_or(scheme));
            common.protection.get_or_insert_with(|| shown.into());
        } else {
            common.is_special |= !scheme.starts_with(COLOURS);
        }
        Ok(())
    }

    fn other(&mut self, name: &'static str) -> Result<(), PackageError> {
        let parent = self.parent().to_owned();
        if let Some(level) = self.level(&parent) {
            level.other = Some(name);
        }
        Ok(())
    }

    fn template(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        let timescale = match self.number(&attributes, "timescale")? {
            None => None,
            Some(ticks) => {
                let known = u32::try_from(ticks).ok().and_then(Timescale::new);
                Some(known.ok_or_else(|| self.bad("timescale", &ticks.to_string(), "1 to 4294967295"))?)
            }
        };
        let template = TemplateElement {
            media: self.name(&attributes, "media")?,
            initialization: self.name(&attributes, "initialization")?,
            timescale,
            duration: self.number(&attributes, "duration")?.filter(|duration| *duration > 0),
            first_number: self.number(&attributes, "startNumber")?,
            offset: self.number(&attributes, "presentationTimeOffset")?,
            early: early(&attributes),
            timeline: None,
        };
        let parent = self.parent().to_owned();
        if let Some(level) = self.level(&parent) {
            level.template = Some(template);
        }
        Ok(())
    }

    /// Takes an `S` (ISO/IEC 23009-1 5.3.9.6).
    fn run(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        self.runs += 1;
        if self.runs > MOST_RUNS {
            return Err(self.error(format!("more than {MOST_RUNS} S elements"), "at most that"));
        }
        let attributes = self.attributes(element)?;
        let Some(duration @ 1..) = self.number(&attributes, "d")? else {
            return Err(self.error("<S> without a duration", "an attribute d from 1"));
        };
        let stated = self.number(&attributes, "t")?;
        let before = self.timeline.last_mut();
        let end = before.as_ref().and_then(|run| run.start.checked_add(run.count?.checked_mul(run.duration)?));
        let start = match (stated, before) {
            (Some(start), Some(before)) if start <= before.start => {
                return Err(self.error(format!("<S> with t={start}"), "times that grow"));
            }
            (Some(start), Some(before)) => {
                let most = start.saturating_sub(before.start).div_ceil(before.duration);
                before.count = Some(before.count.map_or(most, |count| count.min(most)));
                start
            }
            (Some(start), None) => start,
            (None, None) => 0,
            (None, Some(_)) => {
                end.ok_or_else(|| self.error("<S> without t behind one without an end", "an attribute t"))?
            }
        };
        let count = match attributes.get("r").map(str::trim) {
            None => Some(1),
            Some(text) if text.starts_with('-') => None,
            Some(text) => match text.parse::<u64>() {
                Ok(repeats) => Some(repeats.saturating_add(1)),
                Err(_) => return Err(self.bad("r", text, "a whole number")),
            },
        };
        let first = self.timeline.last().map_or(0, |run| run.first.saturating_add(run.count.unwrap_or(0)));
        self.timeline.push(Run { first, start, duration, count });
        Ok(())
    }

    fn base(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        self.base = Some((String::new(), early(&attributes).unwrap_or_default()));
        Ok(())
    }

    fn push_text(&mut self, text: &str) -> Result<(), PackageError> {
        let is_base = self.open.last().is_some_and(|name| name == "BaseURL");
        let Some((base, _)) = self.base.as_mut().filter(|_| is_base) else { return Ok(()) };
        base.push_str(text);
        match base.len() > MOST_TEXT {
            true => Err(self.error("a BaseURL of more than 4096 bytes", "at most that")),
            false => Ok(()),
        }
    }

    fn clock(&mut self, element: &BytesStart<'_>) -> Result<(), PackageError> {
        let attributes = self.attributes(element)?;
        let value = self.name(&attributes, "value")?.unwrap_or_default();
        let scheme = attributes.get("schemeIdUri").unwrap_or_default();
        // The years 2012 and 2014 are versions of the same schemes.
        let name = scheme.strip_prefix("urn:mpeg:dash:utc:").and_then(|scheme| scheme.split(':').next());
        // A list has URLs with spaces between; the first one is taken.
        let url = || value.split_whitespace().next().map(Arc::<str>::from);
        let clock = match name {
            Some("direct") => values::wall(&value).map(ClockSource::Direct),
            Some("http-iso" | "http-xsdate") => url().map(ClockSource::Body),
            Some("http-head") => url().map(ClockSource::Head),
            _ => None,
        };
        if self.manifest.clocks.len() < MOST_CLOCKS {
            self.manifest.clocks.extend(clock);
        }
        Ok(())
    }

    /// Returns the attributes with their references resolved.
    fn attributes(&self, element: &BytesStart<'_>) -> Result<Attributes, PackageError> {
        let mut found = Vec::new();
        let mut list = element.attributes();
        // Without the search for doubles, whose time grows with the square of their number.
        for attribute in list.with_checks(false) {
            let attribute = attribute.map_err(|error| self.error(error.to_string(), "well-formed attributes"))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| self.error(error.to_string(), "references to characters only"))?;
            found.push((attribute.key.local_name().as_ref().to_owned(), value.into_owned()));
            if found.len() > MOST_ATTRIBUTES {
                return Err(self.error(format!("more than {MOST_ATTRIBUTES} attributes"), "at most that"));
            }
        }
        Ok(Attributes(found))
    }

    fn duration(&self, attributes: &Attributes, name: &str) -> Result<Option<Duration>, PackageError> {
        let value = attributes.get(name);
        value
            .map(|text| values::duration(text).ok_or_else(|| self.bad(name, text, "a duration such as PT2S")))
            .transpose()
    }

    fn number(&self, attributes: &Attributes, name: &str) -> Result<Option<u64>, PackageError> {
        let value = attributes.get(name);
        value.map(|text| text.trim().parse().map_err(|_| self.bad(name, text, "a whole number"))).transpose()
    }

    fn name(&self, attributes: &Attributes, name: &str) -> Result<Option<Arc<str>>, PackageError> {
        match attributes.get(name) {
            Some(text) if text.len() > MOST_TEXT => Err(self.bad(name, text, "at most 4096 bytes")),
            text => Ok(text.map(Arc::from)),
        }
    }

    fn bad(&self, name: &str, value: &str, expected: &'static str) -> PackageError {
        self.error(format!("{name}={:?}", shown(value)), expected)
    }

    fn error(&self, found: impl Into<String>, expected: &'static str) -> PackageError {
        refused(self.line, found, expected)
    }
}

const DATE: &str = "a date such as 2026-11-22T10:00:00Z";

/// Reads `availabilityTimeOffset`. An endless one counts as none: a live stream has no end that exists already.
fn early(attributes: &Attributes) -> Option<Duration> {
    attributes.get("availabilityTimeOffset").and_then(values::seconds_of).map(|early| early.min(MOST_EARLY))
}
