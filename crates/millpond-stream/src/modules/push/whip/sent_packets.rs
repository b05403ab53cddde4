//! The packets that were sent last, which the server may ask for again.

use crate::transmission::PACKETS_KEPT;
use millpond_rtp::{packet, rtx, srtp::Protector};
use std::{collections::VecDeque, time::Instant};

/// Most packets that are kept, and most of their bytes.
const MOST_PACKETS: usize = 2048;
const MOST_BYTES: usize = 2 << 20;
/// Times that one packet is sent again.
const MOST_REPEATS: u8 = 3;
/// One byte may be sent again for so many that were sent: a server that asks for everything gets no flood.
const SHARE: usize = 4;
/// Bytes that may be sent again at once: at the beginning, and at most.
const ALLOWANCE: (usize, usize) = (32 << 10, 256 << 10);

/// The stream of retransmissions of a track (RFC 4588).
#[derive(Debug)]
pub(super) struct Retransmission {
    payload_type: u8,
    ssrc: u32,
    /// Number of the next packet.
    sequence: u16,
    protector: Protector,
}

impl Retransmission {
    pub(super) fn new(payload_type: u8, ssrc: u32, protector: Protector) -> Self {
        // In the lower half, as of other encrypted sources: see `RtpTrack::encrypted`.
        Self { payload_type, ssrc, sequence: fastrand::u16(..) >> 1, protector }
    }

    /// Makes the packet that repeats a plain one.
    fn of(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        let (header, payload) = packet::parse(plain).ok()?;
        let mut packet = Vec::with_capacity(plain.len() + rtx::ORIGINAL + self.protector.suite().tag_length());
        packet.extend_from_slice(&rtx::header(header, self.ssrc, self.payload_type, self.sequence));
        packet.extend_from_slice(payload);
        self.protector.rtp(&mut packet, 0).ok()?;
        self.sequence = self.sequence.wrapping_add(1);
        Some(packet)
    }
}

/// The packets of a track that were sent last.
#[derive(Debug)]
pub(super) struct SentPackets {
    /// With consecutive sequence numbers.
    packets: VecDeque<Kept>,
    bytes: usize,
    /// `None` where packets are sent again as they were.
    retransmission: Option<Retransmission>,
    /// Bytes that may be sent again.
    allowance: usize,
}

#[derive(Debug)]
struct Kept {
    sequence: u16,
    /// Plain where it is sent again in another stream, else encrypted.
    bytes: Vec<u8>,
    at: Instant,
    repeats: u8,
}

impl SentPackets {
    pub(super) fn new(retransmission: Option<Retransmission>) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, retransmission, allowance: ALLOWANCE.0 }
    }

    /// Takes the packet that is sent next, plain and encrypted.
    pub(super) fn push(&mut self, sequence: u16, (plain, encrypted): (&[u8], &[u8]), now: Instant) {
        let bytes = if self.retransmission.is_some() { plain } else { encrypted };
        if self.packets.back().is_some_and(|last| last.sequence.wrapping_add(1) != sequence) {
            self.packets.clear();
            self.bytes = 0;
        }
        self.bytes += bytes.len();
        self.allowance = (self.allowance + bytes.len() / SHARE).min(ALLOWANCE.1);
        self.packets.push_back(Kept { sequence, bytes: bytes.to_vec(), at: now, repeats: 0 });
        while self.is_over(now) {
            let Some(first) = self.packets.pop_front() else { break };
            self.bytes -= first.bytes.len();
        }
    }

    /// Whether the first packet is one too many, or too old.
    fn is_over(&self, now: Instant) -> bool {
        let is_old = |first: &Kept| now.saturating_duration_since(first.at) > PACKETS_KEPT;
        self.packets.len() > MOST_PACKETS || self.bytes > MOST_BYTES || self.packets.front().is_some_and(is_old)
    }

    /// Returns what repeats a packet. A packet is sent again a few times while it is kept, within a share of the bytes that are sent.
    pub(super) fn repeat(&mut self, sequence: u16, now: Instant) -> Option<Vec<u8>> {
        let first = self.packets.front()?.sequence;
        let kept = self.packets.get_mut(usize::from(sequence.wrapping_sub(first)))?;
        let is_old = now.saturating_duration_since(kept.at) > PACKETS_KEPT;
        if is_old || kept.repeats == MOST_REPEATS || kept.bytes.len() > self.allowance {
            return None;
        }
        kept.repeats += 1;
        self.allowance -= kept.bytes.len();
        match &mut self.retransmission {
            Some(retransmission) => retransmission.of(&kept.bytes),
            None => Some(kept.bytes.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{
        packet::Header,
        srtp::{KEY, MasterKey, Unprotector},
    };
    use std::time::Duration;

    fn key() -> MasterKey {
        MasterKey::new(&[5; KEY])
    }

    /// Packets from a number on, 1 ms apart.
    fn sent(first: u16, count: u16, size: usize, is_rtx: bool, start: Instant) -> SentPackets {
        let retransmission = is_rtx.then(|| Retransmission::new(97, 8, Protector::new(&key())));
        let mut sent = SentPackets::new(retransmission);
        for step in 0..count {
            let sequence = first.wrapping_add(step);
            let header = Header { sequence, payload_type: 96, ssrc: 7, timestamp: 9, marker: true };
            let mut plain = header.to_bytes().to_vec();
            plain.resize(plain.len() + size, 3);
            let now = start + Duration::from_millis(step.into());
            sent.push(sequence, (&plain, &[&plain[..], b"encrypted"].concat()), now);
        }
        sent
    }

    #[test]
    fn packets_are_sent_again_in_their_own_stream() {
        let start = Instant::now();
        let mut sent = sent(65_530, 20, 100, true, start);
        let mut unprotector = Unprotector::new(&key(), 0);
        for (number, wanted) in [(3, Some(3)), (65_530, Some(65_530)), (65_529, None), (14, None), (30_000, None)] {
            let repeated = sent.repeat(number, start).map(|mut bytes| {
                let packet = unprotector.rtp(&mut bytes).unwrap();
                let (header, payload) = packet::parse(packet).unwrap();
                assert_eq!((header.payload_type, header.ssrc, header.timestamp, header.marker), (97, 8, 9, true));
                let (original, payload) = rtx::original(payload).unwrap();
                assert_eq!(payload, [3; 100]);
                original
            });
            assert_eq!(repeated, wanted);
        }
    }

    #[test]
    fn without_such_a_stream_they_are_sent_as_they_were() {
        let start = Instant::now();
        let mut sent = sent(7, 3, 100, false, start);
        let repeated = sent.repeat(8, start).unwrap();
        assert!(repeated.ends_with(b"encrypted") && repeated[..4] == [0x80, 0x80 | 96, 0, 8]);
    }

    #[test]
    fn what_is_kept_and_repeated_is_bounded() {
        let start = Instant::now();
        assert_eq!(sent(0, 5000, 10, true, start).packets.len(), 1001, "a second");
        let mut large = sent(0, 900, 3000, true, start);
        assert!(large.bytes <= MOST_BYTES && large.packets.len() < 900);
        assert_eq!(large.repeat(0, start), None);
        assert_eq!(large.repeat(899, start + Duration::from_secs(5)), None, "too old");
        let mut all = sent(0, 1000, 1000, true, start);
        let now = start + PACKETS_KEPT;
        let bytes: usize =
            (0..10).flat_map(|_| 0..1000).filter_map(|number| Some(all.repeat(number, now)?.len())).sum();
        assert!((200_000..=300_000).contains(&bytes), "{bytes}");
        let mut few = sent(0, 3, 100, false, start);
        assert_eq!((0..10).filter(|_| few.repeat(1, start).is_some()).count(), usize::from(MOST_REPEATS));
        few.push(5000, (b"plain", b"encrypted"), start);
        assert_eq!((few.packets.len(), few.bytes), (1, 9), "a new beginning");
    }
}
