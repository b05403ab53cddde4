//! Changes of live streams that the engine's owner is told.

use crate::source_health::SourceError;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// A change of a live stream.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A publisher begins to push the stream.
    PublisherBegan {
        /// Format of its media: `rtp`, `mpeg-ts`, `fmp4`, `flv` or `frames` (of a module).
        media: &'static str,
    },
    /// A publisher pushes no more.
    PublisherEnded {
        /// Format of its media.
        media: &'static str,
        /// Name of the reason: `left`, `replaced`, `failed`, `closed` or `handed-over`.
        reason: &'static str,
        /// The reason in words; `None` where its name says all.
        words: Option<String>,
        /// Time since it began.
        lasted: Duration,
        /// Bytes of media that arrived.
        bytes: u64,
    },
    /// Frames stopped. The source is tried again.
    SourceLost {
        /// Cause of the loss.
        why: Arc<SourceError>,
    },
    /// Frames arrive again after a loss.
    SourceBack {
        /// Time since the loss.
        away: Duration,
    },
}

/// Takes notices of live streams.
pub trait NoticeBoard: fmt::Debug + Send + Sync {
    /// Takes a notice of the stream of a path. It is called on the threads of receptions and returns at once. Notices of one stream
    /// arrive in their order.
    fn post(&self, path: &str, notice: Notice);
}

/// Posts the notices of one stream. Clones post for the same stream, over all its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamNotices(Option<Arc<Posting>>);

#[derive(Debug)]
struct Posting {
    path: Arc<str>,
    board: Arc<dyn NoticeBoard>,
    /// Time of the loss of the source, while it is lost. A lock: taken when the state of the source changes.
    lost: Mutex<Option<Instant>>,
}

impl StreamNotices {
    /// Makes those of a path; without a board nothing is posted.
    pub(crate) fn new(path: &Arc<str>, board: Option<&Arc<dyn NoticeBoard>>) -> Self {
        let posting =
            |board: &Arc<dyn NoticeBoard>| Posting { path: path.clone(), board: board.clone(), lost: Mutex::default() };
        Self(board.map(|board| Arc::new(posting(board))))
    }

    /// Posts a notice.
    pub(crate) fn post(&self, notice: Notice) {
        if let Some(Posting { path, board, .. }) = self.0.as_deref() {
            board.post(path, notice);
        }
    }

    /// Posts that frames stopped, unless that was posted and they have not come back.
    pub(crate) fn lost(&self, why: Arc<SourceError>) {
        let Some(posting) = self.0.as_deref() else { return };
        let mut lost = posting.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.is_none() {
            *lost = Some(Instant::now());
            posting.board.post(&posting.path, Notice::SourceLost { why });
        }
    }

    /// Posts that frames arrive again, where they had stopped, be it in an earlier run.
    pub(crate) fn begins(&self) {
        let Some(posting) = self.0.as_deref() else { return };
        let mut lost = posting.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = lost.take() {
            posting.board.post(&posting.path, Notice::SourceBack { away: since.elapsed() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_health::SourceErrorKind;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<String>>);

    impl NoticeBoard for Kept {
        fn post(&self, path: &str, notice: Notice) {
            let name = match notice {
                Notice::SourceLost { .. } => "lost",
                Notice::SourceBack { .. } => "back",
                _ => "other",
            };
            self.0.lock().unwrap().push(format!("{path} {name}"));
        }
    }

    #[test]
    fn a_loss_and_its_end_are_posted_once() {
        let kept = Arc::new(Kept::default());
        let board: Arc<dyn NoticeBoard> = kept.clone();
        let notices = StreamNotices::new(&"cams/door".into(), Some(&board));
        let why =
            || Arc::new(SourceError { kind: SourceErrorKind::TimedOut, address: String::new(), words: String::new() });
        notices.begins();
        notices.lost(why());
        notices.clone().lost(why());
        notices.begins();
        notices.begins();
        notices.lost(why());
        assert_eq!(*kept.0.lock().unwrap(), ["cams/door lost", "cams/door back", "cams/door lost"]);
        StreamNotices::default().lost(why());
    }
}
