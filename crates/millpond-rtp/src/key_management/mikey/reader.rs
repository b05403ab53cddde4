//! The parts of a message, one after the other. A reader that knows where it is, for its errors.

use super::{
    ALWAYS, CryptoSession, EXTENSION, ID, KEMAC, KEY_DATA, LAST, MikeyError, MikeyMessage, NAMED, POLICY, PRE_SHARED,
    RAND, SRTP_ID, TEK, TEK_AND_SALT, TIMESTAMP, VERSION,
};
use crate::srtp::{KEY, MasterKey};

/// The most bytes of a message: one with 255 streams has less.
const MOST_BYTES: usize = 4096;

/// What is left of a message, or of a part of it.
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

    /// A number of `count` bytes, at most eight.
    fn number(&mut self, count: usize) -> Result<u64, MikeyError> {
        Ok(self.take(count)?.rest.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, MikeyError> {
        Ok(self.number(1)? as u8)
    }

    fn word(&mut self) -> Result<u32, MikeyError> {
        Ok(self.number(4)? as u32)
    }

    /// As many bytes as a number of `digits` bytes says.
    fn counted(&mut self, digits: usize) -> Result<Reader<'a>, MikeyError> {
        let count = self.number(digits)? as usize;
        self.take(count)
    }

    /// A byte that must be this one.
    fn is(&mut self, value: u8, what: &'static str, expected: &'static str) -> Result<(), MikeyError> {
        match self.byte()? {
            found if found == value => Ok(()),
            found => Err(self.wrong(what, found.into(), expected)),
        }
    }

    /// The byte before this place means something else.
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
    // Whether an answer is wanted, and how keys would be derived.
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

/// RFC 3830 6.1.1.
fn streams(reader: &mut Reader<'_>) -> Result<Vec<CryptoSession>, MikeyError> {
    let count = reader.byte()?;
    reader.is(SRTP_ID, "map type", "0, of SRTP")?;
    let stream = |_| {
        // The number of its policy: they are all the same.
        reader.byte()?;
        Ok(CryptoSession { ssrc: reader.word()?, rollovers: reader.word()? })
    };
    (0..count).map(stream).collect()
}

/// RFC 3830 6.6: as NTP has it; counters say nothing.
fn timestamp(reader: &mut Reader<'_>) -> Result<u64, MikeyError> {
    match reader.byte()? {
        0 | 1 => reader.number(8),
        2 => reader.word().map(|_| 0),
        other => Err(reader.wrong("time's type", other.into(), "0 to 2")),
    }
}

/// RFC 3830 6.10.1: it must be that of the suite. What it doesn't say is so by default.
fn policy(reader: &mut Reader<'_>) -> Result<(), MikeyError> {
    // Its number.
    reader.byte()?;
    reader.is(0, "protocol", "0, SRTP")?;
    let mut parameters = reader.counted(2)?;
    while !parameters.rest.is_empty() {
        let (what, values, expected): (_, &[u64], _) = match parameters.byte()? {
            0 => ("encryption", &[1], "1, AES in counter mode"),
            1 => ("length of the encryption's key", &[16], "16"),
            2 => ("authentication", &[1], "1, HMAC-SHA-1"),
            // See PARAMETERS.
            3 => ("length of the authentication's key", &[10, 20], "20, or GStreamer's 10"),
            4 => ("length of the salt", &[14], "14"),
            5 => ("derivation function", &[0], "0, AES in counter mode"),
            6 => ("derivation rate", &[0], "0"),
            7 => ("encryption of RTP", &[1], "1"),
            8 => ("encryption of RTCP", &[1], "1"),
            10 => ("authentication of RTP", &[1], "1"),
            11 => ("length of the tag", &[10], "10"),
            12 => ("length of the prefix", &[0], "0"),
            // The order of error correction, and what isn't known.
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

/// RFC 3830 6.2: the key and its name.
fn kemac(reader: &mut Reader<'_>) -> Result<(MasterKey, Vec<u8>), MikeyError> {
    reader.is(0, "encryption of the key", "0, none")?;
    let mut data = reader.counted(2)?;
    let key = key_data(&mut data)?;
    reader.is(0, "MAC of the key", "0, none")?;
    Ok(key)
}

/// RFC 3830 6.13.
fn key_data(data: &mut Reader<'_>) -> Result<(MasterKey, Vec<u8>), MikeyError> {
    match data.byte()? {
        LAST => {}
        KEY_DATA => return Err(data.wrong("keys", 2, "one")),
        other => return Err(data.wrong("payload behind the key", other.into(), "none")),
    }
    let kind = data.byte()?;
    let at = data.at;
    let mut bytes = data.counted(2)?.rest.to_vec();
    match kind >> 4 {
        // GStreamer has the salt behind the key.
        TEK => {}
        TEK_AND_SALT => bytes.extend_from_slice(data.counted(2)?.rest),
        other => {
            return Err(MikeyError::Value {
                at: at - 1,
                what: "kind of key",
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
