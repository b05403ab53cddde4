//! A pool of large buffers. The page faults of a new one would cost more than the work in it.

use std::{
    cell::RefCell,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Size of every buffer, in bytes.
pub(crate) const SIZE: usize = 192 << 10;
/// Most free buffers of a thread.
const FREE_MOST: usize = 16;
/// Most free buffers of all threads: 12 MiB, in addition to the memory budget.
const FREE_BY_ALL: usize = 64;

/// Number of free buffers.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static FREE: RefCell<Free> = const { RefCell::new(Free { whole: Vec::new(), short: Vec::new() }) };
}

/// The free buffers of a thread, until it ends.
struct Free {
    /// Those with [`SIZE`] bytes.
    whole: Vec<Vec<u8>>,
    /// Those with fewer bytes, and space for as many. Nothing is written to them before they are used.
    short: Vec<Vec<u8>>,
}

impl Free {
    const fn len(&self) -> usize {
        self.whole.len() + self.short.len()
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        COUNT.fetch_sub(self.len(), Ordering::Relaxed);
    }
}

/// Takes a buffer of [`SIZE`] bytes with arbitrary content.
pub(crate) fn take() -> Vec<u8> {
    match counted(FREE.with_borrow_mut(|free| free.whole.pop().or_else(|| free.short.pop()))) {
        Some(mut buffer) => {
            // Only missing bytes are written.
            buffer.resize(SIZE, 0);
            buffer
        }
        None => vec![0; SIZE],
    }
}

/// Takes a buffer without bytes, and with space for [`SIZE`] of them.
pub(crate) fn take_empty() -> Vec<u8> {
    match counted(FREE.with_borrow_mut(|free| free.short.pop().or_else(|| free.whole.pop()))) {
        Some(mut buffer) => {
            buffer.clear();
            buffer
        }
        None => Vec::with_capacity(SIZE),
    }
}

fn counted(taken: Option<Vec<u8>>) -> Option<Vec<u8>> {
    if taken.is_some() {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
    taken
}

/// Returns a buffer to the pool. One of another size is freed.
pub(crate) fn give(mut buffer: Vec<u8>) {
    if buffer.capacity() < SIZE || buffer.capacity() > 2 * SIZE {
        return;
    }
    FREE.with_borrow_mut(|free| {
        // A race between threads may keep one buffer too many each.
        if free.len() < FREE_MOST && COUNT.load(Ordering::Relaxed) < FREE_BY_ALL {
            COUNT.fetch_add(1, Ordering::Relaxed);
            buffer.truncate(SIZE);
            if buffer.len() == SIZE { free.whole.push(buffer) } else { free.short.push(buffer) }
        }
    });
}

/// A buffer that returns to the pool when it is dropped.
pub(crate) struct PooledBuffer(Vec<u8>);

impl PooledBuffer {
    /// Takes a buffer of [`SIZE`] bytes with arbitrary content.
    pub(crate) fn new() -> Self {
        Self(take())
    }

    /// Wraps a buffer that was taken from the pool.
    pub(crate) fn of(buffer: Vec<u8>) -> Self {
        Self(buffer)
    }
}

impl Deref for PooledBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        give(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_few_buffers() {
        let taken: Vec<Vec<u8>> = (0..FREE_MOST + 4).map(|_| take()).collect();
        taken.into_iter().for_each(give);
        give(vec![0; SIZE / 2]);
        give(vec![0; SIZE * 3]);
        FREE.with_borrow(|free| {
            assert!(free.len() <= FREE_MOST, "{} are free", free.len());
            assert!(free.whole.iter().all(|buffer| buffer.len() == SIZE), "each is as long as the others");
        });
        let mut empty = take_empty();
        assert!(empty.is_empty() && empty.capacity() >= SIZE);
        empty.extend([1, 2, 3]);
        give(empty);
        FREE.with_borrow(|free| assert_eq!(free.short, [[1, 2, 3]], "nothing is written before it is used"));
        assert!(take_empty().is_empty());
        assert_eq!(take().len(), SIZE);
        assert!(COUNT.load(Ordering::Relaxed) <= FREE_BY_ALL + 64);
    }
}
