//! A stretch of an object that is walked element by element, and its available bytes.

use super::ebml::{Header, LONGEST_HEADER, Read};
use crate::units::ByteRange;
use bytes::{Bytes, BytesMut};

/// The position of a walk, and the bytes from there on.
#[derive(Clone, Debug)]
pub(super) struct Window {
    at: u64,
    end: u64,
    held: Bytes,
    /// Bytes that a request has at least, up to `eager`.
    read_size: u64,
    eager: u64,
}

/// Content of a window at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    End,
    /// Too few bytes to decide.
    Unknown,
    /// Bytes that are no header.
    Garbage,
    Element(Header),
}

impl Window {
    /// Creates a window over `start..end` without any bytes, whose requests have `read_size` bytes where there are as many.
    pub(super) fn new(start: u64, end: u64, read_size: u64) -> Self {
        Self { at: start, end: end.max(start), held: Bytes::new(), read_size, eager: end }
    }

    /// Requests no bytes behind `until` that are not needed.
    pub(super) fn eager_to(self, until: u64) -> Self {
        Self { eager: until, ..self }
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes from the position to the end.
    pub(super) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Offset of the first byte that is not available.
    pub(super) fn held_to(&self) -> u64 {
        self.at + self.held.len() as u64
    }

    /// Moves the end. Bytes behind it are dropped.
    pub(super) fn set_end(&mut self, end: u64) {
        self.end = end.max(self.at);
        self.held.truncate(usize::try_from(self.left()).unwrap_or(usize::MAX));
    }

    /// Adds the bytes that begin at [`Window::held_to`].
    pub(super) fn append(&mut self, mut bytes: Bytes) {
        bytes.truncate(usize::try_from(self.end - self.held_to()).unwrap_or(usize::MAX));
        if self.held.is_empty() {
            self.held = bytes;
            return;
        }
        let mut joined = BytesMut::with_capacity(self.held.len() + bytes.len());
        joined.extend_from_slice(&self.held);
        joined.extend_from_slice(&bytes);
        self.held = joined.freeze();
    }

    /// The content at the position.
    pub(super) fn here(&self) -> Here {
        if self.left() == 0 {
            return Here::End;
        }
        match Header::read(&self.held) {
            Read::Header(header) => Here::Element(header),
            Read::Short if (self.held.len() as u64) < LONGEST_HEADER.min(self.left()) => Here::Unknown,
            Read::Short | Read::Garbage => Here::Garbage,
        }
    }

    /// Available bytes from the position on.
    pub(super) fn held(&self) -> &Bytes {
        &self.held
    }

    /// The next `size` bytes, if they are available.
    pub(super) fn bytes(&self, size: u64) -> Option<Bytes> {
        let size = usize::try_from(size).ok().filter(|size| *size <= self.held.len())?;
        Some(self.held.slice(..size))
    }

    /// Skips `size` bytes.
    pub(super) fn advance(&mut self, size: u64) {
        let size = size.min(self.left());
        self.at += size;
        self.held = match usize::try_from(size) {
            Ok(size) if size < self.held.len() => self.held.slice(size..),
            _ => Bytes::new(),
        };
    }

    /// The range to request so that `size` bytes from the position on are available. It never exceeds the window.
    pub(super) fn want(&self, size: u64) -> ByteRange {
        let eager = self.held_to().saturating_add(self.read_size).min(self.eager);
        let until = self.at.saturating_add(size).max(eager);
        ByteRange::new(self.held_to(), until.min(self.end))
    }
}
