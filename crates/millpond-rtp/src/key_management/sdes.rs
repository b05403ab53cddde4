//! The `crypto` attribute of a session description (RFC 4568), for the suite AES_CM_128_HMAC_SHA1_80.

use super::BASE64;
use crate::srtp::{KEY, MasterKey};
use base64::Engine as _;
use std::{fmt, str::FromStr};

/// The attribute's name.
pub const ATTRIBUTE: &str = "crypto";

const SUITE: &str = "AES_CM_128_HMAC_SHA1_80";
/// The most bytes of a value: the suite's own have less than a hundred.
const MOST_BYTES: usize = 1024;

/// What the attribute's value says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crypto {
    /// Which one of a stream's attributes this is: up to nine digits.
    pub tag: u32,
    /// Of the side that says it.
    pub key: MasterKey,
}

/// Why a value can't be used. Never with the key in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SdesError {
    /// More bytes than any sensible one.
    #[error("{found} bytes, expected at most {MOST_BYTES}")]
    TooLong {
        /// How many.
        found: usize,
    },
    /// No tag and suite and key.
    #[error("no {0}")]
    Missing(&'static str),
    /// The tag is no number of up to nine digits.
    #[error("tag {0:?}, expected up to nine digits")]
    Tag(String),
    /// Another suite.
    #[error("suite {0:?}, expected {SUITE}")]
    Suite(String),
    /// The key is not in the form that the suite has.
    #[error("a key that is not inline: and {KEY} bytes in base64")]
    Key,
    /// The key's lifetime is no number of packets.
    #[error("lifetime {0:?}, expected a number or a power of two such as 2^20")]
    Lifetime(String),
    /// More than one key, or a name for it that would be in each packet (MKI).
    #[error("keys with names, expected one without")]
    Named,
    /// A session parameter that changes what packets are.
    #[error("session parameter {0:?}, expected none")]
    Parameter(String),
}

/// As the value is written (RFC 4568 9.1).
impl fmt::Display for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {SUITE} inline:{}", self.tag, BASE64.encode(self.key.to_bytes()))
    }
}

impl FromStr for Crypto {
    type Err = SdesError;

    fn from_str(value: &str) -> Result<Self, SdesError> {
        if value.len() > MOST_BYTES {
            return Err(SdesError::TooLong { found: value.len() });
        }
        let mut words = value.split([' ', '\t']).filter(|word| !word.is_empty());
        let mut word = |name| words.next().ok_or(SdesError::Missing(name));
        let (number, suite, parameters) = (word("tag")?, word("suite")?, word("key")?);
        if suite != SUITE {
            return Err(SdesError::Suite(suite.to_owned()));
        }
        let crypto = Self { tag: tag(number)?, key: key(parameters)? };
        match words.find(|parameter| !means_nothing(parameter)) {
            Some(parameter) => Err(SdesError::Parameter(parameter.to_owned())),
            None => Ok(crypto),
        }
    }
}

fn tag(digits: &str) -> Result<u32, SdesError> {
    let number = is_digits(digits).then(|| digits.parse().ok()).flatten();
    number.filter(|_| digits.len() <= 9).ok_or_else(|| SdesError::Tag(digits.to_owned()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `inline:KEY[|LIFETIME][|MKI:LENGTH]` (RFC 4568 6.1). More keys than one have semicolons between, and names.
fn key(parameters: &str) -> Result<MasterKey, SdesError> {
    if parameters.contains(';') {
        return Err(SdesError::Named);
    }
    let mut fields = parameters.strip_prefix("inline:").ok_or(SdesError::Key)?.split('|');
    let bytes = BASE64.decode(fields.next().unwrap_or_default()).map_err(|_| SdesError::Key)?;
    let bytes: [u8; KEY] = bytes.try_into().map_err(|_| SdesError::Key)?;
    match fields.next() {
        Some(name) if name.contains(':') => return Err(SdesError::Named),
        // A receiver has no use for it.
        Some(lifetime) if !is_digits(lifetime.strip_prefix("2^").unwrap_or(lifetime)) => {
            return Err(SdesError::Lifetime(lifetime.to_owned()));
        }
        _ => {}
    }
    if fields.next().is_some() {
        return Err(SdesError::Named);
    }
    Ok(MasterKey::new(&bytes))
}

/// Parameters that may be passed over: hints for the replay window, and what begins with a dash (RFC 4568 6.3).
fn means_nothing(parameter: &str) -> bool {
    parameter.starts_with("WSH=") || parameter.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0e";

    fn crypto(tag: u32) -> Crypto {
        Crypto { tag, key: MasterKey::new(&std::array::from_fn(|at| at as u8 + 1)) }
    }

    #[test]
    fn the_key_of_the_rfc_is_read() {
        let text = "1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20";
        let read: Crypto = text.parse().unwrap();
        assert_eq!(read.key.to_bytes(), *b"wDfvg&T+)xG7@fb5jU,RaA}\\|p0%*#");
    }

    #[test]
    fn what_is_written_reads_back() {
        for tag in [0, 1, 999_999_999] {
            assert_eq!(crypto(tag).to_string(), format!("{tag} AES_CM_128_HMAC_SHA1_80 inline:{KEY}"));
            assert_eq!(crypto(tag).to_string().parse(), Ok(crypto(tag)));
        }
    }

    #[test]
    fn forms_that_mean_the_same() {
        for rest in ["", "|2^31", "|1000", " WSH=64", "|2^20 -UNKNOWN=1  WSH=128"] {
            let text = format!(" 2\tAES_CM_128_HMAC_SHA1_80  inline:{KEY}{rest} ");
            assert_eq!(text.parse(), Ok(crypto(2)), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let suite = "AES_CM_128_HMAC_SHA1_80";
        for (text, error) in [
            (String::new(), SdesError::Missing("tag")),
            ("1 ".to_owned(), SdesError::Missing("suite")),
            (format!("1 {suite}"), SdesError::Missing("key")),
            (format!("x {suite} inline:{KEY}"), SdesError::Tag("x".to_owned())),
            (format!("+1 {suite} inline:{KEY}"), SdesError::Tag("+1".to_owned())),
            (format!("1000000000 {suite} inline:{KEY}"), SdesError::Tag("1000000000".to_owned())),
            (format!("1 AES_256_CM_HMAC_SHA1_80 inline:{KEY}"), SdesError::Suite("AES_256_CM_HMAC_SHA1_80".to_owned())),
            (format!("1 {suite} {KEY}"), SdesError::Key),
            (format!("1 {suite} inline:{}", &KEY[4..]), SdesError::Key),
            (format!("1 {suite} inline:{KEY}AAAA"), SdesError::Key),
            (format!("1 {suite} inline:!{}", &KEY[1..]), SdesError::Key),
            (format!("1 {suite} inline:{KEY}|2^x"), SdesError::Lifetime("2^x".to_owned())),
            (format!("1 {suite} inline:{KEY}|2^20|1:4"), SdesError::Named),
            (format!("1 {suite} inline:{KEY}|1:4"), SdesError::Named),
            (format!("1 {suite} inline:{KEY}|2^20|1:4;inline:{KEY}|2^20|2:4"), SdesError::Named),
            (format!("1 {suite} inline:{KEY} KDR=1"), SdesError::Parameter("KDR=1".to_owned())),
            (format!("1 {suite} inline:{KEY} UNENCRYPTED_SRTCP"), SdesError::Parameter("UNENCRYPTED_SRTCP".to_owned())),
            ("1".repeat(1025), SdesError::TooLong { found: 1025 }),
        ] {
            assert_eq!(text.parse::<Crypto>(), Err(error.clone()), "{text}");
            assert!(!error.to_string().contains("AQID"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9]{0,3} (AES_CM_128_HMAC_SHA1_80)? (inline:)?.{0,60}") {
            let _ = text.parse::<Crypto>();
        }
    }
}
