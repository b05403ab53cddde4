//! All insertions of an engine.

use super::{Means, splicing::SplicePart};
use crate::{
    Feed,
    graph::Fork,
    kind::ModuleKind,
    live,
    registry::{NodeId, Registry},
    splice::{Clip, Insertion, InsertionEnd, InsertionReport, Plan, Unfit},
    stored::StoredMedia,
    transmission,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Most clips that wait for one stream.
const MOST: usize = 16;
/// Insertions that have ended and are still listed.
const ENDED: usize = 32;

/// Kinds of the modules that give frames to one viewer. All receivers of a multicast group are one.
const VIEWERS: [ModuleKind; 3] = [transmission::KIND, transmission::MULTICAST, live::VIEWING];

/// Why a clip can't be inserted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotInsert {
    /// The stream does not run.
    #[error("{0} does not run: nobody watches it, or its source gives no frames")]
    NotRunning(String),
    /// As many clips wait as may.
    #[error("{MOST} clips wait for {0} already")]
    TooMany(String),
    /// The stream has no such viewer.
    #[error("{path} has no viewer {session}: /graph lists RTSP viewers and long responses")]
    NoSession {
        /// Path of the stream.
        path: String,
        /// Number of the module.
        session: u64,
    },
    /// The module gives frames to several viewers, or to none.
    #[error("module {session} is a {kind}: only viewers by RTSP and long responses have clips of their own")]
    NoViewer {
        /// Number of the module.
        session: u64,
        /// Its kind.
        kind: &'static str,
    },
    /// Viewers could not play it.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// The insertions that wait, play or have ended not long ago.
#[derive(Debug, Default)]
pub(crate) struct Insertions(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    all: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    insertion: Arc<Insertion>,
    /// Its stream and its modules, until it has ended.
    running: Option<(Arc<Fork>, SplicePart)>,
}

impl Inner {
    /// Drops the modules of insertions that have ended, and forgets the oldest of those.
    fn prune(&mut self) {
        let mut ended = Vec::new();
        for (id, entry) in &mut self.all {
            if entry.insertion.report().end.is_some() {
                entry.running = None;
                ended.push(*id);
            }
        }
        for id in ended.iter().take(ended.len().saturating_sub(ENDED)) {
            self.all.remove(id);
        }
    }
}

impl Insertions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts a clip into the stream of a fork, at the next key frame, or at the first key frame from a Unix time on. Called
    /// within a runtime. With a `session`, the number of a module in the registry, its viewer alone gets the clip.
    ///
    /// # Errors
    /// The stream has no such viewer, too many clips wait, or viewers could not play the clip.
    pub(super) fn insert(
        &self,
        means: &Means,
        (path, fork): (&str, Arc<Fork>),
        clip: &Arc<StoredMedia>,
        (at, session): (Option<Duration>, Option<u64>),
    ) -> Result<InsertionReport, CannotInsert> {
        let session = session.map(|session| viewer(&means.registry, path, session)).transpose()?;
        let splicer = match session {
            None => fork.splicer().cloned().ok_or_else(|| CannotInsert::NotRunning(path.to_owned()))?,
            Some(session) => fork
                .splicer_of(session)
                .ok_or_else(|| CannotInsert::NoSession { path: path.to_owned(), session: session.number() })?,
        };
        let (formats, lead) = splicer.formats().ok_or_else(|| CannotInsert::NotRunning(path.to_owned()))?;
        let plan = Plan::new(&formats, clip.formats(), lead)?;
        let mut inner = self.lock();
        inner.prune();
        inner.last += 1;
        let id = inner.last;
        let insertion = Insertion::new((id, path.into()), clip_of(clip), plan, (at, session));
        if !splicer.add(insertion.clone(), MOST) {
            return Err(CannotInsert::TooMany(path.to_owned()));
        }
        let part = SplicePart::start(means, &insertion, clip, &fork);
        let report = insertion.report();
        inner.all.insert(id, Entry { insertion, running: Some((fork, part)) });
        Ok(report)
    }

    /// Reports of the insertions that wait, play, or ended not long ago.
    pub(crate) fn reports(&self) -> Vec<InsertionReport> {
        let mut inner = self.lock();
        inner.prune();
        inner.all.values().map(|entry| entry.insertion.report()).collect()
    }

    /// Cancels an insertion. Where its clip plays, the stream goes on with the source's next key frame. `None` where there is no
    /// such insertion.
    pub(crate) fn cancel(&self, id: u64) -> Option<InsertionReport> {
        let mut inner = self.lock();
        let Entry { insertion, running } = inner.all.get_mut(&id)?;
        if let Some((fork, part)) = running.take() {
            fork.end_clip(insertion, InsertionEnd::Cancelled);
            drop(part);
        }
        Some(insertion.report())
    }
}

/// The module of a viewer, by its number.
fn viewer(registry: &Registry, path: &str, session: u64) -> Result<NodeId, CannotInsert> {
    let none = || CannotInsert::NoSession { path: path.to_owned(), session };
    let (node, kind) = registry.kind(session).ok_or_else(none)?;
    if VIEWERS.iter().all(|viewer| viewer.name != kind) {
        return Err(CannotInsert::NoViewer { session, kind });
    }
    Ok(node)
}

/// Returns what an insertion has to know of a stored title.
fn clip_of(media: &StoredMedia) -> Clip {
    let length = Duration::try_from_secs_f64(media.duration()).unwrap_or_default();
    Clip { path: media.path().to_owned(), length, formats: media.formats().to_vec() }
}
