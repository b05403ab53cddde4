//! Master keys, and the derivation of session keys from them (RFC 3711 4.3, RFC 6188 and RFC 7714 11).

use super::{
    KEY,
    suite::{MOST_KEY, MOST_SALT, Suite},
};
use aes::{Aes128, Aes256};
use ctr::{
    Ctr128BE,
    cipher::{KeyIvInit, StreamCipher},
};
use std::fmt;

/// Master key of a suite, from which session keys are derived (RFC 3711 3.2.1): secret bytes and a salt.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    suite: Suite,
    /// Zeros follow a shorter key.
    key: [u8; MOST_KEY],
    /// Zeros follow a shorter salt: keys are derived as from a salt of 14 bytes (RFC 7714 11).
    salt: [u8; MOST_SALT],
}

impl MasterKey {
    /// Creates a key of the suite AES_CM_128_HMAC_SHA1_80 from the key bytes followed by the salt, as in key management.
    #[must_use]
    pub fn new(bytes: &[u8; KEY]) -> Self {
        let suite = Suite::AesCm128HmacSha1_80;
        let (key, salt) = bytes.split_at(suite.key_length());
        Self { suite, key: padded(key), salt: padded(salt) }
    }

    /// Creates a key of a suite; `None` if a length is not the suite's.
    #[must_use]
    pub fn of(suite: Suite, key: &[u8], salt: &[u8]) -> Option<Self> {
        let fits = key.len() == suite.key_length() && salt.len() == suite.salt_length();
        fits.then(|| Self { suite, key: padded(key), salt: padded(salt) })
    }

    /// Returns the suite that the key is for.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the key bytes followed by the salt, for key management.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.key[..self.suite.key_length()], &self.salt[..self.suite.salt_length()]].concat()
    }

    /// Derives a session key or salt (RFC 3711 4.3.1 and 4.3.3). The derivation rate is 0.
    pub(super) fn derive(&self, label: u8, derived: &mut [u8]) {
        let mut counter = [0; 16];
        counter[..MOST_SALT].copy_from_slice(&self.salt);
        // Seven bytes of label and index, at the end of the salt's 14.
        counter[MOST_SALT - 7] ^= label;
        derived.fill(0);
        match self.suite {
            Suite::AesCm128HmacSha1_80 | Suite::AeadAes128Gcm => {
                let key: [u8; 16] = std::array::from_fn(|at| self.key[at]);
                Ctr128BE::<Aes128>::new(&key.into(), &counter.into()).apply_keystream(derived);
            }
            Suite::AeadAes256Gcm => {
                Ctr128BE::<Aes256>::new(&self.key.into(), &counter.into()).apply_keystream(derived);
            }
        }
    }
}

/// Omits the key, because logs must not contain it.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// Returns the keys of client and server from the keying material of a DTLS handshake: both keys, then both salts (RFC 5764 4.2).
/// `None` if the material's length is not the suite's.
#[must_use]
pub fn keys_of_dtls(suite: Suite, material: &[u8]) -> Option<(MasterKey, MasterKey)> {
    let (keys, salts) = material.split_at_checked(2 * suite.key_length())?;
    let (client_key, server_key) = keys.split_at(suite.key_length());
    let (client_salt, server_salt) = salts.split_at_checked(suite.salt_length())?;
    Some((MasterKey::of(suite, client_key, client_salt)?, MasterKey::of(suite, server_key, server_salt)?))
}

/// Returns bytes with zeros after them.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::tests::{SUITES, bytes};

    /// Tests RFC 3711 B.3.
    #[test]
    fn the_keys_of_the_rfc() {
        let master = MasterKey::new(&bytes("e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6"));
        let (mut cipher, mut salt, mut authentication) = ([0; 16], [0; 14], [0; 94]);
        master.derive(0, &mut cipher);
        master.derive(2, &mut salt);
        master.derive(1, &mut authentication);
        assert_eq!(cipher, bytes("c61e7a93744f39ee10734afe3ff7a087"));
        assert_eq!(salt, bytes("30cbbc08863d8c85d49db34a9ae1"));
        for (at, expected) in [
            (0, "cebe321f6ff7716b6fd4ab49af256a15"),
            (16, "6d38baa48f0a0acf3c34e2359e6cdbce"),
            (32, "e049646c43d9327ad175578ef7227098"),
            (48, "6371c10c9a369ac2f94a8c5fbcdddc25"),
            (64, "6d6e919a48b610ef17c2041e47403576"),
        ] {
            assert_eq!(authentication[at..at + 16], bytes::<16>(expected), "{at}");
        }
        assert_eq!(authentication[80..], bytes::<14>("6b68642c59bbfc2f34db60dbdfb2"));
    }

    #[test]
    fn keys_have_the_lengths_of_their_suite() {
        let long = [1; 64];
        for suite in SUITES {
            for (key, salt) in (0..33).flat_map(|key| (0..33).map(move |salt| (key, salt))) {
                let made = MasterKey::of(suite, &long[..key], &long[..salt]);
                assert_eq!(made.is_some(), (key, salt) == (suite.key_length(), suite.salt_length()), "{key} {salt}");
                assert!(made.is_none_or(|made| made.suite() == suite && made.to_bytes() == long[..key + salt]));
            }
        }
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(MasterKey::new(&bytes).to_bytes(), bytes);
        assert_eq!(MasterKey::of(Suite::AesCm128HmacSha1_80, &bytes[..16], &bytes[16..]), Some(MasterKey::new(&bytes)));
    }

    /// Tests RFC 5764 4.2 with the lengths of RFC 5764 4.1.2 and RFC 7714 14.2.
    #[test]
    fn both_keys_of_a_handshake() {
        let material: Vec<u8> = (0..100).collect();
        let of = |suite, ranges: [(u8, u8); 2]| {
            let [key, salt] = ranges.map(|(first, behind)| (first..behind).collect::<Vec<_>>());
            MasterKey::of(suite, &key, &salt).unwrap()
        };
        for (suite, length, client, server) in [
            (Suite::AesCm128HmacSha1_80, 60, [(0, 16), (32, 46)], [(16, 32), (46, 60)]),
            (Suite::AeadAes128Gcm, 56, [(0, 16), (32, 44)], [(16, 32), (44, 56)]),
            (Suite::AeadAes256Gcm, 88, [(0, 32), (64, 76)], [(32, 64), (76, 88)]),
        ] {
            let keys = keys_of_dtls(suite, &material[..length]);
            assert_eq!(keys, Some((of(suite, client), of(suite, server))), "{suite:?}");
            for other in (0..100).filter(|other| *other != length) {
                assert_eq!(keys_of_dtls(suite, &material[..other]), None, "{suite:?} {other}");
            }
        }
    }
}
