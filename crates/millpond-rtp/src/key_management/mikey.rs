//! MIKEY messages (RFC 3830) that tell the key of SRTP streams in plain sight: of a pre-shared key, with nothing
//! encrypted and nothing signed, as GStreamer writes and reads them.
//!
//! Such a message is a header with the streams, a time, chance, a policy, and the key. What could be negotiated is not:
//! a message with another policy than [SRTP](crate::srtp)'s here is refused.

mod reader;

use crate::srtp::{KEY, MasterKey};

/// Types of payloads (RFC 3830 6.1, 6.13).
const LAST: u8 = 0;
const KEMAC: u8 = 1;
const TIMESTAMP: u8 = 5;
const ID: u8 = 6;
const POLICY: u8 = 10;
const RAND: u8 = 11;
const KEY_DATA: u8 = 20;
const EXTENSION: u8 = 21;

/// The version, and a message of who begins, with a pre-shared key (RFC 3830 6.1).
const VERSION: u8 = 1;
const PRE_SHARED: u8 = 0;
/// Streams are told by their SSRC.
const SRTP_ID: u8 = 0;

/// Kinds of keys: that of the traffic itself, and the same with a salt behind (RFC 3830 6.13).
const TEK: u8 = 2;
const TEK_AND_SALT: u8 = 3;
/// What is said of a key's validity: nothing, or the name that its packets have (MKI; RFC 3830 6.14).
const ALWAYS: u8 = 0;
const NAMED: u8 = 1;

/// The suite AES_CM_128_HMAC_SHA1_80 as parameters of a policy (RFC 3830 6.10.1), each one byte.
///
/// Parameter 3 is the length of the authentication's key, which is 20; GStreamer takes it for that of the tag, and
/// knows the suites apart by it.
const PARAMETERS: [(u8, u8); 7] = [(0, 1), (1, 16), (2, 1), (3, 10), (7, 1), (8, 1), (10, 1)];

/// A stream that the key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoSession {
    /// Its source: 0 where who writes doesn't know it yet.
    pub ssrc: u32,
    /// How often its sequence number wrapped till now (ROC).
    pub rollovers: u32,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MikeyMessage {
    /// Number of the bundle of streams: chance.
    pub bundle: u32,
    /// Those that the key is for: at most 255 are written. GStreamer's server takes no message without any.
    pub streams: Vec<CryptoSession>,
    /// When it was written, as NTP has it: seconds since 1900 in 32.32 bits. 0 where it isn't said.
    pub time: u64,
    /// Chance, at least 16 bytes of it (RFC 3830 6.11); at most 255 are written. None where there is none.
    pub random: Vec<u8>,
    /// Of the side that writes.
    pub key: MasterKey,
    /// What packets have between their end and their tag (MKI), so that keys can change; at most 255 bytes are written.
    /// None in most messages, and in all packets of this crate.
    pub name: Vec<u8>,
}

/// Why a message can't be used. Never with the key in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MikeyError {
    /// More bytes than any sensible one.
    #[error("{found} bytes, expected at most {most}")]
    TooLong {
        /// How many.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// It ends before its end.
    #[error("byte {at}: {found} bytes, expected {expected}")]
    Truncated {
        /// Offset in the message.
        at: usize,
        /// Bytes there are from there on.
        found: usize,
        /// Bytes there should be.
        expected: usize,
    },
    /// A value that means something else than what there is here.
    #[error("byte {at}: {what} is {found}, expected {expected}")]
    Value {
        /// Offset in the message.
        at: usize,
        /// What it is of.
        what: &'static str,
        /// What is there.
        found: usize,
        /// What should be.
        expected: &'static str,
    },
    /// It has no key.
    #[error("no key")]
    NoKey,
}

impl MikeyMessage {
    /// As GStreamer writes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let streams = &self.streams[..self.streams.len().min(255)];
        let mut bytes = Vec::with_capacity(128 + 9 * streams.len());
        bytes.extend_from_slice(&[VERSION, PRE_SHARED, TIMESTAMP, 0]);
        bytes.extend_from_slice(&self.bundle.to_be_bytes());
        bytes.extend_from_slice(&[streams.len() as u8, SRTP_ID]);
        for stream in streams {
            // The number of its policy.
            bytes.push(0);
            bytes.extend_from_slice(&stream.ssrc.to_be_bytes());
            bytes.extend_from_slice(&stream.rollovers.to_be_bytes());
        }
        // NTP-UTC.
        bytes.extend_from_slice(&[if self.random.is_empty() { POLICY } else { RAND }, 0]);
        bytes.extend_from_slice(&self.time.to_be_bytes());
        if !self.random.is_empty() {
            bytes.push(POLICY);
            short(&mut bytes, &self.random);
        }
        // Policy 0, for SRTP.
        bytes.extend_from_slice(&[KEMAC, 0, 0]);
        bytes.extend_from_slice(&(3 * PARAMETERS.len() as u16).to_be_bytes());
        bytes.extend(PARAMETERS.iter().flat_map(|(parameter, value)| [*parameter, 1, *value]));
        self.key_to(&mut bytes);
        bytes
    }

    /// The key, without encryption and MAC (RFC 3830 6.2).
    fn key_to(&self, bytes: &mut Vec<u8>) {
        let validity = if self.name.is_empty() { ALWAYS } else { NAMED };
        let mut data = vec![LAST, TEK << 4 | validity, 0, KEY as u8];
        data.extend_from_slice(&self.key.to_bytes());
        if validity == NAMED {
            short(&mut data, &self.name);
        }
        bytes.extend_from_slice(&[LAST, 0]);
        bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&data);
        bytes.push(0);
    }

    /// Reads one. Payloads that change nothing are passed over.
    ///
    /// # Errors
    /// It is none, or has its key encrypted, or for another suite.
    pub fn read(message: &[u8]) -> Result<Self, MikeyError> {
        reader::read(message)
    }
}

/// Up to 255 bytes, with their length before.
fn short(bytes: &mut Vec<u8>, field: &[u8]) {
    let field = &field[..field.len().min(255)];
    bytes.push(field.len() as u8);
    bytes.extend_from_slice(field);
}

#[cfg(test)]
pub(super) mod tests;
