//! Bytes on their way from a copy of a unit to a reader: held until their block is verified, and cut to the reader's range.

use std::ops::Range;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

use super::sums::{BLOCK, BadBlock, UnitSums};

/// The bytes of a part of a unit, in order. With checksums, whole blocks are read, and no byte passes before its block is verified.
#[derive(Debug)]
pub(super) struct BlockGate {
    /// The bytes that the reader wants.
    wanted: Range<u64>,
    /// Position of the next byte that passes.
    at: u64,
    /// The block that is arriving; `None` without checksums.
    block: Option<Arriving>,
}

/// A block of which some bytes are here.
#[derive(Debug)]
struct Arriving {
    sums: UnitSums,
    number: u64,
    /// Bytes that are missing.
    missing: u64,
    digest: Digest,
    held: Vec<Bytes>,
}

impl BlockGate {
    /// Creates a gate for the bytes `wanted` of a unit. The unit is served unchecked if it has no checksums.
    pub(super) fn new(wanted: Range<u64>, sums: Option<UnitSums>) -> Self {
        let first = wanted.start / BLOCK;
        let at = if sums.is_some() { first * BLOCK } else { wanted.start };
        Self { wanted, at, block: sums.map(|sums| Arriving::new(sums, first)) }
    }

    /// Returns the bytes that are to be read of the unit.
    pub(super) fn read(&self) -> Range<u64> {
        let end = match &self.block {
            Some(block) => self.wanted.end.div_ceil(BLOCK).saturating_mul(BLOCK).min(block.sums.length()),
            None => self.wanted.end,
        };
        self.at..end
    }

    /// Takes bytes that arrived, in order, and hands the verified bytes of the reader's range to `pass`.
    ///
    /// # Errors
    ///
    /// A block differs from its checksum. None of its bytes has passed.
    pub(super) fn arrived(&mut self, mut bytes: Bytes, mut pass: impl FnMut(Bytes)) -> Result<(), BadBlock> {
        let Some(block) = &mut self.block else {
            if let Some(bytes) = cut(&self.wanted, &mut self.at, bytes) {
                pass(bytes);
            }
            return Ok(());
        };
        while !bytes.is_empty() {
            let part = bytes.split_to(usize::try_from(block.missing).unwrap_or(usize::MAX).min(bytes.len()));
            // No bytes are read behind the last block.
            if part.is_empty() {
                break;
            }
            for verified in block.take(part)? {
                if let Some(bytes) = cut(&self.wanted, &mut self.at, verified) {
                    pass(bytes);
                }
            }
        }
        Ok(())
    }
}

/// Returns the wanted part of bytes that begin at `at`, and moves it behind them.
fn cut(wanted: &Range<u64>, at: &mut u64, bytes: Bytes) -> Option<Bytes> {
    let length = bytes.len() as u64;
    let from = wanted.start.saturating_sub(*at).min(length);
    let to = wanted.end.saturating_sub(*at).min(length);
    *at += length;
    (from < to).then(|| bytes.slice(from as usize..to as usize))
}

impl Arriving {
    fn new(sums: UnitSums, number: u64) -> Self {
        let missing = sums.block_length(number);
        Self { sums, number, missing, digest: Digest::new(CrcAlgorithm::Crc32Iscsi), held: Vec::new() }
    }

    /// Takes bytes of the block. Returns all bytes of the block once they are verified.
    fn take(&mut self, bytes: Bytes) -> Result<Vec<Bytes>, BadBlock> {
        self.digest.update(&bytes);
        self.missing -= bytes.len() as u64;
        self.held.push(bytes);
        if self.missing > 0 {
            return Ok(Vec::new());
        }
        // The algorithm has 32 bits.
        let (block, found) = (self.number, self.digest.finalize() as u32);
        let expected = self.sums.of(block);
        if expected != Some(found) {
            return Err(BadBlock { block, expected: expected.unwrap_or(0), found });
        }
        self.number += 1;
        self.missing = self.sums.block_length(self.number);
        self.digest.reset();
        Ok(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::stripe::sums::{SumTable, SumWriter};
    use proptest::prelude::*;

    fn unit() -> Vec<u8> {
        (0..200_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    fn sums() -> UnitSums {
        let table = SumTable::new(Layout::new(200_000, 200_000, 1, 1).unwrap()).unwrap();
        let mut writer = SumWriter::new(table);
        writer.add(&unit());
        let (object, root) = writer.finish();
        table.all(&object, &root).unwrap()[0].unit(0).unwrap()
    }

    /// Sends a range of a unit through a gate, in pieces.
    fn passed(
        unit: &[u8],
        wanted: Range<u64>,
        sums: Option<UnitSums>,
        piece: usize,
    ) -> (Vec<u8>, Result<(), BadBlock>) {
        let mut gate = BlockGate::new(wanted, sums);
        let mut passed = Vec::new();
        let read = gate.read();
        for bytes in unit[read.start as usize..read.end as usize].chunks(piece) {
            let outcome = gate.arrived(Bytes::copy_from_slice(bytes), |bytes| passed.extend_from_slice(&bytes));
            if outcome.is_err() {
                return (passed, outcome);
            }
        }
        (passed, Ok(()))
    }

    #[test]
    fn reads_are_widened_to_blocks_only_with_checksums() {
        for (wanted, read) in [
            (0..1, 0..65_536),
            (65_535..65_537, 0..131_072),
            (131_072..131_073, 131_072..196_608),
            (199_999..200_000, 196_608..200_000),
        ] {
            assert_eq!(BlockGate::new(wanted.clone(), Some(sums())).read(), read, "{wanted:?}");
            assert_eq!(BlockGate::new(wanted.clone(), None).read(), wanted);
        }
    }

    proptest! {
        #[test]
        fn a_range_passes_whole_or_up_to_a_damaged_block(
            start in 0_u64..200_000, count in 1_u64..200_000, piece in 1_usize..100_000, at in 0_usize..200_000,
        ) {
            let (unit, wanted) = (unit(), start..(start + count).min(200_000));
            let expected = &unit[wanted.start as usize..wanted.end as usize];
            for sums in [None, Some(sums())] {
                let (passed, outcome) = passed(&unit, wanted.clone(), sums, piece);
                prop_assert!(passed == expected && outcome.is_ok());
            }
            let mut hurt = unit.clone();
            hurt[at] ^= 1;
            let (passed, outcome) = passed(&hurt, wanted.clone(), Some(sums()), piece);
            prop_assert!(expected.starts_with(&passed), "no wrong byte passes");
            let bad = at as u64 / BLOCK;
            if (wanted.start / BLOCK..wanted.end.div_ceil(BLOCK)).contains(&bad) {
                prop_assert_eq!(outcome.unwrap_err().block, bad);
            } else {
                prop_assert!(passed.len() == expected.len() && outcome.is_ok());
            }
        }
    }
}
