//! Sent packets of one track, with their times.

use std::{collections::VecDeque, time::Duration};

/// Most bursts that are remembered: 10 s of one in each round of 5 ms.
const MOST: usize = 2048;

/// The packets of a track that were sent, in bursts of one time. Packets have numbers from 0, which do not wrap.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    bursts: VecDeque<Burst>,
    packets: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Number of its first packet.
    first: u64,
    at: Duration,
    /// Bytes that were sent before it.
    bytes: u64,
}

impl Sent {
    /// Adds packets.
    pub(super) fn add(&mut self, packets: u64, bytes: u64, at: Duration) {
        if self.bursts.back().is_none_or(|last| last.at != at) {
            if self.bursts.len() == MOST {
                self.bursts.pop_front();
            }
            self.bursts.push_back(Burst { first: self.packets, at, bytes: self.bytes });
        }
        self.packets += packets;
        self.bytes += bytes;
    }

    /// Number of packets that were sent.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Forgets bursts before the one of a packet.
    pub(super) fn forget(&mut self, packet: u64) {
        let place = self.place(packet);
        self.bursts.drain(..place);
    }

    /// Time at which a packet was sent. If that time was forgotten, the time of the first known packet.
    pub(super) fn time(&self, packet: u64) -> Duration {
        self.bursts.get(self.place(packet)).map_or(Duration::ZERO, |burst| burst.at)
    }

    /// Bytes that were sent before a packet. Packets of a burst count alike.
    pub(super) fn bytes_before(&self, packet: u64) -> f64 {
        let place = self.place(packet);
        let Some(burst) = self.bursts.get(place) else { return self.bytes as f64 };
        let (end, bytes) =
            self.bursts.get(place + 1).map_or((self.packets, self.bytes), |next| (next.first, next.bytes));
        let share = packet.saturating_sub(burst.first) as f64 / (end - burst.first).max(1) as f64;
        burst.bytes as f64 + (bytes - burst.bytes) as f64 * share.min(1.0)
    }

    /// The burst of a packet.
    fn place(&self, packet: u64) -> usize {
        self.bursts.partition_point(|burst| burst.first <= packet).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn packets_are_found_by_their_numbers() {
        let mut sent = Sent::default();
        for round in 0..10 {
            sent.add(1, 100, 5 * MS * round);
            sent.add(3, 300, 5 * MS * round);
        }
        assert_eq!(sent.packets(), 40);
        assert_eq!(
            (sent.time(0), sent.time(3), sent.time(4), sent.time(39)),
            (Duration::ZERO, Duration::ZERO, 5 * MS, 45 * MS)
        );
        assert_eq!((sent.bytes_before(0), sent.bytes_before(7), sent.bytes_before(40)), (0.0, 700.0, 4000.0));
        sent.forget(21);
        assert_eq!((sent.bursts.len(), sent.time(21), sent.time(3)), (5, 25 * MS, 25 * MS));
        assert_eq!((sent.bytes_before(21), sent.bytes_before(3)), (2100.0, 2000.0));
        for round in 10..10_000 {
            sent.add(1, 100, 5 * MS * round);
        }
        assert_eq!(sent.bursts.len(), MOST);
    }
}
