//! Passphrases, and the keys that are derived from them.

use hmac::{Hmac, KeyInit, Mac};
use sha1::{Digest as _, Sha1};
use std::{fmt, sync::Arc};

/// Rounds of the derivation (draft-sharabayko-srt-01 6.1.4).
const ROUNDS: usize = 2048;
/// Bytes of a hash and of its block.
const HASH: usize = 20;
const BLOCK: usize = 64;
/// Shortest and longest passphrase, in bytes.
const SHORTEST: usize = 10;
const LONGEST: usize = 79;

/// The passphrase of both sides. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Arc<str>);

/// A passphrase has 10 to 79 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 10 to 79 characters")]
pub struct BadPassphrase;

/// Length of the key that payloads are encrypted with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyLength {
    /// AES-128.
    #[default]
    Aes128,
    /// AES-192.
    Aes192,
    /// AES-256.
    Aes256,
}

impl KeyLength {
    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// That of so many bytes.
    #[must_use]
    pub fn of_bytes(bytes: usize) -> Option<Self> {
        [Self::Aes128, Self::Aes192, Self::Aes256].into_iter().find(|length| length.bytes() == bytes)
    }
}

impl Passphrase {
    /// Takes a passphrase.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn new(text: &str) -> Result<Self, BadPassphrase> {
        if (SHORTEST..=LONGEST).contains(&text.len()) { Ok(Self(text.into())) } else { Err(BadPassphrase) }
    }

    /// Returns the text. Only who writes configurations needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Derives the key that wraps keys (PBKDF2, RFC 8018 5.2) from the last eight bytes of a salt.
    pub(super) fn derive(&self, salt: &[u8; 16], length: KeyLength) -> Vec<u8> {
        let keyed = keyed(self.0.as_bytes());
        let mut key = Vec::with_capacity(2 * HASH);
        for block in 1_u32.. {
            if key.len() >= length.bytes() {
                break;
            }
            let mut hash = keyed.clone();
            hash.update(&salt[8..]);
            hash.update(&block.to_be_bytes());
            let mut last: [u8; HASH] = hash.finalize().into_bytes().into();
            let mut all = last;
            for _ in 1..ROUNDS {
                let mut hash = keyed.clone();
                hash.update(&last);
                last = hash.finalize().into_bytes().into();
                all.iter_mut().zip(last).for_each(|(all, last)| *all ^= last);
            }
            key.extend(all);
        }
        key.truncate(length.bytes());
        key
    }
}

/// HMAC with a key of any length (RFC 2104 2).
fn keyed(key: &[u8]) -> Hmac<Sha1> {
    let mut block = [0; BLOCK];
    match block.get_mut(..key.len()) {
        Some(begin) => begin.copy_from_slice(key),
        None => block[..HASH].copy_from_slice(&Sha1::digest(key)),
    }
    Hmac::new(&block.into())
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passphrases_have_10_to_79_bytes() {
        for (length, is_good) in [(9, false), (10, true), (79, true), (80, false)] {
            assert_eq!(Passphrase::new(&"x".repeat(length)).is_ok(), is_good, "{length}");
        }
        assert_eq!(format!("{:?}", Passphrase::new("a long secret").unwrap()), "***");
    }

    /// Reference values of Python's `hashlib.pbkdf2_hmac`.
    #[test]
    fn keys_are_derived_as_by_others() {
        let salt: [u8; 16] = std::array::from_fn(|at| at as u8);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let short = Passphrase::new("millpond-secret").unwrap();
        assert_eq!(
            hex(&short.derive(&salt, KeyLength::Aes256)),
            "13ca1ea96c456b9d1f500836e47a618be6a09301441f04e975d307e3a4e0c955"
        );
        assert_eq!(hex(&short.derive(&salt, KeyLength::Aes128)), "13ca1ea96c456b9d1f500836e47a618b");
        let long = Passphrase::new(&"0123456789".repeat(7)).unwrap();
        assert_eq!(hex(&long.derive(&salt, KeyLength::Aes192)), "3510dbc50addf819c55b0442640122526f5f63926e4af72f");
    }
}
