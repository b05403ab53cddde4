//! Reads the payloads of a message one after the other, with offsets for errors.

use super::{
    ALWAYS, CryptoSession, EXTENSION, ID, KEMAC, KEY_DATA, LAST, MikeyError, MikeyMessage, NAMED, POLICY, PRE_SHARED,
    RAND, SRTP_ID, TEK, TEK_AND_SALT, TIMESTAMP, VERSION,
};
use crate::srtp::{KEY, MasterKey};

/// Longest message in bytes: one with 255 streams is shorter.
const MOST_BYTES: usize = 4096;

/// Rest of a message, or of a part of it.
struct Reader<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<Reader<'a>, MikeyError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(MikeyError::Truncated { at: self.at, found: self.rest.len(), expected: count });
        };
        let at = self.at;
        (self.rest, self.at) = (rest, at + count);
        Ok(Reader { rest: taken, at })
    }

    /// Reads a number of `count` bytes, at most eight.
    fn number(&mut self, count: usize) -> Result<u64, MikeyError> {
        Ok(self.take(count)?.rest.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, MikeyError> {
        Ok(self.number(1)? as u8)
    }

    fn word(&mut self) -> Result<u32, MikeyError> {
        Ok(self.number(4)? as u32)
    }

    /// Reads the bytes after a length field of `digits` bytes.
    fn counted(&mut self, digits: usize) -> Result<Reader<'a>, MikeyError> {
        let count = self.number(digits)? as usize;
        self.take(count)
    }

    /// Reads a byte that must have this value.
    fn is(&mut self, value: u8, what: &'static str, expected: &'static str) -> Result<(), MikeyError> {
        match self.byte()? {
            found if found == value => Ok(()),
            found => Err(self.wrong(what, found.into(), expected)),
        }
    }

    /// Returns an error about the byte before the current position.
    fn wrong(&self, what: &'static str, found: usize, expected: &'static str) -> MikeyError {
        MikeyError::Value { at: self.at.saturating_sub(1), what, found, expected }
    }

    fn ends(&self, what: &'static str) -> Result<(), MikeyError> {
        match self.rest.len() {
            0 => Ok(()),
            found => Err(MikeyError::Value { at: self.at, what, found, expected: "no more bytes" }),
        }
    }
}

pub(super) fn read(message: &[u8]) -> Result<MikeyMessage, MikeyError> {
    if message.len() > MOST_BYTES {
        return Err(MikeyError::TooLong { found: message.len(), most: MOST_BYTES });
    }
    let mut reader = Reader { rest: message, at: 0 };
    reader.is(VERSION, "version", "1")?;
    reader.is(PRE_SHARED, "data type", "0, of a pre-shared key")?;
    let mut next = reader.byte()?;
    // Whether a reply is requested, and the key derivation function.
    reader.byte()?;
    let bundle = reader.word()?;
    let streams = streams(&mut reader)?;
    let (mut time, mut random, mut key) = (0, Vec::new(), None);
    while next != LAST {
        let payload = next;
        next = reader.byte()?;
        match payload {
            KEMAC if key.is_some() => return Err(reader.wrong("keys", 2, "one")),
            KEMAC => key = Some(kemac(&mut reader)?),
            TIMESTAMP => time = timestamp(&mut reader)?,
            POLICY => policy(&mut reader)?,
            RAND => random = reader.counted(1)?.rest.to_vec(),
            ID | EXTENSION => {
                reader.byte()?;
                reader.counted(2)?;
            }
            other => return Err(reader.wrong("payload", other.into(), "one of a message with a pre-shared key")),
        }
    }
    reader.ends("the message's rest")?;
    let (key, name) = key.ok_or(MikeyError::NoKey)?;
    Ok(MikeyMessage { bundle, streams, time, random, key, name })
}

/// Reads the crypto sessions (RFC 3830 6.1.1).
fn streams(reader: &mut Reader<'_>) -> Result<Vec<CryptoSession>, MikeyError> {
    let count = reader.byte()?;
    reader.is(SRTP_ID, "map type", "0, of SRTP")?;
    let stream = |_| {
        // Number of its policy; all policies are the same.
        reader.byte()?;
        Ok(CryptoSession { ssrc: reader.word()?, rollovers: reader.word()? })
    };
    (0..count).map(stream).collect()
}

/// Reads the time (RFC 3830 6.6): NTP times; counters are ignored.
fn timestamp(reader: &mut Reader<'_>) -> Result<u64, MikeyError> {
    match reader.byte()? {
        0 | 1 => reader.number(8),
        2 => reader.word().map(|_| 0),
        other => Err(reader.wrong("time type", other.into(), "0 to 2")),
    }
}

/// Checks a policy (RFC 3830 6.10.1), which must be that of the suite. Missing parameters have their defaults.
fn policy(reader: &mut Reader<'_>) -> Result<(), MikeyError> {
    // Number of the policy.
    reader.byte()?;
    reader.is(0, "protocol", "0, SRTP")?;
    let mut parameters = reader.counted(2)?;
    while !parameters.rest.is_empty() {
        let (what, values, expected): (_, &[u64], _) = match parameters.byte()? {
            0 => ("encryption", &[1], "1, AES in counter mode"),
            1 => ("encryption key length", &[16], "16"),
            2 => ("authentication", &[1], "1, HMAC-SHA-1"),
            // See `PARAMETERS`.
            3 => ("authentication key length", &[10, 20], "20, or GStreamer's 10"),
            4 => ("salt length", &[14], "14"),
            5 => ("derivation function", &[0], "0, AES in counter mode"),
            6 => ("derivation rate", &[0], "0"),
            7 => ("encryption of RTP", &[1], "1"),
            8 => ("encryption of RTCP", &[1], "1"),
            10 => ("authentication of RTP", &[1], "1"),
            11 => ("tag length", &[10], "10"),
            12 => ("prefix length", &[0], "0"),
            // The order of error correction, and unknown parameters.
            _ => {
                parameters.counted(1)?;
                continue;
            }
        };
        let mut value = parameters.counted(1)?;
        let at = value.at;
        let found = value.number(value.rest.len().min(8))?;
        value.ends(what)?;
        if !values.contains(&found) {
            let found = usize::try_from(found).unwrap_or(usize::MAX);
            return Err(MikeyError::Value { at, what, found, expected });
        }
    }
    Ok(())
}

/// Reads the key and its identifier (RFC 3830 6.2).
fn kemac(reader: &mut Reader<'_>) -> Result<(MasterKey, Vec<u8>), MikeyError> {
    reader.is(0, "encryption of the key", "0, none")?;
    let mut data = reader.counted(2)?;
    let key = key_data(&mut data)?;
    reader.is(0, "MAC of the key", "0, none")?;
    Ok(key)
}

/// Reads the key data (RFC 3830 6.13).
fn key_data(data: &mut Reader<'_>) -> Result<(MasterKey, Vec<u8>), MikeyError> {
    match data.byte()? {
        LAST => {}
        KEY_DATA => return Err(data.wrong("keys", 2, "one")),
        other => return Err(data.wrong("payload after the key", other.into(), "none")),
    }
    let kind = data.byte()?;
    let at = data.at;
    let mut bytes = data.counted(2)?.rest.to_vec();
    match kind >> 4 {
        // GStreamer appends the salt to the key.
        TEK => {}
        TEK_AND_SALT => bytes.extend_from_slice(data.counted(2)?.rest),
        other => {
            return Err(MikeyError::Value {
                at: at - 1,
                what: "key type",
                found: other.into(),
                expected: "2 or 3, TEK",
            });
        }
    }
    let found = bytes.len();
    let bytes: [u8; KEY] = bytes.try_into().map_err(|_| MikeyError::Value {
        at,
        what: "length of key and salt",
        found,
        expected: "30",
    })?;
    let name = match kind & 0xf {
        ALWAYS => Vec::new(),
        NAMED => data.counted(1)?.rest.to_vec(),
        other => {
            return Err(MikeyError::Value { at: at - 1, what: "validity", found: other.into(), expected: "0 or 1" });
        }
    };
    data.ends("the key's rest")?;
    Ok((MasterKey::new(&bytes), name))
}
