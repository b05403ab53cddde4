//! A stretch of an object that is walked box by box, and its available bytes.

use crate::{
    boxes::{BoxHeader, HEADER},
    units::ByteRange,
    window::Window,
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

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

/// A stretch of boxes: a window, and its start.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    start: u64,
    window: Window,
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
    /// Creates a lane over `start..end` without any bytes. Its requests have the bytes that are needed, and no more.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        Self { start, window: Window::new(start, end, 0) }
    }

    /// Whether the walk is at the start of the lane.
    pub(crate) fn at_start(&self) -> bool {
        self.at() == self.start
    }

    /// Returns the content at the position.
    pub(crate) fn here(&self) -> Here {
        if self.left() == 0 {
            return Here::End;
        }
        match BoxHeader::parse(self.held()) {
            Some(header) if printable(&header) => Here::Box { header, size: header.size.unwrap_or(self.left()) },
            None if (self.held().len() as u64) < HEADER.min(self.left()) => Here::Unknown,
            _ => Here::Garbage,
        }
    }

    /// Cuts the lane at `place`, and returns the part after it.
    pub(crate) fn split_off(&mut self, place: u64) -> Self {
        let window = self.window.split_off(place);
        Self { start: window.at(), window }
    }
}

impl Deref for Lane {
    type Target = Window;

    fn deref(&self) -> &Window {
        &self.window
    }
}

impl DerefMut for Lane {
    fn deref_mut(&mut self) -> &mut Window {
        &mut self.window
    }
}

/// Whether the type is printable, counting `©` of QuickTime types such as `©xyz`.
fn printable(header: &BoxHeader) -> bool {
    header.kind.iter().all(|byte| matches!(byte, 0x20..=0x7e | 0xa9))
}
