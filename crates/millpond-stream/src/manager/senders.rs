//! The sending threads of an engine, and the numbers of their transmissions.

use super::Options;
use crate::{Counters, multicast::Groups, transmission::Transmitter};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// Sending threads, one clock for all, and a count of the transmissions.
#[derive(Debug)]
pub(super) struct Senders {
    threads: Vec<Transmitter>,
    /// The last number that was given.
    last: AtomicU64,
    clock: Instant,
}

impl Senders {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread can't be started, or has no ports.
    pub(super) fn start(options: &Options, counters: &Arc<Counters>) -> io::Result<Self> {
        let clock = Instant::now();
        let way = (options.address, options.groups.map(Groups::ttl));
        let thread =
            |number| Transmitter::start(way, number, counters.clone(), clock, (options.round, options.on_thread_start));
        let threads = (0..options.threads.max(1)).map(thread).collect::<io::Result<_>>()?;
        Ok(Self { threads, last: AtomicU64::new(0), clock })
    }

    /// The moment from which times of the engine's clock count.
    pub(super) fn clock(&self) -> Instant {
        self.clock
    }

    /// Returns a number that nothing else has, and the sending thread for it.
    pub(super) fn next(&self) -> (u64, Transmitter) {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        (id, self.threads[id as usize % self.threads.len()].clone())
    }

    pub(super) fn threads(&self) -> &[Transmitter] {
        &self.threads
    }
}
