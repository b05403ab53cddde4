//! Pipes of the kernel, through which bytes pass between descriptors without a copy (splice(2)).

use rustix::{
    fd::OwnedFd,
    pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with},
};
use std::{cell::RefCell, io};

/// Capacity of a pipe, in bytes: the most that Linux grants every process (pipe(7)).
pub const CAPACITY: usize = 1 << 20;

thread_local! {
    /// An empty pipe of each thread, so that most users open none.
    static SPARE: RefCell<Option<KernelPipe>> = const { RefCell::new(None) };
}

/// A pipe of the kernel.
#[derive(Debug)]
pub struct KernelPipe {
    /// End from which bytes are taken.
    pub read: OwnedFd,
    /// End into which bytes are queued.
    pub write: OwnedFd,
}

impl KernelPipe {
    /// Returns an empty pipe.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn take() -> io::Result<Self> {
        SPARE.take().map_or_else(Self::open, Ok)
    }

    /// Keeps an empty pipe for the next user on this thread.
    pub fn put_back(self) {
        SPARE.set(Some(self));
    }

    fn open() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        if fcntl_getpipe_size(&write)? < CAPACITY {
            // A smaller pipe works too, in more batches.
            let _ = fcntl_setpipe_size(&write, CAPACITY);
        }
        Ok(Self { read, write })
    }
}
