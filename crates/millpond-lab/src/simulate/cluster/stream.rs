//! A stream's double buffer and its deadlines (Srinilta and Choudhary 2.3 and 3.3).

use std::time::Duration;

/// Bytes of a packet.
pub(super) const PACKET: u64 = 64 << 10;
/// Bytes of each half of a buffer.
pub(super) const HALF: u64 = 1 << 20;

/// A stream on its way through an object.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) object: usize,
    pub(super) dispenser: usize,
    /// Number of the half that is delivered.
    half: u64,
    /// When its first packet is due.
    due: Duration,
    /// When its units and those of the next half have arrived.
    arrivals: [Vec<Duration>; 2],
    /// Time between packets.
    period: Duration,
    /// By how many periods a miss delays what follows.
    delay: f64,
}

/// The delivered part of a half.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Delivered {
    pub(super) packets: u64,
    pub(super) missed: u64,
    /// Delays in periods.
    pub(super) delayed: f64,
}

impl Stream {
    /// A stream that begins to play as soon as its first half has arrived. `arrivals` are those of its first two halves.
    pub(super) fn new(
        object: usize,
        dispenser: usize,
        arrivals: [Vec<Duration>; 2],
        period: Duration,
        delay: f64,
    ) -> Self {
        let due = arrivals[0].iter().copied().max().unwrap_or_default();
        Self { object, dispenser, half: 0, due, arrivals, period, delay }
    }

    /// When the next packet is due.
    pub(super) fn due(&self) -> Duration {
        self.due
    }

    /// Delivers a half. Each packet that has not arrived when it is due delays the following ones.
    pub(super) fn deliver(&mut self) -> Delivered {
        let mut delivered = Delivered::default();
        let units = self.arrivals[0].len().max(1) as u64;
        let packets = HALF / PACKET;
        for packet in 0..packets {
            let arrived = self.arrivals[0].get((packet * units / packets) as usize).copied().unwrap_or_default();
            delivered.packets += 1;
            let mut periods = 1.0;
            if arrived > self.due {
                delivered.missed += 1;
                delivered.delayed += self.delay;
                periods += self.delay;
            }
            self.due += self.period.mul_f64(periods);
        }
        self.half += 1;
        delivered
    }

    /// When the half behind the next one can be requested: when the next one begins to be delivered. The buffer of the half before it
    /// must be free then: what arrives later than its last deadline is waited for.
    pub(super) fn requests_at(&self) -> Duration {
        self.due.max(self.arrivals[0].iter().copied().max().unwrap_or_default())
    }

    /// Takes the arrivals of the half that was requested.
    pub(super) fn requested(&mut self, arrivals: Vec<Duration>) {
        self.arrivals = [std::mem::take(&mut self.arrivals[1]), arrivals];
    }

    /// Number of the half to request next.
    pub(super) fn next_half(&self) -> u64 {
        self.half + 1
    }
}
