//! The suites: ciphers and their lengths.

/// Length of the longest key and of the longest salt, in bytes.
pub(super) const MOST_KEY: usize = 32;
pub(super) const MOST_SALT: usize = 14;
/// Length of the longest tag in bytes.
pub(super) const MOST_TAG: usize = 16;

/// Length of the index that protection adds to an RTCP compound.
pub(super) const INDEX: usize = 4;

/// Cipher and authentication of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// AES in counter mode with HMAC-SHA1: keys of 128 bits, tags of 80 bits (RFC 3711).
    AesCm128HmacSha1_80,
    /// AES in Galois/counter mode: keys of 128 bits, tags of 128 bits (RFC 7714).
    AeadAes128Gcm,
    /// AES in Galois/counter mode: keys of 256 bits, tags of 128 bits (RFC 7714).
    AeadAes256Gcm,
}

impl Suite {
    /// Length of a master key in bytes, without its salt.
    #[must_use]
    pub const fn key_length(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 | Self::AeadAes128Gcm => 16,
            Self::AeadAes256Gcm => 32,
        }
    }

    /// Length of a master key's salt in bytes.
    #[must_use]
    pub const fn salt_length(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 => 14,
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => 12,
        }
    }

    /// Length of a tag in bytes, which protection adds to an RTP packet.
    #[must_use]
    pub const fn tag_length(self) -> usize {
        match self {
            Self::AesCm128HmacSha1_80 => 10,
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => 16,
        }
    }

    /// Number of bytes that protection adds to an RTCP compound: index and tag.
    #[must_use]
    pub const fn rtcp_overhead(self) -> usize {
        INDEX + self.tag_length()
    }

    /// Whether the index of an RTCP compound follows the tag (RFC 7714 9.2). In the first suite it precedes the tag (RFC 3711 3.4).
    pub(super) const fn index_is_last(self) -> bool {
        matches!(self, Self::AeadAes128Gcm | Self::AeadAes256Gcm)
    }
}
