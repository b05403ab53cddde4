//! Checks and decryption of the packets of one source (RFC 3711 3.3 and 3.4).

use super::{
    MasterKey, SrtpError, Suite, at_least,
    replay::Window,
    session_keys::{ENCRYPTED, RTCP_HEADER, SessionKeys},
    suite::INDEX,
    word,
};
use crate::packet;
use std::fmt;

/// Checks and decrypts the packets of one source, in any order. The source is the source of the first packet with a correct tag.
#[derive(Clone)]
pub struct Unprotector {
    suite: Suite,
    rtp: SessionKeys,
    rtcp: SessionKeys,
    /// SSRC, once known.
    ssrc: Option<u32>,
    /// Number of wraps before the first packet.
    rollovers: u32,
    packets: Window,
    reports: Window,
}

/// Omits the keys.
impl fmt::Debug for Unprotector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { suite, ssrc, packets, .. } = self;
        f.debug_struct("Unprotector")
            .field("suite", suite)
            .field("ssrc", ssrc)
            .field("packets", packets)
            .finish_non_exhaustive()
    }
}

impl Unprotector {
    /// Creates an unprotector for a source whose sequence number wrapped `rollovers` times before its first received packet.
    /// `rollovers` is 0 for a source that is received from its beginning.
    #[must_use]
    pub fn new(key: &MasterKey, rollovers: u32) -> Self {
        Self::of(key.suite(), SessionKeys::rtp(key), SessionKeys::rtcp(key), rollovers)
    }

    pub(super) fn of(suite: Suite, rtp: SessionKeys, rtcp: SessionKeys, rollovers: u32) -> Self {
        Self { suite, rtp, rtcp, ssrc: None, rollovers, packets: Window::default(), reports: Window::default() }
    }

    /// Decrypts the RTP packet in `protected` in place.
    ///
    /// # Errors
    /// The bytes are no RTP packet, or it is not authentic.
    pub fn rtp<'a>(&mut self, protected: &'a mut [u8]) -> Result<&'a mut [u8], SrtpError> {
        let tag = self.suite.tag_length();
        at_least(protected, packet::HEADER + tag)?;
        let (packet, tag) = protected.split_at_mut(protected.len() - tag);
        let (body, ssrc) = (packet::body(packet)?, word(packet, 8));
        self.is_source(ssrc)?;
        let sequence = u16::from_be_bytes([packet[2], packet[3]]);
        let Some(index) = self.index(sequence) else { return Err(SrtpError::Replayed { index: sequence.into() }) };
        self.packets.check(index)?;
        let (header, body) = packet.split_at_mut(body);
        self.rtp.open_rtp(header, body, index, tag)?;
        self.ssrc = Some(ssrc);
        self.packets.take(index);
        Ok(packet)
    }

    /// Returns the index that is nearest to the highest one (RFC 3711 3.3.1); `None` before 0 and after the greatest.
    fn index(&self, sequence: u16) -> Option<u64> {
        let Some(highest) = self.packets.highest() else {
            return Some(u64::from(self.rollovers) << 16 | u64::from(sequence));
        };
        let ahead = sequence.wrapping_sub(highest as u16) as i16;
        highest.checked_add_signed(ahead.into()).filter(|index| *index < 1 << 48)
    }

    /// Decrypts the RTCP compound in `protected` in place.
    ///
    /// # Errors
    /// The bytes are no RTCP compound, or it is not authentic.
    pub fn rtcp<'a>(&mut self, protected: &'a mut [u8]) -> Result<&'a mut [u8], SrtpError> {
        let trailer = self.suite.rtcp_overhead();
        at_least(protected, RTCP_HEADER + trailer)?;
        let (packet, trailer) = protected.split_at_mut(protected.len() - trailer);
        let (marked, tag) = if self.suite.index_is_last() {
            let (tag, marked) = trailer.split_at(self.suite.tag_length());
            (marked, tag)
        } else {
            trailer.split_at(INDEX)
        };
        let (ssrc, marked) = (word(packet, 4), word(marked, 0));
        self.is_source(ssrc)?;
        if marked & ENCRYPTED == 0 {
            return Err(SrtpError::Plain);
        }
        let index = u64::from(marked & !ENCRYPTED);
        self.reports.check(index)?;
        let (header, body) = packet.split_at_mut(RTCP_HEADER);
        self.rtcp.open_rtcp(header, body, marked, tag)?;
        self.ssrc = Some(ssrc);
        self.reports.take(index);
        Ok(packet)
    }

    fn is_source(&self, found: u32) -> Result<(), SrtpError> {
        match self.ssrc {
            Some(expected) if expected != found => Err(SrtpError::Source { expected, found }),
            _ => Ok(()),
        }
    }
}
