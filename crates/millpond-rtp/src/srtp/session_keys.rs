//! Session keys of RTP or RTCP, and their ciphers (RFC 3711 4).

use super::{MASTER, MasterKey, SALT, TAG};
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

/// Length of an authentication key in bytes.
const AUTHENTICATION: usize = 20;

/// Session keys for RTP or for RTCP: derived once, used for every packet.
#[derive(Clone)]
pub(super) struct SessionKeys {
    cipher: Aes128,
    salt: [u8; SALT],
    keyed: Hmac<Sha1>,
}

impl SessionKeys {
    pub(super) fn rtp(master: &MasterKey) -> Self {
        Self::derive(master, 0)
    }

    pub(super) fn rtcp(master: &MasterKey) -> Self {
        Self::derive(master, 3)
    }

    /// Derives the three keys, whose labels are consecutive from `first` (RFC 3711 4.3.2). The derivation rate is 0.
    fn derive(master: &MasterKey, first: u8) -> Self {
        let (mut key, mut salt, mut block) = ([0; MASTER], [0; SALT], [0; 64]);
        derived(master, first, &mut key);
        // HMAC pads keys to whole blocks with zeros (RFC 2104 2).
        derived(master, first + 1, &mut block[..AUTHENTICATION]);
        derived(master, first + 2, &mut salt);
        Self { cipher: Aes128::new(&key.into()), salt, keyed: Hmac::new(&block.into()) }
    }

    /// Encrypts or decrypts, which is the same operation (RFC 3711 4.1.1).
    pub(super) fn apply(&self, ssrc: u32, index: u64, body: &mut [u8]) {
        let mut counter = [0; 16];
        counter[4..8].copy_from_slice(&ssrc.to_be_bytes());
        // 48 bits.
        counter[8..14].copy_from_slice(&index.to_be_bytes()[2..]);
        salted(&mut counter, &self.salt);
        key_stream(&self.cipher, &counter).apply_keystream(body);
    }

    /// Returns the tag of a packet and the bytes after it (RFC 3711 4.2).
    pub(super) fn tag(&self, packet: &[u8], behind: &[u8]) -> [u8; TAG] {
        let hash = self.keyed.clone().chain_update(packet).chain_update(behind).finalize().into_bytes();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&hash[..TAG]);
        tag
    }

    /// Whether `tag` is the tag of these bytes, in constant time.
    pub(super) fn is_tag(&self, tag: &[u8], packet: &[u8], behind: &[u8]) -> bool {
        let keyed = self.keyed.clone().chain_update(packet).chain_update(behind);
        keyed.verify_truncated_left(tag).is_ok()
    }
}

/// Derives a key (RFC 3711 4.3.1 and 4.3.3).
fn derived(master: &MasterKey, label: u8, key: &mut [u8]) {
    let mut counter = [0; 16];
    // Seven bytes of label and index, at the end of the salt's 14.
    counter[SALT - 7] = label;
    salted(&mut counter, &master.salt);
    key.fill(0);
    key_stream(&Aes128::new(&master.key.into()), &counter).apply_keystream(key);
}

fn salted(counter: &mut [u8; 16], salt: &[u8; SALT]) {
    for (byte, salt) in counter.iter_mut().zip(salt) {
        *byte ^= salt;
    }
}

fn key_stream<'a>(cipher: &'a Aes128, counter: &[u8; 16]) -> KeyStream<'a> {
    KeyStream::from_core(CtrCore::inner_iv_init(cipher, counter.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::tests::bytes;

    /// Tests RFC 3711 B.2: the key stream of packet 0 of source 0.
    #[test]
    fn the_key_stream_of_the_rfc() {
        let mut keys = SessionKeys::rtp(&MasterKey::new(&[0; 30]));
        keys.cipher = Aes128::new(&bytes::<16>("2b7e151628aed2a6abf7158809cf4f3c").into());
        keys.salt = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfd");
        let mut stream = vec![0; 1_044_512];
        keys.apply(0, 0, &mut stream);
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

    /// Tests RFC 3711 B.3.
    #[test]
    fn the_keys_of_the_rfc() {
        let master = MasterKey::new(&bytes("e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6"));
        let (mut cipher, mut salt, mut authentication) = ([0; 16], [0; 14], [0; 94]);
        derived(&master, 0, &mut cipher);
        derived(&master, 2, &mut salt);
        derived(&master, 1, &mut authentication);
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
}
