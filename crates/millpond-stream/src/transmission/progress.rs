//! State of a subscriber's transmission, kept after its end.

use super::Stopped;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Totals of a transmission since its subscriber was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentTotals {
    /// RTP packets sent.
    pub packets: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Packets that the receiver's reports (RFC 3550 section 6.4.1) say are lost.
    pub lost: u64,
}

/// Is told what becomes of a subscriber, by the sending thread: calls may not wait.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Transmission ends because the receiver reads nothing.
    fn is_stuck(&self) {}

    /// Transmission has stopped.
    fn stopped(&self, totals: SentTotals);
}

/// Most reports of a receiver that wait for the sending thread. Browsers send fewer than this in a second.
const MOST_REPORTS: usize = 32;

/// State of a subscriber's transmission, kept after its end.
#[derive(Debug, Default)]
pub struct Progress {
    /// Time at which its receiver was last heard, in milliseconds of the engine's clock.
    heard: AtomicU64,
    is_stuck: AtomicBool,
    /// Bytes of the packets that were sent, without their headers.
    sent: AtomicU64,
    /// Reports of its receiver that wait for the sending thread.
    reports: AtomicUsize,
    observer: Option<Arc<dyn Observer>>,
    /// Tracks and position after its last frame. A lock: taken at the end, and when it plays again.
    ended: Mutex<Option<Stopped>>,
}

impl Progress {
    /// Nothing was sent yet.
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..Self::default() }
    }

    /// Time at which its receiver was last heard, in milliseconds of the engine's clock.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Notes that its receiver was heard.
    pub fn set_heard(&self, now: u64) {
        self.heard.store(now, Ordering::Relaxed);
    }

    /// Bytes of the packets that were sent since the subscriber was set up, without their headers.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn set_sent(&self, bytes: u64) {
        self.sent.store(bytes, Ordering::Relaxed);
    }

    /// Counts a report that is given to the sending thread. Returns whether there is room for it.
    pub(crate) fn report_given(&self) -> bool {
        let has_room = |waiting: usize| (waiting < MOST_REPORTS).then_some(waiting + 1);
        self.reports.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room).is_ok()
    }

    /// Notes that the sending thread has taken a report.
    pub(crate) fn report_taken(&self) {
        self.reports.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether transmission ended because the receiver reads nothing.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    pub(super) fn set_stuck(&self) {
        self.is_stuck.store(true, Ordering::Relaxed);
        if let Some(observer) = &self.observer {
            observer.is_stuck();
        }
    }

    pub(super) fn stopped(&self, totals: SentTotals) {
        if let Some(observer) = &self.observer {
            observer.stopped(totals);
        }
    }

    pub(super) fn leave(&self, stopped: Stopped) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopped);
    }

    /// Whether all frames were sent.
    pub fn has_ended(&self) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes what was left after the last frame.
    pub(crate) fn take_ended(&self) -> Option<Stopped> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
