//! The sending half: payloads that are kept until they are acknowledged, and sent again where they are lost.

use super::rtt::Rtt;
use crate::{
    Sequence,
    packet::{Acknowledgement, Data, KeySlot, Losses, PAYLOAD, SequenceRange},
};
use bytes::Bytes;
use std::{collections::VecDeque, time::Duration};

/// Least time for which packets are kept, and what is added to the latency (draft-sharabayko-srt-01 4.6).
const KEPT: Duration = Duration::from_secs(1);
const SPARE: Duration = Duration::from_millis(20);
/// Packets that are kept, at most.
const MOST: usize = 8192;
/// Time between two packets, and the time for which packets may be sent in a burst: a key frame is spread over some milliseconds.
const PACE: Duration = Duration::from_micros(50);
const BURST: Duration = Duration::from_millis(1);
/// Least window: a peer without room gets packets too, and tells of its room.
const LEAST: usize = 2;
/// Bits of a message's number, which is never 0.
const MESSAGES: u32 = 0x03ff_ffff;
/// Longest time between two repetitions of a last packet.
const LONGEST: Duration = Duration::from_secs(1);

/// A packet that is kept.
#[derive(Debug)]
struct Kept {
    /// Time of its payload.
    at: Duration,
    /// Number of its message.
    message: u32,
    /// Time at which it was sent again, if it was.
    again: Option<Duration>,
    is_lost: bool,
    key: Option<KeySlot>,
    payload: Bytes,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    /// The first packet that is kept, and all behind it. The first ones were sent.
    first: Sequence,
    kept: VecDeque<Kept>,
    unsent: usize,
    /// Packets that are to be sent again.
    lost: VecDeque<Sequence>,
    /// Number of the next message.
    message: u32,
    /// Packets that may be under way.
    window: usize,
    /// Packets that the receiver has room for.
    room: usize,
    latency: Duration,
    pub(super) rtt: Rtt,
    /// Earliest time of the next packet.
    pace: Duration,
    /// Time at which the newest packet is sent again, and the time until the next repetition.
    repeat: Option<(Duration, Duration)>,
    pub(super) dropped: u64,
    pub(super) again: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// A packet that is sent now, with the time of its payload.
pub(super) type Outgoing<'a> = (Duration, Data<'a>);

impl Sender {
    pub(super) fn new(first: Sequence, window: u32, latency: Duration) -> Self {
        let window = (window as usize).clamp(LEAST, MOST);
        Self {
            first,
            kept: VecDeque::new(),
            unsent: 0,
            lost: VecDeque::new(),
            message: 1,
            window,
            room: window,
            latency,
            rtt: Rtt::default(),
            pace: Duration::ZERO,
            repeat: None,
            dropped: 0,
            again: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// The number of the next payload.
    pub(super) fn next(&self) -> Sequence {
        self.first.plus(self.kept.len() as u32)
    }

    /// Takes the next payload, which is encrypted already.
    pub(super) fn push(&mut self, payload: Bytes, key: Option<KeySlot>, now: Duration) {
        debug_assert!(payload.len() <= PAYLOAD);
        if self.kept.len() == MOST {
            self.drop_first();
        }
        self.kept.push_back(Kept { at: now, message: self.message, again: None, is_lost: false, key, payload });
        self.message = ((self.message + 1) & MESSAGES).max(1);
    }

    /// Drops the first packet that is kept. Its receiver has not got it.
    fn drop_first(&mut self) {
        if self.kept.pop_front().is_some() {
            self.dropped += 1;
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        self.first = self.first.plus(1);
        self.unsent = self.unsent.saturating_sub(1);
    }

    /// Takes an acknowledgement.
    pub(super) fn acknowledged(&mut self, of: &Acknowledgement, now: Duration) {
        if let Some(report) = &of.report {
            let micros = |time: u32| Duration::from_micros(time.into());
            self.rtt.hear(micros(report.rtt), micros(report.deviation));
            self.room = report.room as usize;
        }
        let Ok(count) = usize::try_from(of.next.since(self.first)) else { return };
        // A packet that was never sent can't have arrived.
        if count == 0 || count > self.unsent {
            return;
        }
        for _ in 0..count {
            self.kept.pop_front();
            self.forget_first();
        }
        let pause = self.pause();
        self.repeat = (self.unsent > 0).then_some((now + pause, pause));
    }

    /// Time after which the newest packet is sent again where nothing is acknowledged.
    fn pause(&self) -> Duration {
        self.rtt.patience() + SPARE
    }

    /// Takes a list of lost packets. Returns those that are not kept any more.
    pub(super) fn losses(&mut self, losses: &Losses<'_>, now: Duration) -> Vec<SequenceRange> {
        let mut gone = Vec::new();
        let guard = self.rtt.smoothed.saturating_sub(self.rtt.deviation);
        for range in losses.ranges() {
            let (from, to) = (range.first.since(self.first), range.last.since(self.first));
            // A peer can miss only what was sent.
            if from < 0 && usize::try_from(range.count()).is_ok_and(|count| count <= MOST) {
                let last = if to < 0 { range.last } else { self.first.plus(u32::MAX) };
                gone.push(SequenceRange { first: range.first, last });
            }
            let Ok(to) = usize::try_from(to) else { continue };
            let from = usize::try_from(from).unwrap_or(0);
            for at in from..to.saturating_add(1).min(self.unsent) {
                let Some(kept) = self.kept.get_mut(at) else { break };
                // It may be under way again: the list was made before it arrived.
                let is_fresh = kept.again.is_some_and(|sent| now < sent + guard);
                if !kept.is_lost && !is_fresh {
                    kept.is_lost = true;
                    self.lost.push_back(self.first.plus(at as u32));
                }
            }
        }
        gone
    }

    /// Drops what is too late: its receiver would not deliver it.
    pub(super) fn drop_late(&mut self, now: Duration) {
        let most = self.latency.max(KEPT) + SPARE;
        while self.kept.front().is_some_and(|kept| now > kept.at + most) {
            self.drop_first();
        }
    }

    /// Returns the packet that is sent now, if there is one.
    pub(super) fn poll(&mut self, now: Duration) -> Option<Outgoing<'_>> {
        if now < self.pace {
            return None;
        }
        let mut pause = self.pause();
        let (at, is_again) = match self.next_lost() {
            Some(at) => (at, true),
            None if self.unsent < self.kept.len() && self.has_room() => {
                self.unsent += 1;
                (self.unsent - 1, false)
            }
            // The last packets may be lost: nothing behind them shows that.
            None => {
                let (_, last) = self.repeat.filter(|(at, _)| now >= *at)?;
                pause = (2 * last).min(LONGEST);
                (self.unsent.checked_sub(1)?, true)
            }
        };
        self.pace = self.pace.max(now.saturating_sub(BURST)) + PACE;
        self.repeat = Some((now + pause, pause));
        let sequence = self.first.plus(at as u32);
        let kept = self.kept.get_mut(at)?;
        (kept.again, kept.is_lost) = (is_again.then_some(now), false);
        self.packets += 1;
        self.bytes += kept.payload.len() as u64;
        self.again += u64::from(is_again);
        let data = Data { sequence, message: kept.message, key: kept.key, is_again, payload: &kept.payload };
        Some((kept.at, data))
    }

    fn has_room(&self) -> bool {
        self.unsent < self.window.min(self.room).max(LEAST)
    }

    /// The place of the next lost packet that is still kept.
    fn next_lost(&mut self) -> Option<usize> {
        while let Some(sequence) = self.lost.pop_front() {
            let at = usize::try_from(sequence.since(self.first)).ok();
            if let Some(at) = at.filter(|at| self.kept.get(*at).is_some_and(|kept| kept.is_lost)) {
                return Some(at);
            }
        }
        None
    }

    /// Whether all payloads have arrived, or were dropped.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Time at which something is due, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let first = self.kept.front()?;
        let late = first.at + self.latency.max(KEPT) + SPARE + Duration::from_micros(1);
        let has_packet = !self.lost.is_empty() || self.unsent < self.kept.len() && self.has_room();
        let repeat = self.repeat.filter(|_| self.unsent > 0).map(|(at, _)| at.max(self.pace));
        let packet = if has_packet { Some(self.pace) } else { repeat };
        Some(packet.map_or(late, |packet| packet.min(late)))
    }
}
