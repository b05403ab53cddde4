//! The protocols that share one UDP port (RFC 7983).

/// A datagram, by its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// A STUN message: a check of ICE.
    Stun,
    /// Records of DTLS.
    Dtls,
    /// A packet of RTP.
    Rtp,
    /// A compound of RTCP.
    Rtcp,
}

impl Datagram {
    /// Tells the protocol of a datagram by its first bytes; `None` where it has none of these.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0..=3, ..] => Some(Self::Stun),
            [20..=63, ..] => Some(Self::Dtls),
            // RFC 5761 4: payload types 64 to 95 with the marker bit are types of RTCP.
            [128..=191, 192..=223, ..] => Some(Self::Rtcp),
            [128..=191, _, ..] => Some(Self::Rtp),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocol() {
        for (bytes, expected) in [
            (&[0, 1][..], Some(Datagram::Stun)),
            (&[22, 254], Some(Datagram::Dtls)),
            (&[0x80, 96], Some(Datagram::Rtp)),
            (&[0x80, 0x80 | 96], Some(Datagram::Rtp)),
            (&[0x81, 201], Some(Datagram::Rtcp)),
            (&[0x8f, 206], Some(Datagram::Rtcp)),
            (&[64, 0], None),
            (&[200, 0], None),
            (&[], None),
        ] {
            assert_eq!(Datagram::of(bytes), expected, "{bytes:?}");
        }
    }
}
