//! Nonces that need no state: each contains its time of creation, and a hash that only its creator can compute.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{fmt, time::Duration};

/// Lengths in bytes of the time, the random number, and the hash.
const TIME: usize = 8;
const RANDOM: usize = 8;
const HASH: usize = 16;

/// Creates the nonces of one realm, and recognises them.
///
/// All times count from one epoch, such as the start of 1970. Nodes that share the epoch and the key accept each
/// other's nonces.
#[derive(Clone)]
pub struct Nonces {
    keyed: Hmac<Sha256>,
    lifetime: Duration,
}

/// Omits the key.
impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonces").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

impl Nonces {
    /// Creates nonces with a secret key.
    #[must_use]
    pub fn new(key: &[u8; 32], lifetime: Duration) -> Self {
        // HMAC pads keys to whole blocks with zeros (RFC 2104 2).
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(key);
        Self { keyed: Hmac::new(&block.into()), lifetime }
    }

    /// Creates a nonce.
    pub(super) fn issue(&self, now: Duration, random: u64) -> String {
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let mut bytes = [0; TIME + RANDOM + HASH];
        bytes[..TIME].copy_from_slice(&millis.to_be_bytes());
        bytes[TIME..TIME + RANDOM].copy_from_slice(&random.to_be_bytes());
        let hash = self.keyed.clone().chain_update(&bytes[..TIME + RANDOM]).finalize().into_bytes();
        bytes[TIME + RANDOM..].copy_from_slice(&hash[..HASH]);
        super::hex(&bytes)
    }

    /// Whether the nonce was created with this key and has not expired.
    pub(super) fn is_current(&self, nonce: &str, now: Duration) -> bool {
        let Some(bytes) = bytes(nonce) else { return false };
        let (data, hash) = bytes.split_at(TIME + RANDOM);
        if self.keyed.clone().chain_update(data).verify_truncated_left(hash).is_err() {
            return false;
        }
        let made = data.iter().take(TIME).fold(0, |time, byte| time << 8 | u64::from(*byte));
        // A nonce from the future was created before a clock was set back: it would live too long.
        now.checked_sub(Duration::from_millis(made)).is_some_and(|age| age <= self.lifetime)
    }
}

fn bytes(nonce: &str) -> Option<[u8; TIME + RANDOM + HASH]> {
    let mut bytes = [0; TIME + RANDOM + HASH];
    let digits = nonce.as_bytes();
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_known_again_until_they_are_over() {
        let (made, minute) = (Duration::from_millis(1_700_000_000_123), Duration::from_secs(60));
        let nonces = Nonces::new(&[7; 32], minute);
        let nonce = nonces.issue(made, 5);
        assert!(nonces.is_current(&nonce, made) && nonces.is_current(&nonce, made + minute));
        assert!(!nonces.is_current(&nonce, made + minute + Duration::from_millis(1)));
        assert!(!nonces.is_current(&nonce, made - Duration::from_millis(1)), "not made yet");
        assert_ne!(nonce, nonces.issue(made, 6));
        assert!(!Nonces::new(&[8; 32], minute).is_current(&nonce, made), "of another key");
        for at in 0..nonce.len() {
            let mut other = nonce.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert!(!nonces.is_current(std::str::from_utf8(&other).unwrap(), made), "{at}");
        }
        for other in ["", "0", "x", &nonce[1..], &format!("{nonce}0"), &"z".repeat(64), &"é".repeat(32)] {
            assert!(!nonces.is_current(other, made), "{other}");
        }
    }

    /// Tests RFC 4231 4.2, whose key of 20 bytes equals the same key padded with zeros to 32.
    #[test]
    fn the_hash_is_hmac() {
        let mut key = [0; 32];
        key[..20].copy_from_slice(&[0x0b; 20]);
        let hash = Nonces::new(&key, Duration::ZERO).keyed.chain_update(b"Hi There").finalize().into_bytes();
        assert_eq!(super::super::hex(&hash), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }
}
