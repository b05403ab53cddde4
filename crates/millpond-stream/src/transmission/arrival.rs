//! Sends the frames of a live stream when they arrive.

use super::{
    Now,
    allowance::Allowance,
    burst::Burst,
    packets::{Packetizing, Sent},
    sending::{Next, Sending},
    track::octets,
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

    /// Notes that a frame was sent, which was ready at a time.
    fn sent(&mut self, ready: Instant) {
        if !self.has_begun || self.behind.is_some() {
            self.behind = Some(ready);
        }
        self.has_begun = true;
    }
}

/// The stream time of a moment, by the wall clock that the source was mapped to; `last` where there is none.
fn position(epoch: Option<&Epoch>, now: Now, last: Duration) -> Duration {
    let Some(Epoch { from, wall, .. }) = epoch else { return last };
    let now = now.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let position = (*from + now).saturating_sub(*wall);
    if position.abs_diff(last) < ASTRAY { position } else { last }
}

impl Sending {
    /// Sends the frames that have arrived. Those from before it joined are sent faster than they play, but not all at once.
    pub(super) fn visit_live(&mut self, now: Now, packets: &mut Packetizing) -> Next {
        loop {
            let last = self.last;
            let transmission = &mut self.transmission;
            let (Some(arrival), Some(epochs)) = (&mut transmission.arrival, &mut transmission.epochs) else {
                return Next::Over;
            };
            let frame = match transmission.frames.peek() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    // It has caught up: the source sets the pace from now on.
                    arrival.behind = None;
                    let position = position(epochs.current(), now, last);
                    return match arrival.has_begun {
                        true => Next::Arrival(self.report_in_time(position, now, packets)),
                        false => Next::Arrival(now.at + STEP),
                    };
                }
                Err(Closed) => {
                    let position = position(epochs.current(), now, last);
                    return self.end(position, now, packets);
                }
            };
            let step = frame.due.saturating_sub(last);
            let ready = arrival.ready(step, now.at);
            if ready > now.at {
                return Next::At(ready);
            }
            if epochs.enter(frame.epoch) {
                let position = position(epochs.current(), now, last);
                self.adopt(position, now, packets);
                continue;
            }
            let Some(track) = transmission.tracks.iter_mut().find(|track| track.track == frame.track) else {
                transmission.frames.advance();
                continue;
            };
            let is_datagrams = track.outlet.reports_from().is_some();
            if let Some(at) = arrival.burst.until(arrival.speed, now.at).filter(|_| is_datagrams && self.sent == 0) {
                let position = position(epochs.current(), now, last);
                self.report_in_time(position, now, packets);
                return Next::At(at);
            }
            if !arrival.has_begun {
                track.outlet.keep_buffers_short();
            }
            if let (Allowance::Later(at), 0) = (Allowance::of(track, now.at), self.sent) {
                let position = position(epochs.current(), now, last);
                self.report_in_time(position, now, packets);
                self.transmission.frames.hold(now.at);
                return Next::At(at);
            }
            // Frames that are missing were dropped so that the others can be decoded: there is nothing to skip.
            let pace = (transmission.pace.as_deref_mut(), transmission.progress.heard());
            let sent = match track.has_ended {
                true => Sent::Whole,
                false => packets.paced(track, pace, (frame, &mut self.sent), now.at),
            };
            match sent {
                Sent::Whole => {
                    track.passed(frame);
                    self.sent = 0;
                    self.last = frame.due;
                    arrival.sent(ready);
                    arrival.burst.take(step, arrival.speed, now.at);
                    transmission.frames.advance();
                    transmission.progress.set_sent(octets(&transmission.tracks));
                }
                Sent::Part => return Next::Round,
                Sent::Later(at) => {
                    // Frames wait in the queue of the branch, which drops those that wait for too long.
                    let position = position(epochs.current(), now, last);
                    self.report_in_time(position, now, packets);
                    self.transmission.frames.hold(now.at);
                    return Next::At(at);
                }
                Sent::Stuck => {
                    transmission.progress.set_stuck();
                    return Next::Over;
                }
            }
        }
    }
}
