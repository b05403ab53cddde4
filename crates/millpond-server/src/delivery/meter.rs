//! Bytes of a response on their way out, readable by whoever notes its end, however that comes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts what a connection took of one response. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Bytes that the connection took.
    written: AtomicU64,
    /// Those of the head and between chunks, counted when they are ready to be written.
    framing: AtomicU64,
}

impl Meter {
    /// Begins anew, with the next response of a connection.
    pub(crate) fn restart(&self) {
        self.0.written.store(0, Ordering::Relaxed);
        self.0.framing.store(0, Ordering::Relaxed);
    }

    /// Counts bytes that the connection took.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.0.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that are no part of the body.
    pub(crate) fn framed(&self, bytes: usize) {
        self.0.framing.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the body that the connection took; a few less while the length of a chunk waits to be written.
    pub(crate) fn body(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed).saturating_sub(self.0.framing.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_is_no_body() {
        let meter = Meter::default();
        meter.framed(100);
        meter.wrote(60);
        assert_eq!(meter.body(), 0, "a part of the head");
        meter.wrote(50);
        assert_eq!(meter.clone().body(), 10);
        meter.restart();
        assert_eq!(meter.body(), 0);
    }
}
