//! Feedback packets of RTCP (RFC 4585 6): lists of lost packets, and requests for key frames.
//!
//! [`rtcp::parse`](crate::rtcp::parse) reads them within a compound. A [`GenericNack`] names packets that a receiver lost,
//! and asks the sender to repeat them. A [`PictureLoss`] asks for a key frame. Other messages are known by name only.

use crate::rtcp::RtcpItem;

/// Packet types (RFC 4585 6.1).
pub(crate) const TRANSPORT_FEEDBACK: u8 = 205;
pub(crate) const PAYLOAD_FEEDBACK: u8 = 206;

/// Generic NACK (RFC 4585 6.2.1), by the format field.
const NACK: u8 = 1;
/// Picture loss indication (RFC 4585 6.3.1) and full intra request (RFC 5104 4.3.1), by the format field.
const PLI: u8 = 1;
const FIR: u8 = 4;
/// Bytes before the list: header, SSRC of the sender, SSRC of the media source.
const HEAD: usize = 12;
/// Bytes of a [`LostPackets`].
const ENTRY: usize = 4;
/// Most entries that are written into one message, so that a compound fits into a datagram.
const MOST_ENTRIES: usize = 256;

/// A lost packet, and which of the 16 packets after it are lost too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPackets {
    /// Sequence number of the lost packet.
    pub first: u16,
    /// Bit `i` stands for the packet `first + i + 1`.
    pub following: u16,
}

impl LostPackets {
    /// Returns all sequence numbers.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        let following = (0..16_u16).filter(move |bit| self.following >> bit & 1 == 1);
        std::iter::once(self.first).chain(following.map(move |bit| self.first.wrapping_add(bit + 1)))
    }
}

/// Request of a receiver to repeat packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericNack {
    /// SSRC of the receiver.
    pub sender: u32,
    /// SSRC of the source whose packets were lost.
    pub source: u32,
    /// The lost packets. A message of `n` bytes has fewer than `n / 4` entries.
    pub lost: Vec<LostPackets>,
}

impl GenericNack {
    /// Creates a request for packets in ascending order. If a datagram can't hold all numbers, only the first numbers are
    /// included.
    #[must_use]
    pub fn new(sender: u32, source: u32, sequences: impl IntoIterator<Item = u16>) -> Self {
        let mut lost: Vec<LostPackets> = Vec::new();
        for sequence in sequences {
            let is_full = lost.len() == MOST_ENTRIES;
            match lost.last_mut().map(|last| (sequence.wrapping_sub(last.first), last)) {
                Some((0, _)) => {}
                Some((distance @ 1..=16, last)) => last.following |= 1 << (distance - 1),
                _ if is_full => break,
                _ => lost.push(LostPackets { first: sequence, following: 0 }),
            }
        }
        Self { sender, source, lost }
    }

    /// Returns all sequence numbers. Hostile receivers repeat numbers.
    pub fn sequences(&self) -> impl Iterator<Item = u16> {
        self.lost.iter().flat_map(|lost| lost.sequences())
    }

    /// Appends the message to a compound packet.
    pub fn append_to(&self, compound: &mut Vec<u8>) {
        let lost = &self.lost[..self.lost.len().min(MOST_ENTRIES)];
        let words = (HEAD + ENTRY * lost.len()) / 4 - 1;
        compound.extend_from_slice(&[2 << 6 | NACK, TRANSPORT_FEEDBACK]);
        compound.extend_from_slice(&(words as u16).to_be_bytes());
        compound.extend_from_slice(&self.sender.to_be_bytes());
        compound.extend_from_slice(&self.source.to_be_bytes());
        for LostPackets { first, following } in lost {
            compound.extend_from_slice(&first.to_be_bytes());
            compound.extend_from_slice(&following.to_be_bytes());
        }
    }
}

/// Request of a receiver for a key frame, because it lost a picture (RFC 4585 6.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureLoss {
    /// SSRC of the receiver.
    pub sender: u32,
    /// SSRC of the source whose pictures are lost.
    pub source: u32,
}

impl PictureLoss {
    /// Appends the message to a compound packet.
    pub fn append_to(self, compound: &mut Vec<u8>) {
        compound.extend_from_slice(&[2 << 6 | PLI, PAYLOAD_FEEDBACK, 0, (HEAD / 4 - 1) as u8]);
        compound.extend_from_slice(&self.sender.to_be_bytes());
        compound.extend_from_slice(&self.source.to_be_bytes());
    }
}

/// Reads one feedback packet of the length that its header states. `None` for messages that nothing here answers: of the
/// transport layer all but generic NACK (such as TMMBR and TMMBN, RFC 5104), and of those about payloads all but PLI and FIR.
/// Also `None` where the list is missing or incomplete.
pub(crate) fn read(packet: &[u8]) -> Option<RtcpItem> {
    let (head, list) = packet.split_at_checked(HEAD)?;
    match (head[1], head[0] & 0x1f) {
        (TRANSPORT_FEEDBACK, NACK) => {}
        (PAYLOAD_FEEDBACK, PLI | FIR) => return Some(RtcpItem::KeyFrame),
        _ => return None,
    }
    if list.is_empty() || !list.len().is_multiple_of(ENTRY) {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let entry = |entry: &[u8]| LostPackets {
        first: u16::from_be_bytes([entry[0], entry[1]]),
        following: u16::from_be_bytes([entry[2], entry[3]]),
    };
    let lost = list.chunks_exact(ENTRY).map(entry).collect();
    Some(RtcpItem::Nack(GenericNack { sender: word(4), source: word(8), lost }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp;
    use proptest::prelude::*;

    #[test]
    fn the_example_is_read() {
        // 0x1234, and of the 16 after it the first and the last one.
        let bytes = [0x81, 205, 0, 3, 0, 0, 0, 7, 0, 0, 0, 9, 0x12, 0x34, 0x80, 0x01];
        let Some(RtcpItem::Nack(nack)) = read(&bytes) else { panic!("no request") };
        assert_eq!((nack.sender, nack.source), (7, 9));
        assert_eq!(nack.sequences().collect::<Vec<_>>(), [0x1234, 0x1235, 0x1244]);
        assert_eq!(GenericNack::new(7, 9, nack.sequences()), nack);
    }

    #[test]
    fn other_messages_are_passed_over() {
        for (format, kind) in [(3, 205), (4, 205), (15, 205), (2, 206), (15, 206)] {
            let bytes = [0x80 | format, kind, 0, 3, 0, 0, 0, 7, 0, 0, 0, 9, 1, 2, 3, 4];
            assert_eq!(rtcp::parse(&bytes), Ok(vec![]), "{format} of {kind}");
        }
        for bytes in
            [&[0x81, 205, 0, 0][..], &[0x81, 205, 0, 1, 0, 0, 0, 7], &[0x81, 205, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9]]
        {
            assert_eq!(rtcp::parse(bytes), Ok(vec![]), "{bytes:?}");
        }
        assert!(rtcp::parse(&[0x81, 205, 0, 9, 0, 0, 0, 7]).is_err(), "more than there is");
    }

    #[test]
    fn requests_for_key_frames_are_read() {
        for format in [PLI, FIR] {
            let bytes = [0x80 | format, PAYLOAD_FEEDBACK, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9];
            assert_eq!(rtcp::parse(&bytes), Ok(vec![RtcpItem::KeyFrame]));
        }
        let mut compound = rtcp::receiver_report(1, &[], "test");
        PictureLoss { sender: 7, source: 9 }.append_to(&mut compound);
        assert!(compound.ends_with(&[0x81, 206, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9]));
        assert_eq!(rtcp::parse(&compound), Ok(vec![RtcpItem::KeyFrame]));
    }

    proptest! {
        #[test]
        fn requests_read_back(first: u16, steps in prop::collection::vec(1..40_u16, 0..300)) {
            let mut sequence = first;
            let mut lost = vec![first];
            for step in steps {
                sequence = sequence.wrapping_add(step);
                lost.push(sequence);
            }
            let nack = GenericNack::new(1, 2, lost.iter().copied());
            let found: Vec<u16> = nack.sequences().collect();
            prop_assert_eq!(&found[..], &lost[..found.len()]);
            prop_assert!(nack.lost.len() == MOST_ENTRIES || found.len() == lost.len());
            let mut compound = rtcp::receiver_report(1, &[], "test");
            nack.append_to(&mut compound);
            prop_assert!(compound.len() <= 1200);
            prop_assert_eq!(rtcp::parse(&compound), Ok(vec![RtcpItem::Nack(nack)]));
        }
    }
}
