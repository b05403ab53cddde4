//! How much a session has moved.

use millpond_stream::Progress;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Bytes of media of a session, by their direction.
#[derive(Clone, Debug)]
pub(super) enum Traffic {
    /// Those that a viewer was sent.
    Sent(Arc<Progress>),
    /// Those that a publisher sent.
    Received(Arc<AtomicU64>),
}

impl Traffic {
    /// The bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Sent(progress) => progress.sent(),
            Self::Received(bytes) => bytes.load(Ordering::Relaxed),
        }
    }

    /// Whether the session is a publisher's.
    pub(super) fn is_received(&self) -> bool {
        matches!(self, Self::Received(_))
    }
}
