//! Segments that are encrypted as a whole: AES-128 in CBC mode, with padding (RFC 8216 4.3.2.4).

use aes::{
    Aes128,
    cipher::{BlockCipherDecrypt as _, KeyInit as _},
};
use bytes::{Bytes, BytesMut};

/// Bytes of a block, and of a key.
pub(super) const BLOCK: usize = 16;

/// Decrypts one segment as it arrives.
pub(super) struct Decryption {
    cipher: Aes128,
    /// The encrypted block before the next one.
    before: [u8; BLOCK],
    /// Bytes that are not decrypted yet: the last block has the padding.
    waiting: BytesMut,
}

impl Decryption {
    /// Creates it with the initialization vector, or with the number of the segment.
    pub(super) fn new(key: [u8; BLOCK], iv: Option<[u8; BLOCK]>, number: u64) -> Self {
        let before = iv.unwrap_or_else(|| u128::from(number).to_be_bytes());
        Self { cipher: Aes128::new(&key.into()), before, waiting: BytesMut::new() }
    }

    /// Takes bytes; returns those that are decrypted.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Bytes {
        self.waiting.extend_from_slice(bytes);
        // The last block waits for its successor, or for the end.
        let whole = self.waiting.len().saturating_sub(1) / BLOCK * BLOCK;
        let mut out = self.waiting.split_to(whole);
        self.decrypt(&mut out);
        out.freeze()
    }

    /// Ends the segment; returns the last bytes.
    ///
    /// # Errors
    /// The bytes are no whole blocks, or the key is another one, in words.
    pub(super) fn finish(mut self) -> Result<Bytes, String> {
        let mut out = std::mem::take(&mut self.waiting);
        if out.is_empty() {
            return Ok(Bytes::new());
        }
        if out.len() != BLOCK {
            return Err(format!("the segment has {} bytes beyond whole blocks of {BLOCK} bytes", out.len() % BLOCK));
        }
        self.decrypt(&mut out);
        let padding = usize::from(out.last().copied().unwrap_or(0));
        let is_padding = out.iter().rev().take(padding).all(|byte| usize::from(*byte) == padding);
        if padding == 0 || padding > BLOCK || !is_padding {
            return Err("the segment ends without padding (PKCS7): the key is another one".to_owned());
        }
        out.truncate(BLOCK - padding);
        Ok(out.freeze())
    }

    /// Decrypts whole blocks.
    fn decrypt(&mut self, blocks: &mut [u8]) {
        for block in blocks.chunks_exact_mut(BLOCK) {
            let mut plain = aes::Block::default();
            plain.copy_from_slice(block);
            let encrypted: [u8; BLOCK] = plain.into();
            self.cipher.decrypt_block(&mut plain);
            for ((out, plain), before) in block.iter_mut().zip(plain).zip(self.before) {
                *out = plain ^ before;
            }
            self.before = encrypted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "a segment of thirty-odd bytes...", encrypted by `openssl enc -aes-128-cbc -K 000102...0f -iv 00...07`.
    const ENCRYPTED: &str =
        "b858c55e575e5524e689eead8108d3996513e4bdc9d038c4b7259e67f5e34ad4f43be637fb588d5d9b153ececfe76afc";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn decrypt(encrypted: &[u8], piece: usize, key: [u8; BLOCK]) -> Result<Vec<u8>, String> {
        let mut decryption = Decryption::new(key, None, 7);
        let mut all = Vec::new();
        for piece in encrypted.chunks(piece) {
            all.extend_from_slice(&decryption.push(&Bytes::copy_from_slice(piece)));
        }
        all.extend_from_slice(&decryption.finish()?);
        Ok(all)
    }

    #[test]
    fn segments_are_decrypted_in_any_pieces() {
        let (key, encrypted) = (std::array::from_fn(|at| at as u8), bytes(ENCRYPTED));
        for piece in [1, 15, 16, 17, 1000] {
            assert_eq!(decrypt(&encrypted, piece, key).unwrap(), b"a segment of thirty-odd bytes...");
        }
        assert!(decrypt(&encrypted[1..], 16, key).unwrap_err().contains("blocks"));
        assert!(decrypt(&encrypted, 16, [9; BLOCK]).unwrap_err().contains("another one"));
        assert_eq!(decrypt(&[], 16, key).unwrap(), b"");
    }
}
