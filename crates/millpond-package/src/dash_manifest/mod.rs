//! DASH manifests (MPD) of live streams that others have made, as a client reads them again and again (ISO/IEC 23009-1).
//!
//! [`LiveManifest`] is one reading. A [`Presentation`] keeps what the readings of a source have told: its Periods, and the tracks that are
//! received. A [`Follower`] of one track decides which segment is requested when. All times are on the clock of the source.
//! Millpond's own manifests are written elsewhere.

mod choice;
mod follower;
mod parser;
mod presentation;
mod runs;
#[cfg(test)]
mod tests;
mod uri_template;
mod values;

pub use choice::TrackRole;
pub use follower::{Failed, Follower, InitSegment, Next, Piece};
pub use presentation::{Presentation, Turn};

use crate::PackageError;
use millpond_media::Timescale;
use runs::Run;
use std::{sync::Arc, time::Duration};

/// Most bytes of a manifest.
pub const MOST_BYTES: usize = 4 << 20;
/// Most Periods of a manifest.
const MOST_PERIODS: usize = 512;
/// Most AdaptationSets and Representations of a manifest.
const MOST_REPRESENTATIONS: usize = 4096;
/// Most `S` elements of a manifest: three days in segments of two seconds whose durations differ.
const MOST_RUNS: usize = 1 << 17;
/// Most bytes of a name, a URL or a template.
const MOST_TEXT: usize = 4096;

/// A manifest of a live stream, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveManifest {
    /// Whether it may change, `type="dynamic"`.
    pub is_dynamic: bool,
    /// Ways to the clock of the source, `UTCTiming`, the best one first.
    pub clocks: Vec<ClockSource>,
    /// Wall time at which the presentation begins, `availabilityStartTime`.
    begins: Option<Duration>,
    /// Shortest time between changes, `minimumUpdatePeriod`; zero where each segment may change it.
    update: Option<Duration>,
    /// Time for which segments stay, `timeShiftBufferDepth`.
    depth: Option<Duration>,
    /// Distance from the present at which playback begins, `suggestedPresentationDelay`.
    delay: Option<Duration>,
    /// Media that players have before they begin, `minBufferTime`.
    buffer: Duration,
    /// Length of the presentation, `mediaPresentationDuration`.
    length: Option<Duration>,
    level: Level,
    periods: Vec<PeriodElement>,
}

/// A way to the clock of a source, `UTCTiming` (ISO/IEC 23009-1 5.8.4.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The time itself, since the Unix epoch, as it was when the manifest was sent.
    Direct(Duration),
    /// A URL whose body is the time.
    Body(Arc<str>),
    /// A URL whose reply has the time in its field `Date`.
    Head(Arc<str>),
}

/// Attributes and `BaseURL` of an MPD, Period, AdaptationSet or Representation that its child elements inherit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Level {
    /// First `BaseURL`.
    base: Option<Arc<str>>,
    /// Its `availabilityTimeOffset`.
    early: Duration,
    template: Option<TemplateElement>,
    /// Another element that addresses segments.
    other: Option<&'static str>,
}

/// A `SegmentTemplate` as it is written (ISO/IEC 23009-1 5.3.9.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TemplateElement {
    media: Option<Arc<str>>,
    initialization: Option<Arc<str>>,
    timescale: Option<Timescale>,
    duration: Option<u64>,
    first_number: Option<u64>,
    /// `presentationTimeOffset`.
    offset: Option<u64>,
    /// `availabilityTimeOffset`.
    early: Option<Duration>,
    timeline: Option<Arc<[Run]>>,
}

/// A `Period` as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PeriodElement {
    id: Option<Arc<str>>,
    start: Option<Duration>,
    duration: Option<Duration>,
    level: Level,
    sets: Vec<SetElement>,
}

/// An `AdaptationSet` as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SetElement {
    common: Common,
    content: Option<Arc<str>>,
    language: Option<Arc<str>>,
    /// Whether a `Role` is another one than `main`.
    is_alternate: bool,
    level: Level,
    representations: Vec<RepresentationElement>,
}

/// A `Representation` as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RepresentationElement {
    common: Common,
    id: Arc<str>,
    bandwidth: u64,
    level: Level,
    /// Line of the element, from 1.
    line: u32,
}

/// Common attributes and elements of an AdaptationSet and of its Representations (ISO/IEC 23009-1 5.3.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Common {
    /// `mimeType`.
    media_type: Option<Arc<str>>,
    codecs: Option<Arc<str>>,
    /// Name of a `ContentProtection`.
    protection: Option<Arc<str>>,
    /// Whether an `EssentialProperty` is unknown, so that the element is to be ignored.
    is_special: bool,
}

impl LiveManifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The text is no MPD, or exceeds a bound. Each error names the line.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        parser::parse(text)
    }
}

/// Reads a date with its time, as the body of a clock has it. One without a zone is of UTC.
#[must_use]
pub fn wall_time(text: &str) -> Option<Duration> {
    values::wall(text)
}

fn refused(line: u32, found: impl Into<String>, expected: &'static str) -> PackageError {
    PackageError::Text { format: "DASH manifest", line, found: found.into(), expected }
}

/// Returns the beginning of a text, for errors.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}
