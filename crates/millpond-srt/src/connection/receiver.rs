//! The receiving half: payloads in order and in time, acknowledgements, and requests for lost packets.

use super::{peer_clock::PeerClock, rtt::Rtt};
use crate::{
    Sequence,
    listener::WINDOW,
    packet::{Acknowledgement, Report, SequenceRange},
};
use bytes::Bytes;
use std::{collections::VecDeque, time::Duration};

/// Time between two full acknowledgements (draft-sharabayko-srt-01 3.2.4).
const ACKNOWLEDGE: Duration = Duration::from_millis(10);
/// Packets after which a light acknowledgement is sent.
const LIGHT: u32 = 64;
/// Least time between two lists of lost packets.
const TELL: Duration = Duration::from_millis(20);
/// Acknowledgements whose answers are waited for.
const UNANSWERED: usize = 64;
/// Longest time that a payload is held beside twice the latency, whatever its timestamp says.
const SPARE: Duration = Duration::from_secs(1);
/// Time over which rates are measured.
const RATES: Duration = Duration::from_secs(1);

/// Output of a connection for the reader of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SrtReceived {
    /// The next payload.
    Payload(Bytes),
    /// So many packets came too late, or never.
    Lost(u32),
}

/// A packet that waits for its time.
#[derive(Debug)]
struct Held {
    due: Duration,
    payload: Bytes,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The packet that is delivered next, and all behind it up to the newest; `None` for those that are missing.
    next: Sequence,
    slots: VecDeque<Option<Held>>,
    missing: usize,
    latency: Duration,
    clock: PeerClock,
    pub(super) rtt: Rtt,
    /// The round-trip time of the first measurement: what is more counts as no drift.
    first_rtt: Option<Duration>,
    /// Timestamp and arrival of the newest packet that was not sent again.
    newest: Option<(u32, Duration)>,
    acknowledged: Acknowledged,
    /// Time of the next list of all lost packets.
    tell: Duration,
    rates: Rates,
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// An acknowledgement that was sent.
#[derive(Debug)]
struct Acknowledged {
    /// The last position, and the number and the time of the acknowledgement.
    at: Sequence,
    number: u32,
    when: Duration,
    /// Whether the peer has got it.
    is_answered: bool,
    /// Packets since the last acknowledgement.
    since: u32,
    sent: VecDeque<(u32, Duration)>,
}

/// Packets and bytes a second.
#[derive(Debug, Default)]
struct Rates {
    since: Duration,
    now: (u32, u32),
    last: (u32, u32),
}

impl Rates {
    fn take(&mut self, bytes: usize, now: Duration) {
        if now >= self.since + RATES {
            (self.last, self.now, self.since) = (self.now, (0, 0), now);
        }
        self.now = (self.now.0 + 1, self.now.1.saturating_add(bytes as u32));
    }
}

impl Receiver {
    pub(super) fn new(next: Sequence, latency: Duration, (timestamp, arrived): (u32, Duration)) -> Self {
        Self {
            next,
            slots: VecDeque::new(),
            missing: 0,
            latency,
            clock: PeerClock::new(timestamp, arrived),
            rtt: Rtt::default(),
            first_rtt: None,
            newest: None,
            acknowledged: Acknowledged {
                at: next,
                number: 0,
                when: arrived,
                is_answered: true,
                since: 0,
                sent: VecDeque::new(),
            },
            tell: arrived,
            rates: Rates::default(),
            lost: 0,
            late: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Whether a packet of this number would be taken: it is neither too late, nor there already, nor beyond the window.
    pub(super) fn takes(&self, sequence: Sequence) -> bool {
        let Ok(at) = usize::try_from(sequence.since(self.next)) else { return false };
        at < WINDOW as usize && self.slots.get(at).is_none_or(Option::is_none)
    }

    /// Notes a packet that is not taken.
    pub(super) fn refuse(&mut self, sequence: Sequence) {
        if sequence.since(self.next) < 0 {
            self.late += 1;
        }
    }

    /// Takes a packet that [`takes`](Self::takes) allows. Returns the packets before it that are missing now.
    pub(super) fn push(
        &mut self,
        sequence: Sequence,
        (timestamp, is_again): (u32, bool),
        payload: Bytes,
        now: Duration,
    ) -> Option<SequenceRange> {
        let at = usize::try_from(sequence.since(self.next)).ok().filter(|at| *at < WINDOW as usize)?;
        self.packets += 1;
        self.bytes += payload.len() as u64;
        self.acknowledged.since += 1;
        self.rates.take(payload.len(), now);
        if !is_again {
            self.newest = Some((timestamp, now));
        }
        let latest = now + 2 * self.latency + SPARE;
        let due = (self.clock.time(timestamp) + self.latency).min(latest);
        let held = Some(Held { due, payload });
        let end = self.slots.len();
        if let Some(slot) = self.slots.get_mut(at) {
            if slot.is_none() {
                (*slot, self.missing) = (held, self.missing - 1);
            }
            return None;
        }
        self.slots.resize_with(at, || None);
        self.slots.push_back(held);
        if at == end {
            return None;
        }
        if self.missing == 0 {
            self.tell = now + self.interval();
        }
        self.missing += at - end;
        let [first, last] = [end, at - 1].map(|at| self.next.plus(at as u32));
        Some(SequenceRange { first, last })
    }

    /// Takes note that packets won't be sent again: they count as lost once their followers are due.
    pub(super) fn drop_range(&mut self, range: SequenceRange, now: Duration) {
        let (from, to) = (range.first.since(self.next), range.last.since(self.next));
        let Ok(to) = usize::try_from(to) else { return };
        let from = usize::try_from(from).unwrap_or(0);
        // Only packets that are known to be missing: a peer has no reason to tell of others.
        for slot in self.slots.iter_mut().take(to.saturating_add(1)).skip(from).filter(|slot| slot.is_none()) {
            *slot = Some(Held { due: now, payload: Bytes::new() });
            self.missing -= 1;
            self.lost += 1;
        }
    }

    /// Returns what is due.
    pub(super) fn pop(&mut self, now: Duration) -> Option<SrtReceived> {
        let first = self.slots.iter().position(Option::is_some)?;
        let due = self.slots.get(first).and_then(Option::as_ref).map(|held| held.due)?;
        if now < due {
            return None;
        }
        if first > 0 {
            // Too late: what follows is due.
            self.slots.drain(..first);
            self.missing -= first;
            self.lost += first as u64;
            self.next = self.next.plus(first as u32);
            return Some(SrtReceived::Lost(first as u32));
        }
        let held = self.slots.pop_front().flatten()?;
        self.next = self.next.plus(1);
        // Of a packet that its sender has dropped, there is no payload.
        Some(if held.payload.is_empty() { SrtReceived::Lost(1) } else { SrtReceived::Payload(held.payload) })
    }

    /// Time between two lists of all lost packets (draft-sharabayko-srt-01 4.8.2).
    fn interval(&self) -> Duration {
        (self.rtt.patience() / 2).max(TELL)
    }

    /// The first packet that has not arrived.
    fn position(&self) -> Sequence {
        let whole = if self.missing == 0 {
            self.slots.len()
        } else {
            self.slots.iter().take_while(|slot| slot.is_some()).count()
        };
        self.next.plus(whole as u32)
    }

    /// Returns the acknowledgement that is due.
    pub(super) fn acknowledge(&mut self, now: Duration) -> Option<Acknowledgement> {
        if now < self.acknowledged.when + ACKNOWLEDGE {
            if self.acknowledged.since < LIGHT {
                return None;
            }
            self.acknowledged.since = 0;
            return Some(Acknowledgement { number: 0, next: self.position(), report: None });
        }
        let at = self.position();
        let is_repeated = at == self.acknowledged.at;
        let repeats = !self.acknowledged.is_answered && now >= self.acknowledged.when + self.rtt.patience();
        if is_repeated && !repeats {
            self.acknowledged.since = 0;
            return None;
        }
        let of = &mut self.acknowledged;
        of.number = of.number.wrapping_add(1).max(1);
        (of.at, of.when, of.is_answered, of.since) = (at, now, false, 0);
        if of.sent.len() == UNANSWERED {
            of.sent.pop_front();
        }
        of.sent.push_back((of.number, now));
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let (packets, bytes) = self.rates.last;
        let room = WINDOW - (self.slots.len() as u32).min(WINDOW);
        let (rtt, deviation) = (micros(self.rtt.smoothed), micros(self.rtt.deviation));
        Some(Acknowledgement {
            number: of.number,
            next: at,
            report: Some(Report { rtt, deviation, room, packets, bytes }),
        })
    }

    /// Takes the answer to an acknowledgement.
    pub(super) fn answered(&mut self, number: u32, now: Duration) {
        let of = &mut self.acknowledged;
        let Some(at) = of.sent.iter().position(|(sent, _)| *sent == number) else { return };
        let Some((_, when)) = of.sent.drain(..=at).next_back() else { return };
        of.is_answered |= number == of.number;
        let sample = now.saturating_sub(when);
        self.rtt.take(sample);
        let first = *self.first_rtt.get_or_insert(sample);
        let late = (self.rtt.smoothed.as_micros() as i64 - first.as_micros() as i64) / 2;
        if let Some((timestamp, arrived)) = self.newest.take() {
            self.clock.sample(timestamp, arrived, late);
        }
    }

    /// Returns all missing packets, where a list of them is due.
    pub(super) fn missing(&mut self, now: Duration) -> Option<Vec<SequenceRange>> {
        if self.missing == 0 || now < self.tell {
            return None;
        }
        self.tell = now + self.interval();
        let (mut ranges, mut first) = (Vec::new(), None);
        for (at, slot) in (0_u32..).zip(&self.slots) {
            match (slot, first) {
                (None, None) => first = Some(at),
                (Some(_), Some(from)) => {
                    let [first_missing, last] = [from, at - 1].map(|at| self.next.plus(at));
                    ranges.push(SequenceRange { first: first_missing, last });
                    first = None;
                }
                _ => {}
            }
        }
        Some(ranges)
    }

    /// Time at which something is due, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let delivery = self.slots.iter().find_map(Option::as_ref).map(|held| held.due);
        let lists = (self.missing > 0).then_some(self.tell);
        let of = &self.acknowledged;
        let acknowledgement = match () {
            () if of.since > 0 => Some(of.when + ACKNOWLEDGE),
            () if !of.is_answered => Some(of.when + self.rtt.patience().max(ACKNOWLEDGE)),
            () => None,
        };
        [delivery, lists, acknowledgement].into_iter().flatten().min()
    }
}
