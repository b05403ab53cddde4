//! AES in counter mode with HMAC-SHA1 (RFC 3711 4.1.1 and 4.2.1).

use super::{
    MasterKey, SrtpError,
    session_keys::Place,
    suite::{MOST_TAG, Suite},
};
use aes::Aes128;
use ctr::{
    CtrCore,
    cipher::{InnerIvInit, StreamCipher, StreamCipherCoreWrapper},
    flavors,
};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// AES in counter mode with an expanded key.
type KeyStream<'a> = StreamCipherCoreWrapper<CtrCore<&'a Aes128, flavors::Ctr128BE>>;

const SUITE: Suite = Suite::AesCm128HmacSha1_80;
const KEY: usize = SUITE.key_length();
const SALT: usize = SUITE.salt_length();
const TAG: usize = SUITE.tag_length();
/// Length of an authentication key in bytes.
const AUTHENTICATION: usize = 20;

pub(super) struct CounterMode {
    cipher: Aes128,
    salt: [u8; SALT],
    keyed: Hmac<Sha1>,
}

impl CounterMode {
    /// Derives the three keys.
    pub(super) fn derive(master: &MasterKey, first: u8) -> Self {
        let (mut key, mut salt, mut block) = ([0; KEY], [0; SALT], [0; 64]);
        master.derive(first, &mut key);
        // HMAC pads keys to whole blocks with zeros (RFC 2104 2).
        master.derive(first + 1, &mut block[..AUTHENTICATION]);
        master.derive(first + 2, &mut salt);
        Self { cipher: Aes128::new(&key.into()), salt, keyed: Hmac::new(&block.into()) }
    }

    /// Encrypts a body. Returns the tag of the packet and the bytes `behind` it, with zeros after it.
    pub(super) fn seal(&self, place: Place, header: &[u8], body: &mut [u8], behind: [u8; 4]) -> [u8; MOST_TAG] {
        self.apply(place, body);
        let hash = self.hash(header, body, behind).finalize().into_bytes();
        let mut tag = [0; MOST_TAG];
        tag[..TAG].copy_from_slice(&hash[..TAG]);
        tag
    }

    /// Checks a tag in constant time, then decrypts the body.
    pub(super) fn open(
        &self,
        place: Place,
        header: &[u8],
        body: &mut [u8],
        behind: [u8; 4],
        tag: &[u8],
    ) -> Result<(), SrtpError> {
        self.hash(header, body, behind).verify_truncated_left(tag).map_err(|_| SrtpError::Tag)?;
        self.apply(place, body);
        Ok(())
    }

    /// Encrypts or decrypts, which is the same operation.
    fn apply(&self, place: Place, body: &mut [u8]) {
        let mut counter = [0; 16];
        place.write(&mut counter[4..14]);
        for (byte, salt) in counter.iter_mut().zip(&self.salt) {
            *byte ^= salt;
        }
        KeyStream::from_core(CtrCore::inner_iv_init(&self.cipher, &counter.into())).apply_keystream(body);
    }

    fn hash(&self, header: &[u8], body: &[u8], behind: [u8; 4]) -> Hmac<Sha1> {
        self.keyed.clone().chain_update(header).chain_update(body).chain_update(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::tests::bytes;

    /// Tests RFC 3711 B.2: the key stream of packet 0 of source 0.
    #[test]
    fn the_key_stream_of_the_rfc() {
        let mut keys = CounterMode::derive(&MasterKey::new(&[0; 30]), 0);
        keys.cipher = Aes128::new(&bytes::<16>("2b7e151628aed2a6abf7158809cf4f3c").into());
        keys.salt = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfd");
        let mut stream = vec![0; 1_044_512];
        keys.apply(Place { ssrc: 0, index: 0 }, &mut stream);
        for (block, expected) in [
            (0x0000, "e03ead0935c95e80e166b16dd92b4eb4"),
            (0x0001, "d23513162b02d0f72a43a2fe4a5f97ab"),
            (0x0002, "41e95b3bb0a2e8dd477901e4fca894c0"),
            (0xfeff, "ec8cdf7398607cb0f2d21675ea9ea1e4"),
            (0xff00, "362b7c3c6773516318a077d7fc5073ae"),
            (0xff01, "6a2cc3787889374fbeb4c81b17ba6c44"),
        ] {
            assert_eq!(stream[16 * block..16 * (block + 1)], bytes::<16>(expected), "{block:#x}");
        }
    }
}
