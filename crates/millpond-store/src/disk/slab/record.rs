//! The record of one slot in the metadata file: 64 bytes, little-endian.
//!
//! | bytes | is |
//! |---|---|
//! | 0..4 | checksum of bytes 4..64; 0 in a slot that holds nothing |
//! | 4..8 | length of the data in bytes |
//! | 8..16 | key of the slice |
//! | 16..24 | hash of its object |
//! | 24..28 | number of the slice in the object |
//! | 28..32 | slices of the object |
//! | 32..40 | checksum of the data (XXH3, 64 bits) |
//! | 40..64 | zero |

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a record.
pub(super) const SIZE: usize = 64;

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) len: u32,
    pub(super) key: u64,
    pub(super) object: u64,
    pub(super) index: u32,
    pub(super) of: u32,
    pub(super) sum: u64,
}

impl Record {
    /// Returns the bytes of the record for slot `slot`. A record in another slot's position is not valid.
    pub(super) fn encode(&self, slot: u32) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut at = 4;
        let mut put = |value: &[u8]| {
            bytes[at..at + value.len()].copy_from_slice(value);
            at += value.len();
        };
        put(&self.len.to_le_bytes());
        put(&self.key.to_le_bytes());
        put(&self.object.to_le_bytes());
        put(&self.index.to_le_bytes());
        put(&self.of.to_le_bytes());
        put(&self.sum.to_le_bytes());
        let sum = check(&bytes, slot).to_le_bytes();
        bytes[..4].copy_from_slice(&sum);
        bytes
    }

    /// Parses a record; `None` where the bytes are not one.
    pub(super) fn decode(bytes: &[u8; SIZE], slot: u32) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let sum = word(0);
        (sum != 0 && sum == check(bytes, slot)).then(|| Self {
            len: word(4),
            key: long(8),
            object: long(16),
            index: word(24),
            of: word(28),
            sum: long(32),
        })
    }
}

/// Returns the checksum of a record; never 0, which marks an empty slot.
fn check(bytes: &[u8; SIZE], slot: u32) -> u32 {
    let sum = xxh3_64_with_seed(&bytes[4..], u64::from(slot));
    ((sum ^ (sum >> 32)) as u32).max(1)
}

/// Returns the checksum of a slice's data.
pub(super) fn sum(data: &[u8]) -> u64 {
    xxh3_64(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_makes_it_invalid() {
        let record = Record { len: 9, key: u64::MAX, object: 3, index: 4, of: 5, sum: 6 };
        let bytes = record.encode(7);
        assert_eq!(Record::decode(&bytes, 7), Some(record));
        assert_eq!(Record::decode(&bytes, 8), None);
        assert_eq!(Record::decode(&[0; SIZE], 0), None);
        for bit in 0..SIZE * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&other, 7), None, "bit {bit}");
        }
    }
}
