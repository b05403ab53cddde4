//! AES with each length of keys: the key stream of payloads, and single blocks.

use super::passphrase::KeyLength;
use aes::{
    Aes128, Aes192, Aes256,
    cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _},
};
use ctr::{
    CtrCore,
    cipher::{InnerIvInit as _, StreamCipher as _, StreamCipherCoreWrapper},
    flavors::Ctr128BE,
};

type KeyStream<'a, K> = StreamCipherCoreWrapper<CtrCore<&'a K, Ctr128BE>>;

/// A key that is ready for use.
#[derive(Clone)]
pub(super) enum Cipher {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;

impl Cipher {
    /// Takes a key; `None` where its length is none of AES.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        Some(match KeyLength::of_bytes(key.len())? {
            KeyLength::Aes128 => Self::Aes128(Aes128::new_from_slice(key).ok()?),
            KeyLength::Aes192 => Self::Aes192(Aes192::new_from_slice(key).ok()?),
            KeyLength::Aes256 => Self::Aes256(Aes256::new_from_slice(key).ok()?),
        })
    }

    /// Encrypts or decrypts bytes by the key stream of a first counter.
    pub(super) fn apply(&self, counter: [u8; BLOCK], bytes: &mut [u8]) {
        let iv = &counter.into();
        match self {
            Self::Aes128(key) => KeyStream::from_core(CtrCore::inner_iv_init(key, iv)).apply_keystream(bytes),
            Self::Aes192(key) => KeyStream::from_core(CtrCore::inner_iv_init(key, iv)).apply_keystream(bytes),
            Self::Aes256(key) => KeyStream::from_core(CtrCore::inner_iv_init(key, iv)).apply_keystream(bytes),
        }
    }

    /// Encrypts a block.
    pub(super) fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = block.into();
        match self {
            Self::Aes128(key) => key.encrypt_block(&mut block),
            Self::Aes192(key) => key.encrypt_block(&mut block),
            Self::Aes256(key) => key.encrypt_block(&mut block),
        }
        block.into()
    }

    /// Decrypts a block.
    pub(super) fn decrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = block.into();
        match self {
            Self::Aes128(key) => key.decrypt_block(&mut block),
            Self::Aes192(key) => key.decrypt_block(&mut block),
            Self::Aes256(key) => key.decrypt_block(&mut block),
        }
        block.into()
    }
}
