//! The walk over all chunks of media, from the beginning of the first `movi` to the end of the file.

use super::{
    chunk::{self, CHUNK_HEADER, LIST_HEADER, MOST_CHUNK},
    header::MOST_STREAMS,
};
use crate::{boxes::FourCc, units::ByteRange, window::Window};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Most bytes between two chunks that are searched for the next chunk. After these bytes the walk ends.
const MOST_LOST: u64 = 16 << 20;
/// Chunks of one unknown type that count as damage. More chunks of a type are intact: each damaged place shows another type.
const MOST_OF_TYPE: u32 = 8;
/// Most unknown types whose chunks are counted.
const MOST_TYPES: usize = 64;

/// Result of a step of the walk.
#[derive(Debug)]
pub(super) enum Walked {
    /// A chunk of a stream, and its data.
    Chunk(usize, ByteRange, Bytes),
    /// A chunk of a stream that is too large to be read.
    TooLarge(usize, ByteRange),
    /// An index behind a damaged place, with the header of its chunk.
    Index(Bytes),
    /// Further bytes are needed.
    Needs,
    /// The file ends.
    End,
}

/// The walk over the chunks of one file.
///
/// The walk enters lists and further RIFF chunks (OpenDML), and passes other chunks. Where no chunk begins, the walk continues at
/// the next bytes that look like the header of a chunk with media.
#[derive(Debug)]
pub(super) struct Walk {
    window: Window,
    /// Offset of the next byte that arrives.
    next: u64,
    /// Whether the chunks of a stream are read, by the stream's number.
    played: [bool; MOST_STREAMS],
    is_lost: bool,
    /// Bytes that were passed since the last chunk.
    lost: u64,
    /// Bytes that were passed because no chunk began there.
    pub(super) passed: u64,
    /// Damaged places so far: bytes without chunks, and chunks of unknown types.
    pub(super) damages: u64,
    /// Chunks of unknown types that count as damage, by type.
    unknown: BTreeMap<FourCc, u32>,
    /// Whether the file ends within a chunk that no other chunk follows.
    pub(super) is_cut_short: bool,
}

impl Walk {
    /// Creates the walk over `range` of a file.
    pub(super) fn new(range: ByteRange, streams: impl IntoIterator<Item = usize>) -> Self {
        let mut played = [false; MOST_STREAMS];
        for number in streams {
            if let Some(stream) = played.get_mut(number) {
                *stream = true;
            }
        }
        let window = Window::new(range.start, range.end, 0);
        let (next, lost, passed, damages) = (range.start, 0, 0, 0);
        let unknown = BTreeMap::new();
        Self { window, next, played, is_lost: false, lost, passed, damages, unknown, is_cut_short: false }
    }

    /// Offset of the next chunk.
    pub(super) fn at(&self) -> u64 {
        self.window.at()
    }

    /// Bytes of heap held. Joined pieces take up to twice their size.
    pub(super) fn heap_bytes(&self) -> usize {
        self.window.held().len() * 2
    }

    /// Takes the next bytes of the file.
    pub(super) fn push(&mut self, bytes: &Bytes) {
        // The first bytes may belong to chunks that were passed.
        let skip = self.window.held_to().saturating_sub(self.next);
        self.next = self.next.saturating_add(bytes.len() as u64);
        if skip < bytes.len() as u64 {
            self.window.append(bytes.slice(skip as usize..));
        }
    }

    /// Skips the bytes of passed chunks that have not arrived. Returns the offset of the next byte that is needed.
    pub(super) fn skip(&mut self) -> u64 {
        self.next = self.next.max(self.window.held_to());
        self.next
    }

    /// Walks to the next chunk of a played stream.
    pub(super) fn next(&mut self) -> Walked {
        loop {
            if self.window.left() < CHUNK_HEADER || self.lost > MOST_LOST {
                return Walked::End;
            }
            if self.is_lost && !self.search() {
                return if self.window.holds_end() { Walked::End } else { Walked::Needs };
            }
            let Some(header) = self.window.bytes(LIST_HEADER.min(self.window.left())) else { return Walked::Needs };
            let Some((kind, size)) = chunk::header(&header) else { return Walked::Needs };
            let whole = CHUNK_HEADER + size;
            let is_entered = match &kind {
                b"RIFF" => true,
                b"LIST" => matches!(header.get(CHUNK_HEADER as usize..), Some(b"movi" | b"rec ")),
                _ => false,
            };
            if is_entered {
                self.window.advance(LIST_HEADER);
                continue;
            }
            if whole > self.window.left() {
                // The file is cut off here, or the header is damaged.
                self.is_cut_short = true;
                // Entries of an index look like headers of chunks. No media is behind it.
                if &kind == b"idx1" {
                    return Walked::End;
                }
                self.lose();
                continue;
            }
            let place = ByteRange::at(self.window.at() + CHUNK_HEADER, size);
            match self.stream_of(kind) {
                Some(stream) if size > MOST_CHUNK => {
                    self.window.advance(CHUNK_HEADER + chunk::padded(size));
                    return Walked::TooLarge(stream, place);
                }
                Some(stream) => {
                    let Some(bytes) = self.window.bytes(whole) else { return Walked::Needs };
                    self.window.advance(CHUNK_HEADER + chunk::padded(size));
                    (self.is_cut_short, self.lost) = (false, 0);
                    return Walked::Chunk(stream, place, bytes.slice(CHUNK_HEADER as usize..));
                }
                None if self.damages > 0 && chunk::is_index(kind) && size <= MOST_CHUNK => {
                    let Some(bytes) = self.window.bytes(whole) else { return Walked::Needs };
                    self.window.advance(CHUNK_HEADER + chunk::padded(size));
                    return Walked::Index(bytes);
                }
                None if !kind.iter().all(|byte| (b' '..=b'~').contains(byte)) => {
                    self.lose();
                    continue;
                }
                None if !is_usual(kind) => self.doubt(kind),
                None => {}
            }
            self.window.advance(CHUNK_HEADER + chunk::padded(size));
        }
    }

    /// Returns the played stream to which a chunk belongs.
    fn stream_of(&self, kind: FourCc) -> Option<usize> {
        chunk::media_of(kind).filter(|number| self.played.get(*number) == Some(&true))
    }

    /// Passes a byte, and begins to search for a chunk.
    fn lose(&mut self) {
        self.is_lost = true;
        self.damages += 1;
        self.pass(1);
    }

    /// Counts a chunk of an unknown type as damage, unless the file has many chunks of the type.
    fn doubt(&mut self, kind: FourCc) {
        if self.unknown.len() < MOST_TYPES || self.unknown.contains_key(&kind) {
            let count = self.unknown.entry(kind).or_default();
            if *count == MOST_OF_TYPE {
                return;
            }
            *count += 1;
        }
        self.damages += 1;
    }

    fn pass(&mut self, bytes: u64) {
        self.passed += bytes;
        self.lost += bytes;
        self.window.advance(bytes);
    }

    /// Searches the available bytes for the header of a chunk of a played stream, or of an index. Returns whether one was found.
    fn search(&mut self) -> bool {
        let held = self.window.held();
        let (at, end) = (self.window.at(), self.window.end());
        let begins = |(place, bytes): (usize, &[u8])| {
            // A quick check that rejects most bytes.
            let is_like =
                matches!(bytes, [b'0'..=b'9', b'0'..=b'9', b'd' | b'w', b'b' | b'c', ..] | [b'i', b'd' | b'x', ..]);
            let Some((kind, size)) = chunk::header(bytes).filter(|_| is_like) else { return false };
            let fits = at.saturating_add(place as u64 + CHUNK_HEADER).saturating_add(size) <= end;
            fits && size <= MOST_CHUNK && (self.stream_of(kind).is_some() || chunk::is_index(kind))
        };
        let last = (held.len() + 1).saturating_sub(CHUNK_HEADER as usize);
        let found = held.windows(CHUNK_HEADER as usize).enumerate().position(begins);
        self.is_lost = found.is_none();
        self.pass(found.unwrap_or(last) as u64);
        found.is_some()
    }
}

/// Whether a chunk that is passed is no sign of damage: an index, a list, padding, or data of a stream.
fn is_usual(kind: FourCc) -> bool {
    let is_of_stream = chunk::stream_of(kind).is_some_and(|(_, form)| matches!(&form, b"pc" | b"tx" | b"ix"));
    is_of_stream
        || chunk::media_of(kind).is_some()
        || chunk::is_index(kind)
        || matches!(&kind, b"LIST" | b"JUNK" | b"junk")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let padding = &[0][..body.len() % 2];
        [&kind[..], &(body.len() as u32).to_le_bytes(), body, padding].concat()
    }

    fn list(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        chunk(b"LIST", &[&kind[..], body].concat())
    }

    /// Walks over bytes that arrive in pieces. Returns the bodies, with their streams.
    fn walked(bytes: &[u8], piece: usize) -> (Vec<(usize, Vec<u8>)>, u64, bool) {
        let mut walk = Walk::new(ByteRange::at(0, bytes.len() as u64), [0, 1]);
        let (mut found, mut pieces) = (Vec::new(), bytes.chunks(piece));
        loop {
            match walk.next() {
                Walked::Chunk(stream, place, data) => {
                    assert_eq!(&bytes[place.start as usize..place.end as usize], &data[..]);
                    found.push((stream, data.to_vec()));
                }
                Walked::TooLarge(..) | Walked::Index(_) => panic!("neither is there"),
                Walked::Needs => walk.push(&Bytes::copy_from_slice(pieces.next().unwrap())),
                Walked::End => return (found, walk.passed, walk.is_cut_short),
            }
        }
    }

    #[test]
    fn chunks_are_found_in_lists_and_further_files() {
        let inner = list(b"rec ", &[chunk(b"00dc", b"abc"), chunk(b"01wb", b"")].concat());
        let further = chunk(b"RIFF", &[&b"AVIX"[..], &list(b"movi", &chunk(b"01wb", b"de"))].concat());
        let parts = [chunk(b"JUNK", &[0; 31]), inner, chunk(b"02dc", b"xx"), chunk(b"00pc", b"pp"), further];
        let expected = vec![(0, b"abc".to_vec()), (1, Vec::new()), (1, b"de".to_vec())];
        for piece in [1, 7, 64, 1000] {
            assert_eq!(walked(&parts.concat(), piece), (expected.clone(), 0, false), "pieces of {piece}");
        }
    }

    #[test]
    fn a_type_that_occurs_often_is_no_damage() {
        let bytes = [chunk(b"note", b"abc"), chunk(b"00dc", b"abcd")].concat().repeat(1000);
        let bytes = [bytes, chunk(b"once", b"abc")].concat();
        let mut walk = Walk::new(ByteRange::at(0, bytes.len() as u64), [0]);
        walk.push(&Bytes::from(bytes));
        let chunks = std::iter::from_fn(|| matches!(walk.next(), Walked::Chunk(..)).then_some(())).count();
        assert_eq!((chunks, walk.damages), (1000, u64::from(MOST_OF_TYPE) + 1));
    }

    #[test]
    fn damaged_places_are_passed() {
        let (first, second) = (chunk(b"00dc", b"abcd"), chunk(b"00dc", b"efgh"));
        let damaged = [&first[..], &[0xff; 9], &second, &b"00dc\xff\xff\xff\x7f"[..], &first].concat();
        for piece in [1, 5, 1000] {
            let (found, passed, _) = walked(&damaged, piece);
            assert_eq!(found.iter().map(|(_, data)| &data[..]).collect::<Vec<_>>(), [b"abcd", b"efgh", b"abcd"]);
            assert_eq!(passed, 17, "pieces of {piece}");
        }
        let (found, _, is_cut_short) = walked(&damaged[..28], 1000);
        assert_eq!((found.len(), is_cut_short), (1, true));
    }
}
