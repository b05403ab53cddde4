//! The receiver: loss events from the packets that arrive, and the times of feedback (RFC 5348 5 and 6).

#[cfg(test)]
mod tests;

use super::{LossEvents, equation::first_interval};
use std::{collections::VecDeque, time::Duration};

/// NDUPACK: packets that arrive after a missing one before it counts as lost (RFC 5348 5.1).
const LATER: u32 = 3;
/// Most gaps that wait for late packets.
const GAPS: usize = 64;
/// Most packets of a gap whose times are compared with those of loss events. Of a longer gap they are a sample at even distances.
const GAP: u64 = 4096;
/// Shortest time over which packets are counted for a receive rate.
const RATE_TIME: Duration = Duration::from_millis(100);

/// Feedback of a receiver (RFC 5348 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverFeedback {
    /// Number of the newest packet.
    pub newest: u64,
    /// Time since it arrived: t_delay.
    pub delay: Duration,
    /// X_recv in bytes per second.
    pub receive_rate: f64,
    /// p: loss event rate, from 0 to 1.
    pub loss_event_rate: f64,
}

/// The receiver's state. Give it packets with [`packet`](Self::packet); call [`feedback`](Self::feedback) at the time of
/// [`feedback_at`](Self::feedback_at), and at once where a loss event begins.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    events: LossEvents,
    /// Packet with the highest number.
    newest: Option<Arrival>,
    /// Packet that arrived last. Its number is lower than the highest one where it was late.
    last: Option<Arrival>,
    gaps: VecDeque<Gap>,
    /// Average packet size in bytes.
    packet: f64,
    round_trip: Duration,
    /// Bytes since the receive rate was computed, and the time at which it was.
    counted: (f64, Duration),
    receive_rate: f64,
    /// Largest receive rate so far.
    largest: f64,
    /// Expiry of the feedback timer.
    due: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: u64,
    at: Duration,
}

/// Missing packets between two that arrived.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u64,
    /// Number after the last one.
    end: u64,
    /// S_before of RFC 5348 5.2: the last packet to arrive before one of a higher number did.
    before: Arrival,
    /// S_after: the first packet of a higher number.
    after: Arrival,
    /// Packets that arrived since, up to three.
    later: u32,
}

impl Receiver {
    /// Takes a packet of a number that does not wrap. `round_trip` is the sender's, which data packets tell
    /// (RFC 5348 3.2.1). Returns whether a loss event begins: feedback is then sent at once.
    pub fn packet(&mut self, number: u64, bytes: usize, round_trip: Duration, at: Duration) -> bool {
        self.round_trip = round_trip;
        let size = bytes as f64;
        self.packet += (size - self.packet) * if self.packet == 0.0 { 1.0 } else { 0.1 };
        let arrival = Arrival { number, at };
        let before = self.last.replace(arrival);
        let (Some(newest), Some(before)) = (self.newest, before) else {
            self.newest = Some(arrival);
            // The first packet is answered at once (RFC 5348 6.3).
            (self.counted, self.due) = ((0.0, at), Some(at));
            return false;
        };
        self.counted.0 += size;
        self.due = self.due.or(Some(at + round_trip));
        if number <= newest.number {
            // A packet that arrived twice is no sign that an earlier one is lost.
            return self.fill(number) && self.lose(number);
        }
        if number > newest.number + 1 {
            self.gaps.push_back(Gap { first: newest.number + 1, end: number, before, after: arrival, later: 0 });
        }
        self.events.count_packets(number - newest.number);
        self.newest = Some(arrival);
        self.lose(number)
    }

    /// Time of the next feedback; `None` while no packet has arrived since the last one.
    #[must_use]
    pub fn feedback_at(&self) -> Option<Duration> {
        self.due
    }

    /// Returns feedback; `None` before the first packet.
    pub fn feedback(&mut self, now: Duration) -> Option<ReceiverFeedback> {
        let newest = self.newest?;
        self.due = None;
        let (bytes, since) = self.counted;
        let elapsed = now.saturating_sub(since);
        if elapsed >= RATE_TIME.max(self.round_trip) {
            self.receive_rate = bytes / elapsed.as_secs_f64();
            self.largest = self.largest.max(self.receive_rate);
            self.counted = (0.0, now);
        }
        Some(ReceiverFeedback {
            newest: newest.number,
            delay: now.saturating_sub(newest.at),
            receive_rate: self.receive_rate,
            loss_event_rate: self.events.rate(),
        })
    }

    /// Makes feedback due at once.
    pub fn hasten(&mut self, now: Duration) {
        self.due = Some(now);
    }

    /// Takes a missing packet out of its gap. Returns whether it was missing.
    fn fill(&mut self, number: u64) -> bool {
        let Some(place) = self.gaps.iter().position(|gap| (gap.first..gap.end).contains(&number)) else { return false };
        let gap = self.gaps[place];
        let parts = [Gap { end: number, ..gap }, Gap { first: number + 1, ..gap }];
        self.gaps.remove(place);
        for part in parts.into_iter().rev().filter(|part| part.first < part.end) {
            self.gaps.insert(place, part);
        }
        true
    }

    /// Counts packets as lost, after which enough others have arrived.
    fn lose(&mut self, number: u64) -> bool {
        for gap in &mut self.gaps {
            gap.later += u32::from(number >= gap.end);
        }
        let mut is_event = false;
        while self.gaps.front().is_some_and(|gap| gap.later >= LATER) || self.gaps.len() > GAPS {
            let Some(gap) = self.gaps.pop_front() else { break };
            is_event |= self.count(&gap);
        }
        is_event
    }

    fn count(&mut self, gap: &Gap) -> bool {
        let Self { events, newest, round_trip, packet, largest, .. } = self;
        let newest = newest.map_or(gap.end, |newest| newest.number);
        let mut is_event = false;
        let distance = gap.after.number.saturating_sub(gap.before.number).max(1) as f64;
        let step = (gap.end - gap.first).div_ceil(GAP).max(1);
        let mut number = gap.first;
        while number < gap.end {
            // Its time lies on the line between its neighbours (RFC 5348 5.2).
            let share = number.saturating_sub(gap.before.number) as f64 / distance;
            let at = gap.before.at + gap.after.at.saturating_sub(gap.before.at).mul_f64(share.min(1.0));
            let first = || first_interval(*packet, *round_trip, *largest);
            is_event |= events.lost(at, *round_trip, (newest - number).saturating_add(1), first);
            number = number.saturating_add(step);
        }
        is_event
    }
}
