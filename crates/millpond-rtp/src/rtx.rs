//! Retransmitted packets (RFC 4588 4): the number of the original packet, then its payload.

use crate::packet::{HEADER, Header};

/// Bytes before the original payload: its sequence number.
pub const ORIGINAL: usize = 2;

/// Splits the payload of a retransmitted packet into the original sequence number and payload. `None` for a packet that is
/// too short, such as one of padding only.
#[must_use]
pub fn original(payload: &[u8]) -> Option<(u16, &[u8])> {
    let (number, payload) = payload.split_first_chunk::<ORIGINAL>()?;
    Some((u16::from_be_bytes(*number), payload))
}

/// Returns the header of a retransmission and the original number after it. `ssrc`, `payload_type` and `sequence` belong to the
/// stream of retransmissions. Timestamp and marker stay unchanged (RFC 4588 4).
#[must_use]
pub fn header(original: Header, ssrc: u32, payload_type: u8, sequence: u16) -> [u8; HEADER + ORIGINAL] {
    let mut bytes = [0; HEADER + ORIGINAL];
    bytes[..HEADER].copy_from_slice(&Header { ssrc, payload_type, sequence, ..original }.to_bytes());
    bytes[HEADER..].copy_from_slice(&original.sequence.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet;

    #[test]
    fn retransmissions_read_back() {
        let sent = Header { marker: true, payload_type: 96, sequence: 65_535, timestamp: 9, ssrc: 7 };
        let mut bytes = header(sent, 8, 97, 3).to_vec();
        bytes.extend_from_slice(b"abc");
        let (found, payload) = packet::parse(&bytes).unwrap();
        assert_eq!(found, Header { ssrc: 8, payload_type: 97, sequence: 3, ..sent });
        assert_eq!(original(payload), Some((65_535, &b"abc"[..])));
        assert_eq!((original(&[1, 2]), original(&[1])), (Some((258, &[][..])), None));
    }
}
