//! Approximate use counts of keys in constant memory: a count-min sketch of 4-bit counters. All counters are halved
//! after ten times as many uses as a row has counters (Einziger et al., "TinyLFU", 2017).

/// Rows of counters.
const ROWS: usize = 4;
/// Highest value of a counter.
const MOST: u8 = 15;

#[derive(Debug)]
pub(crate) struct Sketch {
    /// One byte for each counter: two in one byte would save little.
    rows: Vec<u8>,
    mask: u64,
    asks: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new(1024)
    }
}

impl Sketch {
    /// Creates a sketch for about that many entries.
    pub(crate) fn new(entries: usize) -> Self {
        let width = entries.clamp(1024, 1 << 24).next_power_of_two();
        Self { rows: vec![0; width * ROWS], mask: width as u64 - 1, asks: 0 }
    }

    /// Widens it for about that many entries. Counts stay. Each counter then stands for half the number of keys, and for at least
    /// their uses.
    pub(crate) fn grow(&mut self, entries: usize) {
        let old = self.entries();
        let width = entries.clamp(1024, 1 << 24).next_power_of_two();
        if width <= old {
            return;
        }
        let mut rows = Vec::with_capacity(width * ROWS);
        for row in self.rows.chunks(old) {
            (0..width / old).for_each(|_| rows.extend_from_slice(row));
        }
        (self.rows, self.mask) = (rows, width as u64 - 1);
    }

    /// Returns the number of entries that it is made for.
    pub(crate) fn entries(&self) -> usize {
        self.mask as usize + 1
    }

    pub(crate) fn count(&mut self, key: u64) {
        for row in 0..ROWS {
            let place = self.place(key, row);
            let counter = &mut self.rows[place];
            *counter = (*counter + 1).min(MOST);
        }
        self.asks += 1;
        if self.asks >= (self.mask + 1) * 4 {
            self.rows.iter_mut().for_each(|counter| *counter /= 2);
            self.asks /= 2;
        }
    }

    /// Returns how often a key was used; sometimes more, never less.
    pub(crate) fn estimate(&self, key: u64) -> u8 {
        (0..ROWS).map(|row| self.rows[self.place(key, row)]).min().unwrap_or(0)
    }

    fn place(&self, key: u64, row: usize) -> usize {
        const ODD: [u64; ROWS] =
            [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0x27d4_eb2f_1656_67c5];
        let mixed = (key ^ (key >> 29)).wrapping_mul(ODD[row]);
        row * (self.mask as usize + 1) + ((mixed >> 32) & self.mask) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_near_and_age() {
        let mut sketch = Sketch::new(1024);
        for key in 0..500 {
            for _ in 0..key % 10 {
                sketch.count(key);
            }
        }
        let wrong = (0..500).filter(|key| u64::from(sketch.estimate(*key)) != key % 10).count();
        assert!((0..500).all(|key| u64::from(sketch.estimate(key)) >= key % 10) && wrong < 50, "{wrong}");
        for key in 1000..20_000 {
            sketch.count(key);
        }
        assert!(sketch.estimate(9) < 9);
    }

    #[test]
    fn a_wider_sketch_remembers() {
        let mut sketch = Sketch::new(1024);
        for key in 0..500 {
            (0..key % 10).for_each(|_| sketch.count(key));
        }
        let before: Vec<u8> = (0..500).map(|key| sketch.estimate(key)).collect();
        sketch.grow(10_000);
        assert_eq!(sketch.entries(), 16_384);
        assert_eq!((0..500).map(|key| sketch.estimate(key)).collect::<Vec<_>>(), before);
        sketch.grow(100);
        assert_eq!(sketch.entries(), 16_384, "it never shrinks");
    }
}
