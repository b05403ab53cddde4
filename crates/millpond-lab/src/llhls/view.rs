//! The state of one media playlist, gathered from its replies.

use super::{
    Reload,
    playlist::{LivePlaylist, Part, RenditionReport, Segment},
    rules::{Rule, Violation, breaks},
};
use std::time::Duration;

/// Rounding of dates and of the durations between them, in seconds.
const DATES: f64 = 0.05;

/// The last playlist, whole, and when it arrived.
#[derive(Debug)]
pub(super) struct View {
    list: LivePlaylist,
    arrived: Duration,
    /// Number of the segment after the last whole one, and of its parts, when the hint was given.
    hint: Option<(u64, usize, String)>,
}

impl View {
    /// Begins with the first playlist.
    pub(super) fn new(list: LivePlaylist, reload: &Reload<'_>) -> Self {
        let hint = hint(&list);
        Self { list, arrived: reload.arrived, hint }
    }

    /// Takes the next playlist.
    pub(super) fn reload(&mut self, mut list: LivePlaylist, reload: &Reload<'_>, found: &mut Vec<Violation>) {
        self.fill(&mut list, found);
        let before = &self.list;
        if list.target != before.target {
            breaks(found, Rule::TargetChanged, format!("{} s, then {} s", before.target, list.target));
        }
        if list.part_target != before.part_target && before.part_target.is_some() {
            breaks(found, Rule::PartTargetChanged, format!("{:?}, then {:?}", before.part_target, list.part_target));
        }
        if list.sequence < before.sequence {
            breaks(found, Rule::SequenceFell, format!("{}, then {}", before.sequence, list.sequence));
        }
        if place(&list) < place(before) {
            breaks(found, Rule::EndFell, format!("{}, then {}", before.end(), list.end()));
        }
        if before.ended && (!list.ended || list.end() != before.end()) {
            breaks(found, Rule::Ended, format!("up to {}, then {}", before.end(), list.end()));
        }
        self.compare(&list, found);
        self.discontinuities(&list, found);
        dates(&list, found);
        self.check_hint(&list, found);
        let (total, parts) = (length(&list.segments), list.open.iter().map(|part| part.duration).sum::<f64>());
        if list.sequence > before.sequence && !list.ended && total + parts + DATES < 3.0 * list.target {
            breaks(found, Rule::RemovedTooSoon, format!("{total} s remain, target {} s", list.target));
        }
        // Replies to requests that overlap arrive in any order.
        if place(&list) >= place(before) {
            (self.hint, self.list, self.arrived) = (hint(&list), list, reload.arrived);
        }
    }

    /// Checks a report about this playlist in `other`, which was asked for at a time.
    pub(super) fn check_report(
        &self,
        report: &RenditionReport,
        other: &LivePlaylist,
        asked: Duration,
        found: &mut Vec<Violation>,
    ) {
        if self.arrived > asked || self.list.ended {
            return;
        }
        let own = other.last();
        let segment = report.last_segment.or(own.map(|own| own.0));
        let told = segment.map(|segment| (segment, report.last_part.or(own.and_then(|own| own.1))));
        if told < self.list.last() {
            breaks(found, Rule::ReportOld, format!("{}: {told:?}, known {:?}", report.uri, self.list.last()));
        }
    }

    /// Adds the segments that a playlist skips (6.2.5.1).
    fn fill(&self, list: &mut LivePlaylist, found: &mut Vec<Violation>) {
        let skipped = std::mem::take(&mut list.skipped);
        if skipped == 0 {
            return;
        }
        let first = list.sequence.checked_sub(self.list.sequence).and_then(|first| usize::try_from(first).ok());
        let range = first.and_then(|first| Some(first..first.checked_add(usize::try_from(skipped).ok()?)?));
        match range.and_then(|range| self.list.segments.get(range)) {
            Some(known) => drop(list.segments.splice(0..0, known.iter().cloned())),
            None => {
                let what =
                    format!("{skipped} from {}, known {} to {}", list.sequence, self.list.sequence, self.list.end());
                breaks(found, Rule::SkipWithoutBase, what);
                list.sequence = list.sequence.saturating_add(skipped);
            }
        }
    }

    /// Compares the segments that both playlists have.
    fn compare(&self, list: &LivePlaylist, found: &mut Vec<Violation>) {
        for (number, segment) in numbered(list) {
            let Some(before) = numbered_at(&self.list, number) else { continue };
            let is_same = (&segment.uri, segment.duration, segment.discontinuity)
                == (&before.uri, before.duration, before.discontinuity);
            // Old segments lose their parts and may lose their dates.
            let parts_are_same = segment.parts.is_empty() || before.parts.is_empty() || segment.parts == before.parts;
            let date_is_same = segment.date.zip(before.date).is_none_or(|(date, before)| date == before);
            if !is_same || !parts_are_same || !date_is_same {
                breaks(found, Rule::SegmentChanged, format!("{number}: {before:?}, then {segment:?}"));
            }
        }
        // Parts of the segment that was open; one that is whole and old lists none.
        let (last, before) = (self.list.end(), &self.list.open);
        let now = numbered_at(list, last).map_or(&list.open[..], |segment| &segment.parts);
        let is_old = list.end() > last && now.is_empty();
        if place(list) >= place(&self.list) && !is_old && !now.starts_with(before) {
            breaks(found, Rule::SegmentChanged, format!("parts of {last}: {before:?}, then {now:?}"));
        }
    }

    fn discontinuities(&self, list: &LivePlaylist, found: &mut Vec<Violation>) {
        let removed = numbered(&self.list).filter(|(number, _)| *number < list.sequence);
        let counted =
            self.list.discontinuity_sequence + removed.filter(|(_, segment)| segment.discontinuity).count() as u64;
        // Where segments left that were never seen, more discontinuities may have left too.
        let all_seen = list.sequence <= self.list.end();
        let is_right = list.discontinuity_sequence == counted || (!all_seen && list.discontinuity_sequence > counted);
        if list.sequence >= self.list.sequence && !is_right {
            let what = format!("{}, counted {counted}", list.discontinuity_sequence);
            breaks(found, Rule::DiscontinuitySequence, what);
        }
    }

    /// The first part after the hint has the hinted URI.
    fn check_hint(&self, list: &LivePlaylist, found: &mut Vec<Violation>) {
        let Some((segment, part, uri)) = &self.hint else { return };
        let at = |number: u64| match numbered_at(list, number) {
            Some(segment) => &segment.parts[..],
            None if number == list.end() => &list.open[..],
            None => &[],
        };
        // The hinted part belongs to the open segment, or to the next one where the open one is whole by now.
        let next: Option<&Part> = at(*segment).get(*part).or_else(|| {
            let is_whole = numbered_at(list, *segment).is_some_and(|segment| segment.parts.len() == *part);
            at(segment + 1).first().filter(|_| is_whole)
        });
        if let Some(next) = next.filter(|next| next.uri != *uri) {
            breaks(found, Rule::HintBroken, format!("{uri}, then {}", next.uri));
        }
    }
}

fn hint(list: &LivePlaylist) -> Option<(u64, usize, String)> {
    Some((list.end(), list.open.len(), list.hint.clone()?))
}

/// Where a playlist ends: number of the open segment, and of its parts.
fn place(list: &LivePlaylist) -> (u64, usize) {
    (list.end(), list.open.len())
}

fn numbered(list: &LivePlaylist) -> impl Iterator<Item = (u64, &Segment)> {
    (list.sequence..).zip(&list.segments)
}

fn numbered_at(list: &LivePlaylist, number: u64) -> Option<&Segment> {
    list.segments.get(usize::try_from(number.checked_sub(list.sequence)?).ok()?)
}

fn length(segments: &[Segment]) -> f64 {
    segments.iter().map(|segment| segment.duration).sum()
}

/// Dates advance with the durations, but for discontinuities.
fn dates(list: &LivePlaylist, found: &mut Vec<Violation>) {
    let mut expected: Option<f64> = None;
    for (number, segment) in numbered(list) {
        if let (Some(date), Some(expected)) = (segment.date, expected)
            && !segment.discontinuity
            && (date - expected).abs() > DATES
        {
            breaks(found, Rule::DateDiffers, format!("{number}: {date}, expected {expected}"));
        }
        let known = segment.date.or(expected.filter(|_| !segment.discontinuity));
        expected = known.map(|date| date + segment.duration);
    }
}
