//! Reports of a reception about its source.

use crate::{
    cues::Cues,
    epoch::Epoch,
    notice::StreamNotices,
    source_health::{LiveTotals, SourceCounts, SourceError},
    splice::Splicer,
};
use millpond_package::live::Cue;
use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Instant, SystemTime},
};
use tokio::sync::watch;

/// State of a stream's source.
#[derive(Clone, Debug)]
pub enum StreamState {
    /// No frame was expected yet: there is no viewer, or the first attempt to open the source is in progress.
    Waiting,
    /// The first frame is expected at a known time.
    Scheduled {
        /// Time of the first frame.
        begins: Instant,
    },
    /// Frames arrive.
    Running {
        /// Time at which they began to.
        since: SystemTime,
    },
    /// Frames arrived, and the source is being opened again.
    Lost {
        /// Time of the loss.
        since: SystemTime,
        /// Its cause.
        why: Arc<SourceError>,
    },
    /// The last attempt to open the source failed, and no frame has arrived before.
    Failed {
        /// Time of the failure.
        at: Instant,
        /// Its cause.
        why: Arc<SourceError>,
    },
}

impl StreamState {
    /// Names of all states.
    pub const NAMES: [&'static str; 4] = ["waiting", "running", "lost", "failed"];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let [waiting, running, lost, failed] = Self::NAMES;
        match self {
            Self::Waiting | Self::Scheduled { .. } => waiting,
            Self::Running { .. } => running,
            Self::Lost { .. } => lost,
            Self::Failed { .. } => failed,
        }
    }
}

/// Reports of a reception about its source. Clones report about the same source.
///
/// A reception calls [`begin`](Self::begin) before the first frame of each epoch, [`lost`](Self::lost) when frames stop, and
/// [`failed`](Self::failed) when an attempt fails before any frame arrived. After both of the latter it tries again until its
/// output is closed or its future is dropped.
#[derive(Clone, Debug)]
pub struct Reporter(Arc<Reported>);

/// A [`Reporter`] that keeps nothing that was reported.
#[derive(Clone, Debug)]
pub(crate) struct WeakReporter(Weak<Reported>);

/// What was reported of a run.
#[derive(Debug)]
struct Reported {
    state: watch::Sender<StreamState>,
    splicer: Arc<Splicer>,
    cues: watch::Sender<Cues>,
    /// A lock: taken for a copy.
    counts: Mutex<SourceCounts>,
    /// Address of the server that was asked last. A lock: taken for a copy.
    server: Mutex<Option<Arc<str>>>,
    totals: Arc<LiveTotals>,
    notices: StreamNotices,
}

impl Default for Reporter {
    fn default() -> Self {
        Self::new(Arc::default(), StreamNotices::default())
    }
}

impl WeakReporter {
    /// The reporter, while the run or another owner has it.
    pub(crate) fn upgrade(&self) -> Option<Reporter> {
        self.0.upgrade().map(Reporter)
    }
}

impl Reporter {
    /// Makes one whose counts are also added to `totals`, and whose losses are posted.
    pub(crate) fn new(totals: Arc<LiveTotals>, notices: StreamNotices) -> Self {
        Self(Arc::new(Reported {
            state: watch::Sender::new(StreamState::Waiting),
            splicer: Arc::new(Splicer::new(totals.clone())),
            cues: watch::Sender::default(),
            counts: Mutex::default(),
            server: Mutex::default(),
            totals,
            notices,
        }))
    }

    /// Makes one that keeps nothing.
    pub(crate) fn downgrade(&self) -> WeakReporter {
        WeakReporter(Arc::downgrade(&self.0))
    }

    /// Tells that frames of a new epoch follow.
    pub fn begin(&self, epoch: Epoch) {
        self.0.splicer.begin(epoch);
        self.0.state.send_if_modified(|state| {
            let is_new = !matches!(state, StreamState::Running { .. });
            if is_new {
                *state = StreamState::Running { since: SystemTime::now() };
            }
            is_new
        });
        self.0.notices.begins();
    }

    /// Tells the address of the server that is asked from now on, without credentials.
    pub fn asks(&self, server: String) {
        *self.0.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server.into());
    }

    /// The address of the server that was asked last; `None` where a source has no servers.
    #[must_use]
    pub fn server(&self) -> Option<Arc<str>> {
        self.0.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells that frames stopped. The source is tried again.
    pub fn lost(&self, why: Arc<SourceError>) {
        self.0.splicer.lose();
        self.0.state.send_modify(|state| {
            let since = if let StreamState::Lost { since, .. } = state { *since } else { SystemTime::now() };
            *state = StreamState::Lost { since, why: why.clone() };
        });
        self.0.notices.lost(why);
    }

    /// Tells that the frames of another source follow at once. That is no loss.
    pub(crate) fn pause(&self) {
        self.0.splicer.lose();
    }

    /// Tells that an attempt failed before any frame arrived. The source is tried again.
    pub fn failed(&self, why: Arc<SourceError>) {
        self.0.state.send_replace(StreamState::Failed { at: Instant::now(), why });
    }

    /// Tells that the source begins at a time that lies ahead.
    pub(crate) fn scheduled(&self, begins: Instant) {
        self.0.state.send_replace(StreamState::Scheduled { begins });
    }

    /// Tells of a cue. A repeated one changes nothing.
    pub fn cue(&self, cue: Cue) {
        if self.0.cues.send_if_modified(|cues| cues.push(cue)) {
            self.0.totals.cue();
        }
    }

    /// The cues so far.
    pub fn cues(&self) -> watch::Receiver<Cues> {
        self.0.cues.subscribe()
    }

    /// Reports the counts since the run began.
    pub fn count(&self, counts: SourceCounts) {
        let mut told = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.totals.counted(&told, &counts);
        *told = counts;
    }

    /// The counts that were told last.
    #[must_use]
    pub fn counts(&self) -> SourceCounts {
        *self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the frames of the source and of clips.
    pub(crate) fn splicer(&self) -> &Arc<Splicer> {
        &self.0.splicer
    }

    /// The state that was told last.
    pub fn state(&self) -> watch::Receiver<StreamState> {
        self.0.state.subscribe()
    }

    /// The last 64 epochs, the newest one last.
    pub fn epochs(&self) -> watch::Receiver<Arc<[Epoch]>> {
        self.0.splicer.epochs()
    }
}
