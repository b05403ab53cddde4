//! Key material: messages that carry wrapped keys (draft-sharabayko-srt-01 3.2.2).

use super::{key_wrap::ADDED, passphrase::KeyLength};

/// First bytes: version 1, type 2, and the mark of the format's inventor.
const HEAD: [u8; 3] = [0x12, 0x20, 0x29];
/// AES in counter mode, no authentication, packets of SRT.
const CIPHER: u8 = 2;
const AUTHENTICATION: u8 = 0;
const ENCAPSULATION: u8 = 2;
/// Bytes before the salt, and of it.
const BEFORE_SALT: usize = 16;
pub(super) const SALT: usize = 16;

/// Answers of a receiver that can't take keys: it has no passphrase, or another one.
pub(crate) const NO_SECRET: [u8; 4] = [0, 0, 0, 3];
pub(crate) const BAD_SECRET: [u8; 4] = [0, 0, 0, 4];

/// A message with wrapped keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyMaterial {
    pub(super) has_even: bool,
    pub(super) has_odd: bool,
    pub(super) length: KeyLength,
    pub(super) salt: [u8; SALT],
    /// The keys that it has, the even one first, wrapped together.
    pub(super) wrapped: Vec<u8>,
}

impl KeyMaterial {
    /// Reads a message; `None` where it is none, or has other ciphers.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(BEFORE_SALT)?;
        let (salt, wrapped) = rest.split_first_chunk::<SALT>()?;
        let [
            first,
            mark,
            second_mark,
            slots,
            _,
            _,
            _,
            _,
            cipher,
            authentication,
            encapsulation,
            _,
            _,
            _,
            salt_words,
            key_words,
        ] = *head.first_chunk::<BEFORE_SALT>()?;
        let is_known = [first, mark, second_mark] == HEAD
            && (cipher, authentication, encapsulation) == (CIPHER, AUTHENTICATION, ENCAPSULATION)
            && usize::from(salt_words) * 4 == SALT;
        let (has_even, has_odd) = (slots & 1 != 0, slots & 2 != 0);
        let length = KeyLength::of_bytes(usize::from(key_words) * 4)?;
        let keys = usize::from(has_even) + usize::from(has_odd);
        let fits = keys > 0 && wrapped.len() == keys * length.bytes() + ADDED;
        (is_known && fits).then(|| Self { has_even, has_odd, length, salt: *salt, wrapped: wrapped.to_vec() })
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let slots = u8::from(self.has_even) | u8::from(self.has_odd) << 1;
        let words = (self.length.bytes() / 4) as u8;
        let mut bytes = HEAD.to_vec();
        bytes.extend([slots, 0, 0, 0, 0, CIPHER, AUTHENTICATION, ENCAPSULATION, 0, 0, 0, (SALT / 4) as u8, words]);
        bytes.extend(self.salt);
        bytes.extend(&self.wrapped);
        bytes
    }
}
