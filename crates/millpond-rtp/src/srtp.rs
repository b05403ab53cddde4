//! Secure RTP and RTCP in three [suites](Suite): AES_CM_128_HMAC_SHA1_80 (RFC 3711), and AEAD_AES_128_GCM and
//! AEAD_AES_256_GCM (RFC 7714).
//!
//! A [`Protector`] encrypts and signs the packets that one source sends; an [`Unprotector`] checks and decrypts them.
//! Both need the [`MasterKey`] that sender and receiver share. [`key_management`](crate::key_management) can transmit
//! it in the first suite, and [`keys_of_dtls`] takes it from a DTLS handshake. Keys are arguments, and no packet
//! allocates memory.
//!
//! One key may protect several sources if no two of them ever have the same SSRC. The same key, SSRC and packet index
//! give the same key stream, and two packets with the same key stream reveal each other (RFC 3711 9.1). With AEAD they
//! also reveal how to forge packets.

mod counter_mode;
mod gcm;
mod master_key;
mod protector;
mod replay;
mod session_keys;
mod suite;
mod unprotector;

pub use master_key::{MasterKey, keys_of_dtls};
pub use protector::Protector;
pub use suite::Suite;
pub use unprotector::Unprotector;

use crate::packet::PacketError;

/// Length of a master key of the suite AES_CM_128_HMAC_SHA1_80 with its salt, in bytes.
pub const KEY: usize = Suite::AesCm128HmacSha1_80.key_length() + Suite::AesCm128HmacSha1_80.salt_length();

/// The reason why a packet is not sent or not accepted. The packet and the state of its source are then unchanged, except that AEAD
/// clears the body of a received packet with a wrong tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtpError {
    /// The bytes are no RTP packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The packet is too short to be protected.
    #[error("{found} bytes, expected at least {expected}")]
    Truncated {
        /// Number of bytes found.
        found: usize,
        /// Number of bytes expected.
        expected: usize,
    },
    /// The tag is wrong: the sender doesn't have the key, or the packet was changed.
    #[error("wrong authentication tag")]
    Tag,
    /// The packet was received before, or is too old to know.
    #[error("packet {index} is a repetition, or too late")]
    Replayed {
        /// Index of the packet: its sequence number, with the number of wraps above it.
        index: u64,
    },
    /// The packet is from another source than the packets before.
    #[error("source {found:#010x}, expected {expected:#010x}")]
    Source {
        /// SSRC of the packets before.
        expected: u32,
        /// SSRC of this packet.
        found: u32,
    },
    /// The RTCP compound is not encrypted. Its tag is not checked.
    #[error("RTCP is not encrypted")]
    Plain,
    /// A packet to send does not follow the last packet, or is so far ahead that receivers would take it for an old packet.
    #[error("packet {found} after packet {last}, expected a later one")]
    Order {
        /// Last sequence number.
        last: u16,
        /// Sequence number of this packet.
        found: u16,
    },
    /// The key has protected the highest permitted number of packets (RFC 3711 9.2).
    #[error("the key has reached its packet limit")]
    Spent,
}

fn at_least(packet: &[u8], expected: usize) -> Result<(), SrtpError> {
    match packet.len() {
        found if found < expected => Err(SrtpError::Truncated { found, expected }),
        _ => Ok(()),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
