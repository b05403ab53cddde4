//! One timeline for all tracks of a source.

use super::{
    ORIGIN,
    delays::{Delays, Verdict},
    drift::Correction,
    duration, nanos,
    reports::Report,
    slew::Slew,
    track::{Follows, TrackClock, TrackTimes},
    unwrap::Wrapped,
};
use crate::epoch::EpochReason;
use millpond_media::Timescale;
use std::time::Duration;

/// Step of the wall clock that begins an epoch; smaller ones are made up for slowly.
const WALL_STEP: i64 = super::SECOND;
/// Greatest distance of a stated wall time from that of arrivals. Sources that are farther away have no clock.
const ASTRAY: i64 = 3600 * super::SECOND;
/// Greatest distance of a stated wall time from the first frame of an epoch that it belongs to.
const STATED: i64 = 60 * super::SECOND;

/// Times of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of its epoch.
    pub epoch: u32,
    /// Presentation time in ticks of its track, from stream time 0.
    pub pts: i64,
    /// The same as stream time.
    pub at: Duration,
    /// The same as time since the Unix epoch: as the source states it, else `arrival`.
    pub wall: Duration,
    /// Time since the Unix epoch at which a frame of this time arrives without being held up.
    pub arrival: Duration,
    /// Why an epoch begins with this frame; `None` where none does.
    pub begins: Option<EpochReason>,
}

/// What has become of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimelineFigures {
    /// Jumps of the leading track, of its delay or of the wall clock, each of which began an epoch.
    pub jumps: u64,
    /// Jumps of other tracks, and frames whose timestamps had stopped.
    pub moved: u64,
    /// Frames dropped because they are older than their epoch.
    pub dropped: u64,
    /// Present correction of the source's clock in parts per million; negative where it is fast.
    pub correction: f64,
}

/// An epoch that a next frame begins.
#[derive(Clone, Copy, Debug)]
struct Pending {
    reason: EpochReason,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Begins with the next key frame of the leading track; the wall clock is set, and stream time moves ahead where frames
    /// have become slow.
    Adjusted,
    /// Begins with the next frame; times go on.
    Split,
    /// Begins with the next frame, whose timestamp has nothing to do with those before.
    Anew,
}

/// The wall time of a media time, as its source states it.
#[derive(Clone, Copy, Debug)]
struct Stated {
    track: usize,
    media: i64,
    wall: i64,
}

/// A source time, and the arrival of its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    track: usize,
    pub(super) source: i64,
    pub(super) arrival: i64,
}

/// Maps the timestamps of all tracks of a source to one stream time.
///
/// Call [`start`](Self::start) and [`report`](Self::report) with the source's statements about its clocks. Call
/// [`stamp`](Self::stamp) for each frame, in decode order. Stream time is common to all tracks and advances as time does at this
/// machine: drift of the source's clock is corrected slowly. It is 10 s at the first frame, so that decode times are never
/// negative. Within a track, a greater timestamp never has a lower time. If timestamps restart, all times are greater than the
/// times given before.
///
/// All arguments named `arrival` or `now` count from one moment, by a clock that never steps. [`new`](Self::new) takes the
/// Unix time of that moment; [`set_clock`](Self::set_clock) corrects it.
#[derive(Debug)]
pub struct Timeline {
    pub(super) tracks: Vec<TrackTimes>,
    pub(super) lead: usize,
    pub(super) shares_clock: bool,
    is_steady: bool,
    /// Unix time of arrival zero.
    unix: i64,
    epoch: u32,
    pending: Option<Pending>,
    /// Arrival of the first frame, whose stream time is [`ORIGIN`].
    first: Option<i64>,
    /// A frame of the leading track; of any track before the leading one has frames.
    pub(super) reference: Option<Known>,
    correction: Correction,
    delays: Option<Delays>,
    /// Wall clock less stream time.
    wall: Slew,
    /// The statement of the source about the wall clock.
    stated: Option<Stated>,
    figures: TimelineFigures,
}

impl Timeline {
    /// Creates the timeline of a source whose tracks have clocks of their own, as in RTP. `began` is the Unix time of
    /// arrival zero; `lead` is the index of the leading track, which decides on epochs.
    #[must_use]
    pub fn new(began: Duration, tracks: &[TrackClock], lead: usize) -> Self {
        Self {
            tracks: tracks.iter().copied().map(TrackTimes::new).collect(),
            lead,
            shares_clock: false,
            is_steady: false,
            unix: nanos(began),
            epoch: 0,
            pending: Some(Pending { reason: EpochReason::Start, kind: Kind::Anew }),
            first: None,
            reference: None,
            correction: Correction::new(),
            delays: None,
            wall: Slew::default(),
            stated: None,
            figures: TimelineFigures::default(),
        }
    }

    /// Takes the timestamp of a track at the start of playing, as `RTP-Info` states it (RFC 2326 12.33). It aligns tracks
    /// whose first frames agree with it within a second of their arrivals.
    pub fn start(&mut self, track: usize, ticks: Wrapped) {
        if let Some(times) = self.tracks.get_mut(track) {
            times.start = Some(times.media_near(ticks));
        }
    }

    /// Takes a sender report (RFC 3550 6.4.1): `ntp` is the sender's clock in 32.32 bits of seconds at `ticks`. It aligns
    /// tracks before their first frames, and moves them by at most 5 ms a second later.
    pub fn report(&mut self, track: usize, ntp: u64, ticks: Wrapped) {
        // Senders without a clock state 0.
        let Some(times) = self.tracks.get_mut(track).filter(|_| ntp != 0) else { return };
        let clock = ((u128::from(ntp) * 1_000_000_000) >> 32) as i64;
        let media = times.media_near(ticks);
        times.reports.take(Report { clock, media });
        self.approach(track);
    }

    /// Takes the Unix time `unix` of `now`. The wall clock follows by at most 5 ms a second; a step of more than a second
    /// begins an epoch with the next key frame.
    pub fn set_clock(&mut self, unix: Duration, now: Duration) {
        let unix = nanos(unix).saturating_sub(nanos(now));
        let step = unix.saturating_sub(self.unix).saturating_abs();
        self.unix = unix;
        if step > WALL_STEP && self.stated.is_none() {
            self.pend(EpochReason::Jump, Kind::Adjusted);
        }
    }

    /// Takes the wall time since the Unix epoch of the frame that is given next, as a source with a clock states it. It replaces
    /// the wall clock of arrivals, unless it is more than an hour away from that. A step of more than a second begins an epoch with the next key frame.
    pub fn state_wall(&mut self, track: usize, ticks: Wrapped, wall: Duration) {
        let Some(times) = self.tracks.get(track) else { return };
        let (media, before) = (times.media_of(ticks), self.wall_offset());
        self.stated = Some(Stated { track, media, wall: nanos(wall) });
        let step = self.wall_offset().saturating_sub(before).saturating_abs();
        if step > WALL_STEP && self.tracks.get(track).is_some_and(|times| times.offset().is_some()) {
            self.pend(EpochReason::Jump, Kind::Adjusted);
        }
    }

    /// Returns the times of a frame. `None` if the frame is older than the frames given before its epoch, or the track is
    /// unknown. The frame must be dropped then. `is_sync` tells whether decoding can begin with it.
    pub fn stamp(&mut self, track: usize, ticks: Wrapped, arrival: Duration, is_sync: bool) -> Option<Stamp> {
        let arrival = nanos(arrival);
        let media = self.media(track, ticks)?;
        if self.pending.is_none_or(|pending| pending.kind != Kind::Anew) {
            self.check(track, media, arrival);
        }
        let mut begins = None;
        if let Some(pending) = self.pending.take_if(|pending| pending.kind == Kind::Anew) {
            begins = Some(pending.reason);
            self.begin_anew(track, media, arrival);
        } else if self.tracks[track].offset().is_none() {
            let source = self.first_source(track, media, arrival);
            self.tracks[track].place(media, source, arrival);
        }
        let time = self.stream_time(&self.tracks[track], self.tracks[track].source(media)?);
        if time < self.tracks[track].floor {
            self.figures.dropped += 1;
            return None;
        }
        let leads = self.leads(track);
        if let Some(pending) = self.pending.take_if(|pending| pending.kind == Kind::Split || (leads && is_sync)) {
            begins = Some(pending.reason);
            self.figures.jumps += u64::from(pending.kind == Kind::Adjusted);
            self.adjust();
        }
        self.number(begins);
        let source = self.tracks[track].source(media)?;
        let time = self.tracks[track].bound(source, self.stream_time(&self.tracks[track], source));
        self.tracks[track].take(source, arrival);
        self.tracks[track].give(source, time);
        if leads {
            self.observe(track, time, arrival);
            self.reference = Some(Known { track, source, arrival });
        }
        let wall = time.saturating_add(self.wall.at(time));
        let pts = self.tracks[track].ticks(time);
        let arrival = if self.stated.is_some() { time.saturating_add(self.arrival_offset()) } else { wall };
        let (at, wall, arrival) = (duration(time), duration(wall), duration(arrival));
        Some(Stamp { epoch: self.epoch, pts, at, wall, arrival, begins })
    }

    /// Returns the stream time of a timestamp that belongs to no frame, such as a cue's. The tracks of the source must have one
    /// clock. For `ticks` of `None`, returns the time of the last leading frame. `None` before the first frame since the source
    /// began.
    #[must_use]
    pub fn locate(&self, ticks: Option<Wrapped>) -> Option<Duration> {
        if self.pending.is_some_and(|pending| pending.kind == Kind::Anew) {
            return None;
        }
        let known = self.reference?;
        let times = self.tracks.get(known.track)?;
        let source = match ticks {
            Some(ticks) => times.source(times.media_of(ticks))?,
            None => known.source,
        };
        Some(duration(self.stream_time(times, source)))
    }

    /// Number of the epoch of the last frame.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Tells that the source begins again: its next timestamps have nothing to do with those before. The next frame begins an
    /// epoch. Its time continues at the end of the frames given so far, or at its arrival.
    pub fn restart(&mut self, reason: EpochReason) {
        self.pend(reason, Kind::Anew);
        self.stated = None;
        self.tracks.iter_mut().for_each(TrackTimes::restart);
    }

    /// Tells whether the tracks of a source that begins, or begins again, have one clock: equal times of MPEG-TS, of
    /// fragmented MP4 or of RTMP are simultaneous.
    pub fn share_clock(&mut self, is_shared: bool) {
        self.shares_clock = is_shared;
    }

    /// Tells whether the times of a source that begins, or begins again, are those of this machine: they are the stream times of
    /// another stream. Neither their drift nor their delays are corrected then.
    pub fn set_steady(&mut self, is_steady: bool) {
        self.is_steady = is_steady;
    }

    /// Adds a track. `leads` makes it the leading one.
    pub fn add(&mut self, clock: TrackClock, leads: bool) {
        if leads {
            self.lead = self.tracks.len();
        }
        self.tracks.push(TrackTimes::new(clock));
    }

    /// Sets the ticks a second of a track's timestamps. Call [`restart`](Self::restart) before.
    pub fn set_source(&mut self, track: usize, timescale: Timescale) {
        if let Some(times) = self.tracks.get_mut(track) {
            times.set_source(timescale);
        }
    }

    /// Begins an epoch with the next frame; times go on as before.
    pub fn split(&mut self, reason: EpochReason) {
        self.pend(reason, Kind::Split);
    }

    /// Figures of the timeline so far.
    #[must_use]
    pub fn figures(&self) -> TimelineFigures {
        TimelineFigures { correction: self.correction.speed(), ..self.figures }
    }

    /// Stream time of a source time.
    pub(super) fn stream_time(&self, times: &TrackTimes, source: i64) -> i64 {
        let aligned = source.saturating_add(times.slew.at(source));
        aligned.saturating_add(self.correction.at(aligned))
    }

    /// Media time of a frame.
    fn media(&mut self, track: usize, ticks: Wrapped) -> Option<i64> {
        if self.shares_clock && self.tracks.get(track)?.last_media().is_none() {
            let near = self.tracks.iter().find_map(TrackTimes::last_media);
            near.into_iter().for_each(|near| self.tracks[track].begin_near(near));
        }
        Some(self.tracks.get_mut(track)?.media(ticks))
    }

    /// Whether delays of a track's frames count.
    fn leads(&self, track: usize) -> bool {
        track == self.lead || self.tracks.get(self.lead).is_none_or(|lead| lead.offset().is_none())
    }

    fn pend(&mut self, reason: EpochReason, kind: Kind) {
        if self.pending.is_none_or(|pending| pending.kind < kind) {
            self.pending = Some(Pending { reason, kind });
        }
    }

    /// Answers jumps: of the leading track by a new epoch, of others by a new place.
    fn check(&mut self, track: usize, media: i64, arrival: i64) {
        let times = &mut self.tracks[track];
        let Some(source) = times.source(media) else { return };
        match times.follows(source, arrival) {
            Follows::Well => {}
            Follows::Stopped => {
                self.figures.moved += 1;
                times.follow_arrival(arrival);
            }
            Follows::Jump if track == self.lead => {
                self.figures.jumps += 1;
                // Earlier reports about the clocks belong to the time before.
                self.tracks.iter_mut().for_each(TrackTimes::forget);
                self.pend(EpochReason::Jump, Kind::Anew);
            }
            Follows::Jump => {
                self.figures.moved += 1;
                times.jump();
            }
        }
    }

    /// Gives the first frame of an epoch its place.
    fn begin_anew(&mut self, track: usize, media: i64, arrival: i64) {
        let first = *self.first.get_or_insert(arrival);
        let by_arrival = ORIGIN.saturating_add(arrival.saturating_sub(first));
        let end = self.tracks.iter().filter_map(TrackTimes::end).max();
        let from = end.map_or(by_arrival, |end| end.max(by_arrival));
        self.tracks.iter_mut().for_each(TrackTimes::remove);
        match self.is_steady {
            true => self.correction = Correction::new(),
            false => self.correction.restart(from),
        }
        self.reference = None;
        // A statement from before a jump is not true after it.
        self.stated = self.stated.filter(|stated| stated.media.saturating_sub(media).saturating_abs() < STATED);
        // Frames that follow the first one may be presented before it.
        let source = from.saturating_add(self.tracks[track].reordered());
        self.tracks[track].place(media, source, arrival);
        let delays = Delays::new(arrival, by_arrival.saturating_sub(source));
        self.delays = Some(delays);
        self.wall = Slew::at_rest(self.wall_offset());
    }

    /// Begins an epoch in which times go on: sets what is corrected slowly within epochs.
    fn adjust(&mut self) {
        let ahead = self.delays.as_mut().map_or(0, Delays::accept);
        self.tracks.iter_mut().for_each(|track| track.shift(ahead));
        self.wall = Slew::at_rest(self.wall_offset());
    }

    fn number(&mut self, begins: Option<EpochReason>) {
        if begins.is_some_and(|reason| reason != EpochReason::Start) {
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Takes the delay of a leading frame.
    fn observe(&mut self, track: usize, time: i64, arrival: i64) {
        let passed = arrival.saturating_sub(self.first.unwrap_or(arrival));
        let delay = ORIGIN.saturating_add(passed).saturating_sub(time);
        let is_first = self.reference.is_none_or(|known| known.track != track);
        let Some(delays) = self.delays.as_mut().filter(|_| !is_first) else {
            self.delays = Some(Delays::new(arrival, delay));
            return;
        };
        match delays.take(arrival, delay) {
            None => {}
            Some(_) if self.is_steady => {}
            Some(Verdict::Lost) => self.pend(EpochReason::Jump, Kind::Adjusted),
            Some(Verdict::Error(error)) => {
                self.correction.take(error);
                self.wall.move_to(self.wall_offset(), time);
            }
        }
        // A correction changes after the frames of all tracks, so that none of their times falls.
        if let Some(greatest) =
            self.tracks.iter().filter(|track| track.offset().is_some()).map(TrackTimes::greatest).max()
        {
            self.correction.advance(greatest);
        }
    }

    /// Wall clock less stream time, as it ought to be.
    fn wall_offset(&self) -> i64 {
        let by_arrival = self.arrival_offset();
        let stated = self.stated_offset().filter(|stated| stated.saturating_sub(by_arrival).saturating_abs() < ASTRAY);
        stated.unwrap_or(by_arrival)
    }

    /// Wall clock less stream time, by arrivals.
    fn arrival_offset(&self) -> i64 {
        let usual = self.delays.map_or(0, |delays| delays.usual());
        let began = self.unix.saturating_add(self.first.unwrap_or_default()).saturating_sub(ORIGIN);
        began.saturating_add(usual)
    }

    /// Wall clock less stream time, as the source states it.
    fn stated_offset(&self) -> Option<i64> {
        let Stated { track, media, wall } = self.stated?;
        let times = self.tracks.get(track)?;
        Some(wall.saturating_sub(self.stream_time(times, times.source(media)?)))
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
