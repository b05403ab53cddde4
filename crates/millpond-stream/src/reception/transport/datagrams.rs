//! Datagrams with a transport stream: alone, or in RTP.

use super::{
    legs::{Belongs, Legs, Turn},
    senders::Admission,
};
use bytes::Bytes;
use millpond_rtp::{
    packet,
    receive::{ReorderBuffer, ReorderLimits},
};
use std::{net::SocketAddr, time::Duration};

/// Bytes of a transport packet, and its first one (ISO/IEC 13818-1 2.4.3.2).
pub(super) const PACKET: usize = 188;
const SYNC: u8 = 0x47;

/// Packets behind the order after which the sender has begun again.
const BEHIND: u32 = 16;
/// Number of transport packets after which continuity counters are the same again.
const COUNTERS: usize = 16;
/// The longest that a leg is behind another one: "high skew" of SMPTE ST 2022-7 (class C), 450 ms.
const SKEW: Duration = Duration::from_millis(450);
/// Packets behind the order that a slower leg may have: 100 Mbit/s in that time.
const SLOWER: u16 = 4500;

/// A piece of a transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The next bytes.
    Bytes(Bytes),
    /// So many transport packets are missing, as far as that is known, that continuity counters may not show it.
    Gap(u64),
    /// The next bytes are of another sender.
    Anew,
}

/// Takes datagrams of one leg or of several, and gives the bytes of a transport stream in order. Packets of several legs are
/// merged by their sequence numbers (SMPTE ST 2022-7).
///
/// A datagram is RTP if it is a valid RTP packet with whole transport packets (RFC 2250 2). Other datagrams are parts of the
/// stream, which need not begin with a transport packet.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// Whether only RTP is taken from any sender.
    only_rtp: bool,
    /// Whether only RTP is taken. Set by the first packet of RTP, beside which senders send error correction.
    is_rtp: bool,
    /// Packets of RTP with their sequence numbers.
    order: ReorderBuffer<(u16, Bytes)>,
    /// Sequence number of the last packet that has left.
    last: Option<u16>,
    /// RTP packets in succession that came too late.
    behind: u32,
    legs: Legs,
}

impl Datagrams {
    pub(super) fn new(only_rtp: bool, legs: usize) -> Self {
        let order = ReorderBuffer::new(if legs > 1 { ReorderLimits::REPAIRED } else { ReorderLimits::UDP });
        Self { only_rtp, is_rtp: only_rtp, order, last: None, behind: 0, legs: Legs::new(legs) }
    }

    /// Takes a datagram of a leg, and appends the pieces that are next in the stream.
    pub(super) fn push(
        &mut self,
        leg: usize,
        from: Option<SocketAddr>,
        datagram: Bytes,
        now: Duration,
        out: &mut Vec<Piece>,
    ) {
        let rtp = rtp(&datagram);
        match self.legs.admit(leg, from, rtp.is_some() || (!self.only_rtp && is_whole(&datagram)), now) {
            Admission::Dropped => return,
            Admission::Anew => {
                self.restart();
                self.legs.forget();
                self.is_rtp = self.only_rtp;
                out.push(Piece::Anew);
            }
            Admission::Same => {}
        }
        let Some((header, payload)) = rtp else {
            if !self.is_rtp {
                out.push(Piece::Bytes(datagram));
            }
            return;
        };
        self.is_rtp = true;
        match self.legs.take(leg, header.ssrc, now) {
            Belongs::No => return,
            Belongs::Anew => {
                self.restart();
                out.push(if self.legs.are_several() { Piece::Anew } else { Piece::Gap(0) });
            }
            Belongs::Same => {}
        }
        let sequence = header.sequence;
        if self.order.push(sequence, now, datagram.len(), (sequence, datagram.slice_ref(payload))) {
            self.behind = 0;
        } else if !self.is_repeated(sequence) {
            self.behind += 1;
            if self.behind > BEHIND {
                self.restart();
                out.push(Piece::Gap(0));
            }
        }
        self.pop(now, out);
    }

    /// Whether a packet that is of no use may be one that another leg had before.
    fn is_repeated(&self, sequence: u16) -> bool {
        let ahead = self.last.map_or(0, |last| sequence.wrapping_sub(last).wrapping_add(SLOWER));
        self.legs.are_several() && ahead < SLOWER + (1 << 15)
    }

    fn restart(&mut self) {
        self.order.restart(None);
        (self.last, self.behind) = (None, 0);
    }

    /// Appends the pieces whose predecessors have been waited for long enough.
    pub(super) fn pop(&mut self, now: Duration, out: &mut Vec<Piece>) {
        let wait = if self.legs.are_awaited(now) { SKEW } else { ReorderLimits::UDP.wait };
        self.order.set_wait(wait);
        while let Some((sequence, payload)) = self.order.pop(now) {
            let lost = self.last.replace(sequence).map_or(0, |last| sequence.wrapping_sub(last).wrapping_sub(1));
            let missing = usize::from(lost) * (payload.len() / PACKET);
            if missing >= COUNTERS {
                out.push(Piece::Gap(missing as u64));
            }
            out.push(Piece::Bytes(payload));
        }
    }

    /// Time at which [`pop`](Self::pop) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        self.order.wake()
    }

    /// Returns the present sender of a leg, and one whose datagrams are dropped; once for each present sender.
    pub(super) fn stranger(&mut self, leg: usize) -> Option<(SocketAddr, SocketAddr)> {
        self.legs.stranger(leg)
    }

    /// Returns what is new of a leg.
    pub(super) fn turn(&mut self, leg: usize, now: Duration) -> Option<Turn> {
        self.legs.turn(leg, now)
    }
}

/// Returns header and payload of an RTP packet with whole transport packets.
fn rtp(datagram: &[u8]) -> Option<(packet::Header, &[u8])> {
    if datagram.first()? >> 6 != 2 {
        return None;
    }
    packet::parse(datagram).ok().filter(|(_, payload)| is_whole(payload))
}

/// Whether bytes are whole transport packets.
fn is_whole(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len().is_multiple_of(PACKET) && bytes.iter().step_by(PACKET).all(|first| *first == SYNC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn packet(ssrc: u32, sequence: u16) -> Bytes {
        let header = packet::Header { payload_type: 33, sequence, ssrc, ..packet::Header::default() };
        let mut payload = [0; PACKET];
        (payload[0], payload[1]) = (SYNC, sequence as u8);
        [&header.to_bytes()[..], &payload].concat().into()
    }

    /// The second bytes of the pieces that are next; 2000 for new senders, 1000 and the missing packets for gaps.
    fn give_from(datagrams: &mut Datagrams, port: u16, now: u64, packets: &[Bytes]) -> Vec<u16> {
        let (mut out, from) = (Vec::new(), SocketAddr::from(([192, 0, 2, 1], port)));
        packets.iter().for_each(|packet| datagrams.push(0, Some(from), packet.clone(), at(now), &mut out));
        datagrams.pop(at(now), &mut out);
        shown(&out)
    }

    fn shown(out: &[Piece]) -> Vec<u16> {
        let shown = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes[1].into(),
            Piece::Gap(missing) => 1000 + *missing as u16,
            Piece::Anew => 2000,
        };
        out.iter().map(shown).collect()
    }

    fn give(datagrams: &mut Datagrams, now: u64, packets: &[Bytes]) -> Vec<u16> {
        give_from(datagrams, 1, now, packets)
    }

    #[test]
    fn packets_of_rtp_are_put_in_order() {
        let mut datagrams = Datagrams::new(false, 1);
        let order = |ssrc, numbers: &[u16]| -> Vec<Bytes> { numbers.iter().map(|n| packet(ssrc, *n)).collect() };
        assert_eq!(give(&mut datagrams, 0, &order(1, &[100, 102, 101, 102, 104])), [100, 101, 102]);
        assert_eq!(datagrams.wake(), Some(at(100)));
        assert_eq!(give(&mut datagrams, 99, &[Bytes::from_static(b"error correction")]), [0; 0]);
        assert_eq!(give(&mut datagrams, 100, &[]), [104]);
        assert_eq!(give(&mut datagrams, 110, &order(2, &[7])), [1000, 7], "another source");
        let restarted: Vec<u16> = (0..20).map(|n| n + 65_000).collect();
        assert_eq!(give(&mut datagrams, 120, &order(2, &restarted)).len(), 4, "the source has begun again");
        // A packet of RTP has one of the stream: 15 that are missing show by their counters, 16 may not.
        assert_eq!(give(&mut datagrams, 200, &order(2, &[65_035, 65_052])), [0; 0]);
        assert_eq!(give(&mut datagrams, 300, &[]), [11, 1016, 28]);
    }

    #[test]
    fn another_sender_begins_anew() {
        let mut datagrams = Datagrams::new(false, 1);
        let plain = Bytes::from([&[0x47, 9][..], &[0; 186]].concat());
        assert_eq!(give(&mut datagrams, 0, &[packet(1, 5)]), [5]);
        assert_eq!(give_from(&mut datagrams, 2, 900, std::slice::from_ref(&plain)), [0; 0]);
        assert_eq!(give_from(&mut datagrams, 2, 1000, std::slice::from_ref(&plain)), [2000, 9]);
        assert_eq!(give_from(&mut datagrams, 1, 1010, &[packet(1, 6)]), [0; 0]);
    }

    #[test]
    fn other_datagrams_pass_as_they_are() {
        let mut datagrams = Datagrams::new(false, 1);
        let plain = |first: u8| Bytes::from([&[first, 9][..], &[0; 200]].concat());
        assert_eq!(give(&mut datagrams, 0, &[plain(0x47), plain(0x80), plain(0)]), [9, 9, 9]);
        assert_eq!(give(&mut Datagrams::new(true, 1), 0, &[plain(0x47), packet(1, 5)]), [5]);
    }

    /// Gives packets of one source to a leg of two.
    fn give_to(datagrams: &mut Datagrams, leg: usize, ssrc: u32, now: u64, numbers: &[u16]) -> Vec<u16> {
        let (mut out, from) = (Vec::new(), SocketAddr::from(([192, 0, 2, 1 + leg as u8], 1)));
        for number in numbers {
            datagrams.push(leg, Some(from), packet(ssrc, *number), at(now), &mut out);
        }
        datagrams.pop(at(now), &mut out);
        shown(&out)
    }

    #[test]
    fn what_one_leg_has_lost_comes_from_the_other() {
        let mut datagrams = Datagrams::new(true, 2);
        assert_eq!(give_to(&mut datagrams, 0, 1, 0, &[10, 11]), [10, 11]);
        assert_eq!(give_to(&mut datagrams, 1, 1, 10, &[10]), [0; 0]);
        assert_eq!(give_to(&mut datagrams, 0, 1, 20, &[13, 14]), [0; 0]);
        assert_eq!(give_to(&mut datagrams, 0, 1, 450, &[15]), [0; 0], "longer than one leg alone is waited for");
        assert_eq!(give_to(&mut datagrams, 1, 1, 460, &[11, 12]), [12, 13, 14, 15]);
        // The slower leg repeats a whole burst, which is no restart.
        let burst: Vec<u16> = (16..60).collect();
        assert_eq!(give_to(&mut datagrams, 0, 1, 470, &burst).len(), 44);
        assert_eq!(give_to(&mut datagrams, 1, 1, 480, &burst), [0; 0]);
        // Packets that neither has are given up.
        assert_eq!(give_to(&mut datagrams, 0, 1, 490, &[61]), [0; 0]);
        assert_eq!(give_to(&mut datagrams, 1, 1, 900, &[61]), [0; 0]);
        assert_eq!(give_to(&mut datagrams, 1, 1, 940, &[62]), [61, 62]);
        // Alone, a leg is waited for as long as ever.
        assert_eq!(give_to(&mut datagrams, 0, 1, 2_000, &[64]), [0; 0]);
        assert_eq!(give_to(&mut datagrams, 0, 1, 2_100, &[65]), [64, 65]);
        assert_eq!(give_to(&mut datagrams, 0, 2, 2_200, &[7]), [0; 0], "another stream while this one is heard");
        assert_eq!(give_to(&mut datagrams, 0, 2, 2_600, &[8]), [2000, 8]);
    }
}
