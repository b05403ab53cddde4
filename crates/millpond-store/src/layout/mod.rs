//! The arrangement of units of a striped object on stores: pure arithmetic.

mod lead;

use std::ops::Range;

pub use lead::{StoreRate, Striping};

/// Smallest unit, in bytes.
const LEAST_UNIT: u64 = 64 << 10;
/// Largest unit, in bytes: a reader may hold a whole one in memory.
const MOST_UNIT: u64 = 16 << 20;
/// Most stores of one object.
pub(crate) const MOST_STORES: usize = 64;
/// Longest object, in bytes.
const LONGEST: u64 = 1 << 50;

/// Sizes of a striped object, within limits.
///
/// Unit `u` lies on store `u` modulo their number. Further copies lie on the other stores in turn, so that all other stores share
/// the work of a failed store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    length: u64,
    unit: u64,
    stores: usize,
    copies: usize,
}

/// A size that is out of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}, expected {least} to {most}")]
pub struct LayoutError {
    /// Name of the size.
    pub field: &'static str,
    /// The value.
    pub found: u64,
    /// Smallest value.
    pub least: u64,
    /// Largest value.
    pub most: u64,
}

/// A part of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the unit.
    pub unit: u64,
    /// Byte range inside the unit.
    pub range: Range<u64>,
}

impl Layout {
    /// Creates the layout of an object of `length` bytes in units of `unit` bytes on `stores` stores.
    ///
    /// # Errors
    ///
    /// A size is out of its limits.
    pub fn new(length: u64, unit: u64, stores: usize, copies: usize) -> Result<Self, LayoutError> {
        within("length", length, 0, LONGEST)?;
        within("unit", unit, LEAST_UNIT, MOST_UNIT)?;
        within("number of stores", stores as u64, 1, MOST_STORES as u64)?;
        within("copies", copies as u64, 1, stores as u64)?;
        Ok(Self { length, unit, stores, copies })
    }

    /// Returns the length of the object in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the length of a unit in bytes. The last one may be shorter.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Returns the number of stores.
    pub fn stores(&self) -> usize {
        self.stores
    }

    /// Returns the number of copies of each unit.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// Returns the number of units.
    pub fn units(&self) -> u64 {
        self.length.div_ceil(self.unit)
    }

    /// Returns the bytes of the object that a unit holds; none behind the last unit.
    pub fn bytes(&self, unit: u64) -> Range<u64> {
        let start = unit.saturating_mul(self.unit).min(self.length);
        start..start.saturating_add(self.unit).min(self.length)
    }

    /// Returns the part of one unit that holds the first bytes of a range; `None` for no bytes.
    pub fn first(&self, range: &Range<u64>) -> Option<Piece> {
        let end = range.end.min(self.length);
        if range.start >= end {
            return None;
        }
        let unit = range.start / self.unit;
        let whole = self.bytes(unit);
        Some(Piece { unit, range: range.start - whole.start..end.min(whole.end) - whole.start })
    }

    /// Returns the numbers of the stores with a unit, one for each copy.
    pub fn stores_of(&self, unit: u64) -> impl Iterator<Item = usize> + use<> {
        let stores = self.stores as u64;
        let (first, row) = (unit % stores, unit / stores);
        let others = stores.saturating_sub(1).max(1);
        (0..self.copies as u64).map(move |copy| {
            let step = if copy == 0 { 0 } else { 1 + (row + copy - 1) % others };
            ((first + step) % stores) as usize
        })
    }
}

fn within(field: &'static str, found: u64, least: u64, most: u64) -> Result<(), LayoutError> {
    if (least..=most).contains(&found) { Ok(()) } else { Err(LayoutError { field, found, least, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KIB: u64 = 1 << 10;

    #[test]
    fn units_lie_on_the_stores_in_turn() {
        let layout = Layout::new(1000 * KIB, 128 * KIB, 3, 1).unwrap();
        assert_eq!(layout.units(), 8);
        let stores: Vec<usize> = (0..8).flat_map(|unit| layout.stores_of(unit)).collect();
        assert_eq!(stores, [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(layout.bytes(7), 896 * KIB..1000 * KIB, "the last one is shorter");
        assert!(layout.bytes(8).is_empty());
        let piece = layout.first(&(130 * KIB..400 * KIB)).unwrap();
        assert_eq!(piece, Piece { unit: 1, range: 2 * KIB..128 * KIB });
        assert_eq!(layout.first(&(1000 * KIB..2000 * KIB)), None);
    }

    #[test]
    fn all_other_stores_share_the_second_copies_of_one() {
        let layout = Layout::new(100 << 20, 1 << 20, 4, 2).unwrap();
        let mut seconds = [0; 4];
        for unit in (0..100).filter(|unit| unit % 4 == 1) {
            seconds[layout.stores_of(unit).nth(1).unwrap()] += 1;
        }
        assert_eq!(seconds[1], 0);
        assert!([0, 2, 3].iter().all(|store| (8..=9).contains(&seconds[*store])), "{seconds:?}");
    }

    #[test]
    fn sizes_have_limits() {
        for (length, unit, stores, copies, field) in [
            (1 << 51, 1 << 20, 4, 1, "length"),
            (1, 1, 4, 1, "unit"),
            (1, 0, 4, 1, "unit"),
            (1, u64::MAX, 4, 1, "unit"),
            (1, 1 << 20, 0, 1, "number of stores"),
            (1, 1 << 20, 65, 1, "number of stores"),
            (1, 1 << 20, 4, 0, "copies"),
            (1, 1 << 20, 4, 5, "copies"),
        ] {
            assert_eq!(Layout::new(length, unit, stores, copies).unwrap_err().field, field);
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_a_range_and_copies_lie_apart(
            length in 0_u64..5_000_000, unit in LEAST_UNIT..500_000, stores in 1_usize..9, copies in 1_usize..9,
            start in 0_u64..5_000_000, count in 0_u64..5_000_000,
        ) {
            let layout = Layout::new(length, unit, stores, copies.min(stores)).unwrap();
            let (mut at, end) = (start, (start + count).min(length));
            while let Some(piece) = layout.first(&(at..end)) {
                prop_assert_eq!(layout.bytes(piece.unit).start + piece.range.start, at);
                prop_assert!(piece.range.end <= unit && piece.range.start < piece.range.end);
                at += piece.range.end - piece.range.start;
                let mut on: Vec<usize> = layout.stores_of(piece.unit).collect();
                prop_assert!(on.iter().all(|store| *store < stores));
                on.sort_unstable();
                on.dedup();
                prop_assert_eq!(on.len(), layout.copies());
            }
            prop_assert_eq!(at, end.max(start));
        }
    }
}
