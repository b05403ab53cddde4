//! The rules, and those that one playlist can break by itself.

use super::{
    Reload,
    playlist::{LivePlaylist, Part},
};

/// Rounding of durations in playlists, in seconds.
const ROUNDING: f64 = 0.001;

/// A rule of draft-pantos-hls-rfc8216bis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The playlist can be read (4.1).
    Syntax,
    /// The target duration never changes (6.2.1).
    TargetChanged,
    /// A segment's duration, rounded, is at most the target duration (4.4.3.1).
    SegmentTooLong,
    /// Parts need `EXT-X-PART-INF` (4.4.3.7).
    PartTargetMissing,
    /// The part target duration never changes (4.4.3.7).
    PartTargetChanged,
    /// A part is at most as long as the part target duration (4.4.4.9).
    PartTooLong,
    /// A part has at least 85 % of the part target duration, unless it is the last one of its segment, independent, missing
    /// or before a missing one (4.4.4.9).
    PartTooShort,
    /// The parts of a segment are as long as the segment (4.4.4.9).
    PartsDiffer,
    /// The first part of an independent segment is independent (4.4.2.1, 4.4.4.9).
    FirstPartDependent,
    /// `HOLD-BACK` is at least three target durations (4.4.3.8).
    HoldBack,
    /// `PART-HOLD-BACK` is there with parts, and at least twice the part target duration (4.4.3.8).
    PartHoldBack,
    /// `CAN-SKIP-UNTIL` is at least six target durations (4.4.3.8).
    SkipUntil,
    /// All playlists have the same `EXT-X-SERVER-CONTROL` (4.4.3.8).
    ControlDiffers,
    /// Playlists with `EXT-X-SKIP` have version 9 or above (8).
    Version,
    /// Segments are skipped only where `_HLS_skip` asks for it (6.2.5.1).
    SkipUnasked,
    /// A playlist skips only segments further from its end than `CAN-SKIP-UNTIL` (6.2.5.1).
    SkipTooNear,
    /// A playlist skips only segments of a playlist given before (6.2.5.1).
    SkipWithoutBase,
    /// A blocked reply has what was asked for (6.2.5.2).
    NotWhatWasAsked,
    /// A blocked reply comes within three target durations (6.2.5.2).
    BlockedTooLong,
    /// The media sequence number never falls (4.4.3.2).
    SequenceFell,
    /// Segments, and parts of them, do not change (6.2.1).
    SegmentChanged,
    /// The last segment of a playlist never falls: a newer playlist does not end before an older one (6.2.1).
    EndFell,
    /// Segments leave only while three target durations remain (6.2.2).
    RemovedTooSoon,
    /// The discontinuity sequence number counts the discontinuities that left (6.2.2).
    DiscontinuitySequence,
    /// Dates of segments agree with those before and their durations (4.4.4.6).
    DateDiffers,
    /// A hinted part is the next one listed (4.4.5.3).
    HintBroken,
    /// Nothing follows the end of the list, and nothing is hinted there (4.4.3.4, 4.4.5.3).
    Ended,
    /// Replies to blocked requests are fresh for six target durations at most, others for one (appendix B.1).
    CachedTooLong,
    /// A part is a movie fragment that can be read, with its init segment (3.1.2).
    MediaBroken,
    /// The samples of a part last as long as the playlist says (4.4.4.9).
    MediaDuration,
    /// A part that is independent has a sample with which decoding can begin (4.4.4.9).
    MediaDependent,
    /// Decode times of a part go on where those of the part before it end (3, 6.2.1).
    DecodeTimes,
    /// A rendition report is not older than what the rendition's playlist has given (4.4.5.4).
    ReportOld,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Values found and expected.
    pub what: String,
}

pub(super) fn breaks(found: &mut Vec<Violation>, rule: Rule, what: String) {
    found.push(Violation { rule, what });
}

/// Rules that a playlist can break by itself.
pub(super) fn alone(list: &LivePlaylist, found: &mut Vec<Violation>) {
    let target = list.target;
    for segment in &list.segments {
        if segment.duration.round() > target {
            breaks(found, Rule::SegmentTooLong, format!("{}: {} s, target {target} s", segment.uri, segment.duration));
        }
        let sum: f64 = segment.parts.iter().map(|part| part.duration).sum();
        let most = ROUNDING * (segment.parts.len() + 1) as f64;
        if !segment.parts.is_empty() && (sum - segment.duration).abs() > most {
            breaks(found, Rule::PartsDiffer, format!("{}: parts of {sum} s, {} s", segment.uri, segment.duration));
        }
        parts(list, &segment.parts, found);
    }
    parts(list, &list.open, found);
    control(list, found);
    if list.ended
        && let Some(hint) = &list.hint
    {
        breaks(found, Rule::Ended, format!("{hint} is hinted"));
    }
    if list.skipped > 0 && list.version < 9 {
        breaks(found, Rule::Version, format!("version {} with EXT-X-SKIP, expected 9", list.version));
    }
}

fn parts(list: &LivePlaylist, parts: &[Part], found: &mut Vec<Violation>) {
    let Some(first) = parts.first() else { return };
    if list.independent_segments && !first.independent {
        breaks(found, Rule::FirstPartDependent, first.uri.clone());
    }
    let Some(target) = list.part_target else {
        return breaks(found, Rule::PartTargetMissing, first.uri.clone());
    };
    for (place, part) in parts.iter().enumerate() {
        // The last part of an open segment may turn out to be the last one of the segment.
        let may_be_short = part.independent || part.gap || parts.get(place + 1).is_none_or(|next| next.gap);
        if part.duration > target + ROUNDING {
            breaks(found, Rule::PartTooLong, format!("{}: {} s, target {target} s", part.uri, part.duration));
        } else if !may_be_short && part.duration < 0.85 * target - ROUNDING {
            breaks(found, Rule::PartTooShort, format!("{}: {} s, target {target} s", part.uri, part.duration));
        }
    }
}

fn control(list: &LivePlaylist, found: &mut Vec<Violation>) {
    let control = list.control;
    if control.hold_back.is_some_and(|hold_back| hold_back < 3.0 * list.target) {
        breaks(found, Rule::HoldBack, format!("{:?} s, target {} s", control.hold_back, list.target));
    }
    if let Some(target) = list.part_target
        && control.part_hold_back.is_none_or(|hold_back| hold_back < 2.0 * target)
    {
        breaks(found, Rule::PartHoldBack, format!("{:?} s, part target {target} s", control.part_hold_back));
    }
    if control.skip_until.is_some_and(|until| until < 6.0 * list.target) {
        breaks(found, Rule::SkipUntil, format!("{:?} s, target {} s", control.skip_until, list.target));
    }
}

/// Rules between a request and its answer.
pub(super) fn answer(list: &LivePlaylist, reload: &Reload<'_>, found: &mut Vec<Violation>) {
    if list.skipped > 0 {
        let rest: f64 = list.segments.iter().map(|segment| segment.duration).sum();
        let open: f64 = list.open.iter().map(|part| part.duration).sum();
        if !reload.skip {
            breaks(found, Rule::SkipUnasked, format!("{} segments", list.skipped));
        }
        if list.control.skip_until.is_none_or(|until| rest + open + ROUNDING < until) {
            breaks(found, Rule::SkipTooNear, format!("{} s are listed, {:?}", rest + open, list.control.skip_until));
        }
    }
    let fresh = if reload.segment.is_some() { 6.0 } else { 1.0 } * list.target;
    if let Some(age) = reload.max_age.filter(|age| age.as_secs_f64() > fresh) {
        breaks(found, Rule::CachedTooLong, format!("{age:?}, target {} s", list.target));
    }
    let Some(segment) = reload.segment.filter(|_| list.control.can_block && !list.ended) else { return };
    let next = list.end();
    let has = match reload.part {
        None => next > segment || (next == segment && !list.open.is_empty()),
        Some(part) => next > segment || (next == segment && list.open.len() as u64 > part),
    };
    if !has {
        let parts = list.open.len();
        let what = format!("asked for {segment} {:?}, found up to {next} with {parts} parts", reload.part);
        breaks(found, Rule::NotWhatWasAsked, what);
    }
    let waited = reload.arrived.saturating_sub(reload.asked).as_secs_f64();
    if waited > 3.0 * list.target {
        breaks(found, Rule::BlockedTooLong, format!("{waited} s, target {} s", list.target));
    }
}
