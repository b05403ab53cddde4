//! Packets of a track that its receiver may ask for again.

use super::Protection;
use bytes::Bytes;
use millpond_rtp::{
    packet::{HEADER, Header},
    payload::Piece,
    rtx,
};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Time for which packets are kept: two round trips of half a second.
pub const PACKETS_KEPT: Duration = Duration::from_secs(1);
/// Most packets that are kept, and most of their bytes. Frames are shared with their other receivers.
const MOST_PACKETS: usize = 2048;
const MOST_BYTES: usize = 2 << 20;
/// Times that one packet is sent again.
const MOST_REPEATS: u8 = 3;
/// One byte may be sent again for so many that were sent: a receiver that asks for everything gets no flood.
const SHARE: usize = 4;
/// Bytes that may be sent again at once: at the beginning, and at most.
const ALLOWANCE: (usize, usize) = (32 << 10, 256 << 10);

/// The packets that were sent last, and the stream of retransmissions (RFC 4588).
#[derive(Clone, Debug)]
pub(super) struct History {
    /// With consecutive sequence numbers.
    packets: VecDeque<Sent>,
    bytes: usize,
    payload_type: u8,
    ssrc: u32,
    /// Keys, where packets are encrypted.
    protection: Option<Box<Protection>>,
    /// Sequence number of the next retransmission.
    sequence: u16,
    /// Bytes that may be sent again.
    allowance: usize,
}

#[derive(Clone, Debug)]
struct Sent {
    header: Header,
    piece: Piece,
    frame: Bytes,
    at: Instant,
    repeats: u8,
}

impl History {
    /// Creates an empty history. Its packets are those of the source `ssrc`, and encrypted where it has keys.
    pub(super) fn new(payload_type: u8, ssrc: u32, protection: Option<Box<Protection>>) -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            payload_type,
            ssrc,
            // As of other sources: see `TrackSender::new`.
            sequence: fastrand::u16(..) >> u16::from(protection.is_some()),
            protection,
            allowance: ALLOWANCE.0,
        }
    }

    /// Takes a packet that is sent.
    pub(super) fn push(&mut self, header: Header, piece: &Piece, frame: &Bytes, now: Instant) {
        let follows = |last: &Sent| last.header.sequence.wrapping_add(1) == header.sequence;
        if !self.packets.back().is_none_or(follows) {
            self.packets.clear();
            self.bytes = 0;
        }
        self.bytes += piece.len();
        self.allowance = (self.allowance + piece.len() / SHARE).min(ALLOWANCE.1);
        self.packets.push_back(Sent { header, piece: piece.clone(), frame: frame.clone(), at: now, repeats: 0 });
        while self.is_over(now) {
            let Some(first) = self.packets.pop_front() else { break };
            self.bytes -= first.piece.len();
        }
    }

    /// Whether the first packet is one too many, or too old.
    fn is_over(&self, now: Instant) -> bool {
        let is_old = |first: &Sent| now.saturating_duration_since(first.at) > PACKETS_KEPT;
        self.packets.len() > MOST_PACKETS || self.bytes > MOST_BYTES || self.packets.front().is_some_and(is_old)
    }

    /// Writes the retransmission of a packet into an empty buffer. Returns whether there is one. A packet is sent again a few
    /// times while it is kept, within a share of the bytes that are sent.
    pub(super) fn repeat(&mut self, sequence: u16, now: Instant, buffer: &mut Vec<u8>) -> bool {
        let Some(first) = self.packets.front() else { return false };
        let place = usize::from(sequence.wrapping_sub(first.header.sequence));
        let Some(sent) = self.packets.get_mut(place) else { return false };
        let length = HEADER + rtx::ORIGINAL + sent.piece.len();
        let is_old = now.saturating_duration_since(sent.at) > PACKETS_KEPT;
        if is_old || sent.repeats == MOST_REPEATS || length > self.allowance {
            return false;
        }
        sent.repeats += 1;
        self.allowance -= length;
        buffer.extend_from_slice(&rtx::header(sent.header, self.ssrc, self.payload_type, self.sequence));
        buffer.extend_from_slice(sent.piece.head());
        buffer.extend_from_slice(&sent.frame[sent.piece.body.clone()]);
        self.sequence = self.sequence.wrapping_add(1);
        self.protection.as_mut().is_none_or(|protection| protection.seal(buffer, 0).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{packet, payload::Packetizer};

    const SSRC: u32 = 7;

    /// A history of packets from `first` on, 1 ms apart.
    fn history(first: u16, count: u16, size: usize, start: Instant) -> History {
        let frame = Bytes::from(vec![3; size]);
        let mut pieces = Vec::new();
        Packetizer::Opus.cut(&frame, 4000, &mut pieces).unwrap();
        let mut history = History::new(127, SSRC + 1, None);
        for step in 0..count {
            let header =
                Header { sequence: first.wrapping_add(step), payload_type: 96, ssrc: SSRC, ..Header::default() };
            history.push(header, &pieces[0], &frame, start + Duration::from_millis(step.into()));
        }
        history
    }

    fn repeat(history: &mut History, sequence: u16, now: Instant) -> Option<Vec<u8>> {
        let mut buffer = Vec::new();
        history.repeat(sequence, now, &mut buffer).then_some(buffer)
    }

    #[test]
    fn packets_are_sent_again_as_they_were() {
        let start = Instant::now();
        let mut history = history(65_530, 20, 100, start);
        let bytes = repeat(&mut history, 3, start).unwrap();
        let (header, payload) = packet::parse(&bytes).unwrap();
        assert_eq!((header.payload_type, header.ssrc == SSRC), (127, false));
        assert_eq!(rtx::original(payload), Some((3, &[3; 100][..])));
        let next = repeat(&mut history, 65_530, start).unwrap();
        assert_eq!(packet::parse(&next).unwrap().0.sequence, header.sequence.wrapping_add(1));
        for unknown in [65_529, 14, 30_000] {
            assert_eq!(repeat(&mut history, unknown, start), None);
        }
    }

    #[test]
    fn a_receiver_that_asks_for_everything_gets_a_part() {
        let start = Instant::now();
        let mut all = history(0, 1000, 1000, start);
        let now = start + PACKETS_KEPT;
        assert!(all.packets.len() <= 1000 && all.bytes <= MOST_BYTES);
        let sent: usize =
            (0..10).flat_map(|_| 0..1000).filter_map(|number| Some(repeat(&mut all, number, now)?.len())).sum();
        assert!((200_000..=ALLOWANCE.1).contains(&sent), "{sent}");
        let mut few = history(0, 3, 100, start);
        assert_eq!((0..10).filter(|_| repeat(&mut few, 1, start).is_some()).count(), usize::from(MOST_REPEATS));
    }

    #[test]
    fn packets_and_bytes_are_bounded() {
        let start = Instant::now();
        assert_eq!(history(0, 5000, 10, start).packets.len(), 1001, "a second");
        let mut history = history(0, 900, 3000, start);
        assert!(history.bytes <= MOST_BYTES && history.packets.len() < 900);
        assert_eq!(repeat(&mut history, 0, start), None);
        assert_eq!(repeat(&mut history, 899, start + Duration::from_secs(5)), None, "too old");
        let frame = Bytes::from_static(b"x");
        let piece = history.packets[0].piece.clone();
        history.push(Header { sequence: 5000, ..Header::default() }, &piece, &frame, start);
        assert_eq!((history.packets.len(), history.bytes), (1, piece.len()), "a new beginning");
    }
}
