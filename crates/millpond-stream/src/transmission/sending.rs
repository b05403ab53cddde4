//! Sends the frames of one subscriber when they are due.

use super::{
    Arrival, Epochs, Lateness, Now, Pace, Progress, TrackSender,
    allowance::Allowance,
    ntp, pace,
    packets::{Packetizing, Sent},
    track::octets,
};
use crate::{
    admission::OriginLoad,
    broadcast::CatchUp,
    graph::{Closed, PipeReader},
    registry::NodeGuard,
    stored::PERIOD,
};
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Shortest time between two rounds, and the usual one.
pub const ROUND: Duration = Duration::from_millis(5);
/// Time between two sender reports of a track (RFC 3550 6.2: at least 5 s).
const REPORTS: Duration = Duration::from_secs(5);
/// The same with rate control: each round trip is measured by a report, and the network's queue changes it quickly (RFC 3550
/// 6.2: 360 / (kbit/s) seconds are enough).
const PACED_REPORTS: Duration = Duration::from_millis(500);
/// Delay above which a frame is late.
const LATE: Duration = Duration::from_millis(100);
/// Time from the last frame to the end of the source: a receiver that reads the report first would miss the frame.
const LINGER: Duration = Duration::from_millis(500);

/// Transmission to one subscriber.
pub(crate) struct Transmission {
    pub(crate) id: u64,
    pub(crate) tracks: Vec<TrackSender>,
    /// Rate control; `None` where frames leave when they are due.
    pub(crate) pace: Option<Box<Pace>>,
    pub(crate) frames: PipeReader,
    /// Due time at which it begins to play.
    pub(crate) position: Duration,
    /// Due time at which it ends.
    pub(crate) to: Duration,
    /// Speed of sending, as a multiple of the natural pace: above 0.
    pub(crate) speed: f64,
    /// The phase that `speed` catches up with. After that frames are sent at the pace of playing.
    pub(crate) catch_up: Option<CatchUp>,
    pub(crate) lateness: Lateness,
    /// The origin that is told of late frames.
    pub(crate) origin: Option<Arc<OriginLoad>>,
    /// Frames are due when they arrive; `None` where they have due times.
    pub(crate) arrival: Option<Arrival>,
    /// The epochs of the frames; `None` where they have none.
    pub(crate) epochs: Option<Epochs>,
    pub(crate) progress: Arc<Progress>,
    /// Keeps the module in the registry.
    pub(crate) _node: NodeGuard,
}

/// A [`Transmission`] on its way.
///
/// Call [`visit`](Self::visit) at once, and then when it says so.
pub(super) struct Sending {
    pub(super) transmission: Transmission,
    /// Time at which `position` was due; `None` before the first frames arrived.
    began: Option<Instant>,
    /// Beginning of a transmission that catches up: the moment, and its due time.
    caught_up_from: Option<(Instant, Duration)>,
    reported: Option<Instant>,
    /// Due time of the last frame.
    pub(super) last: Duration,
    /// Packets of the next frame that were sent already.
    pub(super) sent: usize,
    supply: Supply,
    /// Time at which its origin was last told that no frame arrives.
    told: Option<Instant>,
    /// Time at which the end is told, once all frames were sent.
    ends: Option<Instant>,
}

/// Whether frames are loaded in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    Steady,
    /// No frame was there to be sent.
    Empty,
    /// The frames that arrived then are late; the missed deadline was counted.
    Behind,
}

/// Result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another visit in the next round.
    Round,
    /// Another visit at this time.
    At(Instant),
    /// Another visit when frames have arrived, and at this time.
    Arrival(Instant),
    /// No other visit: the transmission is over.
    Over,
}

impl Sending {
    pub(super) fn new(transmission: Transmission) -> Self {
        let last = transmission.position;
        let supply = Supply::Steady;
        let (began, caught_up_from) = (None, None);
        Self { transmission, began, caught_up_from, reported: None, last, sent: 0, supply, told: None, ends: None }
    }

    /// Sends the frames that are due.
    pub(super) fn visit(&mut self, now: Now, packets: &mut Packetizing) -> Next {
        if self.transmission.arrival.is_some() {
            return self.visit_live(now, packets);
        }
        if self.began.is_none() && matches!(self.transmission.frames.peek(), Ok(None)) {
            // A late beginning is waited for, not caught up with.
            return Next::At(now.at + ROUND);
        }
        let began = *self.began.get_or_insert(now.at);
        let mut position = self.position(began, now.at);
        self.catch_up(position, now.at);
        self.report_in_time(position, now, packets);
        loop {
            let due = match self.due(position, now, packets) {
                Ok(due) => due,
                Err(next) => return next,
            };
            if self.enters_epoch() {
                self.adopt(position, now, packets);
                continue;
            }
            if self.passes_over() {
                continue;
            }
            self.last = due;
            let late = position - due;
            if let Some(at) = self.waits_for_receiver(late, now.at) {
                return Next::At(at);
            }
            let is_held = self.transmission.pace.as_mut().is_some_and(|pace| pace.holds(late, LATE));
            if is_held && self.sent == 0 && self.drops(late, packets) {
                continue;
            }
            if !is_held {
                let shift = match self.transmission.catch_up {
                    Some(_) if late > LATE => self.delay(late),
                    Some(_) => Duration::ZERO,
                    None => self.judge(late, packets),
                };
                position = position.saturating_sub(shift.mul_f64(self.transmission.speed));
            }
            match self.send(now.at, packets) {
                Sent::Whole => {}
                Sent::Part => return Next::Round,
                Sent::Later(at) => return Next::At(at),
                Sent::Stuck => return Next::Over,
            }
        }
    }

    /// Returns the due time of the next frame if it has been reached, and else the next visit.
    fn due(&mut self, position: Duration, now: Now, packets: &mut Packetizing) -> Result<Duration, Next> {
        let Transmission { frames, to, speed, .. } = &mut self.transmission;
        match frames.peek() {
            Ok(Some(frame)) if frame.due >= *to => Err(self.end(position, now, packets)),
            Ok(Some(frame)) if frame.due <= position => Ok(frame.due),
            Ok(Some(frame)) => Err(Next::At(now.at + (frame.due - position).div_f64(*speed))),
            Ok(None) => {
                self.supply = Supply::Empty;
                self.starve(position, now.at);
                Err(Next::At(now.at + ROUND))
            }
            Err(Closed) => Err(self.end(position, now, packets)),
        }
    }

    /// Whether the next frame begins an epoch, whose formats are taken before it is sent.
    pub(super) fn enters_epoch(&mut self) -> bool {
        let Transmission { frames, epochs, .. } = &mut self.transmission;
        let (Ok(Some(frame)), Some(epochs)) = (frames.peek(), epochs) else { return false };
        epochs.enter(frame.epoch)
    }

    /// Leaves out the next frame if its track begins behind it. Returns whether it was left out.
    fn passes_over(&mut self) -> bool {
        let Transmission { frames, tracks, .. } = &mut self.transmission;
        let Ok(Some(frame)) = frames.peek() else { return false };
        let track = tracks.iter_mut().find(|track| track.track == frame.track);
        // Numbers wrap.
        let ahead = |track: &TrackSender| frame.number.wrapping_sub(track.next) as i32;
        let Some(track) = track.filter(|track| ahead(track) >= 0) else {
            frames.advance();
            return true;
        };
        if ahead(track) > 0 {
            // Frames are missing.
            track.skips = true;
        }
        false
    }

    /// Drops the next frame, which the rate holds back, if it is too late. Returns whether it was dropped.
    fn drops(&mut self, late: Duration, packets: &Packetizing) -> bool {
        let Transmission { frames, tracks, .. } = &mut self.transmission;
        let Ok(Some(frame)) = frames.peek() else { return false };
        let Some(track) = tracks.iter_mut().find(|track| track.track == frame.track) else { return false };
        let is_dropped = pace::drops(frame, track, late);
        if is_dropped {
            packets.counters.held_frames.fetch_add(1, Ordering::Relaxed);
            track.passed(frame);
            frames.advance();
        }
        is_dropped
    }

    /// Counts whether a frame is in time. Returns by how much all that follow are due later.
    fn judge(&mut self, late: Duration, packets: &Packetizing) -> Duration {
        let (counters, is_late, is_first) = (&packets.counters, late > LATE, self.sent == 0);
        let mut shift = Duration::ZERO;
        match self.supply {
            Supply::Empty if is_late => {
                self.supply = Supply::Behind;
                counters.missed_deadlines.fetch_add(1, Ordering::Relaxed);
                shift = self.transmission.lateness.shift(late.div_f64(self.transmission.speed));
                self.began = self.began.map(|began| began + shift);
            }
            Supply::Steady if is_late && is_first => {
                // It was loaded in time.
                counters.lagging_frames.fetch_add(1, Ordering::Relaxed);
            }
            _ if !is_late => self.supply = Supply::Steady,
            _ => {}
        }
        if let (Some(origin), true) = (&self.transmission.origin, is_first) {
            origin.count(is_late && self.supply != Supply::Steady);
        }
        if is_first && is_late {
            counters.late_frames.fetch_add(1, Ordering::Relaxed);
        }
        shift
    }

    /// Sends the next frame, or what is left of it, as far as its outlet and the rate allow.
    pub(super) fn send(&mut self, now: Instant, packets: &mut Packetizing) -> Sent {
        let Self { transmission: Transmission { frames, tracks, pace, progress, .. }, sent, .. } = self;
        let Ok(Some(frame)) = frames.peek() else { return Sent::Part };
        let Some(track) = tracks.iter_mut().find(|track| track.track == frame.track) else { return Sent::Part };
        let result = match track.is_paused {
            true => Sent::Whole,
            false => packets.paced(track, frame, sent, pace.as_deref_mut(), progress.heard(), now),
        };
        match result {
            Sent::Whole => {
                track.passed(frame);
                *sent = 0;
                frames.advance();
                progress.set_sent(octets(tracks));
            }
            Sent::Stuck => progress.set_stuck(),
            Sent::Part | Sent::Later(_) => {}
        }
        result
    }

    /// Takes the formats of a new epoch. A track whose new format its receiver was not told pauses, until it has the old one again.
    /// Where all tracks do, they end.
    pub(super) fn adopt(&mut self, position: Duration, now: Now, packets: &mut Packetizing) {
        let Transmission { epochs, tracks, .. } = &mut self.transmission;
        let Some(epoch) = epochs.as_ref().and_then(Epochs::current) else { return };
        let goes_on = |track: &mut TrackSender| {
            let number = usize::from(track.track);
            let format = epoch.formats.get(number).and_then(Option::as_ref);
            format.is_none_or(|format| format.described(number).is_some_and(|described| track.adopt(&described)))
        };
        for track in tracks.iter_mut() {
            track.is_paused = !goes_on(track);
        }
        if !tracks.iter().all(|track| track.is_paused) {
            return;
        }
        for track in tracks {
            if let Some(bytes) = track.rtcp(position, now.wall, Some("the format changed")) {
                track.outlet.send_reports(&mut packets.datagrams, &bytes);
            }
        }
    }

    /// No frame is there to be sent. Where one is overdue, the origin is told, as if a frame had been late.
    fn starve(&mut self, position: Duration, now: Instant) {
        let is_new = self.told.is_none_or(|told| now.saturating_duration_since(told) >= LATE);
        if let Some(origin) = &self.transmission.origin
            && is_new
            && position > self.last + PERIOD + LATE
        {
            self.told = Some(now);
            origin.count(true);
        }
    }

    /// Slows down to the pace of playing, once the phase ahead is reached.
    fn catch_up(&mut self, position: Duration, now: Instant) {
        let Some(catch_up) = &self.transmission.catch_up else { return };
        self.caught_up_from.get_or_insert((now, position));
        if catch_up.is_over(position, now) {
            let Transmission { catch_up, speed, position: from, .. } = &mut self.transmission;
            (*catch_up, *speed, *from) = (None, 1.0, position);
            self.began = Some(now);
        }
    }

    /// Returns the time of the next visit if the receiver takes frames more slowly than it could catch up. No frame is dropped for
    /// that: the clock waits.
    fn waits_for_receiver(&mut self, late: Duration, now: Instant) -> Option<Instant> {
        let Transmission { catch_up: Some(_), frames, tracks, .. } = &mut self.transmission else { return None };
        let frame = frames.peek().ok().flatten()?;
        let track = tracks.iter().find(|track| track.track == frame.track)?;
        let Allowance::Later(at) = Allowance::of(track, now) else { return None };
        self.delay(late);
        Some(at)
    }

    /// Delays all frames, so that one that is late is due now. Returns the delay.
    fn delay(&mut self, late: Duration) -> Duration {
        self.supply = Supply::Steady;
        let shift = late.div_f64(self.transmission.speed);
        self.began = self.began.map(|began| began + shift);
        shift
    }

    /// Returns the time by which the media is ahead of the clock, since it was sent faster than it plays. Reports tell wall times
    /// that are later by this: receivers take them for the pace of the media (RFC 3550 6.4.1).
    fn ahead(&self, position: Duration, now: Instant) -> Duration {
        self.caught_up_from.map_or(Duration::ZERO, |(began, from)| {
            position.saturating_sub(from).saturating_sub(now.saturating_duration_since(began))
        })
    }

    /// The due time that has been reached.
    fn position(&self, began: Instant, now: Instant) -> Duration {
        self.transmission.position + now.saturating_duration_since(began).mul_f64(self.transmission.speed)
    }

    /// Sends reports where it is time for them. Returns the time of the next ones.
    pub(super) fn report_in_time(&mut self, position: Duration, now: Now, packets: &mut Packetizing) -> Instant {
        let interval = if self.transmission.pace.is_some() { PACED_REPORTS } else { REPORTS };
        if let Some(reported) = self.reported.filter(|at| now.at.saturating_duration_since(*at) < interval) {
            return reported + interval;
        }
        self.reported = Some(now.at);
        self.report(position, now, packets, None);
        now.at + interval
    }

    pub(super) fn end(&mut self, position: Duration, now: Now, packets: &mut Packetizing) -> Next {
        let end = *self.ends.get_or_insert(now.at + LINGER);
        if now.at < end {
            return Next::At(end);
        }
        self.report(position, now, packets, Some("end of stream"));
        Next::Over
    }

    fn report(&mut self, position: Duration, now: Now, packets: &mut Packetizing, ends: Option<&str>) {
        let wall = now.wall + self.ahead(position, now.at);
        let Transmission { tracks, pace, .. } = &mut self.transmission;
        for track in tracks.iter_mut().filter(|track| !track.is_paused || ends.is_some()) {
            if let Some(bytes) = track.rtcp(position, wall, ends) {
                track.outlet.send_reports(&mut packets.datagrams, &bytes);
                if let Some(pace) = pace {
                    pace.reported(track.ssrc, (ntp(wall) >> 16) as u32, now.at);
                }
            }
        }
    }

    /// Due time of the next frame, or of the last one where no other is there.
    pub(super) fn resumes_at(&mut self) -> Duration {
        self.transmission.frames.peek().ok().flatten().map_or(self.last, |frame| frame.due)
    }
}
