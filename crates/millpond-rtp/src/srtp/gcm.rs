//! AES in Galois/counter mode (RFC 7714), with the TLS library's cryptography.

use super::{
    MasterKey, SrtpError,
    session_keys::Place,
    suite::{MOST_KEY, MOST_TAG},
};
use aws_lc_rs::aead::{Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

pub(super) struct Gcm {
    key: LessSafeKey,
    salt: [u8; NONCE_LEN],
}

impl Gcm {
    /// Derives key and salt. The label between theirs is for authentication keys, which this mode does not have.
    pub(super) fn derive(algorithm: &'static Algorithm, master: &MasterKey, first: u8) -> Self {
        let (mut key, mut salt) = ([0; MOST_KEY], [0; NONCE_LEN]);
        let key = &mut key[..algorithm.key_len()];
        master.derive(first, key);
        master.derive(first + 2, &mut salt);
        Self::new(algorithm, key, salt)
    }

    /// # Panics
    /// If the key's length is not the algorithm's.
    pub(super) fn new(algorithm: &'static Algorithm, key: &[u8], salt: [u8; NONCE_LEN]) -> Self {
        let key = UnboundKey::new(algorithm, key).expect("the key has the algorithm's length");
        Self { key: LessSafeKey::new(key), salt }
    }

    /// Encrypts a body. Returns the tag of the body and the `associated` bytes.
    pub(super) fn seal(&self, place: Place, associated: &[u8], body: &mut [u8]) -> [u8; MOST_TAG] {
        let sealed = self.key.seal_in_place_separate_tag(self.nonce(place), Aad::from(associated), body);
        let mut tag = [0; MOST_TAG];
        tag.copy_from_slice(sealed.expect("a packet is shorter than 64 GiB").as_ref());
        tag
    }

    /// Decrypts a body, or clears it if the tag is wrong.
    pub(super) fn open(&self, place: Place, associated: &[u8], body: &mut [u8], tag: &[u8]) -> Result<(), SrtpError> {
        match self.key.open_in_place_separate_tag(self.nonce(place), Aad::from(associated), tag, body) {
            Ok(_) => Ok(()),
            Err(_) => Err(SrtpError::Tag),
        }
    }

    /// Returns the nonce of a packet (RFC 7714 8.1 and 9.1).
    fn nonce(&self, place: Place) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        place.write(&mut nonce[2..]);
        for (byte, salt) in nonce.iter_mut().zip(&self.salt) {
            *byte ^= salt;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}
