//! Buffers used again from response to response: fresh large ones cost page faults worth more than the work in them.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Size of every buffer.
pub(crate) const SIZE: usize = 192 << 10;
/// Buffers that a thread keeps.
const KEPT: usize = 16;
/// Buffers that all threads keep together: 12 MiB, beside the budget of memory.
const KEPT_BY_ALL: usize = 64;

/// Buffers that are kept now.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static FREE: RefCell<Free> = const { RefCell::new(Free(Vec::new())) };
}

/// Buffers that a thread keeps until it ends.
struct Free(Vec<Vec<u8>>);

impl Drop for Free {
    fn drop(&mut self) {
        COUNT.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

/// A buffer of [`SIZE`] bytes, what is in them undefined.
pub(crate) fn take() -> Vec<u8> {
    match FREE.with_borrow_mut(|free| free.0.pop()) {
        Some(buffer) => {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            buffer
        }
        None => vec![0; SIZE],
    }
}

/// Gives a buffer back; one that grew or shrank is let go.
pub(crate) fn give(mut buffer: Vec<u8>) {
    if buffer.capacity() < SIZE || buffer.capacity() > 2 * SIZE {
        return;
    }
    FREE.with_borrow_mut(|free| {
        // Threads that ask at once may keep one too many each.
        if free.0.len() < KEPT && COUNT.load(Ordering::Relaxed) < KEPT_BY_ALL {
            COUNT.fetch_add(1, Ordering::Relaxed);
            // Only what was cut off is written again.
            buffer.resize(SIZE, 0);
            free.0.push(buffer);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_few_buffers() {
        let taken: Vec<Vec<u8>> = (0..KEPT + 4).map(|_| take()).collect();
        taken.into_iter().for_each(give);
        give(vec![0; SIZE / 2]);
        give(vec![0; SIZE * 3]);
        FREE.with_borrow(|free| {
            assert!(free.0.len() <= KEPT, "{} are kept", free.0.len());
            assert!(free.0.iter().all(|buffer| buffer.len() == SIZE), "each is as long as the others");
        });
        assert!(COUNT.load(Ordering::Relaxed) <= KEPT_BY_ALL + 64);
    }
}
