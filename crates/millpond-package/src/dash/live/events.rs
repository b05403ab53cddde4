//! Events of a stream in an MPD (`EventStream`, ISO/IEC 23009-1 5.10.2), as SCTE 214-1 6.7 carries cues.

use crate::{
    live::{CuePoint, CueRange, Window, ticks},
    writing::xml::Writer,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use millpond_media::Timescale;
use std::{collections::BTreeSet, ops::Range, time::Duration};

/// Writes the cues of a Period that covers a stretch of wall time. Those that ended before the wall time `since` are left out.
pub(super) fn write(w: &mut Writer, window: &Window, period: &Range<Duration>, since: Duration) {
    let mut known = BTreeSet::new();
    for (point, duration) in window.cues_since(since).flat_map(points) {
        let Some(section) = point.section.as_ref().filter(|_| period.contains(&point.at)) else { continue };
        let id = id(point, section);
        if known.contains(&id) {
            continue;
        }
        if known.is_empty() {
            w.start("EventStream").attribute("schemeIdUri", "urn:scte:scte35:2014:xml+bin");
            w.number("timescale", Timescale::MPEG.get().into());
        }
        known.insert(id);
        let at = ticks(point.at.saturating_sub(period.start), Timescale::MPEG);
        w.start("Event").number("presentationTime", u64::try_from(at).unwrap_or(0));
        if let Some(duration) = duration {
            w.number("duration", u64::try_from(ticks(duration, Timescale::MPEG)).unwrap_or(0));
        }
        w.number("id", id.into());
        w.start("Signal").attribute("xmlns", "http://www.scte.org/schemas/35/2016");
        w.start("Binary").end_with(&STANDARD.encode(section));
        w.end().end();
    }
    if !known.is_empty() {
        w.end();
    }
}

/// The moments of an event, each with the duration that its section states. It never changes: Shaka takes an event with another
/// duration for another one.
fn points(range: &CueRange) -> impl Iterator<Item = (&CuePoint, Option<Duration>)> {
    let end = range.end.as_ref().map(|end| (end, None));
    [(&range.begin, range.planned)].into_iter().chain(end)
}

/// Returns a number that differs for other sections and moments: players show events of equal numbers once.
fn id(point: &CuePoint, section: &Bytes) -> u32 {
    let sum = section.last_chunk().map_or(0, |sum| u32::from_be_bytes(*sum));
    sum ^ point.wall.as_millis() as u32
}
