//! The count of a response's sent bytes, readable whenever and however the response ends.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts the bytes of one response that a connection took. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct SendMeter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Bytes that the connection took.
    written: AtomicU64,
    /// Bytes of the head and of the chunked coding, counted before they are written.
    framing: AtomicU64,
}

impl SendMeter {
    /// Resets the counts for the next response of a connection.
    pub(super) fn restart(&self) {
        self.0.written.store(0, Ordering::Relaxed);
        self.0.framing.store(0, Ordering::Relaxed);
    }

    /// Counts bytes that the connection took.
    pub(super) fn wrote(&self, bytes: u64) {
        self.0.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that do not belong to the body.
    pub(super) fn framed(&self, bytes: usize) {
        self.0.framing.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the bytes of the body that the connection took: slightly fewer while the length of a chunk is unwritten.
    pub fn body(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed).saturating_sub(self.0.framing.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_is_no_body() {
        let meter = SendMeter::default();
        meter.framed(100);
        meter.wrote(60);
        assert_eq!(meter.body(), 0, "a part of the head");
        meter.wrote(50);
        assert_eq!(meter.clone().body(), 10);
        meter.restart();
        assert_eq!(meter.body(), 0);
    }
}
