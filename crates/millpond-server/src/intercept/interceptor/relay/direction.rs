//! One direction of a connection that is passed on.

use millpond_connections::kernel_pipe::{CAPACITY, KernelPipe};
use prometheus_client::metrics::counter::Counter;
use rustix::{
    fd::AsFd,
    io::Errno,
    pipe::{SpliceFlags, splice},
};
use socket2::SockRef;
use std::{
    io,
    net::Shutdown,
    time::{Duration, Instant},
};

/// Bytes that a fast direction passes within [`WITHIN`]: 1 Gbit/s.
const FAST: usize = 16 << 20;
/// Time for them.
const WITHIN: Duration = Duration::from_millis(128);

/// One direction: bytes leave one connection, wait in a pipe of the kernel, and enter the other one.
#[derive(Debug)]
pub(super) struct Direction {
    /// The pipe, while bytes wait in it.
    pipe: Option<KernelPipe>,
    /// Bytes in the pipe.
    queued: usize,
    /// Whether the end was passed on.
    is_over: bool,
    /// Passed bytes of all connections.
    passed: Counter,
    /// Bytes since the rate was checked, and the time at which it was.
    counted: (usize, Instant),
}

/// What a direction waits for, where it can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Bytes of its source.
    Input,
    /// Room at its target.
    Room,
    /// Nothing: it is over.
    Nothing,
}

impl Direction {
    /// A direction that has passed nothing yet.
    pub(super) fn new(passed: Counter) -> Self {
        Self { pipe: None, queued: 0, is_over: false, passed, counted: (0, Instant::now()) }
    }

    /// Returns what the direction waits for.
    pub(super) fn wait(&self) -> Wait {
        match (self.is_over, self.queued) {
            (true, _) => Wait::Nothing,
            (false, 0) => Wait::Input,
            (false, _) => Wait::Room,
        }
    }

    /// Queues bytes of `from`, without waiting. At the end of `from`, the end is passed on to `to`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where no bytes are there, or those of the connection.
    pub(super) fn fill(&mut self, from: impl AsFd, to: impl AsFd) -> io::Result<()> {
        // A connection without bytes has no pipe.
        let pipe = self.pipe.take().map_or_else(KernelPipe::take, Ok)?;
        let filled = pass(from, &pipe.write, CAPACITY);
        if let Ok(count @ 1..) = filled {
            (self.queued, self.pipe) = (count, Some(pipe));
            return Ok(());
        }
        pipe.put_back();
        filled?;
        self.is_over = true;
        // The other side may have been reset meanwhile: its own direction tells.
        let _ = SockRef::from(&to).shutdown(Shutdown::Write);
        Ok(())
    }

    /// Gives queued bytes to `to`, without waiting. Returns how many.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where `to` has no room, or those of the connection.
    pub(super) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let count = pass(&pipe.read, to, self.queued)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.queued -= count;
        self.counted.0 += count;
        self.passed.inc_by(count as u64);
        if self.queued == 0 {
            self.pipe.take().into_iter().for_each(KernelPipe::put_back);
        }
        Ok(count)
    }

    /// Returns whether the last bytes passed at 1 Gbit/s or more; `None` until there were enough of them to tell.
    pub(super) fn is_fast(&mut self) -> Option<bool> {
        let (bytes, since) = self.counted;
        (bytes >= FAST).then(|| {
            self.counted = (0, Instant::now());
            since.elapsed() <= WITHIN
        })
    }
}

/// Moves at most `most` bytes without waiting.
fn pass(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    loop {
        match splice(&from, None, &to, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
