//! Indexes of chunks: `idx1` of a whole `movi`, and `ix##` of one stream in one RIFF chunk (OpenDML).

use super::chunk::{self, CHUNK_HEADER, u16_at, u32_at, u64_at};
use crate::{boxes::FourCc, units::ByteRange};

/// Bytes of an entry of `idx1`.
const OLD_ENTRY: usize = 16;
/// `AVIIF_KEYFRAME`.
const KEY: u32 = 0x10;
/// Bytes before the entries of a standard index and of a super index, without the header of the chunk.
const STANDARD: usize = 24;
const SUPER: usize = 24;
/// Bytes of an entry of a super index.
const SUPER_ENTRY: usize = 16;
/// `bIndexType`: an index of indexes, and an index of chunks.
const OF_INDEXES: u8 = 0;
const OF_CHUNKS: u8 = 1;
/// Bit of a size in a standard index: decoding can't begin with the chunk.
const NO_KEY: u32 = 1 << 31;

/// A chunk that an index lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) stream: usize,
    /// Place of the chunk's data in the file.
    pub(super) place: ByteRange,
    pub(super) is_key: bool,
}

/// The entries of `idx1`, whose offsets count from the type of `movi` or from the beginning of the file: writers differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldIndex<'a> {
    entries: &'a [u8],
    base: u64,
}

impl<'a> OldIndex<'a> {
    /// Reads the body of `idx1`. `movi` is the body of the described list, behind the list's type.
    pub(super) fn new(body: &'a [u8], movi: ByteRange) -> Self {
        let least = body.chunks_exact(OLD_ENTRY).filter_map(|entry| u32_at(entry, 8)).min().unwrap_or(0);
        let base = if u64::from(least) < movi.start { movi.start.saturating_sub(4) } else { 0 };
        Self { entries: body, base }
    }

    /// Returns the chunks of media, in the order of the index.
    pub(super) fn chunks(self) -> impl Iterator<Item = Listed> + 'a {
        self.entries.chunks_exact(OLD_ENTRY).filter_map(move |entry| {
            let kind: FourCc = *entry.first_chunk()?;
            let stream = chunk::media_of(kind)?;
            let start = self.base.saturating_add(u32_at(entry, 8)?.into()).saturating_add(CHUNK_HEADER);
            let place = ByteRange::at(start, u32_at(entry, 12)?.into());
            Some(Listed { stream, place, is_key: u32_at(entry, 4)? & KEY != 0 })
        })
    }
}

/// Returns the places of the indexes that a super index lists, with their chunk headers; `None` if `body` is no super index.
pub(super) fn indexes(body: &[u8]) -> Option<Vec<ByteRange>> {
    if *body.get(3)? != OF_INDEXES || usize::from(u16_at(body, 0)?) * 4 != SUPER_ENTRY {
        return None;
    }
    let count = usize::try_from(u32_at(body, 4)?).unwrap_or(usize::MAX);
    let entries = body.get(SUPER..)?.chunks_exact(SUPER_ENTRY).take(count);
    // Some writers count the header of the chunk in the size, others don't.
    let place = |entry| Some(ByteRange::at(u64_at(entry, 0)?, CHUNK_HEADER + u64::from(u32_at(entry, 8)?)));
    let places: Vec<_> = entries.filter_map(place).filter(|place| place.start > 0).collect();
    (!places.is_empty()).then_some(places)
}

/// Returns the chunks that a standard index of a stream lists. `bytes` begin with the chunk header. `None` if they are no such index,
/// or a truncated one.
pub(super) fn standard(stream: usize, bytes: &[u8]) -> Option<impl Iterator<Item = Listed>> {
    let (kind, size) = chunk::header(bytes)?;
    let body = bytes.get(CHUNK_HEADER as usize..)?;
    let body = body.get(..usize::try_from(size).ok()?.min(body.len()))?;
    let entry = usize::from(u16_at(body, 0)?) * 4;
    if !matches!(kind, [b'i', b'x', ..]) || *body.get(3)? != OF_CHUNKS || entry < 8 {
        return None;
    }
    let count = usize::try_from(u32_at(body, 4)?).ok()?;
    let base = u64_at(body, 12)?;
    let entries = body.get(STANDARD..)?.get(..count.checked_mul(entry)?)?;
    let listed = move |entry: &[u8]| {
        let (offset, size) = (u32_at(entry, 0)?, u32_at(entry, 4)?);
        let place = ByteRange::at(base.saturating_add(offset.into()), (size & !NO_KEY).into());
        Some(Listed { stream, place, is_key: size & NO_KEY == 0 })
    };
    Some(entries.chunks_exact(entry).filter_map(listed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(kind: &[u8; 4], flags: u32, offset: u32, size: u32) -> Vec<u8> {
        [&kind[..], &flags.to_le_bytes(), &offset.to_le_bytes(), &size.to_le_bytes()].concat()
    }

    #[test]
    fn offsets_count_from_the_list_or_from_the_file() {
        for base in [0, 1000] {
            let entries =
                [old(b"rec ", 1, base + 4, 99), old(b"00dc", 0x10, base + 4, 10), old(b"01wb", 0, base + 22, 7)];
            let movi = ByteRange::new(if base == 0 { 2004 } else { 1004 }, 9000);
            let start = if base == 0 { 2000 } else { 1000 };
            let found: Vec<_> = OldIndex::new(&entries.concat(), movi).chunks().collect();
            let expected = [
                Listed { stream: 0, place: ByteRange::at(start + 12, 10), is_key: true },
                Listed { stream: 1, place: ByteRange::at(start + 30, 7), is_key: false },
            ];
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn indexes_of_indexes_and_of_chunks() {
        let head = |longs: u16, kind: u8, count: u32| {
            [&longs.to_le_bytes()[..], &[0, kind], &count.to_le_bytes(), b"00dc"].concat()
        };
        let place = [&5_000_000_000_u64.to_le_bytes()[..], &100_u32.to_le_bytes(), &[0; 4]].concat();
        let whole = [&head(4, 0, 1)[..], &[0; 12], &place, &[0; 32]].concat();
        assert_eq!(indexes(&whole), Some(vec![ByteRange::at(5_000_000_000, 108)]));
        assert_eq!((indexes(&whole[..30]), indexes(&head(2, 1, 1)), indexes(&[])), (None, None, None));
        let entries: Vec<u8> = [8_u32, 10, 26, 5 | NO_KEY].iter().flat_map(|field| field.to_le_bytes()).collect();
        let body = [&head(2, 1, 2)[..], &5_000_000_000_u64.to_le_bytes(), &[0; 4], &entries].concat();
        let bytes = [&b"ix00"[..], &(body.len() as u32).to_le_bytes(), &body, b"next"].concat();
        let expected = [
            Listed { stream: 3, place: ByteRange::at(5_000_000_008, 10), is_key: true },
            Listed { stream: 3, place: ByteRange::at(5_000_000_026, 5), is_key: false },
        ];
        assert_eq!(standard(3, &bytes).unwrap().collect::<Vec<_>>(), expected);
        assert!(standard(3, &bytes[..45]).is_none(), "an entry is cut off");
        let other = [&b"ix00"[..], &24_u32.to_le_bytes(), &whole[..24]].concat();
        assert!(standard(3, &other).is_none());
    }
}
