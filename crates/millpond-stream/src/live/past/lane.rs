//! One track of the past.

use super::{
    look::{Place, Sample},
    moved, nanos, ticks,
};
use crate::Frame;
use millpond_media::{Importance, units::Timescale};
use millpond_package::live::SegmentNumber;
use std::{collections::VecDeque, time::Duration};

/// Time within which two frames are the same one: times are rounded to ticks.
const SAME: Duration = Duration::from_micros(500);

/// A track of the past, and its frames that were read and not given yet.
#[derive(Debug)]
pub(super) struct Lane {
    /// Index in the formats of the feed.
    pub(super) track: u16,
    pub(super) is_video: bool,
    /// Clock of its frames.
    scale: Timescale,
    /// Number of the next frame that is given.
    number: u32,
    /// Index in the window, and the clock there; `None` where the window has no such track.
    pub(super) source: Option<(usize, Timescale)>,
    pub(super) place: Place,
    waiting: VecDeque<Waiting>,
    /// Frames at this time and before were sent already.
    pub(super) after: Option<Duration>,
    /// Frames that are presented earlier are left out.
    pub(super) from: Duration,
    /// Whether frames are left out up to the next key frame.
    pub(super) needs_key: bool,
    /// Whether nothing follows in the stretch.
    pub(super) is_over: bool,
}

/// A frame without a number, its segment and the end of its presentation.
#[derive(Debug)]
struct Waiting {
    frame: Frame,
    segment: SegmentNumber,
    end: Duration,
}

impl Lane {
    pub(super) fn new((track, is_video, scale): (u16, bool, Timescale), number: u32) -> Self {
        Self {
            track,
            is_video,
            scale,
            number,
            source: None,
            place: Place { segment: SegmentNumber(0), part: 0 },
            waiting: VecDeque::new(),
            after: None,
            from: Duration::ZERO,
            needs_key: false,
            is_over: false,
        }
    }

    /// Goes to the beginning of a segment, in a new stretch.
    pub(super) fn go_to(&mut self, segment: SegmentNumber) {
        self.place = Place { segment, part: 0 };
        self.waiting.clear();
        (self.after, self.from, self.is_over) = (None, Duration::ZERO, false);
        self.needs_key = self.is_video;
    }

    /// Goes to the next segment.
    pub(super) fn next_segment(&mut self) {
        self.place = Place { segment: self.place.segment.next(), part: 0 };
    }

    /// Decode time of the next frame.
    pub(super) fn due(&self) -> Option<Duration> {
        self.waiting.front().map(|waiting| waiting.frame.due)
    }

    /// Presentation time of the next frame, in ticks.
    pub(super) fn pts(&self) -> Option<i64> {
        self.waiting.front().map(|waiting| waiting.frame.pts)
    }

    /// Clock of its frames.
    pub(super) fn scale(&self) -> Timescale {
        self.scale
    }

    /// Takes a sample, with its times moved by nanoseconds.
    pub(super) fn take(&mut self, sample: Sample, (epoch, shift): (u32, i64)) {
        let Some((_, scale)) = self.source else { return };
        let moved_by = |at: i64| moved(Duration::ZERO, nanos(at, scale).saturating_add(shift));
        let pts = scale.convert(sample.pts, self.scale).saturating_add(ticks(shift, self.scale));
        let (due, shown) = (moved_by(sample.dts), moved_by(sample.pts));
        let is_sent = self.after.is_some_and(|after| due <= after + SAME);
        // A picture that is shown earlier may be referred to.
        let is_early = !self.is_video && shown + SAME < self.from;
        self.needs_key &= !sample.is_sync;
        if is_sent || is_early || self.needs_key {
            return;
        }
        let frame = Frame {
            track: self.track,
            number: 0,
            due,
            pts,
            epoch,
            is_sync: sample.is_sync,
            importance: Importance::BASE,
            data: sample.data,
        };
        let end = moved_by(sample.pts.saturating_add(sample.duration));
        self.waiting.push_back(Waiting { frame, segment: self.place.segment, end });
    }

    /// Leaves frames out before the last key frame that is presented at a time or before. Returns whether a later frame was read.
    pub(super) fn trim(&mut self, at: Duration) -> bool {
        let shown = |waiting: &Waiting| moved(Duration::ZERO, nanos(waiting.frame.pts, self.scale));
        let key = self.waiting.iter().rposition(|waiting| waiting.frame.is_sync && shown(waiting) <= at);
        self.waiting.drain(..key.unwrap_or(0));
        self.waiting.iter().any(|waiting| shown(waiting) > at && waiting.frame.due > at)
    }

    /// Leaves frames of a segment and of later ones out.
    pub(super) fn end_before(&mut self, segment: SegmentNumber) {
        self.waiting.retain(|waiting| waiting.segment < segment);
        self.is_over |= self.place.segment >= segment;
    }

    /// Gives the next frame, with its number, and the end of its presentation.
    pub(super) fn give(&mut self) -> Option<(Frame, Duration)> {
        let Waiting { frame, end, .. } = self.waiting.pop_front()?;
        let number = self.number;
        self.number = number.wrapping_add(1);
        Some((Frame { number, ..frame }, end))
    }
}
