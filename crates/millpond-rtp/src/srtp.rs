//! Secure RTP and RTCP (RFC 3711), in the suite AES_CM_128_HMAC_SHA1_80.
//!
//! A [`Protector`] encrypts and signs the packets that one source sends; an [`Unprotector`] checks and decrypts them.
//! Both need the [`MasterKey`] that sender and receiver share; [`key_management`](crate::key_management) can transmit
//! it. Keys are arguments, and no packet allocates memory.
//!
//! One key may protect several sources if no two of them ever have the same SSRC. The same key, SSRC and packet index
//! give the same key stream, and two packets with the same key stream reveal each other (RFC 3711 9.1).

mod protector;
mod replay;
mod session_keys;
mod unprotector;

pub use protector::Protector;
pub use unprotector::Unprotector;

use crate::packet::PacketError;
use std::fmt;

/// Length of a tag in bytes, which protection adds to an RTP packet.
pub const TAG: usize = 10;
/// Bytes that protection adds to an RTCP compound: index and tag.
pub const RTCP_OVERHEAD: usize = 4 + TAG;
/// Length of a master key with its salt, in bytes.
pub const KEY: usize = MASTER + SALT;

const MASTER: usize = 16;
const SALT: usize = 14;

/// Master key, from which session keys are derived (RFC 3711 3.2.1): 16 secret bytes, and 14 bytes of salt.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    key: [u8; MASTER],
    salt: [u8; SALT],
}

impl MasterKey {
    /// Creates a key from the key bytes followed by the salt, as in key management.
    #[must_use]
    pub fn new(bytes: &[u8; KEY]) -> Self {
        let (mut key, mut salt) = ([0; MASTER], [0; SALT]);
        key.copy_from_slice(&bytes[..MASTER]);
        salt.copy_from_slice(&bytes[MASTER..]);
        Self { key, salt }
    }

    /// Returns the same bytes, for key management.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; KEY] {
        let mut bytes = [0; KEY];
        bytes[..MASTER].copy_from_slice(&self.key);
        bytes[MASTER..].copy_from_slice(&self.salt);
        bytes
    }
}

/// Omits the key, because logs must not contain it.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").finish_non_exhaustive()
    }
}

/// The reason why a packet is not sent or not accepted. The packet and the state of its source are then unchanged.
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
    /// The RTCP compound is signed but not encrypted.
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
