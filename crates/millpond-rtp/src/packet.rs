//! RTP packets (RFC 3550 5.1).

/// Length in bytes of a header without contributing sources and extensions, the only form written here.
pub const HEADER: usize = 12;

/// Profiles of header extensions whose elements have a head of one byte, and of two (RFC 8285 4.2, 4.3).
const ONE_BYTE: u16 = 0xbede;
const TWO_BYTES: u16 = 0x1000;
const MOST_TWO_BYTES: u16 = 0x100f;

/// Fixed fields of a packet's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Marker bit; in most payload formats it marks the last packet of a frame.
    pub marker: bool,
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Sequence number: increases by one per packet, and wraps.
    pub sequence: u16,
    /// Timestamp in ticks of the payload's clock; it wraps.
    pub timestamp: u32,
    /// Synchronization source.
    pub ssrc: u32,
}

impl Header {
    /// Returns the bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = 2 << 6;
        bytes[1] = u8::from(self.marker) << 7 | self.payload_type & 0x7f;
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.ssrc.to_be_bytes());
        bytes
    }
}

/// The reason why bytes are no RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The packet is shorter than its header states.
    #[error("{found} bytes, expected at least {expected}")]
    Truncated {
        /// Number of bytes found.
        found: usize,
        /// Number of bytes expected.
        expected: usize,
    },
    /// The version is not 2.
    #[error("version {0}, expected 2")]
    Version(u8),
    /// The padding is longer than the payload.
    #[error("{0} bytes of padding, more than the payload has")]
    Padding(u8),
}

/// Parses a received packet; returns its header, and its payload without extension and padding.
///
/// # Errors
/// The header is invalid.
pub fn parse(packet: &[u8]) -> Result<(Header, &[u8]), PacketError> {
    let mut payload = &packet[body(packet)?..];
    if packet[0] & 0x20 != 0 {
        let padding = payload.last().copied().unwrap_or(0);
        if padding == 0 || usize::from(padding) > payload.len() {
            return Err(PacketError::Padding(padding));
        }
        payload = &payload[..payload.len() - usize::from(padding)];
    }
    let word = |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let header = Header {
        marker: packet[1] & 0x80 != 0,
        payload_type: packet[1] & 0x7f,
        sequence: word(0) as u16,
        timestamp: word(4),
        ssrc: word(8),
    };
    Ok((header, payload))
}

/// Finds a header extension by its number (RFC 8285 4.2 and 4.3); `None` where the packet has none of this number.
#[must_use]
pub fn extension(packet: &[u8], number: u8) -> Option<&[u8]> {
    let end = body(packet).ok()?;
    let start = HEADER + 4 * usize::from(packet[0] & 0xf);
    if packet[0] & 0x10 == 0 {
        return None;
    }
    let profile = u16::from_be_bytes([packet[start], packet[start + 1]]);
    let mut rest = &packet[start + 4..end];
    loop {
        let (found, length, head) = match (profile, rest) {
            // Padding.
            (ONE_BYTE | TWO_BYTES..=MOST_TWO_BYTES, [0, ..]) => {
                rest = &rest[1..];
                continue;
            }
            // Number 15 ends a list of elements with short heads.
            (ONE_BYTE, [head, ..]) if head >> 4 != 15 => (head >> 4, usize::from(head & 0xf) + 1, 1),
            (TWO_BYTES..=MOST_TWO_BYTES, [found, length, ..]) => (*found, usize::from(*length), 2),
            _ => return None,
        };
        let (element, behind) = rest.get(head..)?.split_at_checked(length)?;
        if found == number {
            return Some(element);
        }
        rest = behind;
    }
}

/// Returns the offset after a packet's header, contributing sources and extension.
pub(crate) fn body(packet: &[u8]) -> Result<usize, PacketError> {
    let need = |expected: usize| match packet.len() {
        found if found < expected => Err(PacketError::Truncated { found, expected }),
        _ => Ok(()),
    };
    need(HEADER)?;
    if packet[0] >> 6 != 2 {
        return Err(PacketError::Version(packet[0] >> 6));
    }
    let mut start = HEADER + 4 * usize::from(packet[0] & 0xf);
    if packet[0] & 0x10 != 0 {
        need(start + 4)?;
        start += 4 + 4 * usize::from(u16::from_be_bytes([packet[start + 2], packet[start + 3]]));
    }
    need(start)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        let header = Header { marker: true, payload_type: 96, sequence: 65_535, timestamp: 0xdead_beef, ssrc: 7 };
        let mut packet = header.to_bytes().to_vec();
        packet.extend_from_slice(b"abc");
        assert_eq!(parse(&packet), Ok((header, &b"abc"[..])));
    }

    /// A packet with the bytes of an extension.
    fn extended(profile: u16, elements: &[u8]) -> Vec<u8> {
        let mut packet = Header::default().to_bytes().to_vec();
        packet[0] |= 0x10;
        packet.extend_from_slice(&profile.to_be_bytes());
        packet.extend_from_slice(&((elements.len() / 4) as u16).to_be_bytes());
        packet.extend_from_slice(elements);
        packet
    }

    #[test]
    fn extensions_are_found_by_their_numbers() {
        let short = extended(0xbede, &[0x10, 7, 0, 0x51, 1, 2, 0, 0]);
        assert_eq!(extension(&short, 1), Some(&[7][..]));
        assert_eq!((extension(&short, 5), extension(&short, 2)), (Some(&[1, 2][..]), None));
        let long = extended(0x1000, &[1, 0, 0, 20, 2, 3, 4, 0]);
        assert_eq!((extension(&long, 1), extension(&long, 20)), (Some(&[][..]), Some(&[3, 4][..])));
        // Elements behind number 15, beyond the end, or of another profile are none.
        assert_eq!(extension(&extended(0xbede, &[0xf0, 1, 0x10, 7]), 1), None);
        assert_eq!(extension(&extended(0xbede, &[0x13, 7, 7, 7]), 1), None);
        assert_eq!(extension(&extended(0x1000, &[1, 9, 7, 7]), 1), None);
        assert_eq!(extension(&extended(0x2000, &[1, 1, 7, 7]), 1), None);
        assert_eq!(extension(&Header::default().to_bytes(), 1), None);
    }

    #[test]
    fn extensions_and_padding_are_left_out_and_lies_about_them_found() {
        let mut packet = Header::default().to_bytes().to_vec();
        packet[0] |= 0x10 | 0x20 | 1;
        packet.extend_from_slice(&[9; 4]);
        packet.extend_from_slice(&[0xbe, 0xde, 0, 1, 1, 2, 3, 4]);
        packet.extend_from_slice(b"media\0\0\x03");
        assert_eq!(parse(&packet).unwrap().1, b"media");
        *packet.last_mut().unwrap() = 200;
        assert_eq!(parse(&packet), Err(PacketError::Padding(200)));
        assert!(matches!(parse(&packet[..22]), Err(PacketError::Truncated { .. })));
        assert!(matches!(parse(&packet[..5]), Err(PacketError::Truncated { found: 5, expected: 12 })));
        assert_eq!(parse(&[0; 12]), Err(PacketError::Version(0)));
    }
}
