//! Order of packets.

use std::{collections::VecDeque, time::Duration};

/// Distance from which a sequence number is behind another one.
const HALF: u16 = 1 << 15;

/// Bounds of a [`ReorderBuffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderLimits {
    /// Number of packets that wait for a missing one.
    pub packets: usize,
    /// Time that a packet waits for a missing one.
    pub wait: Duration,
}

impl ReorderLimits {
    /// For UDP: some hundred packets for 100 ms, more than a network reorders.
    pub const UDP: Self = Self { packets: 512, wait: Duration::from_millis(100) };
    /// For a connection, which keeps the order: a missing packet never arrives.
    pub const IN_ORDER: Self = Self { packets: 0, wait: Duration::ZERO };
}

/// Returns packets in the order of their sequence numbers. A missing packet is waited for within limits.
///
/// [`push`](ReorderBuffer::push) each packet, then [`pop`](ReorderBuffer::pop) until it returns `None`; pop again at the
/// time that [`wake`](ReorderBuffer::wake) returns.
#[derive(Debug)]
pub struct ReorderBuffer<T> {
    limits: ReorderLimits,
    /// Next sequence number; `None` before the first packet.
    next: Option<u16>,
    /// Packets in order, none of which is before `next`.
    held: VecDeque<Held<T>>,
}

#[derive(Debug)]
struct Held<T> {
    sequence: u16,
    arrival: Duration,
    packet: T,
}

impl<T> ReorderBuffer<T> {
    /// Creates a buffer that begins with any packet.
    #[must_use]
    pub fn new(limits: ReorderLimits) -> Self {
        Self { limits, next: None, held: VecDeque::new() }
    }

    /// Discards all packets, and begins with `next`, or with any packet.
    pub fn restart(&mut self, next: Option<u16>) {
        self.held.clear();
        self.next = next;
    }

    /// Takes a packet; returns whether it is of use. A repeated packet, and one that is no longer waited for, is not.
    pub fn push(&mut self, sequence: u16, arrival: Duration, packet: T) -> bool {
        let next = *self.next.get_or_insert(sequence);
        let distance = sequence.wrapping_sub(next);
        if distance >= HALF {
            return false;
        }
        match self.held.binary_search_by_key(&distance, |held| held.sequence.wrapping_sub(next)) {
            Ok(_) => false,
            Err(place) => {
                self.held.insert(place, Held { sequence, arrival, packet });
                true
            }
        }
    }

    /// Removes and returns the next packet; `None` while an earlier one is waited for, or there is none.
    pub fn pop(&mut self, now: Duration) -> Option<T> {
        let first = self.held.front()?;
        let is_next = self.next == Some(first.sequence);
        if !is_next && self.held.len() <= self.limits.packets && self.wake().is_none_or(|wake| now < wake) {
            return None;
        }
        let first = self.held.pop_front()?;
        self.next = Some(first.sequence.wrapping_add(1));
        Some(first.packet)
    }

    /// Time until which missing packets are waited for.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        let oldest = self.held.iter().map(|held| held.arrival).min()?;
        Some(oldest.saturating_add(self.limits.wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: ReorderLimits = ReorderLimits { packets: 3, wait: Duration::from_millis(100) };

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
            assert!(buffer.push(sequence, at(u64::from(sequence % 10)), sequence));
        }
        assert_eq!((all(&mut buffer, 5), buffer.wake()), (vec![65_534], Some(at(100))));
        assert_eq!(all(&mut buffer, 99), []);
        assert_eq!(all(&mut buffer, 100), [0, 1]);
        assert!(!buffer.push(65_535, at(101), 0) && !buffer.push(1, at(101), 1), "too late");
        for sequence in [3, 4, 5] {
            assert!(buffer.push(sequence, at(110), sequence) && !buffer.push(sequence, at(110), sequence));
            assert_eq!(all(&mut buffer, 110), []);
        }
        assert!(buffer.push(6, at(110), 6));
        assert_eq!(all(&mut buffer, 110), [3, 4, 5, 6], "too many wait");
        buffer.restart(Some(40_000));
        assert!(buffer.push(40_001, at(200), 1) && buffer.push(40_000, at(200), 0));
        assert_eq!(all(&mut buffer, 200), [0, 1]);
        assert_eq!(buffer.wake(), None);
    }

    #[test]
    fn nothing_waits_on_a_connection() {
        let mut buffer = ReorderBuffer::new(ReorderLimits::IN_ORDER);
        for sequence in [7, 9, 10] {
            buffer.push(sequence, at(0), sequence);
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
                buffer.push(first.wrapping_add(offset), at(now), offset);
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
