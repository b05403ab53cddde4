//! The frames of one track that have passed.

use crate::Frame;
use millpond_media::units::Timescale;
use std::time::Duration;

/// The last frame that passed of a track.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Number of the next one.
    next: u32,
    /// The highest presentation time so far.
    pub(super) pts: Option<i64>,
    due: Option<Duration>,
}

impl Passed {
    /// Notes that a frame passes.
    pub(super) fn note(&mut self, frame: &Frame) {
        let pts = self.pts.map_or(frame.pts, |last| last.max(frame.pts));
        *self = Self { next: frame.number.wrapping_add(1), pts: Some(pts), due: Some(frame.due) };
    }

    /// Gives a frame the next number, and a due time after the last one's. Sound that is presented before what has passed is
    /// left out.
    pub(crate) fn take(&mut self, frame: Frame, is_video: bool, scale: Option<Timescale>) -> Option<Frame> {
        if !is_video && self.pts.is_some_and(|last| frame.pts <= last) {
            return None;
        }
        let tick = 1_000_000_000_u64.div_ceil(scale.map_or(1000, Timescale::get).into());
        let least = self.due.map_or(Duration::ZERO, |due| due + Duration::from_nanos(tick));
        let frame = Frame { number: self.next, due: frame.due.max(least), ..frame };
        self.note(&frame);
        Some(frame)
    }
}
