//! What peers prove: the password of ICE, and the certificate of DTLS.

use std::{fmt, str::FromStr};

/// Bytes of a SHA-256 digest.
const DIGEST: usize = 32;

/// Credentials of one side in ICE (RFC 8839 5.4).
#[derive(Clone, PartialEq, Eq)]
pub struct IceCredentials {
    /// User name fragment.
    pub ufrag: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for IceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IceCredentials").field("ufrag", &self.ufrag).finish_non_exhaustive()
    }
}

/// SHA-256 of a certificate (RFC 8122 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; DIGEST]);

impl fmt::Display for Fingerprint {
    /// Writes the digest as attributes have it: `00:FF:..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let colon = if at > 0 { ":" } else { "" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

/// The reason why a fingerprint is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// The hash function is another one.
    #[error("the hash function {0:?}, expected \"sha-256\"")]
    Hash(String),
    /// The digest is not one of SHA-256.
    #[error("no digest of SHA-256, expected 32 bytes such as \"4A:AD:..\"")]
    Digest,
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Reads the value of an attribute: `sha-256 00:FF:..`.
    fn from_str(value: &str) -> Result<Self, FingerprintError> {
        let mut words = value.split_ascii_whitespace();
        let hash = words.next().unwrap_or_default();
        if !hash.eq_ignore_ascii_case("sha-256") {
            return Err(FingerprintError::Hash(super::fault::shown(hash)));
        }
        let digits = words.next().unwrap_or_default();
        let bytes: Option<Vec<u8>> = digits.split(':').map(byte).collect();
        let digest = bytes.and_then(|bytes| <[u8; DIGEST]>::try_from(bytes).ok());
        digest.map(Self).ok_or(FingerprintError::Digest)
    }
}

/// Reads two hexadecimal digits.
fn byte(digits: &str) -> Option<u8> {
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_read_back() {
        let fingerprint = Fingerprint(std::array::from_fn(|at| at as u8 * 8));
        let text = fingerprint.to_string();
        assert!(text.starts_with("00:08:10:") && text.ends_with(":F8"), "{text}");
        for value in [format!("sha-256 {text}"), format!(" SHA-256\t{}", text.to_lowercase())] {
            assert_eq!(value.parse::<Fingerprint>(), Ok(fingerprint), "{value}");
        }
        let (long, short) = (format!("sha-256 {text}:00"), format!("sha-256 {}", &text[3..]));
        for value in ["sha-256", "sha-256 00:08", "sha-256 +0:08", long.as_str(), short.as_str()] {
            assert_eq!(value.parse::<Fingerprint>(), Err(FingerprintError::Digest), "{value}");
        }
        let sha1 = "sha-1 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB".parse::<Fingerprint>();
        assert_eq!(sha1.unwrap_err().to_string(), "the hash function \"sha-1\", expected \"sha-256\"");
    }

    #[test]
    fn passwords_stay_out_of_logs() {
        let credentials = IceCredentials { ufrag: "name".to_owned(), password: "secret".to_owned() };
        let shown = format!("{credentials:?}");
        assert!(shown.contains("name") && !shown.contains("secret"), "{shown}");
    }
}
