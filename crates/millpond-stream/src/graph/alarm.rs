//! Alarms of the threads that take frames from forks.

use crate::registry::NodeId;
use rustix::thread::Pid;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A thread that takes the frames of many branches.
pub(crate) trait Listener: fmt::Debug + Send + Sync {
    /// Its name in the system.
    fn thread(&self) -> Pid;

    /// Tells it that a fork has given a run. It clears the flag before it takes the frames.
    fn arrived(&self, fork: NodeId, is_told: &Arc<AtomicBool>);
}

/// Tells a thread that a fork has given a run: once for all subscribers on the thread, and again only when the thread has seen it.
#[derive(Debug)]
pub(super) struct Alarm {
    fork: NodeId,
    listener: Arc<dyn Listener>,
    is_told: Arc<AtomicBool>,
}

impl Alarm {
    pub(super) fn new(fork: NodeId, listener: Arc<dyn Listener>) -> Self {
        Self { fork, listener, is_told: Arc::default() }
    }

    /// Whether it is for the thread of `listener`.
    pub(super) fn is_of(&self, listener: &dyn Listener) -> bool {
        self.listener.thread() == listener.thread()
    }

    /// Tells the thread. Call it when the run is in the pipes.
    pub(super) fn ring(&self) {
        if !self.is_told.swap(true, Ordering::AcqRel) {
            self.listener.arrived(self.fork, &self.is_told);
        }
    }
}
