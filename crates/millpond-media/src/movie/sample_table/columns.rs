//! Bit-packed columns of integers, from which the blocks of a [`crate::SampleTable`] are built.
//!
//! A column holds its least value, the greatest common step, and the distance of each value in steps, at the bit width
//! that makes the column shortest. Values that need more bits (a picture ten times the size of its neighbours) follow
//! as patches. A constant column takes about three bytes.

/// Most values in one column: the position of a patch has 7 bits.
pub(crate) const COLUMN: usize = 128;

/// Writes bits into bytes, least significant bit first.
#[derive(Debug, Default)]
pub(crate) struct ColumnWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl ColumnWriter {
    /// Appends the low `width` bits of `value`; `width` is at most 64.
    fn put(&mut self, value: u64, width: u32) {
        let (mut value, mut width) = (value, width.min(64));
        while width > 0 {
            let take = width.min(8 - self.filled);
            self.pending |= (value & mask(take)) << self.filled;
            self.filled += take;
            value >>= take;
            width -= take;
            if self.filled == 8 {
                self.bytes.push(self.pending as u8);
                (self.pending, self.filled) = (0, 0);
            }
        }
    }

    /// Appends `value`, preceded by its bit length.
    fn put_sized(&mut self, value: u64) {
        let width = bits_of(value);
        self.put(u64::from(width), 7);
        self.put(value, width);
    }

    /// Appends a column of at most [`COLUMN`] values.
    pub(crate) fn put_column(&mut self, values: &[i64]) {
        let base = values.iter().copied().min().unwrap_or(0);
        let step = common_step(values, base);
        let distance = |v: i64| (v.wrapping_sub(base) as u64) / step;
        let mut by_width = [0_u32; 65];
        for &v in values {
            by_width[bits_of(distance(v)) as usize] += 1;
        }
        let (width, patches) = cheapest_width(&by_width);
        let widest = (0..=64).rev().find(|&w| by_width[w as usize] > 0).unwrap_or(0);
        self.put(u64::from(width), 7);
        self.put(u64::from(patches), 7);
        self.put_sized(zigzag(base));
        if width == 0 && patches == 0 {
            return;
        }
        self.put_sized(step);
        for &v in values {
            self.put(distance(v), width);
        }
        if patches > 0 {
            self.put(u64::from(widest - width), 7);
            for (position, &v) in values.iter().enumerate() {
                if bits_of(distance(v)) > width {
                    self.put(position as u64, 7);
                    self.put(distance(v) >> width, widest - width);
                }
            }
        }
    }

    /// Pads to a byte boundary and returns the bytes.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
            (self.pending, self.filled) = (0, 0);
        }
        std::mem::take(&mut self.bytes)
    }
}

/// Reads the output of [`ColumnWriter`]. Past the end it reads zeros, so damaged bytes do no harm.
#[derive(Debug)]
pub(crate) struct ColumnReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> ColumnReader<'a> {
    /// Creates a reader at the first bit of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bit: 0 }
    }

    fn peek_word(&self) -> u64 {
        let rest = self.bytes.get(self.bit / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        word >> (self.bit % 8)
    }

    /// Returns the next `width` bits, at most 64.
    fn get(&mut self, width: u32) -> u64 {
        // A word that starts within a byte holds at least 57 bits.
        if width <= 57 {
            let value = self.peek_word() & mask(width);
            self.bit += width as usize;
            return value;
        }
        let low = self.get(32);
        let high = self.get(width.min(64) - 32);
        low | high << 32
    }

    fn get_sized(&mut self) -> u64 {
        let width = self.get(7) as u32;
        self.get(width.min(64))
    }

    /// Reads a column of `values.len()` values.
    pub(crate) fn get_column(&mut self, values: &mut [i64]) {
        let width = (self.get(7) as u32).min(64);
        let patches = self.get(7);
        let base = unzigzag(self.get_sized());
        if width == 0 && patches == 0 {
            values.fill(base);
            return;
        }
        let step = self.get_sized();
        for v in values.iter_mut() {
            *v = base.wrapping_add(self.get(width).wrapping_mul(step) as i64);
        }
        if patches > 0 {
            let high = (self.get(7) as u32).min(64);
            for _ in 0..patches {
                let position = self.get(7) as usize;
                let more = self.get(high).checked_shl(width).unwrap_or(0).wrapping_mul(step) as i64;
                if let Some(v) = values.get_mut(position) {
                    *v = v.wrapping_add(more);
                }
            }
        }
    }
}

const fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

const fn bits_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Returns the greatest common divisor of all distances from `base`, at least 1.
fn common_step(values: &[i64], base: i64) -> u64 {
    let mut step = 0_u64;
    for &v in values {
        let (mut a, mut b) = (step, v.wrapping_sub(base) as u64);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        step = a;
        if step == 1 {
            break;
        }
    }
    step.max(1)
}

/// Returns the width that makes values and patches together shortest, and the number of patches at that width.
fn cheapest_width(by_width: &[u32; 65]) -> (u32, u32) {
    let count: u32 = by_width.iter().sum();
    let widest = (0..=64_u32).rev().find(|&w| by_width[w as usize] > 0).unwrap_or(0);
    let mut best = (widest, 0);
    let mut best_cost = count * widest;
    let mut patches = 0;
    for width in (0..widest).rev() {
        patches += by_width[width as usize + 1];
        let cost = count * width + 7 + patches * (7 + widest - width);
        if cost < best_cost && patches < 128 {
            (best, best_cost) = ((width, patches), cost);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[i64]) -> usize {
        let mut writer = ColumnWriter::default();
        writer.put_column(values);
        writer.put_column(&[7]);
        let bytes = writer.take();
        let mut reader = ColumnReader::new(&bytes);
        let mut got = vec![0; values.len()];
        reader.get_column(&mut got);
        assert_eq!(got, values);
        let mut after = [0];
        reader.get_column(&mut after);
        assert_eq!(after, [7], "the reader ends where the writer did");
        bytes.len()
    }

    #[test]
    fn constant_columns_cost_next_to_nothing() {
        assert!(round_trip(&[1024; COLUMN]) <= 8);
    }

    #[test]
    fn steps_and_outliers_do_not_widen_the_column() {
        let mut values: Vec<i64> = (0..128).map(|i| i % 4 * 512).collect();
        values[50] = 512 * 100_000;
        assert!(round_trip(&values) < 128 * 2 / 8 + 20);
    }

    #[test]
    fn extremes_survive() {
        round_trip(&[i64::MIN, i64::MAX, 0, -1, 1]);
        round_trip(&[]);
    }

    proptest! {
        #[test]
        fn columns_round_trip(values in proptest::collection::vec(any::<i64>(), 0..=COLUMN)) {
            round_trip(&values);
        }

        #[test]
        fn small_columns_round_trip(values in proptest::collection::vec(-300_i64..300, 0..=COLUMN)) {
            round_trip(&values);
        }

        #[test]
        fn damaged_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut values = [0; COLUMN];
            ColumnReader::new(&bytes).get_column(&mut values);
        }
    }
}
