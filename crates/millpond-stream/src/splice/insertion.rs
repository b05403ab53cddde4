//! A clip on its way into a stream.

use super::{line::Cut, plan::Plan};
use crate::{Format, registry::NodeId};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// A clip that waits for its turn in a live stream, plays, or has ended.
#[derive(Debug)]
pub(crate) struct Insertion {
    id: u64,
    path: Arc<str>,
    clip: Clip,
    plan: Plan,
    at: Option<Duration>,
    /// The module of the only viewer that gets it.
    session: Option<NodeId>,
    turn: watch::Sender<Turn>,
    frames: AtomicU64,
    replaced: AtomicU64,
}

/// What an insertion has to know of a stored title.
#[derive(Debug)]
pub(crate) struct Clip {
    pub(crate) path: String,
    pub(crate) length: Duration,
    pub(crate) formats: Vec<Option<Format>>,
}

/// What a clip has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To wait.
    Waits,
    /// It begins when sound from before it has passed, or after a short time.
    Begins(Cut),
    /// It begins now.
    Enters(Cut),
    /// The source has reached its end: its last frames are due at once.
    Hurries(Cut),
    /// Nothing.
    Ended(InsertionEnd),
}

/// Why an insertion ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertionEnd {
    /// All of the clip has passed.
    Complete,
    /// Somebody cancelled it.
    Cancelled,
    /// The clip's frames were not loaded in time.
    Late,
    /// The stream ended before.
    StreamEnded,
    /// The clip can't be loaded, or fits no more.
    Failed(String),
}

/// An insertion at one moment.
#[derive(Clone, Debug)]
pub struct InsertionReport {
    /// Its number.
    pub id: u64,
    /// Path of the stream.
    pub path: Arc<str>,
    /// Path of the clip.
    pub clip: String,
    /// Duration of the clip in seconds.
    pub duration: f64,
    /// Unix time from which on it may begin; `None`: with the next key frame.
    pub at: Option<Duration>,
    /// Number of the module of the only viewer that gets it; `None` where all do.
    pub session: Option<NodeId>,
    /// Whether it has begun.
    pub has_begun: bool,
    /// Why it ended; `None` while it waits or plays.
    pub end: Option<InsertionEnd>,
    /// Frames of the clip that passed.
    pub frames: u64,
    /// Frames of the source in whose place the clip was.
    pub replaced: u64,
}

impl InsertionEnd {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Late => "late",
            Self::StreamEnded => "stream-ended",
            Self::Failed(_) => "failed",
        }
    }
}

impl Insertion {
    pub(crate) fn new(
        (id, path): (u64, Arc<str>),
        clip: Clip,
        plan: Plan,
        (at, session): (Option<Duration>, Option<NodeId>),
    ) -> Arc<Self> {
        let turn = watch::Sender::new(Turn::Waits);
        Arc::new(Self { id, path, clip, plan, at, session, turn, frames: 0.into(), replaced: 0.into() })
    }

    /// Its number, which no other one of the engine has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn path(&self) -> &Arc<str> {
        &self.path
    }

    pub(crate) fn clip(&self) -> &Clip {
        &self.clip
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn at(&self) -> Option<Duration> {
        self.at
    }

    /// The module of the only viewer that gets it; `None` where all do.
    pub(crate) fn session(&self) -> Option<NodeId> {
        self.session
    }

    /// What it has to do.
    pub(crate) fn turn(&self) -> watch::Receiver<Turn> {
        self.turn.subscribe()
    }

    /// Changes what it has to do. An end is final.
    pub(super) fn set(&self, turn: Turn) {
        self.turn.send_if_modified(|known| {
            let is_new = *known != turn && !matches!(known, Turn::Ended(_));
            if is_new {
                *known = turn;
            }
            is_new
        });
    }

    pub(crate) fn end(&self, why: InsertionEnd) {
        self.set(Turn::Ended(why));
    }

    pub(super) fn give(&self, frames: usize) {
        self.frames.fetch_add(frames as u64, Ordering::Relaxed);
    }

    pub(super) fn replace(&self, frames: u64) {
        self.replaced.fetch_add(frames, Ordering::Relaxed);
    }

    /// A report of it.
    pub(crate) fn report(&self) -> InsertionReport {
        let turn = self.turn.borrow().clone();
        let (frames, replaced) = (self.frames.load(Ordering::Relaxed), self.replaced.load(Ordering::Relaxed));
        let end = match &turn {
            Turn::Ended(end) => Some(end.clone()),
            _ => None,
        };
        InsertionReport {
            id: self.id,
            path: self.path.clone(),
            clip: self.clip.path.clone(),
            duration: self.clip.length.as_secs_f64(),
            at: self.at,
            session: self.session,
            has_begun: frames > 0 || (turn != Turn::Waits && end.is_none()),
            end,
            frames,
            replaced,
        }
    }
}
