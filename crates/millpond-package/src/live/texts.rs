//! Subtitles of a running stream as segments of WebVTT in MP4 (ISO/IEC 14496-30 7).
//!
//! Subtitles have no frames that tell where a segment ends, and arrive later than the pictures beside them. So each segment has the
//! boundaries of the leading track's segment, and is made when subtitles of its time have arrived, or could have. Texts that arrive
//! later are shown from the next segment on. A text that lasts over a boundary is a cue of both segments, cut at the boundary.

use super::{
    cutter::Cut,
    part::{Part, PartPlace, SegmentNumber},
};
use crate::{fmp4::FragmentSample, text::wvtt::empty_sample};
use bytes::Bytes;
use millpond_media::units::Timescale;
use std::collections::VecDeque;

/// Clock of segments of subtitles.
pub const TEXT_CLOCK: Timescale = Timescale::MPEG;
/// Time by which subtitles may arrive behind the leading track, in ticks: 1.5 s.
pub const TEXT_DELAY: i64 = 135_000;
/// Longest difference between the end of a segment and the beginning of the next one that rounding explains, in ticks.
const ROUNDED: i64 = 9_000;
/// Most changes of a track that wait for their segment.
const MOST_CHANGES: usize = 1024;
/// Most segments that wait for subtitles.
const MOST_OPEN: usize = 64;

/// Cuts the subtitles of a stream into the segments of its leading track.
#[derive(Debug)]
pub struct TextCutter {
    /// Index of the leading track, and its clock.
    lead: (usize, Timescale),
    lanes: Vec<Lane>,
    /// Segments of the leading track that are complete: number, beginning and end in ticks.
    open: VecDeque<(SegmentNumber, i64, i64)>,
    /// End of the last segment of the epoch.
    end: Option<i64>,
    sequence: u32,
}

/// One track.
#[derive(Debug)]
struct Lane {
    /// Index of the track in the window.
    track: usize,
    /// Sample that is shown at the end of the last segment.
    shown: Bytes,
    /// Later samples, with the times from which they are shown.
    changes: VecDeque<(i64, Bytes)>,
    /// Time up to which subtitles have arrived.
    reached: i64,
}

impl TextCutter {
    /// Creates a cutter of tracks of a window, by their indexes. `lead` is the leading track with its clock.
    #[must_use]
    pub fn new(lead: (usize, Timescale), tracks: impl IntoIterator<Item = usize>) -> Self {
        let lane = |track| Lane { track, shown: empty_sample(), changes: VecDeque::new(), reached: i64::MIN };
        Self { lead, lanes: tracks.into_iter().map(lane).collect(), open: VecDeque::new(), end: None, sequence: 0 }
    }

    /// Takes the sample that a track shows from a time on, in ticks.
    pub fn change(&mut self, lane: usize, at: i64, sample: Bytes) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        // Times of one page rise. Others are errors of the stream.
        let at = lane.changes.back().map_or(at, |(last, _)| at.max(*last));
        lane.changes.pop_back_if(|(last, _)| *last == at);
        lane.changes.push_back((at, sample));
        if lane.changes.len() > MOST_CHANGES {
            lane.changes.pop_front();
        }
    }

    /// Notes that all subtitles of a track up to a time have arrived.
    pub fn reach(&mut self, lane: usize, at: i64) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.reached = lane.reached.max(at);
        }
    }

    /// Takes note of a decision about the other tracks.
    pub fn observe(&mut self, cut: &Cut) {
        let Cut::Closed { track, segment, start, duration } = *cut else { return };
        let (lead, clock) = self.lead;
        if track != lead || self.lanes.is_empty() {
            return;
        }
        let ticks = |ticks| clock.convert(ticks, TEXT_CLOCK);
        let (start, end) = (ticks(start), ticks(start.saturating_add(duration)));
        let start = self.end.filter(|last| last.abs_diff(start) <= ROUNDED as u64).unwrap_or(start);
        self.end = Some(end);
        self.open.push_back((segment, start, end.max(start.saturating_add(1))));
    }

    /// Makes the segments whose subtitles have arrived. `now` is the time of the leading track's last frame.
    pub fn advance(&mut self, now: i64, out: &mut Vec<Cut>) {
        while let Some((segment, start, end)) = self.open.front().copied() {
            let is_late = now >= end.saturating_add(TEXT_DELAY) || self.open.len() > MOST_OPEN;
            if !is_late && self.lanes.iter().any(|lane| lane.reached < end) {
                return;
            }
            self.open.pop_front();
            self.make(segment, start, end, out);
        }
    }

    /// Ends the epoch: all segments end with the subtitles so far, and nothing is shown.
    pub fn discontinue(&mut self, out: &mut Vec<Cut>) {
        for (segment, start, end) in std::mem::take(&mut self.open) {
            self.make(segment, start, end, out);
        }
        self.end = None;
        for lane in &mut self.lanes {
            (lane.shown, lane.reached) = (empty_sample(), i64::MIN);
            lane.changes.clear();
        }
    }

    fn make(&mut self, segment: SegmentNumber, start: i64, end: i64, out: &mut Vec<Cut>) {
        for lane in &mut self.lanes {
            self.sequence = self.sequence.wrapping_add(1);
            let samples = lane.samples(start, end);
            let place =
                PartPlace { track: lane.track, segment, index: 0, start, decode_time: start, sequence: self.sequence };
            out.push(Cut::Part(Part::new(place, samples)));
            out.push(Cut::Closed { track: lane.track, segment, start, duration: end.saturating_sub(start) });
        }
    }
}

impl Lane {
    /// Returns the samples from one time to another.
    fn samples(&mut self, start: i64, end: i64) -> Vec<(FragmentSample, Bytes)> {
        while let Some((_, sample)) = self.changes.pop_front_if(|(at, _)| *at <= start) {
            self.shown = sample;
        }
        let mut samples: Vec<(FragmentSample, Bytes)> = Vec::new();
        let mut from = start;
        while from < end {
            let next = self.changes.front().map(|(at, _)| *at).filter(|at| *at < end);
            let until = next.unwrap_or(end);
            let row = FragmentSample {
                duration: u32::try_from(until.saturating_sub(from)).unwrap_or(u32::MAX),
                size: u32::try_from(self.shown.len()).unwrap_or(u32::MAX),
                offset: 0,
                is_sync: true,
            };
            samples.push((row, self.shown.clone()));
            from = until;
            if next.is_some()
                && let Some((_, sample)) = self.changes.pop_front()
            {
                self.shown = sample;
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 90_000;

    /// Segment `number` of the leading track, of two seconds on a clock of milliseconds.
    fn closed(number: u64) -> Cut {
        let start = 10_000 + 2000 * number as i64;
        Cut::Closed { track: 0, segment: SegmentNumber(number), start, duration: 2000 }
    }

    fn cutter() -> TextCutter {
        TextCutter::new((0, Timescale::MILLIS), [2])
    }

    /// Segments of texts: number, start, and samples with their durations in tenths of a second.
    type Made = (u64, i64, Vec<(u32, String)>);

    fn made(cuts: &[Cut]) -> Vec<Made> {
        let part = |cut: &Cut| match cut {
            Cut::Part(part) => {
                let samples = part.rows.iter().zip(part.bytes.iter().skip(1));
                let text = |(row, data): (&FragmentSample, &Bytes)| {
                    (row.duration / 9000, String::from_utf8_lossy(data).replace("\0\0\0\u{8}vtte", "-"))
                };
                assert_eq!(part.track, 2);
                Some((part.segment.0, part.start / SECOND, samples.map(text).collect()))
            }
            _ => None,
        };
        cuts.iter().filter_map(part).collect()
    }

    fn texts(list: &[(u32, &str)]) -> Vec<(u32, String)> {
        list.iter().map(|(tenths, text)| (*tenths, (*text).to_owned())).collect()
    }

    #[test]
    fn texts_are_cut_where_the_leading_track_is() {
        let (mut cutter, mut out) = (cutter(), Vec::new());
        cutter.observe(&closed(0));
        cutter.observe(&Cut::Closed { track: 1, segment: SegmentNumber(0), start: 0, duration: 9 });
        cutter.change(0, 11 * SECOND, Bytes::from_static(b"a"));
        cutter.advance(12 * SECOND, &mut out);
        assert!(out.is_empty(), "subtitles of its time may arrive");
        cutter.reach(0, 12 * SECOND);
        cutter.advance(12 * SECOND, &mut out);
        assert_eq!(made(&out), [(0, 10, texts(&[(10, "-"), (10, "a")]))]);
        let end = Cut::Closed { track: 2, segment: SegmentNumber(0), start: 10 * SECOND, duration: 2 * SECOND };
        assert_eq!(out.pop(), Some(end));
        out.clear();
        cutter.change(0, 13 * SECOND, empty_sample());
        cutter.change(0, 13 * SECOND + 45_000, Bytes::from_static(b"b"));
        (1..3).for_each(|number| cutter.observe(&closed(number)));
        cutter.advance(16 * SECOND + TEXT_DELAY, &mut out);
        let expected = [(1, 12, texts(&[(10, "a"), (5, "-"), (5, "b")])), (2, 14, texts(&[(20, "b")]))];
        assert_eq!(made(&out), expected, "without subtitles for long");
    }

    #[test]
    fn late_texts_are_shown_from_the_next_segment_on() {
        let (mut cutter, mut out) = (cutter(), Vec::new());
        cutter.observe(&closed(0));
        cutter.advance(14 * SECOND, &mut out);
        cutter.change(0, 11 * SECOND, Bytes::from_static(b"late"));
        cutter.change(0, 13 * SECOND, Bytes::from_static(b"next"));
        // An error of the stream.
        cutter.change(0, 5 * SECOND, Bytes::from_static(b"last"));
        cutter.observe(&closed(1));
        cutter.advance(20 * SECOND, &mut out);
        assert_eq!(made(&out)[1], (1, 12, texts(&[(10, "late"), (10, "last")])));
    }

    #[test]
    fn an_epoch_ends_with_what_has_arrived() {
        let (mut cutter, mut out) = (cutter(), Vec::new());
        cutter.change(0, 11 * SECOND, Bytes::from_static(b"a"));
        cutter.observe(&closed(0));
        cutter.discontinue(&mut out);
        assert_eq!(made(&out), [(0, 10, texts(&[(10, "-"), (10, "a")]))]);
        out.clear();
        cutter.observe(&Cut::Closed { track: 0, segment: SegmentNumber(1), start: 50_000, duration: 2000 });
        cutter.advance(60 * SECOND, &mut out);
        assert_eq!(made(&out), [(1, 50, texts(&[(20, "-")]))]);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut cutter, mut out) = (cutter(), Vec::new());
        (0..5000).for_each(|at| cutter.change(0, at, Bytes::from_static(b"a")));
        assert_eq!(cutter.lanes[0].changes.len(), MOST_CHANGES);
        (0..200).for_each(|number| cutter.observe(&closed(number)));
        cutter.advance(0, &mut out);
        assert_eq!(cutter.open.len(), MOST_OPEN);
    }
}
