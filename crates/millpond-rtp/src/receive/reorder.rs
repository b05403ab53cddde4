//! Order of packets.

use std::{collections::VecDeque, time::Duration};

/// Distance from which a sequence number is behind another one.
const HALF: u16 = 1 << 15;

/// Bounds of a [`ReorderBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderLimits {
    /// Number of packets that wait for a missing one.
    pub packets: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Time that a packet waits for a missing one.
    pub wait: Duration,
}

impl ReorderLimits {
    /// For UDP: some hundred packets for 100 ms, more than a network reorders.
    pub const UDP: Self = Self { packets: 512, bytes: 16 << 20, wait: Duration::from_millis(100) };
    /// For UDP with retransmission: the number of packets that 40 Mbit/s have in 2 s, the longest time of repairs.
    pub const REPAIRED: Self = Self { packets: 8192, ..Self::UDP };
    /// For a connection, which keeps the order: a missing packet never arrives.
    pub const IN_ORDER: Self = Self { packets: 0, bytes: 0, wait: Duration::ZERO };
}

/// Returns packets in the order of their sequence numbers. A missing packet is waited for within limits.
///
/// [`push`](ReorderBuffer::push) each packet, then [`pop`](ReorderBuffer::pop) until it returns `None`; pop again at the
/// time that [`wake`](ReorderBuffer::wake) returns.
#[derive(Debug)]
pub struct ReorderBuffer<T> {
    limits: ReorderLimits,
    /// Time that every packet is held.
    hold: Duration,
    /// Next sequence number; `None` before the first packet.
    next: Option<u16>,
    /// Packets in order, none of which is before `next`.
    held: VecDeque<Held<T>>,
    /// Bytes of these packets.
    bytes: usize,
    /// Number of missing packets that were given up.
    skipped: u64,
}

#[derive(Debug)]
struct Held<T> {
    sequence: u16,
    /// Earliest arrival of this packet and all later ones: about the time at which this one was due.
    noticed: Duration,
    bytes: usize,
    packet: T,
}

impl<T> ReorderBuffer<T> {
    /// Creates a buffer that begins with any packet.
    #[must_use]
    pub fn new(limits: ReorderLimits) -> Self {
        Self { limits, hold: Duration::ZERO, next: None, held: VecDeque::new(), bytes: 0, skipped: 0 }
    }

    /// Discards all packets, and begins with `next`, or with any packet.
    pub fn restart(&mut self, next: Option<u16>) {
        self.held.clear();
        (self.next, self.bytes) = (next, 0);
    }

    /// Takes a packet with its length in bytes. Returns whether it is of use: repeated packets and those given up are not.
    pub fn push(&mut self, sequence: u16, arrival: Duration, bytes: usize, packet: T) -> bool {
        let next = *self.next.get_or_insert(sequence);
        let distance = sequence.wrapping_sub(next);
        if distance >= HALF {
            return false;
        }
        match self.held.binary_search_by_key(&distance, |held| held.sequence.wrapping_sub(next)) {
            Ok(_) => false,
            Err(place) => {
                let noticed = self.held.get(place).map_or(arrival, |later| later.noticed.min(arrival));
                self.held.insert(place, Held { sequence, noticed, bytes, packet });
                self.bytes += bytes;
                true
            }
        }
    }

    /// Sets the time that a packet waits for a missing one from now on.
    pub fn set_wait(&mut self, wait: Duration) {
        self.limits.wait = wait;
    }

    /// Sets the time that every packet is held from now on, beyond the wait for missing ones.
    pub(super) fn set_hold(&mut self, hold: Duration) {
        self.hold = hold;
    }

    /// Removes and returns the next packet; `None` while an earlier one is waited for, or there is none.
    pub fn pop(&mut self, now: Duration) -> Option<T> {
        self.pop_or_wait(now, |_| None)
    }

    /// The same for missing packets of which some are waited for until another time.
    pub(super) fn pop_or_wait(&mut self, now: Duration, until: impl Fn(u16) -> Option<Duration>) -> Option<T> {
        let front = self.held.front()?;
        let is_over = self.held.len() > self.limits.packets || self.bytes > self.limits.bytes;
        if !is_over && now < front.noticed.saturating_add(self.hold) {
            return None;
        }
        let patience = front.noticed.saturating_add(self.limits.wait);
        let mut next = self.next.unwrap_or(front.sequence);
        while next != front.sequence {
            if !is_over && now < until(next).unwrap_or(patience) {
                self.next = Some(next);
                return None;
            }
            next = next.wrapping_add(1);
            self.skipped += 1;
        }
        self.next = Some(front.sequence.wrapping_add(1));
        let Held { bytes, packet, .. } = self.held.pop_front()?;
        self.bytes -= bytes;
        Some(packet)
    }

    /// Time until which missing packets are waited for.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        self.wake_or(|_| None)
    }

    /// The same for missing packets of which some are waited for until another time.
    pub(super) fn wake_or(&self, until: impl Fn(u16) -> Option<Duration>) -> Option<Duration> {
        let front = self.held.front()?;
        let ready = front.noticed.saturating_add(self.hold);
        match self.next.filter(|next| *next != front.sequence) {
            None => Some(ready),
            Some(next) => {
                Some(ready.max(until(next).unwrap_or_else(|| front.noticed.saturating_add(self.limits.wait))))
            }
        }
    }

    /// Sequence number of the next packet; `None` before the first one.
    pub(super) fn next(&self) -> Option<u16> {
        self.next
    }

    /// Number of missing packets that were given up.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: ReorderLimits = ReorderLimits { packets: 3, bytes: 100, wait: Duration::from_millis(100) };

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn all(buffer: &mut ReorderBuffer<u16>, now: u64) -> Vec<u16> {
        std::iter::from_fn(|| buffer.pop(at(now))).collect()
    }

    #[test]
    fn missing_packets_are_waited_for_within_limits() {
        let mut buffer = ReorderBuffer::new(LIMITS);
        for sequence in [65_534, 1, 0] {
            assert!(buffer.push(sequence, at(u64::from(sequence % 10)), 1, sequence));
        }
        assert_eq!((all(&mut buffer, 5), buffer.wake()), (vec![65_534], Some(at(100))));
        assert_eq!(all(&mut buffer, 99), []);
        assert_eq!(all(&mut buffer, 100), [0, 1]);
        assert!(!buffer.push(65_535, at(101), 1, 0) && !buffer.push(1, at(101), 1, 1), "too late");
        for sequence in [3, 4, 5] {
            assert!(buffer.push(sequence, at(110), 1, sequence) && !buffer.push(sequence, at(110), 1, sequence));
            assert_eq!(all(&mut buffer, 110), []);
        }
        assert!(buffer.push(6, at(110), 1, 6));
        assert_eq!(all(&mut buffer, 110), [3, 4, 5, 6], "too many wait");
        buffer.restart(Some(40_000));
        assert!(buffer.push(40_001, at(200), 1, 1) && buffer.push(40_000, at(200), 1, 0));
        assert_eq!(all(&mut buffer, 200), [0, 1]);
        assert_eq!(buffer.wake(), None);
        assert_eq!(buffer.skipped(), 2);
    }

    #[test]
    fn bytes_are_bounded() {
        let mut buffer = ReorderBuffer::new(LIMITS);
        buffer.restart(Some(0));
        assert!(buffer.push(1, at(0), 100, 1) && all(&mut buffer, 0).is_empty());
        assert!(buffer.push(2, at(0), 1, 2));
        assert_eq!(all(&mut buffer, 0), [1, 2]);
    }

    #[test]
    fn packets_are_held_from_the_time_at_which_they_were_due() {
        let mut buffer = ReorderBuffer::new(LIMITS);
        buffer.set_hold(Duration::from_millis(50));
        buffer.push(1, at(0), 1, 1);
        buffer.push(3, at(20), 1, 3);
        assert_eq!((all(&mut buffer, 49), buffer.wake()), (vec![], Some(at(50))));
        assert_eq!((all(&mut buffer, 50), buffer.wake()), (vec![1], Some(at(120))));
        buffer.push(2, at(60), 1, 2);
        assert_eq!((all(&mut buffer, 69), buffer.wake()), (vec![], Some(at(70))), "the repaired one too");
        assert_eq!(all(&mut buffer, 70), [2, 3]);
    }

    #[test]
    fn nothing_waits_on_a_connection() {
        let mut buffer = ReorderBuffer::new(ReorderLimits::IN_ORDER);
        for sequence in [7, 9, 10] {
            buffer.push(sequence, at(0), 1, sequence);
            assert_eq!(all(&mut buffer, 0), [sequence]);
        }
    }

    proptest! {
        #[test]
        fn packets_leave_once_and_in_order(
            packets in prop::collection::vec((0..60_u16, 0..30_u64), 1..200),
            first: u16,
        ) {
            let mut buffer = ReorderBuffer::new(LIMITS);
            buffer.restart(Some(first));
            let (mut now, mut last) = (0, None);
            for (offset, later) in packets {
                now += later;
                buffer.push(first.wrapping_add(offset), at(now), 1, offset);
                for popped in all(&mut buffer, now) {
                    prop_assert!(last.is_none_or(|last| last < popped));
                    last = Some(popped);
                }
                prop_assert!(buffer.held.len() <= LIMITS.packets);
                prop_assert!(buffer.wake().is_none_or(|wake| wake > at(now)));
            }
        }
    }
}
