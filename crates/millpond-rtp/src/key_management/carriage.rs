//! Carriage of MIKEY messages (RFC 4567): the attribute `key-mgmt` of a description, and the RTSP header `KeyMgmt`.

use super::{
    BASE64,
    mikey::{MikeyError, MikeyMessage},
};
use base64::Engine as _;

/// Name of the attribute in a session description (RFC 4567 3.1).
pub const ATTRIBUTE: &str = "key-mgmt";
/// Name of the RTSP header (RFC 4567 3.2). A request with an unusable header is answered with 463.
pub const HEADER: &str = "KeyMgmt";

const PROTOCOL: &str = "mikey";
/// Longest value in bytes.
const MOST_BYTES: usize = 8192;

/// The reason why a value is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CarriageError {
    /// The value is too long.
    #[error("{found} bytes, expected at most {MOST_BYTES}")]
    TooLong {
        /// Number of bytes.
        found: usize,
    },
    /// The protocol is missing, or is not MIKEY.
    #[error("protocol {0:?}, expected mikey")]
    Protocol(String),
    /// The value has no message.
    #[error("no data")]
    NoData,
    /// A quoted string has no end.
    #[error("byte {at}: an unterminated quoted string")]
    Quote {
        /// Offset of the quote.
        at: usize,
    },
    /// The message is not in base64.
    #[error("data that is not base64")]
    Base64,
    /// The MIKEY message is unusable.
    #[error("MIKEY: {0}")]
    Message(#[from] MikeyError),
}

/// Returns the value of a `key-mgmt` attribute.
#[must_use]
pub fn to_attribute(message: &MikeyMessage) -> String {
    format!("{PROTOCOL} {}", BASE64.encode(message.to_bytes()))
}

/// Reads the value of a `key-mgmt` attribute.
///
/// # Errors
/// Its protocol is not MIKEY, or its message is unusable.
pub fn from_attribute(value: &str) -> Result<MikeyMessage, CarriageError> {
    sensible(value)?;
    let (protocol, data) = value.trim().split_once([' ', '\t']).unwrap_or((value.trim(), ""));
    is_mikey(protocol)?;
    decode(data.trim())
}

/// Content of a `KeyMgmt` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMgmt {
    /// URL of the stream that the key is for; empty for the URL of the request.
    pub url: String,
    /// Message that contains the key.
    pub message: MikeyMessage,
}

impl KeyMgmt {
    /// Returns the value of the header.
    #[must_use]
    pub fn to_header(&self) -> String {
        // URLs have no such characters, and a quote would end the string.
        let url: String = self.url.chars().filter(|c| *c != '"' && !c.is_control()).collect();
        format!("prot={PROTOCOL};uri=\"{url}\";data=\"{}\"", BASE64.encode(self.message.to_bytes()))
    }

    /// Reads the value of the header: its first part for MIKEY.
    ///
    /// # Errors
    /// It has no such part, or the message is unusable.
    pub fn from_header(value: &str) -> Result<Self, CarriageError> {
        sensible(value)?;
        let mut other = String::new();
        for part in fields(value, 0, b',')? {
            let (mut protocol, mut url, mut data) = ("", "", None);
            for field in fields(part.1, part.0, b';')? {
                let (name, value) = field.1.split_once('=').unwrap_or((field.1, ""));
                let value = value.trim().trim_matches('"').trim();
                match name.trim().to_ascii_lowercase().as_str() {
                    "prot" => protocol = value,
                    "uri" => url = value,
                    "data" => data = Some(value),
                    _ => {}
                }
            }
            if is_mikey(protocol).is_ok() {
                let message = decode(data.ok_or(CarriageError::NoData)?)?;
                return Ok(Self { url: url.to_owned(), message });
            }
            other = protocol.to_owned();
        }
        Err(CarriageError::Protocol(other))
    }
}

/// Splits at separators outside of quotes; each part has its offset.
fn fields(text: &str, offset: usize, separator: u8) -> Result<Vec<(usize, &str)>, CarriageError> {
    let (mut found, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'"' {
            quote = if quote.is_some() { None } else { Some(at) };
        } else if byte == separator && quote.is_none() {
            found.push((offset + start, &text[start..at]));
            start = at + 1;
        }
    }
    if let Some(at) = quote {
        return Err(CarriageError::Quote { at: offset + at });
    }
    found.push((offset + start, &text[start..]));
    Ok(found)
}

fn sensible(value: &str) -> Result<(), CarriageError> {
    let found = value.len();
    if found > MOST_BYTES { Err(CarriageError::TooLong { found }) } else { Ok(()) }
}

fn is_mikey(protocol: &str) -> Result<(), CarriageError> {
    if protocol.eq_ignore_ascii_case(PROTOCOL) { Ok(()) } else { Err(CarriageError::Protocol(protocol.to_owned())) }
}

fn decode(data: &str) -> Result<MikeyMessage, CarriageError> {
    if data.is_empty() {
        return Err(CarriageError::NoData);
    }
    let bytes = BASE64.decode(data).map_err(|_| CarriageError::Base64)?;
    Ok(MikeyMessage::read(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_management::mikey::tests::{GSTREAMER, message};
    use proptest::prelude::*;

    const URL: &str = "rtsps://host/film.mp4/v1";

    #[test]
    fn attributes_are_those_of_gstreamer() {
        assert_eq!(to_attribute(&message()), format!("mikey {GSTREAMER}"));
        for form in [format!("mikey {GSTREAMER}"), format!(" MIKEY\t {} ", GSTREAMER.trim_end_matches('='))] {
            assert_eq!(from_attribute(&form), Ok(message()), "{form}");
        }
    }

    #[test]
    fn headers_are_those_of_gstreamer() {
        let header = KeyMgmt { url: URL.to_owned(), message: message() };
        assert_eq!(header.to_header(), format!("prot=mikey;uri=\"{URL}\";data=\"{GSTREAMER}\""));
        for form in [
            header.to_header(),
            format!(" prot = mikey ; uri=\"{URL}\" ; unknown; data={GSTREAMER}"),
            format!("prot=other;data=\"prot=mikey,;\",prot=MIKEY;data=\"{GSTREAMER}\";uri=\"{URL}\""),
        ] {
            assert_eq!(KeyMgmt::from_header(&form), Ok(header.clone()), "{form}");
        }
        let without = format!("prot=mikey;uri=\"\";data=\"{GSTREAMER}\"");
        assert_eq!(KeyMgmt::from_header(&without).unwrap().url, "");
        let odd = KeyMgmt { url: "a\"b\r\n,;c".to_owned(), message: message() };
        assert_eq!(KeyMgmt::from_header(&odd.to_header()).unwrap().url, "ab,;c");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let protocol = |name: &str| CarriageError::Protocol(name.to_owned());
        for (value, error) in [
            (String::new(), protocol("")),
            ("kerberos data".to_owned(), protocol("kerberos")),
            ("mikey".to_owned(), CarriageError::NoData),
            ("mikey !".to_owned(), CarriageError::Base64),
            ("mikey AQ==".to_owned(), MikeyError::Truncated { at: 1, found: 0, expected: 1 }.into()),
            ("a".repeat(8193), CarriageError::TooLong { found: 8193 }),
        ] {
            assert_eq!(from_attribute(&value), Err(error), "{value}");
        }
        for (value, error) in [
            (String::new(), protocol("")),
            (format!("data=\"{GSTREAMER}\""), protocol("")),
            (format!("prot=other;data=\"{GSTREAMER}\""), protocol("other")),
            (format!("prot=mikey;uri=\"{URL}\""), CarriageError::NoData),
            (format!("prot=mikey;uri=\"{URL};data={GSTREAMER}"), CarriageError::Quote { at: 15 }),
            ("prot=other, prot=mikey;data=\"".to_owned(), CarriageError::Quote { at: 28 }),
            ("prot=mikey;data=\"AQ\"".to_owned(), MikeyError::Truncated { at: 1, found: 0, expected: 1 }.into()),
            ("prot=mikey;data=\"é\"".to_owned(), CarriageError::Base64),
            ("a".repeat(8193), CarriageError::TooLong { found: 8193 }),
        ] {
            assert_eq!(KeyMgmt::from_header(&value), Err(error), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(mikey |prot=mikey;)?(uri=\".{0,9}\";)?(data=\")?.{0,60}\"?") {
            let _ = (from_attribute(&text), KeyMgmt::from_header(&text));
        }
    }
}
