//! Continuity counters (ISO/IEC 13818-1 2.4.3.3).

use super::packet::Packet;

/// Counter of the packets of one PID.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    last: Option<u8>,
    /// Payload of the last packet, with which a repetition is told from 16 lost packets.
    payload: Vec<u8>,
    /// Whether packets are missing before the next one, whatever its counter.
    has_lost: bool,
}

/// Relation of a packet to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next packet, or the first one.
    Next,
    /// The same packet again.
    Repeated,
    /// Packets are missing before this one, which should have this counter. It may have it after [`Continuity::lose`].
    AfterGap(u8),
}

impl Continuity {
    /// Notes that packets are missing before the next packet.
    pub(super) fn lose(&mut self) {
        self.has_lost = true;
    }

    /// Compares a packet with the one before it. Packets without payload do not count.
    pub(super) fn check(&mut self, packet: &Packet<'_>) -> Arrival {
        let Some(payload) = packet.payload else { return Arrival::Next };
        let expected = self.last.map(|last| (last + 1) & 0x0f);
        let has_lost = std::mem::take(&mut self.has_lost);
        let is_same = !has_lost && self.last == Some(packet.counter) && self.payload == payload;
        if is_same && !packet.is_discontinuous {
            return Arrival::Repeated;
        }
        self.last = Some(packet.counter);
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        match expected {
            Some(expected) if has_lost => Arrival::AfterGap(expected),
            Some(expected) if expected != packet.counter && !packet.is_discontinuous => Arrival::AfterGap(expected),
            _ => Arrival::Next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::SIZE;

    fn packet(counter: u8, fill: u8, discontinuous: bool) -> [u8; SIZE] {
        let mut bytes = [fill; SIZE];
        bytes[..4].copy_from_slice(&[0x47, 0, 0x20, 0x30 | counter]);
        bytes[4..6].copy_from_slice(&[1, if discontinuous { 0x80 } else { 0 }]);
        bytes
    }

    #[test]
    fn gaps_repetitions_and_stated_discontinuities() {
        let mut continuity = Continuity::default();
        let mut check = |counter, fill, stated| {
            let bytes = packet(counter, fill, stated);
            continuity.check(&Packet::parse(&bytes))
        };
        assert_eq!(check(14, 1, false), Arrival::Next);
        assert_eq!(check(15, 2, false), Arrival::Next);
        assert_eq!(check(0, 3, false), Arrival::Next);
        assert_eq!(check(0, 3, false), Arrival::Repeated);
        assert_eq!(check(0, 4, false), Arrival::AfterGap(1), "sixteen packets are missing");
        assert_eq!(check(3, 4, false), Arrival::AfterGap(1));
        assert_eq!(check(9, 4, true), Arrival::Next);
        assert_eq!(check(10, 5, false), Arrival::Next);
        continuity.lose();
        let next = packet(11, 6, false);
        assert_eq!(continuity.check(&Packet::parse(&next)), Arrival::AfterGap(11), "known to be missing");
        assert_eq!(continuity.check(&Packet::parse(&next)), Arrival::Repeated);
    }
}
