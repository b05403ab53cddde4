//! The clock of one track.

use super::{SECOND, given::Given, interval::Interval, reports::Reports, slew::Slew, unwrap::Unwrap};
use millpond_media::units::Timescale;

/// Least forward jump of timestamps, beyond the time that passed.
const FORWARD: i64 = SECOND;
/// Least backward jump, if it is more than frames may be reordered by.
const BACKWARD: i64 = 300_000_000;
/// Greatest reorder depth, by which the timestamps of frames go back.
const REORDER: i64 = 16;
/// Greatest time for which frames may have one timestamp.
const STOPPED: i64 = SECOND;
/// Number of such frames, beyond which they are no parts of one frame that was held up.
const REPEATED: u32 = 3;
/// Greatest media time: 146 years. Sums of such times don't overflow, so that they keep their order.
const FARTHEST: i64 = i64::MAX / 2;
/// Deviations of other clocks that are left alone.
const DEVIATION: i64 = 1_000_000;

/// Clocks of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackClock {
    /// Ticks a second of the timestamps of the source.
    pub source: Timescale,
    /// Ticks a second of the presentation times that leave.
    pub track: Timescale,
}

impl From<Timescale> for TrackClock {
    fn from(timescale: Timescale) -> Self {
        Self { source: timescale, track: timescale }
    }
}

/// How the timestamp of a frame follows those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// It is within what frames do.
    Well,
    /// It jumped.
    Jump,
    /// It does not move.
    Stopped,
}

/// Timestamps of one track.
///
/// *Media time* is a timestamp in nanoseconds, unwrapped. *Source time* is common to all tracks: media time and the offset of
/// its track. All times are in nanoseconds.
#[derive(Debug)]
pub(super) struct TrackTimes {
    clock: TrackClock,
    unwrap: Unwrap,
    /// Source time less media time; `None` before the first frame of an epoch.
    offset: Option<i64>,
    /// Correction of the offset by later sender reports.
    pub(super) slew: Slew,
    deviations: Deviations,
    has_jumped: bool,
    /// Media time of the start of playing, as `RTP-Info` states it.
    pub(super) start: Option<i64>,
    pub(super) reports: Reports,
    /// Greatest stream time given.
    given: Option<i64>,
    /// Greatest stream time given in the present place.
    given_here: Option<i64>,
    /// Stream times given to the last frames of the present place.
    recent: Given,
    /// Least stream time that may be given.
    pub(super) floor: i64,
    /// Source time of the last frame, and the greatest one.
    last: i64,
    greatest: i64,
    /// Arrival of the last frame, and of the first one of its timestamp.
    arrival: i64,
    moved: i64,
    /// Frames that have the timestamp of the one before.
    repeated: u32,
    /// Greatest distance by which frames go back.
    reordered: i64,
    interval: Interval,
}

impl TrackTimes {
    pub(super) fn new(clock: TrackClock) -> Self {
        Self {
            clock,
            unwrap: Unwrap::default(),
            offset: None,
            slew: Slew::default(),
            deviations: Deviations::default(),
            has_jumped: false,
            start: None,
            reports: Reports::default(),
            given: None,
            given_here: None,
            recent: Given::default(),
            floor: 0,
            last: 0,
            greatest: 0,
            arrival: 0,
            moved: 0,
            repeated: 0,
            reordered: 0,
            interval: Interval::default(),
        }
    }

    /// Media time of the next frame.
    pub(super) fn media(&mut self, ticks: super::Wrapped) -> i64 {
        let ticks = self.unwrap.unwrap(ticks);
        self.nanos(ticks)
    }

    /// Media time of a timestamp beside the sequence of frames.
    pub(super) fn media_of(&self, ticks: super::Wrapped) -> i64 {
        self.nanos(self.unwrap.near(ticks))
    }

    /// The same where the first frames are near to it.
    pub(super) fn media_near(&mut self, ticks: super::Wrapped) -> i64 {
        self.unwrap.begin_near(self.unwrap.near(ticks));
        self.media_of(ticks)
    }

    /// Takes the first timestamp as one near to a media time, unless there was a timestamp before.
    pub(super) fn begin_near(&mut self, media: i64) {
        self.unwrap.begin_near(scale(media, self.clock.source.get().into(), SECOND));
    }

    /// Media time of the last frame; `None` before the first one.
    pub(super) fn last_media(&self) -> Option<i64> {
        self.unwrap.last().map(|ticks| self.nanos(ticks))
    }

    /// Media time of unwrapped ticks.
    fn nanos(&self, ticks: i64) -> i64 {
        scale(ticks, SECOND, self.clock.source.get().into()).clamp(-FARTHEST, FARTHEST)
    }

    pub(super) fn offset(&self) -> Option<i64> {
        self.offset
    }

    /// Source time of a media time; `None` before the track has a place.
    pub(super) fn source(&self, media: i64) -> Option<i64> {
        Some(media.saturating_add(self.offset?))
    }

    /// Ticks of a stream time.
    pub(super) fn ticks(&self, time: i64) -> i64 {
        scale(time, self.clock.track.get().into(), SECOND)
    }

    /// Gives the track its place: the source time of a media time.
    pub(super) fn place(&mut self, media: i64, source: i64, arrival: i64) {
        // Whole ticks stay whole.
        let ticks = self.ticks(source.saturating_sub(media));
        let offset = scale(ticks, SECOND, self.clock.track.get().into());
        self.offset = Some(offset);
        (self.slew, self.deviations) = (Slew::default(), Deviations::default());
        (self.last, self.greatest) = (media.saturating_add(offset), media.saturating_add(offset));
        (self.arrival, self.moved, self.repeated) = (arrival, arrival, 0);
        self.given_here = None;
        self.recent.clear();
    }

    /// Removes the track's place. Times that it gives later are greater than those given.
    pub(super) fn remove(&mut self) {
        (self.offset, self.slew, self.has_jumped) = (None, Slew::default(), false);
        if let Some(given) = self.given {
            self.floor = self.floor.max(given.saturating_add(1));
        }
    }

    /// Removes the place of a track whose timestamps jumped, and the reports about its clock.
    pub(super) fn jump(&mut self) {
        self.remove();
        self.forget();
        self.has_jumped = true;
    }

    /// Whether the timestamps jumped within the epoch.
    pub(super) fn has_jumped(&self) -> bool {
        self.has_jumped
    }

    /// Forgets the reports about the clocks.
    pub(super) fn forget(&mut self) {
        (self.start, self.reports) = (None, Reports::default());
    }

    /// Forgets the last timestamp too.
    pub(super) fn restart(&mut self) {
        self.forget();
        self.unwrap = Unwrap::default();
    }

    /// Sets the ticks a second of timestamps that restart.
    pub(super) fn set_source(&mut self, timescale: Timescale) {
        self.clock.source = timescale;
    }

    /// How a frame follows those before.
    pub(super) fn follows(&self, source: i64, arrival: i64) -> Follows {
        let ahead = source.saturating_sub(self.greatest);
        let passed = arrival.saturating_sub(self.arrival).max(0);
        let interval = self.interval.get();
        let backward = if interval == 0 { SECOND } else { BACKWARD.max(REORDER * interval) };
        if ahead > passed.saturating_add(FORWARD.max(4 * interval)) || ahead < -backward {
            Follows::Jump
        } else if source == self.last && self.repeated >= REPEATED && arrival.saturating_sub(self.moved) > STOPPED {
            Follows::Stopped
        } else {
            Follows::Well
        }
    }

    /// Moves a track whose timestamps stopped on to an arrival.
    pub(super) fn follow_arrival(&mut self, arrival: i64) {
        let ahead = self.greatest.saturating_sub(self.last);
        self.shift(ahead.saturating_add(arrival.saturating_sub(self.arrival).max(0)));
    }

    /// Takes a frame that follows those before.
    pub(super) fn take(&mut self, source: i64, arrival: i64) {
        self.interval.take(source.saturating_sub(self.last).saturating_abs());
        self.reordered = self.reordered.max(self.greatest.saturating_sub(source)).min(SECOND);
        if source == self.last {
            self.repeated = self.repeated.saturating_add(1);
        } else {
            (self.moved, self.repeated) = (arrival, 0);
        }
        self.last = source;
        self.greatest = self.greatest.max(source);
        self.arrival = arrival;
    }

    /// Takes the stream time given to a frame.
    pub(super) fn give(&mut self, source: i64, time: i64) {
        self.recent.push(source, time);
        self.given = self.given.max(Some(time));
        self.given_here = self.given_here.max(Some(time));
    }

    /// Returns the stream time of a frame: `time`, unless frames of its place bound it. A frame after all others gets at least
    /// the greatest time given so far. The correction keeps a bounded past, and a track that was silent for longer would fall
    /// back.
    pub(super) fn bound(&self, source: i64, time: i64) -> i64 {
        let least = self.given_here.filter(|_| source >= self.greatest);
        least.map_or_else(|| self.recent.bound(source, time), |least| time.max(least))
    }

    /// Stream time after the last frame; `None` before the first.
    pub(super) fn end(&self) -> Option<i64> {
        Some(self.given?.saturating_add(self.interval.get().max(1)))
    }

    /// Greatest source time so far, with the corrections of the place.
    pub(super) fn greatest(&self) -> i64 {
        self.greatest.saturating_add(self.slew.at(self.greatest))
    }

    /// Greatest distance by which frames go back.
    pub(super) fn reordered(&self) -> i64 {
        self.reordered
    }

    /// Moves the track in source time.
    pub(super) fn shift(&mut self, by: i64) {
        let Some(offset) = &mut self.offset else { return };
        *offset = offset.saturating_add(by);
        self.last = self.last.saturating_add(by);
        self.greatest = self.greatest.saturating_add(by);
        self.recent.shift(by);
    }

    /// Approaches a place that sender reports tell: `deviation` is its distance from the offset.
    pub(super) fn approach(&mut self, deviation: i64) {
        let deviation = self.deviations.take(deviation);
        if deviation.saturating_sub(self.slew.target()).saturating_abs() > DEVIATION {
            self.slew.move_to(deviation, self.greatest);
        }
    }
}

/// The last three deviations, of which the middle one counts.
#[derive(Debug, Default)]
struct Deviations {
    last: [Option<i64>; 3],
}

impl Deviations {
    fn take(&mut self, deviation: i64) -> i64 {
        self.last.rotate_right(1);
        self.last[0] = Some(deviation);
        let mut known: Vec<i64> = self.last.into_iter().flatten().collect();
        known.sort_unstable_by_key(|deviation| deviation.saturating_abs());
        match known[..] {
            [a, b, c] => a.max(b).min(a.min(b).max(c)),
            _ => known[0],
        }
    }
}

/// `value` × `times` / `by`, rounded to the nearest.
fn scale(value: i64, times: i64, by: i64) -> i64 {
    let scaled = i128::from(value) * i128::from(times);
    let rounded = (scaled + i128::from(by) / 2).div_euclid(by.into());
    rounded.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
