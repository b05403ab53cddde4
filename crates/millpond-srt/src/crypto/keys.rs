//! The keys of a connection.

use super::{
    cipher::{BLOCK, Cipher},
    key_material::{KeyMaterial, SALT},
    key_wrap,
    passphrase::{KeyLength, Passphrase},
};
use crate::{Sequence, packet::KeySlot};
use std::fmt;

/// The keys of one direction. `Debug` does not show them.
#[derive(Clone)]
pub(crate) struct Keys {
    length: KeyLength,
    salt: [u8; SALT],
    /// The key that wraps keys, of this salt and length.
    kek: Cipher,
    even: Option<Cipher>,
    odd: Option<Cipher>,
}

/// Why key material can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFailure {
    /// It is malformed, or has a cipher that is not known.
    Malformed,
    /// It was wrapped with the key of another passphrase.
    BadSecret,
}

impl Keys {
    /// Makes an even key of random bytes: the salt, and the key behind it. Returns the message that tells it, too.
    pub(crate) fn make(passphrase: &Passphrase, length: KeyLength, random: &[u8; 48]) -> Option<(Self, Vec<u8>)> {
        let (salt, key) = random.split_first_chunk::<SALT>()?;
        let key = key.get(..length.bytes())?;
        let kek = Cipher::new(&passphrase.derive(salt, length))?;
        let wrapped = key_wrap::wrap(&kek, key);
        let material = KeyMaterial { has_even: true, has_odd: false, length, salt: *salt, wrapped };
        let keys = Self { length, salt: *salt, kek, even: Cipher::new(key), odd: None };
        Some((keys, material.write()))
    }

    /// Takes the keys of a message.
    ///
    /// # Errors
    /// The message is malformed, or has other keys.
    pub(crate) fn unlock(message: &[u8], passphrase: &Passphrase) -> Result<Self, KeyFailure> {
        let KeyMaterial { length, salt, .. } = KeyMaterial::read(message).ok_or(KeyFailure::Malformed)?;
        let kek = Cipher::new(&passphrase.derive(&salt, length)).ok_or(KeyFailure::Malformed)?;
        let mut keys = Self { length, salt, kek, even: None, odd: None };
        keys.refresh(message).map(|()| keys)
    }

    /// Whether a message has the salt and the length of these keys, so that taking it costs little.
    pub(crate) fn is_alike(&self, message: &[u8]) -> bool {
        KeyMaterial::read(message).is_some_and(|of| (of.length, of.salt) == (self.length, self.salt))
    }

    /// Takes the keys of a message with the same salt and length. Keys that it lacks stay.
    ///
    /// # Errors
    /// The message is malformed, or wrapped with another key. Nothing is changed then.
    pub(crate) fn refresh(&mut self, message: &[u8]) -> Result<(), KeyFailure> {
        let material = KeyMaterial::read(message).ok_or(KeyFailure::Malformed)?;
        let keys = key_wrap::unwrap(&self.kek, &material.wrapped).ok_or(KeyFailure::BadSecret)?;
        let mut keys = keys.chunks_exact(material.length.bytes());
        if material.has_even {
            self.even = keys.next().and_then(Cipher::new);
        }
        if material.has_odd {
            self.odd = keys.next().and_then(Cipher::new);
        }
        Ok(())
    }

    /// A slot that has a key.
    pub(crate) fn slot(&self) -> KeySlot {
        if self.even.is_some() { KeySlot::Even } else { KeySlot::Odd }
    }

    /// Encrypts or decrypts a payload. Returns whether there is a key (draft-sharabayko-srt-01 6.2.2).
    pub(crate) fn apply(&self, slot: KeySlot, sequence: Sequence, payload: &mut [u8]) -> bool {
        let key = match slot {
            KeySlot::Even => &self.even,
            KeySlot::Odd => &self.odd,
        };
        let Some(key) = key else { return false };
        let mut counter = [0; BLOCK];
        counter[10..14].copy_from_slice(&sequence.get().to_be_bytes());
        counter.iter_mut().zip(&self.salt[..14]).for_each(|(counter, salt)| *counter ^= salt);
        key.apply(counter, payload);
        true
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pass_by_their_message() {
        let random: [u8; 48] = std::array::from_fn(|at| (at as u8).wrapping_mul(7));
        let passphrase = Passphrase::new("a long secret").unwrap();
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            let (ours, message) = Keys::make(&passphrase, length, &random).unwrap();
            let theirs = Keys::unlock(&message, &passphrase).unwrap();
            let (mut payload, sequence) = (*b"a payload of several blocks, the last one cut", Sequence::new(77));
            assert!(ours.apply(KeySlot::Even, sequence, &mut payload));
            assert_ne!(&payload[..9], b"a payload");
            let mut other = payload;
            assert!(theirs.apply(KeySlot::Even, sequence.plus(1), &mut other) && &other[..9] != b"a payload");
            assert!(theirs.apply(KeySlot::Even, sequence, &mut payload));
            assert_eq!(&payload[..9], b"a payload");
            assert!(!theirs.apply(KeySlot::Odd, sequence, &mut payload) && theirs.is_alike(&message));
            let wrong = Passphrase::new("another secret").unwrap();
            assert_eq!(Keys::unlock(&message, &wrong).unwrap_err(), KeyFailure::BadSecret);
            assert_eq!(Keys::unlock(&message[1..], &passphrase).unwrap_err(), KeyFailure::Malformed);
        }
    }
}
