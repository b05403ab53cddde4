//! Protection of the packets that one source sends (RFC 3711 3.3 and 3.4).

use super::{
    MasterKey, SrtpError, Suite, at_least,
    session_keys::{ENCRYPTED, RTCP_HEADER, SessionKeys},
};
use crate::packet;
use std::fmt;

/// Most packets under one key (RFC 3711 9.2, RFC 7714 10).
const MOST_RTP: u64 = 1 << 48;
const MOST_RTCP: u32 = 1 << 31;

/// Encrypts and signs the packets of one source, in order of sending.
///
/// Each packet is at the end of a buffer and grows there, by [`Suite::tag_length`] or [`Suite::rtcp_overhead`] bytes.
/// Sequence numbers must increase: a repeated one is an error, because its packet would share the key stream of
/// another. A source whose first sequence number is below 32768 (RFC 3711 3.3.1) can be decrypted even if its first
/// packets are lost.
#[derive(Clone)]
pub struct Protector {
    suite: Suite,
    rtp: SessionKeys,
    rtcp: SessionKeys,
    /// Index of the last packet.
    last: Option<u64>,
    /// Index of the next RTCP compound.
    next: u32,
}

/// Omits the keys.
impl fmt::Debug for Protector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, last, next, .. } = self;
        f.debug_struct("Protector")
            .field("suite", suite)
            .field("last", last)
            .field("next", next)
            .finish_non_exhaustive()
    }
}

impl Protector {
    /// Creates a protector for a source that has sent nothing yet.
    #[must_use]
    pub fn new(key: &MasterKey) -> Self {
        Self::of(key.suite(), SessionKeys::rtp(key), SessionKeys::rtcp(key))
    }

    pub(super) fn of(suite: Suite, rtp: SessionKeys, rtcp: SessionKeys) -> Self {
        Self { suite, rtp, rtcp, last: None, next: 0 }
    }

    /// Returns the suite, which determines by how much packets grow.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Number of wraps of the sequence number (ROC), which late receivers must be told.
    #[must_use]
    pub fn rollovers(&self) -> u32 {
        self.last.map_or(0, |last| (last >> 16) as u32)
    }

    /// Protects the RTP packet in `buffer` from `start` on.
    ///
    /// # Errors
    /// The bytes are no RTP packet, or its sequence number doesn't increase.
    pub fn rtp(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<(), SrtpError> {
        let packet = buffer.get_mut(start..).unwrap_or_default();
        let body = packet::body(packet)?;
        let index = self.following(u16::from_be_bytes([packet[2], packet[3]]))?;
        let (header, body) = packet.split_at_mut(body);
        let tag = self.rtp.seal_rtp(header, body, index);
        buffer.extend_from_slice(&tag[..self.suite.tag_length()]);
        self.last = Some(index);
        Ok(())
    }

    fn following(&self, sequence: u16) -> Result<u64, SrtpError> {
        let Some(last) = self.last else { return Ok(sequence.into()) };
        match sequence.wrapping_sub(last as u16) {
            ahead @ 1..0x8000 if last + u64::from(ahead) < MOST_RTP => Ok(last + u64::from(ahead)),
            1..0x8000 => Err(SrtpError::Spent),
            _ => Err(SrtpError::Order { last: last as u16, found: sequence }),
        }
    }

    /// Protects the RTCP compound in `buffer` from `start` on.
    ///
    /// # Errors
    /// The bytes are too short for a compound, or the key has reached its limit.
    pub fn rtcp(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<(), SrtpError> {
        let packet = buffer.get_mut(start..).unwrap_or_default();
        at_least(packet, RTCP_HEADER)?;
        let index = self.next;
        if index >= MOST_RTCP {
            return Err(SrtpError::Spent);
        }
        let (header, body) = packet.split_at_mut(RTCP_HEADER);
        let marked = ENCRYPTED | index;
        let tag = self.rtcp.seal_rtcp(header, body, marked);
        let (tag, index) = (&tag[..self.suite.tag_length()], &marked.to_be_bytes());
        if self.suite.index_is_last() {
            buffer.extend_from_slice(tag);
            buffer.extend_from_slice(index);
        } else {
            buffer.extend_from_slice(index);
            buffer.extend_from_slice(tag);
        }
        self.next += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Header;

    #[test]
    fn keys_are_spent_in_the_end() {
        let mut protector = Protector::new(&MasterKey::new(&[1; 30]));
        protector.last = Some(MOST_RTP - 2);
        let mut packet = |sequence| protector.rtp(&mut Header { sequence, ..Header::default() }.to_bytes().to_vec(), 0);
        assert_eq!(packet(65_535), Ok(()));
        assert_eq!(packet(0), Err(SrtpError::Spent));
        protector.next = MOST_RTCP - 1;
        assert_eq!(protector.rtcp(&mut vec![0; 8], 0), Ok(()));
        assert_eq!(protector.rtcp(&mut vec![0; 8], 0), Err(SrtpError::Spent));
    }
}
