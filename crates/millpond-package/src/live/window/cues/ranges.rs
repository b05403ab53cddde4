//! Events of cues: a pair of cues is one range.

use super::PastCue;
use bytes::Bytes;
use millpond_media::ts::{SpliceEvent, SpliceKind, SpliceMeaning};
use std::{collections::VecDeque, fmt::Write as _, time::Duration};

/// Most events that are remembered, and most bytes of their sections. The oldest leave first.
const MOST: usize = 256;
const MOST_BYTES: usize = 64 << 10;
/// Difference of times within which a cue repeats another one.
const SAME: Duration = Duration::from_millis(500);
/// Time after the planned end of a break that returns by itself, within which its cue may still come.
const GRACE: Duration = Duration::from_secs(1);
/// Longest time for which a break without a planned duration is listed.
const OPEN: Duration = Duration::from_secs(24 * 3600);

/// An event: a break, or a command at one moment.
#[derive(Debug)]
pub(crate) struct CueRange {
    /// Its name, unique in the stream.
    pub(crate) id: String,
    /// Attribute of HLS that its first section belongs into.
    pub(crate) attribute: CueAttribute,
    pub(crate) begin: CuePoint,
    /// End of a break, once it is known.
    pub(crate) end: Option<CuePoint>,
    /// Planned duration of a break.
    pub(crate) planned: Option<Duration>,
    /// Number of the event and the field that states it; `None` for other commands.
    event: Option<(SpliceKind, u32)>,
    /// Whether the break ends by itself.
    returns: bool,
}

/// Meaning of a section in HLS (RFC 8216 4.3.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueAttribute {
    /// A break begins.
    Out,
    /// A break ends, whose beginning is unknown.
    In,
    /// Another command.
    Command,
}

/// A moment that a section announces.
#[derive(Clone, Debug)]
pub(crate) struct CuePoint {
    /// Wall time, since the Unix epoch.
    pub(crate) at: Duration,
    /// The same in whole milliseconds.
    pub(crate) wall: Duration,
    /// The section; `None` for the end of a break that returned by itself.
    pub(crate) section: Option<Bytes>,
}

impl CuePoint {
    fn new(at: Duration, section: Option<Bytes>) -> Self {
        Self { at, wall: whole_millis(at), section }
    }

    fn is_near(&self, other: &Self) -> bool {
        self.at.abs_diff(other.at) < SAME
    }

    fn bytes(&self) -> usize {
        self.section.as_ref().map_or(0, Bytes::len)
    }
}

fn whole_millis(time: Duration) -> Duration {
    time.saturating_sub(Duration::from_nanos(u64::from(time.subsec_nanos() % 1_000_000)))
}

impl CueRange {
    fn new(event: &SpliceEvent, attribute: CueAttribute, begin: CuePoint) -> Self {
        let mut id = match event.kind {
            SpliceKind::Insert => "insert".to_owned(),
            SpliceKind::Segment(segmentation_type) => format!("segment-{segmentation_type:02x}"),
        };
        let _ = write!(id, "-{}-{}", event.number, begin.wall.as_millis());
        let planned = event.duration.filter(|_| attribute == CueAttribute::Out).map(duration);
        let event_of = Some((event.kind, event.number));
        Self { id, attribute, begin, end: None, planned, event: event_of, returns: event.returns }
    }

    fn command(command: u8, begin: CuePoint) -> Self {
        let sum =
            begin.section.as_ref().and_then(|section| section.last_chunk()).map_or(0, |sum| u32::from_be_bytes(*sum));
        let id = format!("command-{command:02x}-{sum:08x}-{}", begin.wall.as_millis());
        let (attribute, end, planned) = (CueAttribute::Command, None, None);
        Self { id, attribute, begin, end, planned, event: None, returns: false }
    }

    /// Wall time of its end, as far as it is known.
    pub(crate) fn last(&self) -> Duration {
        let expected = match (self.attribute, self.planned) {
            (CueAttribute::Out, None) => OPEN,
            (_, planned) => planned.unwrap_or_default(),
        };
        self.end.as_ref().map_or_else(|| self.begin.wall.saturating_add(expected), |end| end.wall)
    }

    /// Whether it is a break whose end is unknown.
    fn is_open(&self) -> bool {
        self.attribute == CueAttribute::Out && self.end.is_none()
    }

    fn bytes(&self) -> usize {
        self.begin.bytes() + self.end.as_ref().map_or(0, CuePoint::bytes)
    }
}

/// Converts ticks of 90 kHz to whole milliseconds.
fn duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks / 90)
}

/// The events of a stream, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Ranges(VecDeque<CueRange>);

impl Ranges {
    /// Takes a cue. Returns whether it changes anything.
    pub(super) fn push(&mut self, cue: &PastCue) -> bool {
        let (point, edge) = (CuePoint::new(cue.at, Some(cue.section.clone())), cue.edge);
        let mut is_change = false;
        if cue.splice.events.is_empty() {
            is_change |= self.add(CueRange::command(cue.splice.command, point.clone()));
        }
        for event in &cue.splice.events {
            is_change |= match event.meaning {
                SpliceMeaning::Out => self.leave(event, point.clone(), edge),
                SpliceMeaning::In => self.enter(event, point.clone()),
                SpliceMeaning::Other => self.add(CueRange::new(event, CueAttribute::Command, point.clone())),
                SpliceMeaning::Cancelled => self.cancel(event, edge),
            };
        }
        let mut bytes: usize = self.0.iter().map(CueRange::bytes).sum();
        while self.0.len() > MOST || bytes > MOST_BYTES {
            bytes -= self.0.pop_front().map_or(bytes, |range| range.bytes());
        }
        is_change
    }

    /// Adds an event, unless it is known.
    fn add(&mut self, range: CueRange) -> bool {
        let is_known = |known: &CueRange| {
            let is_same = known.event == range.event && known.attribute == range.attribute;
            let is_named = range.event.is_some() || known.begin.section == range.begin.section;
            is_same && is_named && known.begin.is_near(&range.begin)
        };
        let is_new = !self.0.iter().any(is_known);
        if is_new {
            self.0.push_back(range);
        }
        is_new
    }

    /// Adds a break. One that was announced for another time leaves, if that has not come.
    fn leave(&mut self, event: &SpliceEvent, point: CuePoint, edge: Duration) -> bool {
        let range = CueRange::new(event, CueAttribute::Out, point);
        let is_moved = |known: &CueRange| {
            let is_ahead = known.is_open() && known.begin.at > edge;
            known.event == range.event && is_ahead && !known.begin.is_near(&range.begin)
        };
        self.0.retain(|known| !is_moved(known));
        self.add(range)
    }

    /// Ends a break: that of the event, else the last one of a `splice_insert`, whose return may have another number.
    fn enter(&mut self, event: &SpliceEvent, point: CuePoint) -> bool {
        let kind = match event.kind {
            SpliceKind::Insert => SpliceKind::Insert,
            SpliceKind::Segment(of_end) => SpliceKind::Segment(of_end.wrapping_sub(1)),
        };
        let of_event = Some((kind, event.number));
        let ends = |range: &CueRange| range.end.as_ref().is_some_and(|end| end.is_near(&point));
        let is_kind = |range: &CueRange| range.event.is_some_and(|(of, _)| of == kind);
        if self
            .0
            .iter()
            .any(|range| ends(range) && (range.event == of_event || is_kind(range) && kind == SpliceKind::Insert))
        {
            return false;
        }
        let is_before = |range: &CueRange| range.is_open() && range.begin.at <= point.at;
        let named = self.0.iter().rposition(|range| is_before(range) && range.event == of_event);
        let other = || {
            let last = self.0.iter().rposition(|range| is_before(range) && is_kind(range));
            last.filter(|_| kind == SpliceKind::Insert)
        };
        let Some(range) = named.or_else(other).and_then(|place| self.0.get_mut(place)) else {
            return self.add(CueRange::new(event, CueAttribute::In, point));
        };
        let wall = point.wall.max(range.begin.wall);
        range.end = Some(CuePoint { wall, ..point });
        true
    }

    /// Removes an event that has not ended.
    fn cancel(&mut self, event: &SpliceEvent, edge: Duration) -> bool {
        let is_segment = matches!(event.kind, SpliceKind::Segment(_));
        let is_cancelled = |range: &CueRange| {
            let of_event = |(kind, number): (SpliceKind, u32)| {
                number == event.number && matches!(kind, SpliceKind::Segment(_)) == is_segment
            };
            let is_ahead = range.end.as_ref().unwrap_or(&range.begin).at > edge;
            range.event.is_some_and(of_event) && (range.is_open() || is_ahead)
        };
        let before = self.0.len();
        self.0.retain(|range| !is_cancelled(range));
        self.0.len() != before
    }

    /// Ends breaks that return by themselves and whose planned end lies before the wall time `edge`.
    pub(super) fn settle(&mut self, edge: Duration) {
        for range in self.0.iter_mut().filter(|range| range.is_open() && range.returns) {
            let Some(planned) = range.planned.filter(|planned| range.begin.at + *planned + GRACE <= edge) else {
                continue;
            };
            range.end = Some(CuePoint::new(range.begin.at + planned, None));
        }
    }

    /// Forgets events that ended before a wall time.
    pub(super) fn expire(&mut self, wall: Duration) {
        self.0.retain(|range| range.last() >= wall);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CueRange> {
        self.0.iter()
    }
}
