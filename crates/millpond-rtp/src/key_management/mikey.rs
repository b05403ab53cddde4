//! MIKEY messages (RFC 3830) that carry the key of SRTP streams in plaintext, in the form that GStreamer writes and
//! reads: of a pre-shared key, with no encryption and no signature.
//!
//! A message has a header with the streams, a time, random bytes, a policy, and the key. There is no negotiation: a message with
//! another policy than [SRTP](crate::srtp)'s is refused.

mod reader;

use crate::srtp::{KEY, MasterKey};

/// Payload types (RFC 3830 6.1, 6.13).
const LAST: u8 = 0;
const KEMAC: u8 = 1;
const TIMESTAMP: u8 = 5;
const ID: u8 = 6;
const POLICY: u8 = 10;
const RAND: u8 = 11;
const KEY_DATA: u8 = 20;
const EXTENSION: u8 = 21;

/// Version, and data type of an initiator's message with a pre-shared key (RFC 3830 6.1).
const VERSION: u8 = 1;
const PRE_SHARED: u8 = 0;
/// Map type in which streams are identified by SSRC.
const SRTP_ID: u8 = 0;

/// Key types: the traffic key itself, and the same followed by a salt (RFC 3830 6.13).
const TEK: u8 = 2;
const TEK_AND_SALT: u8 = 3;
/// Validity of a key: always, or for packets with its identifier (MKI; RFC 3830 6.14).
const ALWAYS: u8 = 0;
const NAMED: u8 = 1;

/// Policy parameters of the suite AES_CM_128_HMAC_SHA1_80 (RFC 3830 6.10.1), each one byte.
///
/// Parameter 3 is the length of the authentication key, which is 20. GStreamer uses it for the length of the tag, and
/// distinguishes suites by it.
const PARAMETERS: [(u8, u8); 7] = [(0, 1), (1, 16), (2, 1), (3, 10), (7, 1), (8, 1), (10, 1)];

/// A stream that the key is for (a crypto session).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoSession {
    /// SSRC; 0 where the sender doesn't know it yet.
    pub ssrc: u32,
    /// Number of wraps of the sequence number so far (ROC).
    pub rollovers: u32,
}

/// A MIKEY message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MikeyMessage {
    /// Random number of the crypto session bundle (CSB ID).
    pub bundle: u32,
    /// Streams that the key is for; at most 255 are written. GStreamer's server refuses a message without streams.
    pub streams: Vec<CryptoSession>,
    /// NTP time of creation: seconds since 1900 in 32.32 bits; 0 where none is stated.
    pub time: u64,
    /// Random bytes, at least 16 (RFC 3830 6.11); at most 255 are written. Empty where there are none.
    pub random: Vec<u8>,
    /// Key of the side that sends the message, of the suite AES_CM_128_HMAC_SHA1_80: messages have no other policy.
    pub key: MasterKey,
    /// Master key identifier that packets have before their tag (MKI), so that keys can change; at most 255 bytes are
    /// written. It is empty in most messages, and packets of this crate have none.
    pub name: Vec<u8>,
}

/// The reason why a message is unusable. It never contains the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MikeyError {
    /// The message is too long.
    #[error("{found} bytes, expected at most {most}")]
    TooLong {
        /// Number of bytes.
        found: usize,
        /// Most bytes allowed.
        most: usize,
    },
    /// The message is truncated.
    #[error("byte {at}: {found} bytes, expected {expected}")]
    Truncated {
        /// Offset in the message.
        at: usize,
        /// Number of bytes from there on.
        found: usize,
        /// Number of bytes expected.
        expected: usize,
    },
    /// The value of a field is not supported.
    #[error("byte {at}: {what} is {found}, expected {expected}")]
    Value {
        /// Offset in the message.
        at: usize,
        /// Name of the field.
        what: &'static str,
        /// Value found.
        found: usize,
        /// Value expected.
        expected: &'static str,
    },
    /// The message has no key.
    #[error("no key")]
    NoKey,
}

impl MikeyMessage {
    /// Returns the message in the form of GStreamer.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let streams = &self.streams[..self.streams.len().min(255)];
        let mut bytes = Vec::with_capacity(128 + 9 * streams.len());
        bytes.extend_from_slice(&[VERSION, PRE_SHARED, TIMESTAMP, 0]);
        bytes.extend_from_slice(&self.bundle.to_be_bytes());
        bytes.extend_from_slice(&[streams.len() as u8, SRTP_ID]);
        for stream in streams {
            // Number of its policy.
            bytes.push(0);
            bytes.extend_from_slice(&stream.ssrc.to_be_bytes());
            bytes.extend_from_slice(&stream.rollovers.to_be_bytes());
        }
        // Time type: NTP-UTC.
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

    /// Appends the key, without encryption and MAC (RFC 3830 6.2).
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

    /// Reads a message. Payloads without effect are skipped.
    ///
    /// # Errors
    /// The message is invalid, or its key is encrypted or for another suite.
    pub fn read(message: &[u8]) -> Result<Self, MikeyError> {
        reader::read(message)
    }
}

/// Appends up to 255 bytes, preceded by their length.
fn short(bytes: &mut Vec<u8>, field: &[u8]) {
    let field = &field[..field.len().min(255)];
    bytes.push(field.len() as u8);
    bytes.extend_from_slice(field);
}

#[cfg(test)]
pub(super) mod tests;
