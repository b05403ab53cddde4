//! Recordings of channels and live streams into files of one folder.
//!
//! The admin address starts and stops them. A client names a channel or stream; the server makes the names of the files.

mod settings;

pub use settings::RecordSettings;

use crate::{library::LibraryError, live::Sources};
use arc_swap::ArcSwap;
use millpond_connections::{Slot, Slots};
use millpond_stream::{CannotRecord, Program, RecordLimits, Recording, RecordingState, reception::SourceError};
use millpond_utc::Date;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

/// Recordings that have ended and are still listed.
const ENDED: usize = 32;
/// Longest wait for a file to be completed. It is completed later too.
const COMPLETION: Duration = Duration::from_secs(10);
/// The same for all files, when the server stops.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// Longest wait for the formats of a live stream.
const PATIENCE: Duration = Duration::from_secs(15);
/// Most letters of an asset's path in the name of a file.
const NAME: usize = 80;

/// Why a recording can't begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// The asset can't be opened.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The asset is no channel and no live stream.
    #[error("{0} is not a channel or live stream: the setting rtsp-channels names channels")]
    NoChannel(String),
    /// As many run as may.
    #[error("{0} recordings run, which is the limit of the setting recordings")]
    TooMany(usize),
    /// The source of a live stream failed.
    #[error("{}", .0.for_viewers())]
    Source(#[from] Arc<SourceError>),
    /// The engine can't record.
    #[error(transparent)]
    Stream(#[from] CannotRecord),
}

/// A recording as it is listed.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) path: String,
    /// Name of its file in the folder.
    pub(crate) file: String,
    pub(crate) state: RecordingState,
}

/// The recordings of a server.
pub(crate) struct Recordings {
    folder: PathBuf,
    /// Limits, and sources of what is recorded: those of the configuration in force.
    terms: ArcSwap<(RecordSettings, Arc<Sources>)>,
    slots: Arc<Slots>,
    /// A lock: taken for look-ups.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    all: BTreeMap<u64, Entry>,
}

struct Entry {
    recording: Recording,
    /// Its slot, while it runs.
    slot: Option<Slot>,
}

impl Recordings {
    /// Makes those of a server; `None` where recording is off.
    pub(crate) fn new(options: RecordSettings, sources: Arc<Sources>) -> Option<Self> {
        let folder = options.folder.clone()?;
        let slots = Slots::new(options.count);
        Some(Self { folder, terms: ArcSwap::from_pointee((options, sources)), slots, inner: Mutex::default() })
    }

    /// Changes limits and sources. Recordings that run keep theirs.
    pub(crate) fn reconfigure(&self, options: RecordSettings, sources: Arc<Sources>) {
        self.slots.set_most(options.count);
        self.terms.store(Arc::new((options, sources)));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to record a channel or live stream, within lower limits than the configured ones where some are given.
    pub(crate) async fn start(
        &self,
        path: &str,
        size: Option<u64>,
        duration: Option<Duration>,
    ) -> Result<Listed, RecordError> {
        let terms = self.terms.load_full();
        let (RecordSettings { size: most, duration: longest, count, .. }, sources) = &*terms;
        let program = program(sources, path).await?;
        self.lock().prune();
        let slot = self.slots.take().ok_or(RecordError::TooMany(*count))?;
        let id = {
            let mut inner = self.lock();
            inner.last += 1;
            inner.last
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let file = self.folder.join(file_name(program.path(), since_epoch, id));
        let bytes = size.map_or(*most, |size| size.min(*most));
        let limits = RecordLimits { bytes, duration: duration.map_or(*longest, |duration| duration.min(*longest)) };
        let recording = sources.manager().record(&program, file, limits).await?;
        let listed = listed(id, &recording);
        self.lock().all.insert(id, Entry { recording, slot: Some(slot) });
        Ok(listed)
    }

    /// Stops a recording and waits until its file is complete; `None` where there is no such recording.
    pub(crate) async fn stop(&self, id: u64) -> Option<Listed> {
        let Entry { mut recording, slot } = self.lock().all.remove(&id)?;
        recording.stop();
        // Without an end in time it completes its file by itself.
        let _ = timeout(COMPLETION, recording.ended()).await;
        drop(slot);
        Some(listed(id, &recording))
    }

    /// Lists the recordings that run, and the last ones that have ended by themselves.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let mut inner = self.lock();
        inner.prune();
        inner.all.iter().map(|(id, entry)| listed(*id, &entry.recording)).collect()
    }

    /// Returns the number of recordings that run.
    pub(crate) fn running(&self) -> usize {
        self.lock().all.values().filter(|entry| entry.recording.state().end.is_none()).count()
    }

    /// Stops all recordings and waits a moment for their files.
    pub(crate) async fn end(&self) {
        let mut all = std::mem::take(&mut self.lock().all);
        all.values_mut().for_each(|entry| entry.recording.stop());
        let complete = async {
            for entry in all.values_mut() {
                entry.recording.ended().await;
            }
        };
        if timeout(SHUTDOWN, complete).await.is_err() {
            tracing::warn!("a recording is not complete yet: its disk is slow");
        }
    }
}

impl Inner {
    /// Frees the slots of recordings that have ended, and forgets the oldest of those.
    fn prune(&mut self) {
        let mut ended = Vec::new();
        for (id, entry) in &mut self.all {
            if entry.recording.state().end.is_some() {
                entry.slot = None;
                ended.push(*id);
            }
        }
        for id in ended.iter().take(ended.len().saturating_sub(ENDED)) {
            self.all.remove(id);
        }
    }
}

/// The channel or live stream of a path. A live stream is opened; waits until its formats are known.
async fn program(sources: &Sources, path: &str) -> Result<Program, RecordError> {
    let Some(request) = sources.stream(&sources.find(path)).await? else {
        // The error of an asset that can't be opened tells more.
        sources.open(path.trim_matches('/')).await?;
        return Err(RecordError::NoChannel(path.to_owned()));
    };
    let manager = sources.manager();
    let stream = manager.live(request).map_err(CannotRecord::Open)?;
    Ok(Program::live(&manager.live_feed(&stream, PATIENCE).await?))
}

fn listed(id: u64, recording: &Recording) -> Listed {
    let file = recording.file().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Listed { id, path: recording.path().to_owned(), file, state: recording.state() }
}

/// Makes the name of a file: of an asset's path, the time and the recording's number. It has letters, digits, `.`, `-` and `_`
/// only, and does not begin with a dot.
fn file_name(path: &str, since_epoch: Duration, id: u64) -> String {
    let keep = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let name: String = path.trim_matches(['/', '.']).chars().take(NAME).map(keep).collect();
    let seconds = since_epoch.as_secs();
    let Date { year, month, day } = Date::of_wall(since_epoch);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let name = if name.is_empty() { "recording" } else { &name };
    format!("{name}-{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{id}.mp4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_in_their_folder() {
        let at = Duration::from_secs(1_795_362_716);
        for (path, expected) in [
            ("films/a.mp4", "films_a.mp4-20261122T155156Z-7.mp4"),
            ("", "recording-20261122T155156Z-7.mp4"),
            ("../../etc/passwd", "etc_passwd-20261122T155156Z-7.mp4"),
            (".hidden", "hidden-20261122T155156Z-7.mp4"),
            ("a\0b\nc\u{1b}d é", "a_b_c_d__-20261122T155156Z-7.mp4"),
        ] {
            assert_eq!(file_name(path, at, 7), expected, "{path:?}");
        }
        assert!(file_name(&"x".repeat(4000), at, u64::MAX).len() < 150);
    }
}
