//! Buffers used again from response to response: fresh large ones cost page faults worth more than the work in them.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
};

/// Size of every buffer.
pub(crate) const SIZE: usize = 192 << 10;
/// Buffers that a thread keeps.
const KEPT: usize = 16;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of [`SIZE`] bytes, what is in them undefined.
pub(crate) fn take() -> Vec<u8> {
    FREE.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; SIZE])
}

/// Gives a buffer back; one that grew or shrank is let go.
pub(crate) fn give(mut buffer: Vec<u8>) {
    if buffer.capacity() < SIZE || buffer.capacity() > 2 * SIZE {
        return;
    }
    FREE.with_borrow_mut(|free| {
        if free.len() < KEPT {
            // Only what was cut off is written again.
            buffer.resize(SIZE, 0);
            free.push(buffer);
        }
    });
}

/// A buffer that is given back when it is dropped.
pub(crate) struct Lent(Vec<u8>);

impl Lent {
    /// A buffer of [`SIZE`] bytes, what is in them undefined.
    pub(crate) fn new() -> Self {
        Self(take())
    }

    /// A buffer that was taken before and filled.
    pub(crate) fn of(buffer: Vec<u8>) -> Self {
        Self(buffer)
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
}
