//! All windows of an engine.

use super::{
    LiveWindow,
    window_track::{PackagedTrack, packaged},
};
use crate::{CannotOpen, Manager, Program, modules::Segmenter};
use millpond_package::live::{CutRules, SegmentNumber, TargetDuration, Window, WindowLimits};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Handle;

/// Most paths whose last window is remembered.
const REMEMBERED: usize = 4096;

/// Time that segments stay beyond twice the duration of a playlist.
const SPARE: Duration = Duration::from_secs(10);

/// How a stream is cut, and what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Longest part; `None` makes each segment one part.
    pub part: Option<Duration>,
    /// Least duration of a segment.
    pub segment: Duration,
    /// Time that playlists list.
    pub listed: Duration,
    /// Most bytes of memory for media. The oldest segments leave first.
    pub bytes: u64,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self {
            part: Some(Duration::from_millis(334)),
            segment: Duration::from_secs(2),
            listed: Duration::from_secs(30),
            bytes: 64 << 20,
        }
    }
}

impl WindowOptions {
    fn rules(&self, target: Option<TargetDuration>) -> CutRules {
        CutRules { part: self.part, segment: self.segment, target }
    }

    fn limits(&self) -> WindowLimits {
        // Segments stay for the duration of a playlist after they left it (RFC 8216 6.2.2).
        let age = self.listed * 2 + SPARE;
        let segments = age.as_millis() / self.segment.as_millis().max(500);
        let segments = usize::try_from(segments).unwrap_or(usize::MAX).saturating_add(8);
        WindowLimits { segments, bytes: self.bytes, age, listed: self.listed }
    }
}

/// The feed of a window, and its tracks where several windows of a feed can differ in them.
type Key = (u64, Arc<[u16]>);

/// The numbers from which the next window of a path goes on.
#[derive(Clone, Copy, Debug)]
struct Past {
    target: Option<TargetDuration>,
    /// Media sequence number of the next segment.
    next: SegmentNumber,
    /// Discontinuity sequence number of the last segment.
    discontinuity: u64,
}

/// Windows that run, by their feeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    running: HashMap<Key, Weak<LiveWindow>>,
    /// Paths and windows, by the names of runs.
    runs: HashMap<Box<str>, (Box<str>, Weak<LiveWindow>)>,
    past: HashMap<Box<str>, Past>,
}

/// Ends a window when it is dropped, and remembers where it ended.
struct Ending {
    window: Arc<LiveWindow>,
    windows: Windows,
    path: Box<str>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.window.end();
        let past = self.window.look(|window| {
            let last = window.segments().next_back()?;
            let target = window.targets().map(|targets| targets.segment);
            Some(Past { target, next: last.number.next(), discontinuity: last.discontinuity })
        });
        let mut inner = self.windows.lock();
        inner.running.retain(|_, window| window.upgrade().is_some_and(|window| !window.is_over()));
        inner.runs.remove(self.window.run());
        if let Some(past) = past {
            if inner.past.len() >= REMEMBERED {
                inner.past.clear();
            }
            inner.past.insert(std::mem::take(&mut self.path), past);
        }
    }
}

impl Windows {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first discontinuity sequence number of a path, at a Unix time in seconds. It is another one after a restart of
/// the process. It is small: hls.js visits all lesser numbers at each reload.
const fn first_discontinuity(now: u64) -> u64 {
    (now / 4) % 32_768
}

impl Inner {
    /// The window of a key that is not over.
    fn running(&self, key: &Key) -> Option<Arc<LiveWindow>> {
        self.running.get(key).and_then(Weak::upgrade).filter(|known| !known.is_over())
    }

    /// Returns an empty window, and the rules for its segmenter. It goes on from the last one of its path. Media sequence
    /// numbers are at least the Unix time in seconds, so that they rise over restarts of the process.
    fn make(&self, path: &str, tracks: &[PackagedTrack], options: &WindowOptions) -> (Window, CutRules, SegmentNumber) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let past = self.past.get(path);
        let first = past.map_or(0, |past| past.next.0).max(now);
        let discontinuity = past.map_or(first_discontinuity(now), |past| past.discontinuity.saturating_add(1));
        let window =
            Window::new(options.limits(), tracks.iter().map(PackagedTrack::of_window).collect(), discontinuity);
        (window, options.rules(past.and_then(|past| past.target)), SegmentNumber(first))
    }
}

impl Manager {
    /// The window of a run, while it runs: `path` is that of its channel or live stream, or of a rendition of that.
    pub fn window_of_run(&self, path: &str, run: &str) -> Option<Arc<LiveWindow>> {
        let inner = self.live_windows().lock();
        let (of, window) = inner.runs.get(run)?;
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        path.strip_prefix(&**of).filter(|rest| is_below(rest))?;
        window.upgrade().filter(|window| !window.is_over())
    }

    /// The window of a channel or live stream: the one that runs, with its lease renewed, else a new one. The channel starts,
    /// unless it runs. `options` count for a new window only.
    ///
    /// A window ends with its graph, with its lease, and where an epoch has other tracks.
    ///
    /// # Errors
    /// [`CannotOpen::NoTracks`]: live segments can carry none of the tracks.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn window(&self, program: &Program, options: WindowOptions) -> Result<Arc<LiveWindow>, CannotOpen> {
        let runtime = Handle::current();
        let windows = self.live_windows();
        let key = program.key();
        let known = windows.lock().running(&key);
        if let Some(known) = known.filter(|known| known.renew()) {
            return Ok(known);
        }
        let mut inner = windows.lock();
        // Another request may have made one in the meantime: its lease is fresh.
        if let Some(known) = inner.running(&key) {
            return Ok(known);
        }
        let tracks = packaged(program.formats());
        if tracks.is_empty() {
            return Err(CannotOpen::NoTracks);
        }
        let (window, rules, first) = inner.make(program.path(), &tracks, &options);
        let run = format!("{:016x}", fastrand::u64(..));
        let window = Arc::new(LiveWindow::new(run, window, program.linger()));
        let memory = self.live_streams().memory().clone();
        let segmenter = Segmenter::new(window.clone(), program.feed.clone(), (tracks, rules, first), memory);
        let ending = Ending { window: window.clone(), windows: windows.clone(), path: program.path().into() };
        let lease = async move {
            ending.window.expired().await;
            drop(ending);
        };
        let of_run = (program.path().into(), Arc::downgrade(&window));
        inner.runs.insert(window.run().into(), of_run);
        inner.running.insert(key, Arc::downgrade(&window));
        self.lend(&runtime, program, Box::new(segmenter), lease);
        Ok(window)
    }
}
