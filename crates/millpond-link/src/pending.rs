use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Packets on their way, by times of delivery and then by arrival.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    packets: BinaryHeap<Reverse<(Duration, u64, Vec<u8>)>>,
    number: u64,
}

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Adds a packet that is due at `at`.
    pub(crate) fn push(&mut self, at: Duration, packet: Vec<u8>) {
        self.packets.push(Reverse((at, self.number, packet)));
        self.number += 1;
    }

    /// The time at which the next packet is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.packets.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next packet that is due at `now`, with the time at which it was due.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<(Duration, Vec<u8>)> {
        if self.due()? > now {
            return None;
        }
        self.packets.pop().map(|Reverse((at, _, packet))| (at, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_by_time_then_by_arrival() {
        let at = Duration::from_millis;
        let mut pending = Pending::default();
        for (time, name) in [(2, b"c"), (1, b"b"), (1, b"a")] {
            pending.push(at(time), name.to_vec());
        }
        assert_eq!(pending.pop(at(0)), None);
        let order: Vec<_> = std::iter::from_fn(|| pending.pop(at(5))).map(|(_, packet)| packet).collect();
        assert_eq!(order, [b"b", b"a", b"c"]);
        assert_eq!(pending.len(), 0);
    }
}
