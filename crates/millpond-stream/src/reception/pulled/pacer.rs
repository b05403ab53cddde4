//! Frames of segments, which arrive in bursts, one after the other as they are due.

use super::reader::ReadFrame;
use std::{collections::VecDeque, time::Duration};

/// Media of one rendition that waits, at most.
const MOST_AHEAD: Duration = Duration::from_secs(10);
/// Bytes of frames that wait, at most; the rest of what is being read exceeds it.
const MOST_BYTES: usize = 32 << 20;
/// Bytes that a frame counts for beside its own.
const FRAME: usize = 256;
/// Most lanes of all renditions.
const MOST_LANES: usize = 16;
/// Time for which the first frames of other lanes are waited for.
const OTHERS: Duration = Duration::from_secs(2);
/// Lateness of a frame after which all frames leave later.
const LATE: Duration = Duration::from_millis(50);
/// Greatest time to the next frame. Where it is longer, the clock of the source has jumped.
const JUMP: Duration = Duration::from_secs(60);
/// Time from the last frame of a stretch to the first one of the next.
const STEP: Duration = Duration::from_millis(40);

/// A lane of a rendition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneId {
    pub(super) rendition: usize,
    pub(super) lane: u32,
}

/// A frame that is due.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) lane: LaneId,
    /// Number of its stretch. A new one begins a sequence of times.
    pub(super) stretch: u64,
    /// Time at which it is due.
    pub(super) at: Duration,
    pub(super) frame: ReadFrame,
}

/// Gives the frames of all renditions an even pace: that of their times. Times of calls count from any moment.
#[derive(Debug)]
pub(super) struct Pacer {
    lanes: Vec<Lane>,
    renditions: Vec<Progress>,
    /// The stretch that leaves.
    stretch: Option<u64>,
    /// A media time of the stretch, and when it is due.
    anchor: Option<(i64, Duration)>,
    /// Last media time of the stretch, for clocks that wrap.
    near: Option<i64>,
    /// Arrival of the first frame of the stretch.
    since: Option<Duration>,
    /// Time since which the stretch is over, and other renditions are waited for.
    over: Option<Duration>,
    /// When the last frame was due.
    last: Option<Duration>,
    bytes: usize,
}

/// Frames of a lane in one stretch, in decoding order.
#[derive(Debug)]
struct Lane {
    id: LaneId,
    stretch: u64,
    frames: VecDeque<(i64, ReadFrame)>,
    /// Time of the last frame that came.
    last: i64,
}

/// The state of a rendition.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The stretch of its last piece.
    stretch: u64,
    /// Lanes of that stretch that are expected to give frames.
    lanes: Option<usize>,
    has_ended: bool,
}

impl Pacer {
    /// Creates the pacer of some renditions.
    pub(super) fn new(renditions: usize) -> Self {
        Self {
            lanes: Vec::new(),
            renditions: vec![Progress::default(); renditions],
            stretch: None,
            anchor: None,
            near: None,
            since: None,
            over: None,
            last: None,
            bytes: 0,
        }
    }

    /// Notes the stretch of a rendition's next frames, and the number of lanes that are expected.
    pub(super) fn expect(&mut self, rendition: usize, stretch: u64, lanes: Option<usize>) {
        if let Some(progress) = self.renditions.get_mut(rendition) {
            *progress = Progress { stretch, lanes, has_ended: false };
        }
    }

    /// Notes that a rendition gives no frames any more.
    pub(super) fn end(&mut self, rendition: usize) {
        if let Some(progress) = self.renditions.get_mut(rendition) {
            progress.has_ended = true;
        }
    }

    /// Takes a frame. One of a stretch that has left is dropped.
    pub(super) fn push(&mut self, rendition: usize, stretch: u64, frame: ReadFrame, now: Duration) {
        if self.stretch.is_some_and(|present| stretch < present) {
            return;
        }
        let id = LaneId { rendition, lane: frame.lane };
        let place = self.lanes.iter().position(|lane| (lane.id, lane.stretch) == (id, stretch));
        let known = place.and_then(|place| self.lanes.get(place)).map(|lane| lane.last);
        let near = known.or_else(|| self.near.filter(|_| self.stretch == Some(stretch)));
        let near = near.or_else(|| self.lanes.iter().find(|lane| lane.stretch == stretch).map(|lane| lane.last));
        let time = frame.time.near(near);
        self.bytes = self.bytes.saturating_add(frame.arrived.bytes.len() + FRAME);
        let lane = match place {
            Some(place) => self.lanes.get_mut(place),
            None if self.lanes.len() < MOST_LANES => {
                self.lanes.push(Lane { id, stretch, frames: VecDeque::new(), last: time });
                self.lanes.last_mut()
            }
            None => None,
        };
        match lane {
            Some(lane) => {
                lane.last = time;
                lane.frames.push_back((time, frame));
                if self.anchor.is_none() && self.stretch.is_none_or(|present| present == stretch) {
                    self.since.get_or_insert(now);
                }
            }
            None => self.bytes = self.bytes.saturating_sub(frame.arrived.bytes.len() + FRAME),
        }
    }

    /// Whether more frames of a rendition may come.
    pub(super) fn accepts(&self, rendition: usize) -> bool {
        let ahead = |lane: &Lane| {
            let first = lane.frames.front().map_or(lane.last, |(time, _)| *time);
            u64::try_from(lane.last.saturating_sub(first)).unwrap_or(0)
        };
        let own = self.lanes.iter().filter(|lane| lane.id.rendition == rendition);
        let ahead: u64 = own.map(ahead).max().unwrap_or(0);
        let waits = self.lanes.iter().filter(|lane| lane.id.rendition == rendition).any(|lane| !lane.frames.is_empty());
        !waits || (self.bytes < MOST_BYTES && Duration::from_nanos(ahead) < MOST_AHEAD)
    }

    /// Whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.frames.is_empty())
    }

    /// Removes and returns the next frame that is due.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Due> {
        self.settle(now);
        let stretch = self.stretch?;
        let place = self.next()?;
        let time = self.lanes.get(place)?.frames.front()?.0;
        let (media, release) = self.anchor?;
        let mut at = due(time, media, release);
        if at > now.saturating_add(JUMP) || at.saturating_add(LATE) < now {
            // The source was late, or its clock has jumped.
            self.anchor = Some((time, now));
            at = now;
        }
        if at > now {
            return None;
        }
        let lane = self.lanes.get_mut(place)?;
        let (_, frame) = lane.frames.pop_front()?;
        let id = lane.id;
        self.bytes = self.bytes.saturating_sub(frame.arrived.bytes.len() + FRAME);
        self.near = Some(time);
        self.last = Some(at.max(self.last.unwrap_or_default()));
        Some(Due { lane: id, stretch, at, frame })
    }

    /// Time at which [`pop`](Self::pop) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        match (self.anchor, self.next()) {
            (Some((media, release)), Some(place)) => {
                let time = self.lanes.get(place)?.frames.front()?.0;
                Some(due(time, media, release).min(release.saturating_add(JUMP * 2)))
            }
            (Some(_), None) => Some(self.over? + OTHERS),
            (None, _) => Some(self.since? + OTHERS),
        }
    }

    /// The lane of the stretch whose next frame is due first.
    fn next(&self) -> Option<usize> {
        let stretch = self.stretch?;
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| lane.stretch == stretch);
        let fronts = lanes.filter_map(|(place, lane)| Some((lane.frames.front()?.0, place)));
        fronts.min().map(|(_, place)| place)
    }

    /// Moves to the next stretch where the present one is over, and begins it once its lanes are there.
    fn settle(&mut self, now: Duration) {
        if self.next().is_none() {
            let waiting = self.lanes.iter().filter(|lane| !lane.frames.is_empty()).map(|lane| lane.stretch).min();
            let Some(next) = waiting else { return };
            let over = *self.over.get_or_insert(now);
            let is_over = self.renditions.iter().all(|progress| progress.has_ended || progress.stretch >= next);
            if self.stretch.is_some() && !is_over && now < over.saturating_add(OTHERS) {
                return;
            }
            self.lanes.retain(|lane| lane.stretch >= next);
            (self.stretch, self.anchor, self.near) = (Some(next), None, None);
            (self.since, self.over) = (Some(self.since.unwrap_or(now)), None);
        }
        if self.anchor.is_none() && self.is_ready(now) {
            let first = self.next().and_then(|place| self.lanes.get(place)?.frames.front()).map(|(time, _)| *time);
            let follows = self.last.map(|last| last.saturating_add(STEP));
            self.anchor = first.map(|first| (first, follows.unwrap_or(now).max(now.saturating_sub(LATE))));
            self.since = None;
        }
    }

    /// Whether all lanes of the stretch have frames, or were waited for long enough.
    fn is_ready(&self, now: Duration) -> bool {
        let Some(stretch) = self.stretch else { return false };
        let has_all = self.renditions.iter().enumerate().all(|(rendition, progress)| {
            let lanes = self.lanes.iter().filter(|lane| lane.id.rendition == rendition && lane.stretch == stretch);
            let present = lanes.filter(|lane| !lane.frames.is_empty()).count();
            progress.has_ended
                || progress.stretch > stretch
                || progress.stretch == stretch && progress.lanes.is_some_and(|lanes| present >= lanes)
        });
        has_all || self.since.is_some_and(|since| now >= since.saturating_add(OTHERS))
    }

    /// The lanes with frames of the stretch, and their next frames.
    pub(super) fn fronts(&self) -> impl Iterator<Item = (LaneId, &ReadFrame)> {
        let lanes = self.lanes.iter().filter(|lane| Some(lane.stretch) == self.stretch);
        lanes.filter_map(|lane| Some((lane.id, &lane.frames.front()?.1)))
    }
}

/// When a media time is due, where another one is due at `release`.
fn due(time: i64, media: i64, release: Duration) -> Duration {
    let ahead = time.saturating_sub(media);
    match u64::try_from(ahead) {
        Ok(ahead) => release.saturating_add(Duration::from_nanos(ahead)),
        Err(_) => release.saturating_sub(Duration::from_nanos(ahead.unsigned_abs())),
    }
}

#[cfg(test)]
mod tests;
