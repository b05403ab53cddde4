//! Reads a whole object, some pieces at a time, in order.

use crate::units::ByteRange;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a piece.
const PIECE: u64 = 2 << 20;
/// Least bytes of a piece.
const LEAST: u64 = 64 << 10;
/// Most pieces that are requested together: remote storage sends them in parallel.
const AT_ONCE: u64 = 4;

/// Pieces of an object that are requested and arrive.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Offset of the first byte that was not requested yet.
    next: u64,
    end: u64,
    /// Bytes of a piece.
    piece: u64,
    /// Pieces that are requested together.
    at_once: u64,
    /// Requested pieces that were not returned yet, in order.
    wanted: Vec<ByteRange>,
    arrived: BTreeMap<u64, Bytes>,
}

impl Requests {
    /// Creates the requests for the bytes from `start` to `end`. Pieces that are requested together have at most `batch` bytes,
    /// or are one small piece.
    pub(crate) fn new(start: u64, end: u64, batch: u64) -> Self {
        let piece = batch.clamp(LEAST, PIECE);
        let at_once = (batch / piece).clamp(1, AT_ONCE);
        Self { next: start, end, piece, at_once, wanted: Vec::new(), arrived: BTreeMap::new() }
    }

    /// Returns the pieces that are needed; none at the end.
    pub(crate) fn needs(&mut self) -> Vec<ByteRange> {
        if self.wanted.is_empty() {
            for _ in 0..self.at_once {
                let range = ByteRange::new(self.next, self.next.saturating_add(self.piece).min(self.end));
                self.next = range.end;
                self.wanted.extend(Some(range).filter(|range| !range.is_empty()));
            }
        }
        self.wanted.iter().filter(|range| !self.arrived.contains_key(&range.start)).copied().collect()
    }

    /// Passes the bytes up to `place`, unless they were requested.
    pub(crate) fn skip_to(&mut self, place: u64) {
        if self.wanted.is_empty() {
            self.next = self.next.max(place.min(self.end));
        }
    }

    /// Takes the bytes of a piece.
    pub(crate) fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        if self.wanted.contains(&range) {
            self.arrived.insert(range.start, bytes);
        }
    }

    /// Returns all requested pieces, in order, once all of them have arrived.
    pub(crate) fn take(&mut self) -> Option<Vec<Bytes>> {
        if self.wanted.is_empty() || self.arrived.len() < self.wanted.len() {
            return None;
        }
        self.wanted.clear();
        Some(std::mem::take(&mut self.arrived).into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_arrive_in_any_order() {
        let mut requests = Requests::new(5, PIECE * 5 + 7, 8 << 20);
        let first = requests.needs();
        assert_eq!((first.len(), first[0].start, first[3].end), (4, 5, 5 + 4 * PIECE));
        for (number, range) in first.iter().enumerate().rev() {
            assert_eq!(requests.take(), None);
            requests.supply(*range, Bytes::from(vec![number as u8]));
        }
        assert_eq!(requests.take().unwrap().concat(), [0, 1, 2, 3]);
        let last = requests.needs();
        assert_eq!((last.len(), last[1].end), (2, PIECE * 5 + 7));
        requests.supply(last[0], Bytes::new());
        assert_eq!(requests.needs(), [last[1]]);
        requests.supply(last[1], Bytes::new());
        assert!(requests.take().is_some() && requests.needs().is_empty() && requests.take().is_none());
    }

    #[test]
    fn bytes_are_passed_before_they_are_requested() {
        let mut requests = Requests::new(0, 3 * PIECE, 8 << 20);
        requests.skip_to(PIECE);
        let needs = requests.needs();
        assert_eq!((needs.len(), needs[0].start), (2, PIECE));
        requests.skip_to(2 * PIECE);
        assert_eq!(requests.needs().len(), 2);
    }

    #[test]
    fn little_memory_makes_fewer_and_smaller_pieces() {
        let needs = |batch| Requests::new(0, 1 << 30, batch).needs();
        let lengths = |batch| needs(batch).into_iter().map(ByteRange::len).collect::<Vec<_>>();
        assert_eq!(lengths(u64::MAX), [PIECE; 4]);
        assert_eq!(lengths(5 << 20), [PIECE; 2]);
        assert_eq!(lengths(1 << 20), [1 << 20]);
        assert_eq!(lengths(0), [LEAST]);
    }
}
