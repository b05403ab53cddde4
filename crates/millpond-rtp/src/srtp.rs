//! RTP and RTCP packets that nobody else can read or make (RFC 3711), in the suite AES_CM_128_HMAC_SHA1_80.
//!
//! A [`Protector`] encrypts and signs what one source sends, an [`Unprotector`] checks and decrypts it. Both are made of
//! the [`MasterKey`] that sender and receiver have in common; [`key_management`](crate::key_management) has the ways
//! to tell it. Keys are arguments, and nothing is allocated a packet.
//!
//! One key may protect many sources, if no two of them ever have the same SSRC: the same key, SSRC and packet index
//! twice is the same key stream twice, and gives both packets away (RFC 3711 9.1).

mod protector;
mod replay;
mod session_keys;
mod unprotector;

pub use protector::Protector;
pub use unprotector::Unprotector;

use crate::packet::PacketError;
use std::fmt;

/// Bytes of a tag: what an RTP packet gets longer by.
pub const TAG: usize = 10;
/// What an RTCP compound gets longer by: its index, and the tag.
pub const RTCP_OVERHEAD: usize = 4 + TAG;
/// Bytes of a master key and its salt.
pub const KEY: usize = MASTER + SALT;

const MASTER: usize = 16;
const SALT: usize = 14;

/// What all keys of a session are made of (RFC 3711 3.2.1): 16 bytes that nobody can guess, and 14 bytes of salt.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    key: [u8; MASTER],
    salt: [u8; SALT],
}

impl MasterKey {
    /// The key and then the salt, as key management has them.
    #[must_use]
    pub fn new(bytes: &[u8; KEY]) -> Self {
        let (mut key, mut salt) = ([0; MASTER], [0; SALT]);
        key.copy_from_slice(&bytes[..MASTER]);
        salt.copy_from_slice(&bytes[MASTER..]);
        Self { key, salt }
    }

    /// The same bytes, for key management.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; KEY] {
        let mut bytes = [0; KEY];
        bytes[..MASTER].copy_from_slice(&self.key);
        bytes[MASTER..].copy_from_slice(&self.salt);
        bytes
    }
}

/// Without the key: logs are no place for it.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").finish_non_exhaustive()
    }
}

/// Why a packet is not sent, or not believed. Nothing was changed then: neither the packet nor what is known of its
/// source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrtpError {
    /// No RTP packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Fewer bytes than a protected packet has.
    #[error("{found} bytes, expected at least {expected}")]
    Truncated {
        /// Bytes there are.
        found: usize,
        /// Bytes there should be.
        expected: usize,
    },
    /// The tag is another: the packet is not from who has the key, or not as it was sent.
    #[error("a tag that is not that of the packet")]
    Tag,
    /// It came already, or so long after its turn that nobody can tell.
    #[error("packet {index} came before, or comes too late")]
    Replayed {
        /// Its index: its sequence number, with the count of wraps above it.
        index: u64,
    },
    /// From another source than the packets before.
    #[error("source {found:#010x}, expected {expected:#010x}")]
    Source {
        /// Whose packets these are.
        expected: u32,
        /// Whose packet this is.
        found: u32,
    },
    /// An RTCP compound that is signed only: what it says was to be secret.
    #[error("RTCP that is not encrypted")]
    Plain,
    /// A packet to send is not behind the last one, or so far behind that receivers would take it for an old one.
    #[error("packet {found} after packet {last}, expected a later one")]
    Order {
        /// The last sequence number.
        last: u16,
        /// The one of this packet.
        found: u16,
    },
    /// As many packets as one key may protect (RFC 3711 9.2).
    #[error("a key that protected all the packets it may")]
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
