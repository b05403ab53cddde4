//! Sends the frames of a live stream when they arrive.

use super::{
    Epochs, Now, Transmission,
    allowance::Allowance,
    burst::Burst,
    packets::{Packetizing, Sent},
    sending::{Next, Sending},
};
use crate::{epoch::Epoch, graph::Closed, registry::NodeId};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Speed of the frames before the newest one, as a multiple of their pace: the buffer of a receiver of UDP survives that.
const CATCH_UP: f64 = 4.0;
/// Longest time for them: with more, frames that arrive meanwhile fill the queue.
const BEHIND: Duration = Duration::from_secs(2);
/// Longest time from a frame to the next one while it catches up: due times may jump.
const STEP: Duration = Duration::from_secs(1);
/// Longest distance of the wall clock from the last frame: one that is farther away is not the source's.
const ASTRAY: Duration = Duration::from_secs(10);

/// A transmission whose frames are due when they arrive.
#[derive(Debug)]
pub(crate) struct Arrival {
    fork: NodeId,
    /// Speed at which it catches up.
    speed: f64,
    /// Time at which the last frame was ready; `None` once it has caught up.
    behind: Option<Instant>,
    has_begun: bool,
    /// Media that was sent by UDP ahead of its pace.
    burst: Burst,
}

impl Arrival {
    /// A transmission of frames from a fork. It begins `span` before the newest frame.
    pub(crate) fn new(fork: NodeId, span: Duration) -> Self {
        let speed = span.div_duration_f64(BEHIND).max(CATCH_UP);
        Self { fork, speed, behind: None, has_begun: false, burst: Burst::default() }
    }

    /// The fork that gives the frames.
    pub(super) fn fork(&self) -> NodeId {
        self.fork
    }

    /// The time at which the next frame is ready, which is due `step` after the last one. Now, where it has caught up.
    fn ready(&self, step: Duration, now: Instant) -> Instant {
        self.behind.map_or(now, |last| last + step.min(STEP).div_f64(self.speed))
    }

    /// Whether frames from before it joined are sent.
    fn is_behind(&self) -> bool {
        !self.has_begun || self.behind.is_some()
    }

    /// Notes that a frame was sent, which was ready at a time.
    fn sent(&mut self, ready: Instant) {
        if self.is_behind() {
            self.behind = Some(ready);
        }
        self.has_begun = true;
    }
}

/// The stream time of a moment, by the clock of arrivals that the source was mapped to; `last` where there is none.
fn position(epoch: Option<&Epoch>, now: Now, last: Duration) -> Duration {
    let Some(Epoch { from, arrival, .. }) = epoch else { return last };
    let now = now.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let position = (*from + now).saturating_sub(*arrival);
    if position.abs_diff(last) < ASTRAY { position } else { last }
}

/// The next frame that has arrived.
struct Ready {
    due: Duration,
    /// Stream time since the frame before it.
    step: Duration,
    /// Time at which it may be sent.
    at: Instant,
}

impl Sending {
    /// Sends the frames that have arrived. Those from before it joined are sent faster than they play, but not all at once.
    pub(super) fn visit_live(&mut self, now: Now, packets: &mut Packetizing) -> Next {
        loop {
            let ready = match self.ready(now, packets) {
                Ok(ready) => ready,
                Err(next) => return next,
            };
            if self.enters_epoch() {
                let position = self.live_position(now);
                self.adopt(position, now, packets);
                continue;
            }
            if !self.has_track() || self.is_sound_of_before() {
                self.transmission.frames.advance();
                continue;
            }
            if let Some(next) = self.waits(now, packets) {
                return next;
            }
            // Frames that are missing were dropped so that the others can be decoded: there is nothing to skip.
            match self.send(now.at, packets) {
                Sent::Whole => self.passed(&ready, now.at),
                Sent::Part => return Next::Round,
                Sent::Later(at) => return self.holds(at, now, packets),
                Sent::Stuck => return Next::Over,
            }
        }
    }

    /// Returns the next frame if it may be sent, and else the next visit.
    fn ready(&mut self, now: Now, packets: &mut Packetizing) -> Result<Ready, Next> {
        let last = self.last;
        let Transmission { arrival: Some(arrival), epochs: Some(_), frames, .. } = &mut self.transmission else {
            return Err(Next::Over);
        };
        match frames.peek() {
            Ok(Some(frame)) => {
                let (due, step) = (frame.due, frame.due.saturating_sub(last));
                let at = arrival.ready(step, now.at);
                if at > now.at { Err(Next::At(at)) } else { Ok(Ready { due, step, at }) }
            }
            Ok(None) => {
                // It has caught up: the source sets the pace from now on.
                arrival.behind = None;
                if !arrival.has_begun {
                    return Err(Next::Arrival(now.at + STEP));
                }
                Err(Next::Arrival(self.report_live(now, packets)))
            }
            Err(Closed) => {
                let position = self.live_position(now);
                Err(self.end(position, now, packets))
            }
        }
    }

    /// Whether the next frame is of a track that is sent.
    fn has_track(&mut self) -> bool {
        let Transmission { frames, tracks, .. } = &mut self.transmission;
        matches!(frames.peek(), Ok(Some(frame)) if tracks.iter().any(|track| track.track == frame.track))
    }

    /// Whether the next frame is sound from before it joined, and its receiver plays such sound late: it would hold the sound back to
    /// its end. Pictures from before it joined are decoded, and shown faster.
    fn is_sound_of_before(&mut self) -> bool {
        let Transmission { arrival: Some(arrival), frames, tracks, .. } = &mut self.transmission else { return false };
        if !arrival.is_behind() || tracks.iter().all(|track| track.is_sound) {
            return false;
        }
        let Ok(Some(frame)) = frames.peek() else { return false };
        tracks.iter().any(|track| track.track == frame.track && track.is_sound && track.is_real_time)
    }

    /// Returns the next visit if the next frame waits for the pace of a burst or for its outlet.
    fn waits(&mut self, now: Now, packets: &mut Packetizing) -> Option<Next> {
        let Transmission { arrival, frames, tracks, .. } = &mut self.transmission;
        let (arrival, frame) = (arrival.as_mut()?, frames.peek().ok().flatten()?);
        let track = tracks.iter_mut().find(|track| track.track == frame.track)?;
        let (is_first, is_datagrams) = (self.sent == 0, track.outlet.reports_from().is_some());
        if let Some(at) = arrival.burst.until(arrival.speed, now.at).filter(|_| is_datagrams && is_first) {
            self.report_live(now, packets);
            return Some(Next::At(at));
        }
        if !arrival.has_begun {
            track.outlet.keep_buffers_short();
        }
        match Allowance::of(track, now.at) {
            Allowance::Later(at) if is_first => Some(self.holds(at, now, packets)),
            _ => None,
        }
    }

    /// Notes that a frame was sent whole.
    fn passed(&mut self, frame: &Ready, now: Instant) {
        self.last = frame.due;
        if let Some(arrival) = &mut self.transmission.arrival {
            arrival.sent(frame.at);
            arrival.burst.take(frame.step, arrival.speed, now);
        }
    }

    /// Waits until a time. Frames wait in the queue of the branch, which drops those that wait for too long.
    fn holds(&mut self, at: Instant, now: Now, packets: &mut Packetizing) -> Next {
        self.report_live(now, packets);
        self.transmission.frames.hold(now.at);
        Next::At(at)
    }

    /// Sends reports if it is time for them. Returns the time of the next ones.
    fn report_live(&mut self, now: Now, packets: &mut Packetizing) -> Instant {
        let position = self.live_position(now);
        self.report_in_time(position, now, packets)
    }

    fn live_position(&self, now: Now) -> Duration {
        position(self.transmission.epochs.as_ref().and_then(Epochs::current), now, self.last)
    }
}
