//! A stretch of an object that is walked from its beginning to its end, and its available bytes.

use crate::units::ByteRange;
use bytes::{Bytes, BytesMut};

/// The position of a walk, and the bytes from there on.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    at: u64,
    end: u64,
    held: Bytes,
    /// Bytes that a request has at least, up to `eager`.
    read_size: u64,
    eager: u64,
}

impl Window {
    /// Creates a window over `start..end` without any bytes, whose requests have `read_size` bytes where there are as many.
    pub(crate) fn new(start: u64, end: u64, read_size: u64) -> Self {
        Self { at: start, end: end.max(start), held: Bytes::new(), read_size, eager: end }
    }

    /// Requests no bytes behind `until` that are not needed.
    pub(crate) fn eager_to(self, until: u64) -> Self {
        Self { eager: until, ..self }
    }

    /// Sets the bytes that a request has at least.
    pub(crate) fn set_read_size(&mut self, read_size: u64) {
        self.read_size = read_size;
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes from the position to the end.
    pub(crate) fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Offset of the first byte that is not available.
    pub(crate) fn held_to(&self) -> u64 {
        self.at + self.held.len() as u64
    }

    /// Whether all bytes up to the end are available.
    pub(crate) fn holds_end(&self) -> bool {
        self.held_to() >= self.end
    }

    /// Moves the end. Bytes behind it are dropped.
    pub(crate) fn set_end(&mut self, end: u64) {
        self.end = end.max(self.at);
        self.held.truncate(usize::try_from(self.left()).unwrap_or(usize::MAX));
    }

    /// Adds the bytes that begin at [`Window::held_to`].
    pub(crate) fn append(&mut self, mut bytes: Bytes) {
        bytes.truncate(usize::try_from(self.end - self.held_to()).unwrap_or(usize::MAX));
        if self.held.is_empty() {
            self.held = bytes;
            return;
        }
        // Bytes that nobody else holds grow in place, and double their room: pieces of a long chunk are not copied again and again.
        let mut joined =
            std::mem::take(&mut self.held).try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        joined.extend_from_slice(&bytes);
        self.held = joined.freeze();
    }

    /// Available bytes from the position on.
    pub(crate) fn held(&self) -> &Bytes {
        &self.held
    }

    /// The next `size` bytes, if they are available.
    pub(crate) fn bytes(&self, size: u64) -> Option<Bytes> {
        let size = usize::try_from(size).ok().filter(|size| *size <= self.held.len())?;
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

    /// Cuts the window at `place`, and returns the part after it.
    pub(crate) fn split_off(&mut self, place: u64) -> Self {
        let place = place.clamp(self.at, self.end);
        let keep = usize::try_from(place - self.at).unwrap_or(usize::MAX).min(self.held.len());
        let rest = Self { at: place, held: self.held.split_off(keep), ..*self };
        self.end = place;
        rest
    }

    /// The range to request so that `size` bytes from the position on are available. It never exceeds the window.
    pub(crate) fn want(&self, size: u64) -> ByteRange {
        let eager = self.held_to().saturating_add(self.read_size).min(self.eager);
        let until = self.at.saturating_add(size).max(eager);
        ByteRange::new(self.held_to(), until.min(self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_long_stretch_are_joined_in_place() {
        let (mut window, mut moves) = (Window::new(0, 4 << 20, 0), 0);
        for number in 0..4096_u32 {
            let before = window.held().as_ptr();
            window.append(Bytes::from(vec![number as u8; 1024]));
            moves += u32::from(window.held().as_ptr() != before);
            assert!(window.bytes(1024).is_some());
        }
        assert!(window.holds_end() && moves < 20, "{moves} moves");
        assert!(window.held().iter().zip(0_u32..).all(|(byte, place)| *byte == (place / 1024) as u8));
    }
}
