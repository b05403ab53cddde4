//! Error protection of teletext bytes (ETSI EN 300 706 8): odd parity, Hamming 8/4 and Hamming 24/18.
//!
//! Bytes have their first transmitted bit as the least significant one.

/// Marks bytes that are no code word, and differ from each by two bits or more.
const BROKEN: u8 = 0xff;
/// Value of each byte by Hamming 8/4.
const VALUES: [u8; 256] = values();

/// Returns the code word of a value (8.2).
const fn code_word(value: u8) -> u8 {
    let [d1, d2, d3, d4] = [value & 1, value >> 1 & 1, value >> 2 & 1, value >> 3 & 1];
    let p1 = 1 ^ d1 ^ d3 ^ d4;
    let p2 = 1 ^ d1 ^ d2 ^ d4;
    let p3 = 1 ^ d1 ^ d2 ^ d3;
    let p4 = 1 ^ p1 ^ d1 ^ p2 ^ d2 ^ p3 ^ d3 ^ d4;
    p1 | d1 << 1 | p2 << 2 | d2 << 3 | p3 << 4 | d3 << 5 | p4 << 6 | d4 << 7
}

const fn values() -> [u8; 256] {
    let mut values = [BROKEN; 256];
    let mut value = 0;
    while value < 16 {
        let word = code_word(value);
        values[word as usize] = value;
        let mut bit = 0;
        while bit < 8 {
            values[(word ^ 1 << bit) as usize] = value;
            bit += 1;
        }
        value += 1;
    }
    values
}

/// Returns the four bits of a byte; `None` where more than one bit is wrong.
pub(super) fn hamming_8_4(byte: u8) -> Option<u8> {
    VALUES.get(usize::from(byte)).copied().filter(|value| *value != BROKEN)
}

/// Returns the eighteen bits of three bytes; `None` where more than one bit is wrong (8.3).
pub(super) fn hamming_24_18([first, second, third]: [u8; 3]) -> Option<u32> {
    let mut word = u32::from_le_bytes([first, second, third, 0]);
    // Bits have the positions 1 to 24. Each check covers the positions with one bit set, and has odd parity.
    let mut wrong = 0;
    for check in 0..5 {
        let covered = (1..24_u32).filter(|position| position >> check & 1 == 1);
        let ones = covered.filter(|position| word >> (position - 1) & 1 == 1).count();
        wrong |= u32::from(ones % 2 == 0) << check;
    }
    let is_odd = word.count_ones() % 2 == 1;
    match wrong {
        0 => {}
        _ if is_odd || wrong > 23 => return None,
        position => word ^= 1 << (position - 1),
    }
    Some(word >> 2 & 1 | (word >> 4 & 0x7) << 1 | (word >> 8 & 0x7f) << 4 | (word >> 16 & 0x7f) << 11)
}

/// Returns the seven bits of a byte with odd parity; `None` where the parity is wrong (8.1).
pub(super) fn odd_parity(byte: u8) -> Option<u8> {
    (byte.count_ones() % 2 == 1).then_some(byte & 0x7f)
}

#[cfg(test)]
pub(super) mod encode {
    //! Encoders, for tests.

    pub(in super::super) fn hamming_8_4(value: u8) -> u8 {
        super::code_word(value)
    }

    pub(in super::super) fn hamming_24_18(value: u32) -> [u8; 3] {
        let mut word = (value & 1) << 2 | (value >> 1 & 7) << 4 | (value >> 4 & 0x7f) << 8 | (value >> 11 & 0x7f) << 16;
        for check in 0..5 {
            let ones = (1..24).filter(|position| position >> check & 1 == 1 && word >> (position - 1) & 1 == 1).count();
            word |= u32::from(ones % 2 == 0) << ((1 << check) - 1);
        }
        word |= u32::from(word.count_ones().is_multiple_of(2)) << 23;
        let [first, second, third, _] = word.to_le_bytes();
        [first, second, third]
    }

    pub(in super::super) fn odd_parity(value: u8) -> u8 {
        value & 0x7f | if (value & 0x7f).count_ones().is_multiple_of(2) { 0x80 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 7 of the standard, as far as telxcc, libzvbi and the standard agree: the code words of 0 to 15.
    const WORDS: [u8; 16] =
        [0x15, 0x02, 0x49, 0x5e, 0x64, 0x73, 0x38, 0x2f, 0xd0, 0xc7, 0x8c, 0x9b, 0xa1, 0xb6, 0xfd, 0xea];

    #[test]
    fn code_words_are_those_of_the_standard() {
        assert_eq!(std::array::from_fn(|value| code_word(value as u8)), WORDS);
    }

    #[test]
    fn one_wrong_bit_is_corrected_and_two_are_noticed() {
        for (value, word) in (0..).zip(WORDS) {
            assert_eq!(hamming_8_4(word), Some(value));
            for bit in 0..8 {
                assert_eq!(hamming_8_4(word ^ 1 << bit), Some(value));
                (0..bit).for_each(|other| assert_eq!(hamming_8_4(word ^ 1 << bit ^ 1 << other), None));
            }
        }
    }

    #[test]
    fn one_wrong_bit_of_24_is_corrected_and_two_are_noticed() {
        for value in (0..1 << 18).step_by(977).chain([0, 1, (1 << 18) - 1]) {
            let word = encode::hamming_24_18(value);
            assert_eq!(hamming_24_18(word), Some(value));
            let flipped = |bits: &[usize]| {
                let mut word = word;
                bits.iter().for_each(|bit| word[bit / 8] ^= 1 << (bit % 8));
                word
            };
            for bit in 0..24 {
                assert_eq!(hamming_24_18(flipped(&[bit])), Some(value), "{value:#x}, bit {bit}");
                (0..bit).for_each(|other| assert_eq!(hamming_24_18(flipped(&[bit, other])), None));
            }
        }
    }

    #[test]
    fn bytes_have_odd_parity() {
        assert_eq!((odd_parity(0x80), odd_parity(0xc1), odd_parity(0x41)), (Some(0), Some(0x41), None));
    }
}
