//! A stretch of an object that is walked box by box, with the bytes of it that are at hand.

use crate::{
    boxes::{BoxHeader, HEADER},
    units::ByteRange,
};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Bytes that were asked for and came, by range.
#[derive(Debug, Default)]
pub(crate) struct Arrived(BTreeMap<ByteRange, Bytes>);

impl Arrived {
    /// Keeps what came.
    pub(crate) fn put(&mut self, range: ByteRange, bytes: Bytes) {
        self.0.insert(range, bytes);
    }

    /// The bytes of exactly `range`, which stay.
    pub(crate) fn get(&self, range: ByteRange) -> Option<&Bytes> {
        self.0.get(&range)
    }

    /// The bytes of exactly `range`.
    pub(crate) fn take(&mut self, range: ByteRange) -> Option<Bytes> {
        self.0.remove(&range)
    }

    /// The bytes of a range that starts at `start`.
    pub(crate) fn take_from(&mut self, start: u64) -> Option<Bytes> {
        let (&range, _) = self.0.range(ByteRange::new(start, start)..).next().filter(|(r, _)| r.start == start)?;
        self.take(range)
    }
}

/// A stretch of boxes: where the walk is, and where it ends.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    start: u64,
    at: u64,
    end: u64,
    /// Bytes at hand from `at` on.
    held: Bytes,
}

/// What a lane has at its present place.
#[derive(Debug)]
pub(crate) enum Here {
    /// The end of the stretch.
    End,
    /// Not enough bytes to say.
    Unknown,
    /// Bytes that are no box header.
    Garbage,
    /// A box.
    Box {
        header: BoxHeader,
        /// Bytes of the whole box; those of a box without a size go to the end of the lane.
        size: u64,
    },
}

impl Lane {
    /// A lane over `start..end` with nothing at hand.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { start, at: start, end: end.max(start), held: Bytes::new() }
    }

    /// Where the walk is.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Whether nothing was walked yet.
    pub(crate) fn at_start(&self) -> bool {
        self.at == self.start
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes from here to the end.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// The first byte that is not at hand.
    pub(crate) fn held_to(&self) -> u64 {
        self.at + self.held.len() as u64
    }

    /// Adds the bytes that begin at [`Lane::held_to`]; those past the end are of no use.
    pub(crate) fn append(&mut self, mut bytes: Bytes) {
        bytes.truncate(usize::try_from(self.end - self.held_to()).unwrap_or(usize::MAX));
        if self.held.is_empty() {
            self.held = bytes;
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + bytes.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&bytes);
            self.held = joined.freeze();
        }
    }

    /// What is here.
    pub(crate) fn here(&self) -> Here {
        if self.left() == 0 {
            return Here::End;
        }
        match BoxHeader::parse(&self.held) {
            Some(header) if printable(&header) => Here::Box { header, size: header.size.unwrap_or(self.left()) },
            None if (self.held.len() as u64) < HEADER.min(self.left()) => Here::Unknown,
            _ => Here::Garbage,
        }
    }

    /// The next `size` bytes, if they are at hand.
    pub(crate) fn bytes(&self, size: u64) -> Option<Bytes> {
        let size = usize::try_from(size).ok().filter(|&size| size <= self.held.len())?;
        Some(self.held.slice(..size))
    }

    /// Passes over `size` bytes.
    pub(crate) fn advance(&mut self, size: u64) {
        let size = size.min(self.left());
        self.at += size;
        self.held = match usize::try_from(size) {
            Ok(size) if size < self.held.len() => self.held.slice(size..),
            _ => Bytes::new(),
        };
    }

    /// The range to ask for so that `size` bytes from here are at hand; nothing past the end.
    pub(crate) fn want(&self, size: u64) -> ByteRange {
        ByteRange::new(self.held_to(), self.at.saturating_add(size).min(self.end))
    }

    /// Cuts the lane at `place`, and gives the part after it.
    pub(crate) fn split_off(&mut self, place: u64) -> Self {
        let place = place.clamp(self.at, self.end);
        let keep = usize::try_from(place - self.at).unwrap_or(usize::MAX).min(self.held.len());
        let rest = Self { start: place, at: place, end: self.end, held: self.held.split_off(keep) };
        self.end = place;
        rest
    }
}

/// Whether the type looks like one; `©xyz` is a QuickTime type.
fn printable(header: &BoxHeader) -> bool {
    header.kind.iter().all(|byte| matches!(byte, 0x20..=0x7e | 0xa9))
}
