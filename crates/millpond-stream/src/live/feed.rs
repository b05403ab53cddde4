//! The formats of a stream at one moment.

use crate::{Feed, Format, cues::Cues, epoch::Epoch, graph::Shared, report::Reporter};
use std::sync::Arc;
use tokio::sync::watch;

/// A live stream as viewers play it: the formats of one epoch, and a share of the graph. The stream stays open while a reference
/// to this exists.
#[derive(Clone, Debug)]
pub struct LiveFeed {
    path: Arc<str>,
    run: u64,
    epoch: Epoch,
    epochs: watch::Receiver<Arc<[Epoch]>>,
    cues: watch::Receiver<Cues>,
    shared: Arc<Shared>,
}

impl LiveFeed {
    pub(crate) fn new(path: Arc<str>, run: u64, epoch: Epoch, reporter: &Reporter, shared: Arc<Shared>) -> Self {
        Self { path, run, epoch, epochs: reporter.epochs(), cues: reporter.cues(), shared }
    }

    /// The epoch that was the newest one when this was made.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The last 64 epochs of the run, the newest one last.
    pub fn epochs(&self) -> watch::Receiver<Arc<[Epoch]>> {
        self.epochs.clone()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Feed for LiveFeed {
    fn path(&self) -> &str {
        &self.path
    }

    /// The number of the run.
    fn id(&self) -> u64 {
        self.run
    }

    fn formats(&self) -> &[Option<Format>] {
        &self.epoch.formats
    }

    fn epoch(&self, number: u32) -> Option<Epoch> {
        self.epochs.borrow().iter().rfind(|epoch| epoch.number == number).cloned()
    }

    fn cues(&self) -> Option<watch::Receiver<Cues>> {
        Some(self.cues.clone())
    }
}
