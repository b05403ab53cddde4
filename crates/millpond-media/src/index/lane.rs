//! A stretch of an object that is walked box by box, and its available bytes.

use crate::{
    boxes::{BoxHeader, HEADER},
    units::ByteRange,
};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Bytes that were requested and arrived, by range.
#[derive(Debug, Default)]
pub(crate) struct Arrived(BTreeMap<ByteRange, Bytes>);

impl Arrived {
    /// Stores the bytes of `range`.
    pub(crate) fn put(&mut self, range: ByteRange, bytes: Bytes) {
        self.0.insert(range, bytes);
    }

    /// Returns the bytes of exactly `range`, and keeps them.
    pub(crate) fn get(&self, range: ByteRange) -> Option<&Bytes> {
        self.0.get(&range)
    }

    /// Removes and returns the bytes of exactly `range`.
    pub(crate) fn take(&mut self, range: ByteRange) -> Option<Bytes> {
        self.0.remove(&range)
    }

    /// Removes and returns the bytes of a range that starts at `start`.
    pub(crate) fn take_from(&mut self, start: u64) -> Option<Bytes> {
        let (&range, _) = self.0.range(ByteRange::new(start, start)..).next().filter(|(r, _)| r.start == start)?;
        self.take(range)
    }
}

/// A stretch of boxes: the position of the walk, and its end.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    start: u64,
    at: u64,
    end: u64,
    /// Available bytes from `at` on.
    held: Bytes,
}

/// Content of a lane at its position.
#[derive(Debug)]
pub(crate) enum Here {
    /// The end of the lane.
    End,
    /// Too few bytes to decide.
    Unknown,
    /// Bytes that are no box header.
    Garbage,
    /// A box.
    Box {
        header: BoxHeader,
        /// Length of the whole box; a box without a size extends to the end of the lane.
        size: u64,
    },
}

impl Lane {
    /// Creates a lane over `start..end` without any bytes.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { start, at: start, end: end.max(start), held: Bytes::new() }
    }

    /// Position of the walk.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Whether the walk is at the start of the lane.
    pub(crate) fn at_start(&self) -> bool {
        self.at == self.start
    }

    /// End of the lane.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Number of bytes from the position to the end.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Offset of the first byte that is not available.
    pub(crate) fn held_to(&self) -> u64 {
        self.at + self.held.len() as u64
    }

    /// Adds the bytes that begin at [`Lane::held_to`]. Bytes past the end are dropped.
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

    /// Returns the content at the position.
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

    /// Returns the next `size` bytes, if they are available.
    pub(crate) fn bytes(&self, size: u64) -> Option<Bytes> {
        let size = usize::try_from(size).ok().filter(|&size| size <= self.held.len())?;
        Some(self.held.slice(..size))
    }

    /// Skips `size` bytes.
    pub(crate) fn advance(&mut self, size: u64) {
        let size = size.min(self.left());
        self.at += size;
        self.held = match usize::try_from(size) {
            Ok(size) if size < self.held.len() => self.held.slice(size..),
            _ => Bytes::new(),
        };
    }

    /// Returns the range to request so that `size` bytes from the position are available. It never exceeds the lane.
    pub(crate) fn want(&self, size: u64) -> ByteRange {
        ByteRange::new(self.held_to(), self.at.saturating_add(size).min(self.end))
    }

    /// Cuts the lane at `place`, and returns the part after it.
    pub(crate) fn split_off(&mut self, place: u64) -> Self {
        let place = place.clamp(self.at, self.end);
        let keep = usize::try_from(place - self.at).unwrap_or(usize::MAX).min(self.held.len());
        let rest = Self { start: place, at: place, end: self.end, held: self.held.split_off(keep) };
        self.end = place;
        rest
    }
}

/// Whether the type is printable, counting `©` of QuickTime types such as `©xyz`.
fn printable(header: &BoxHeader) -> bool {
    header.kind.iter().all(|byte| matches!(byte, 0x20..=0x7e | 0xa9))
}
