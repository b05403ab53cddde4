//! Wrapped keys (RFC 3394).

use super::cipher::{BLOCK, Cipher};

/// The value that proves a key (RFC 3394 2.2.3.1).
const PROOF: [u8; 8] = [0xa6; 8];

/// Bytes that wrapping adds.
pub(super) const ADDED: usize = 8;

/// Wraps a key, whose length is a multiple of eight bytes (RFC 3394 2.2.1).
pub(super) fn wrap(kek: &Cipher, key: &[u8]) -> Vec<u8> {
    let mut parts: Vec<[u8; 8]> = key.as_chunks().0.to_vec();
    let (mut check, mut step) = (PROOF, 0_u64);
    for _ in 0..6 {
        for part in &mut parts {
            step += 1;
            let (first, last) = halves(kek.encrypt(joined(check, *part)));
            check = (u64::from_be_bytes(first) ^ step).to_be_bytes();
            *part = last;
        }
    }
    std::iter::once(check).chain(parts).flatten().collect()
}

/// Unwraps a key; `None` where it was wrapped with another one (RFC 3394 2.2.2).
pub(super) fn unwrap(kek: &Cipher, wrapped: &[u8]) -> Option<Vec<u8>> {
    let (chunks, []) = wrapped.as_chunks::<8>() else { return None };
    let (first, parts) = chunks.split_first()?;
    let (mut check, mut parts, mut step) = (*first, parts.to_vec(), 6 * parts.len() as u64);
    for _ in 0..6 {
        for part in parts.iter_mut().rev() {
            let check_in = (u64::from_be_bytes(check) ^ step).to_be_bytes();
            step -= 1;
            (check, *part) = halves(kek.decrypt(joined(check_in, *part)));
        }
    }
    (check == PROOF).then(|| parts.concat())
}

fn joined(first: [u8; 8], last: [u8; 8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(&first);
    block[8..].copy_from_slice(&last);
    block
}

fn halves(block: [u8; BLOCK]) -> ([u8; 8], [u8; 8]) {
    let word = |at: usize| block.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    (word(0), word(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    /// RFC 3394 4.1, 4.2 and 4.6.
    #[test]
    fn keys_are_wrapped_as_in_the_standard() {
        let kek = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        let key = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f";
        for (kek_length, key_length, wrapped) in [
            (32, 32, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"),
            (48, 32, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"),
            (64, 64, "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"),
        ] {
            let (kek, key) = (Cipher::new(&bytes(&kek[..kek_length])).unwrap(), bytes(&key[..key_length]));
            assert_eq!(wrap(&kek, &key), bytes(wrapped));
            assert_eq!(unwrap(&kek, &bytes(wrapped)), Some(key));
            let mut wrong = bytes(wrapped);
            wrong[3] ^= 1;
            assert_eq!((unwrap(&kek, &wrong), unwrap(&kek, &wrong[1..]), unwrap(&kek, &[])), (None, None, None));
        }
    }
}
