//! Moments of a stream's past.

use super::{between, moved, nanos};
use crate::{
    Feed,
    epoch::Epoch,
    live::LiveWindow,
    transmission::{Passed, TrackSender},
};
use millpond_media::units::Timescale;
use millpond_package::live::SegmentNumber;
use std::time::Duration;

/// Where playing the past of a stream begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastStart {
    /// With the last key frame at a wall time since the Unix epoch, or before.
    At(Duration),
    /// With the next frame of each track after the last frame that was sent.
    Next(PastPoint),
}

/// A moment between the frames that were sent and the frames that were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastPoint {
    /// A segment from which on the frames are looked for; `None` where only the wall time tells.
    pub(crate) segment: Option<SegmentNumber>,
    /// Wall time of the last frame, as the window counts it.
    pub(crate) wall: Duration,
    /// Time of the last frame on the timeline of the session.
    pub(crate) due: Duration,
    /// For each track of the same epoch, the time of its last frame on that timeline.
    pub(crate) passed: Vec<(u16, Duration)>,
}

impl PastStart {
    /// Its wall time since the Unix epoch.
    #[must_use]
    pub const fn wall(&self) -> Duration {
        match self {
            Self::At(wall) => *wall,
            Self::Next(point) => point.wall,
        }
    }
}

impl PastPoint {
    /// The moment behind the frames that were sent last; `None` where nothing was. `stretch` gives an epoch of their feed as the
    /// window counts wall times, and a segment that is not behind its beginning.
    pub(crate) fn of(
        senders: &[TrackSender],
        feed: &dyn Feed,
        stretch: impl Fn(u32) -> Option<(Epoch, Option<SegmentNumber>)>,
    ) -> Option<Self> {
        let passed = senders.iter().filter_map(|sender| Some((sender.track, sender.passed?)));
        let last = passed.clone().map(|(_, passed)| passed).max_by_key(|passed| (passed.epoch, passed.due))?;
        let (epoch, segment) = stretch(last.epoch)?;
        let of_epoch = passed.filter(|(_, passed)| passed.epoch == last.epoch);
        let passed = of_epoch.map(|(track, passed)| (track, time(feed, track, passed))).collect();
        let wall = moved(epoch.wall, between(epoch.from, last.due));
        Some(Self { segment, wall, due: last.due, passed })
    }
}

/// The time by which a frame is found again: sound has no decode times in segments.
fn time(feed: &dyn Feed, track: u16, passed: Passed) -> Duration {
    let format = feed.format(track).filter(|format| !format.is_video());
    let scale = format.and_then(|format| Timescale::new(format.timescale()));
    scale.map_or(passed.due, |scale| moved(Duration::ZERO, nanos(passed.pts, scale)))
}

/// The moment in the past of a stream behind the frames that were sent last as they arrived; `None` where nothing was sent.
pub(crate) fn live_point(senders: &[TrackSender], feed: &dyn Feed, window: &LiveWindow) -> Option<PastPoint> {
    PastPoint::of(senders, feed, |number| {
        let live = feed.epoch(number)?;
        let (wall, segment) = window.look(|window| {
            let wall = window.epoch(number).map(|epoch| epoch.wall);
            let first = window.segments().find(|segment| segment.epoch == number).map(|first| first.number);
            (wall, first)
        });
        // Streams of a ladder have another wall clock there.
        Some((Epoch { wall: wall.unwrap_or(live.wall), ..live }, segment))
    })
}
