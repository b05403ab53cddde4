//! Checksums of the blocks of units, and the object that has them: pure arithmetic and hashing.
//!
//! The object begins with its head: the SHA-256 of each page. Then the pages follow. A page has the CRC32C of each block of some
//! units, as 32 bits in little-endian order, unit by unit. The map has the SHA-256 of the head. So a reader of one block needs the
//! head and one page, of which both are verified before they are used.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use sha2::{Digest, Sha256};

use super::hex::hex;
use crate::error::{At, OriginError};
use crate::layout::{Layout, LayoutError};

/// Bytes of a block. The last block of a unit may be shorter.
pub(super) const BLOCK: u64 = 64 << 10;
/// Bytes of a CRC32C.
const SUM: u64 = 4;
/// Bytes of a SHA-256.
const HASH: u64 = 32;
/// Most checksums of one page: those of 1 GiB.
const PAGE_SUMS: u64 = 16 << 10;
/// Longest object with checksums, in bytes. Its checksums have 256 MiB.
const LONGEST: u64 = 4 << 40;

/// The arrangement of the checksums of a striped object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SumTable {
    layout: Layout,
}

/// Why bytes are not the checksums of a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// A part has another length.
    #[error("expected {expected} bytes of checksums, found {found}")]
    Length {
        /// Its length by the map, in bytes.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// A part has another SHA-256.
    #[error("expected checksums with the SHA-256 {expected}, found {found}")]
    Hash {
        /// The hash that the map or the head has, in hexadecimal digits.
        expected: String,
        /// The hash of the bytes.
        found: String,
    },
    /// There is no page of this number.
    #[error("expected a page below {pages}, found {page}")]
    Page {
        /// The number.
        page: u64,
        /// Number of pages.
        pages: u64,
    },
}

impl SumTable {
    /// Creates the arrangement for an object of this layout.
    ///
    /// # Errors
    ///
    /// The object is longer than 4 TiB.
    pub fn new(layout: Layout) -> Result<Self, LayoutError> {
        if layout.length() > LONGEST {
            let (field, found) = ("length of an object with checksums", layout.length());
            return Err(LayoutError { field, found, least: 0, most: LONGEST });
        }
        Ok(Self { layout })
    }

    /// Returns the number of blocks of a whole unit.
    fn blocks_of_unit(&self) -> u64 {
        self.layout.unit().div_ceil(BLOCK)
    }

    /// Returns the number of units of a whole page. No unit lies on two pages.
    fn units_of_page(&self) -> u64 {
        (PAGE_SUMS / self.blocks_of_unit()).max(1)
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u64 {
        self.layout.units().div_ceil(self.units_of_page())
    }

    /// Returns the number of the page with the checksums of a unit.
    pub fn page_of(&self, unit: u64) -> u64 {
        unit / self.units_of_page()
    }

    /// Returns the number of bytes of the head, with which the object begins.
    pub fn head_length(&self) -> u64 {
        self.pages() * HASH
    }

    /// Returns the bytes of the object that a page has; none behind the last page.
    pub fn page_range(&self, page: u64) -> std::ops::Range<u64> {
        let whole = self.units_of_page() * self.blocks_of_unit() * SUM;
        let start = self.head_length().saturating_add(page.saturating_mul(whole)).min(self.length());
        start..start.saturating_add(whole).min(self.length())
    }

    /// Returns the number of bytes of the object.
    pub fn length(&self) -> u64 {
        let (whole, rest) = (self.layout.length() / self.layout.unit(), self.layout.length() % self.layout.unit());
        self.head_length() + SUM * (whole * self.blocks_of_unit() + rest.div_ceil(BLOCK))
    }

    /// Verifies the head by the SHA-256 that the map has, in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// The length or the hash differs.
    pub fn head(&self, bytes: Bytes, sha256: &str) -> Result<SumHead, SumError> {
        verify(&bytes, self.head_length(), sha256)?;
        Ok(SumHead { table: *self, hashes: bytes })
    }

    /// Verifies the whole object. Returns its pages.
    ///
    /// # Errors
    ///
    /// The length or a hash differs.
    pub(super) fn all(&self, object: &Bytes, sha256: &str) -> Result<Vec<SumPage>, SumError> {
        let (expected, found) = (self.length(), object.len() as u64);
        if found != expected {
            return Err(SumError::Length { expected, found });
        }
        let part = |range: std::ops::Range<u64>| object.slice(range.start as usize..range.end as usize);
        let head = self.head(part(0..self.head_length()), sha256)?;
        (0..self.pages()).map(|page| head.page(page, part(self.page_range(page)))).collect()
    }
}

/// A verified head: the hashes of the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumHead {
    table: SumTable,
    hashes: Bytes,
}

impl SumHead {
    /// Verifies a page.
    ///
    /// # Errors
    ///
    /// There is no such page, or its length or hash differs.
    pub fn page(&self, page: u64, bytes: Bytes) -> Result<SumPage, SumError> {
        let hash = usize::try_from(page).ok().and_then(|page| self.hashes.chunks_exact(HASH as usize).nth(page));
        let Some(hash) = hash else { return Err(SumError::Page { page, pages: self.table.pages() }) };
        let range = self.table.page_range(page);
        verify(&bytes, range.end - range.start, &hex(hash))?;
        Ok(SumPage { table: self.table, page, sums: bytes })
    }

    /// Returns the number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.hashes.len() as u64
    }
}

/// A verified page: the checksums of some units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumPage {
    table: SumTable,
    page: u64,
    sums: Bytes,
}

impl SumPage {
    /// Returns the checksums of a unit; `None` for a unit of another page.
    pub fn unit(&self, unit: u64) -> Option<UnitSums> {
        let bytes = self.table.layout.bytes(unit);
        if self.table.page_of(unit) != self.page || bytes.is_empty() {
            return None;
        }
        let length = bytes.end - bytes.start;
        let before = unit % self.table.units_of_page() * self.table.blocks_of_unit() * SUM;
        let end = before + length.div_ceil(BLOCK) * SUM;
        // The page has the length of the layout.
        (end <= self.sums.len() as u64)
            .then(|| UnitSums { sums: self.sums.slice(before as usize..end as usize), length })
    }

    /// Returns the number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.sums.len() as u64
    }
}

/// The checksums of the blocks of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSums {
    sums: Bytes,
    /// Length of the unit in bytes.
    length: u64,
}

impl UnitSums {
    /// Returns the CRC32C of a block; `None` behind the last block.
    pub(super) fn of(&self, block: u64) -> Option<u32> {
        let start = usize::try_from(block.checked_mul(SUM)?).ok()?;
        let bytes = self.sums.get(start..start + SUM as usize)?;
        bytes.try_into().ok().map(u32::from_le_bytes)
    }

    /// Returns the number of bytes of a block; 0 behind the last block.
    pub(super) fn block_length(&self, block: u64) -> u64 {
        self.length.saturating_sub(block.saturating_mul(BLOCK)).min(BLOCK)
    }

    /// Returns the length of the unit in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Verifies all blocks of a unit of the right length.
    ///
    /// # Errors
    ///
    /// A block differs.
    pub fn verify(&self, unit: &[u8]) -> Result<(), BadBlock> {
        for (block, bytes) in (0..).zip(unit.chunks(BLOCK as usize)) {
            let (expected, found) = (self.of(block), crc32c(bytes));
            if expected != Some(found) {
                return Err(BadBlock { block, expected: expected.unwrap_or(0), found });
            }
        }
        Ok(())
    }
}

/// A block whose bytes differ from its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block}: expected the CRC32C {expected:08x}, found {found:08x}")]
pub struct BadBlock {
    /// Number of the block in its unit, from 0 on.
    pub block: u64,
    /// Its checksum.
    pub expected: u32,
    /// The checksum of the bytes.
    pub found: u32,
}

impl BadBlock {
    /// Returns the error of a store whose unit has this block.
    pub(super) fn at(self, at: &At) -> OriginError {
        let Self { block, expected, found } = self;
        let expected = format!("block {block} with the CRC32C {expected:08x}");
        OriginError::BadReply { at: at.clone(), expected, found: format!("{found:08x}") }
    }
}

/// Makes the checksums of an object, unit by unit.
#[derive(Debug)]
pub struct SumWriter {
    table: SumTable,
    sums: Vec<u8>,
}

impl SumWriter {
    /// Creates a writer without units.
    pub fn new(table: SumTable) -> Self {
        Self { table, sums: Vec::new() }
    }

    /// Adds the bytes of the next unit.
    pub fn add(&mut self, unit: &[u8]) {
        let sums = unit.chunks(BLOCK as usize).flat_map(|block| crc32c(block).to_le_bytes());
        self.sums.extend(sums);
    }

    /// Returns the object, and the SHA-256 of its head in hexadecimal digits.
    pub fn finish(self) -> (Bytes, String) {
        let whole = (self.table.units_of_page() * self.table.blocks_of_unit() * SUM) as usize;
        let mut object: Vec<u8> = self.sums.chunks(whole).flat_map(Sha256::digest).collect();
        let sha256 = hex(&Sha256::digest(&object));
        object.extend_from_slice(&self.sums);
        (object.into(), sha256)
    }
}

/// Compares the length and the SHA-256 of bytes.
fn verify(bytes: &[u8], length: u64, sha256: &str) -> Result<(), SumError> {
    if bytes.len() as u64 != length {
        return Err(SumError::Length { expected: length, found: bytes.len() as u64 });
    }
    let found = hex(&Sha256::digest(bytes));
    if found != sha256 {
        return Err(SumError::Hash { expected: sha256.to_owned(), found });
    }
    Ok(())
}

/// Returns the CRC32C of bytes (RFC 3385).
fn crc32c(bytes: &[u8]) -> u32 {
    // The algorithm has 32 bits.
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(count: u64, seed: u64) -> Vec<u8> {
        (0..count).map(|at| ((at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    /// The arrangement, the object and the root of the checksums of an object.
    fn written(layout: Layout, object: &[u8]) -> (SumTable, Bytes, String) {
        let table = SumTable::new(layout).unwrap();
        let mut writer = SumWriter::new(table);
        object.chunks(layout.unit() as usize).for_each(|unit| writer.add(unit));
        let (sums, root) = writer.finish();
        (table, sums, root)
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 3720 B.4: 32 bytes of zeros, of ones, and 0 to 31.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn pages_have_whole_units_and_cover_the_object() {
        // 3 GiB in units of 100,000 bytes, which have two blocks each.
        let table = SumTable::new(Layout::new(3 << 30, 100_000, 4, 1).unwrap()).unwrap();
        let units = (3_u64 << 30).div_ceil(100_000);
        assert_eq!((table.blocks_of_unit(), table.units_of_page(), table.pages()), (2, 8192, units.div_ceil(8192)));
        let mut at = table.head_length();
        for page in 0..table.pages() {
            assert_eq!(table.page_range(page).start, at);
            at = table.page_range(page).end;
        }
        assert_eq!(at, table.length());
        assert!(table.page_range(table.pages()).is_empty() && table.page_range(u64::MAX).is_empty());
        let largest = SumTable::new(Layout::new(LONGEST, 16 << 20, 4, 1).unwrap()).unwrap();
        assert_eq!((largest.pages(), largest.length()), (4096, 4096 * 32 + (256 << 20)));
        assert!(SumTable::new(Layout::new(LONGEST + 1, 16 << 20, 4, 1).unwrap()).is_err());
    }

    #[test]
    fn an_object_without_bytes_has_checksums_without_bytes() {
        let (table, sums, root) = written(Layout::new(0, BLOCK, 1, 1).unwrap(), &[]);
        assert_eq!((table.length(), sums.len()), (0, 0));
        assert_eq!(table.all(&sums, &root), Ok(Vec::new()));
    }

    #[test]
    fn wrong_checksums_are_refused() {
        let layout = Layout::new(300_000, 100_000, 2, 1).unwrap();
        let (table, sums, root) = written(layout, &bytes(300_000, 1));
        let hurt = |at: usize| {
            let mut other = sums.to_vec();
            other[at] ^= 0x10;
            table.all(&other.into(), &root).unwrap_err()
        };
        assert!(matches!(hurt(0), SumError::Hash { .. }), "the head");
        assert!(matches!(hurt(32), SumError::Hash { .. }), "a page");
        for length in [0, 31, 32, sums.len() - 1] {
            let error = table.all(&sums.slice(..length), &root).unwrap_err();
            assert!(matches!(error, SumError::Length { .. }), "{length}: {error}");
        }
        let head = table.head(sums.slice(..32), &root).unwrap();
        assert!(matches!(head.page(1, Bytes::new()), Err(SumError::Page { page: 1, pages: 1 })));
        assert!(matches!(head.page(0, sums.slice(33..)), Err(SumError::Length { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_flipped_bit_of_a_unit_is_found_in_its_block(
            length in 1_u64..600_000, unit in BLOCK..300_000, seed: u64, at: prop::sample::Index, bit in 0_u8..8,
        ) {
            let object = bytes(length, seed);
            let layout = Layout::new(length, unit, 2, 1).unwrap();
            let (table, sums, root) = written(layout, &object);
            prop_assert_eq!(sums.len() as u64, table.length());
            let pages = table.all(&sums, &root).unwrap();
            for (number, bytes) in (0..).zip(object.chunks(unit as usize)) {
                let of = pages[table.page_of(number) as usize].unit(number).unwrap();
                prop_assert_eq!(of.length(), bytes.len() as u64);
                prop_assert_eq!(of.verify(bytes), Ok(()));
            }
            prop_assert_eq!(pages[0].unit(layout.units()), None);
            let at = at.index(object.len()) as u64;
            let (number, inside) = (at / unit, at % unit);
            let range = layout.bytes(number);
            let mut hurt = object[range.start as usize..range.end as usize].to_vec();
            hurt[inside as usize] ^= 1 << bit;
            let of = pages[table.page_of(number) as usize].unit(number).unwrap();
            prop_assert_eq!(of.verify(&hurt).unwrap_err().block, inside / BLOCK);
        }
    }
}
