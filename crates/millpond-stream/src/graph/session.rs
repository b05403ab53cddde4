//! Clips for one viewer: a splicer in one branch of a fork.

use crate::{Feed, Format, Run, cues::Cues, epoch::Epoch, splice::Splicer};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// The splicer of a branch, where a clip was inserted for its viewer. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct BranchSplicer(Arc<OnceLock<Arc<Splicer>>>);

impl BranchSplicer {
    pub(super) fn get(&self) -> Option<&Arc<Splicer>> {
        self.0.get()
    }

    /// Returns the splicer. A new one begins with the newest epoch of the stream.
    pub(super) fn enable(&self, stream: &Splicer) -> &Arc<Splicer> {
        self.0.get_or_init(|| Arc::new(stream.of_branch()))
    }

    /// Tells it the epochs of the stream that a run belongs to.
    pub(super) fn follow(splicer: &Splicer, stream: &Splicer, run: &Run) {
        let mut last = None;
        for frame in run.iter().filter(|frame| last.replace(frame.epoch) != Some(frame.epoch)) {
            splicer.follow(stream, frame.epoch);
        }
    }
}

/// The feed of a viewer: the stream's feed, with the epochs of clips that only this viewer gets.
#[derive(Debug)]
pub(crate) struct SessionFeed {
    pub(crate) feed: Arc<dyn Feed>,
    pub(crate) splicer: BranchSplicer,
}

impl Feed for SessionFeed {
    fn path(&self) -> &str {
        self.feed.path()
    }

    fn id(&self) -> u64 {
        self.feed.id()
    }

    fn formats(&self) -> &[Option<Format>] {
        self.feed.formats()
    }

    fn epoch(&self, number: u32) -> Option<Epoch> {
        let own = self.splicer.get().and_then(|splicer| splicer.epoch(number));
        own.or_else(|| self.feed.epoch(number))
    }

    fn cues(&self) -> Option<watch::Receiver<Cues>> {
        self.feed.cues()
    }
}
