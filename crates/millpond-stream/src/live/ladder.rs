//! Ladders: the state that the windows of a ladder's streams share.
//!
//! The stream time of such a window is its wall time, so the segments of all windows are on one timeline. All are cut at
//! multiples of the least duration of a segment. Clocks of several sources differ by the travel times of their frames. Key frames
//! of two sources that arrive at most [`SAME`] apart are taken to show the same moment.

use super::{
    LiveText, LiveWindow,
    texts::{Away, Text, Texts},
};
use millpond_package::{
    MediaKind,
    dash::live::{ManifestView, ladder_mpd},
    hls::{Container, ladder_multivariant, live::push_report},
    live::{Extent, Rung, SegmentNumber, TargetDuration},
    uri::relative_folder,
};
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// Longest time between two key frames that show the same moment.
const SAME: Duration = Duration::from_millis(400);
/// Key frames, and beginnings of segments, that are remembered.
const REMEMBERED: usize = 64;
/// Groups of pictures by which key frames are foretold.
const FORETOLD: u32 = 4;

/// What the windows of one ladder have in common. Times are wall times since the Unix epoch.
#[derive(Debug)]
pub(crate) struct Ladder {
    /// Least duration of a segment.
    segment: Duration,
    /// A lock: taken for each key frame and segment, and for look-ups.
    inner: Mutex<Inner>,
    /// Texts of all windows, by a hash of their versions. A lock: taken while one is rendered, so that it is rendered once.
    texts: Mutex<Texts>,
}

#[derive(Debug, Default)]
struct Inner {
    target: Option<TargetDuration>,
    /// First discontinuity sequence number.
    discontinuity: u64,
    /// Key frames of the first window, in order.
    keys: VecDeque<Duration>,
    /// The window whose key frames these are.
    of_keys: Weak<LiveWindow>,
    /// Beginnings of its segments, in order.
    segments: VecDeque<(Duration, SegmentNumber)>,
    members: Vec<(Arc<str>, Weak<LiveWindow>)>,
}

impl Ladder {
    pub(super) fn new(segment: Duration, discontinuity: u64) -> Self {
        Self { segment, inner: Mutex::new(Inner { discontinuity, ..Inner::default() }), texts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// First discontinuity sequence number of a new window, at least `least`.
    pub(super) fn discontinuity(&self, least: u64) -> u64 {
        let mut inner = self.lock();
        inner.discontinuity = inner.discontinuity.max(least);
        inner.discontinuity
    }

    /// Adds the window of a path, and removes the ended windows of that path.
    pub(super) fn add(&self, path: &str, window: &Arc<LiveWindow>) {
        let mut inner = self.lock();
        inner.members.retain(|(of, window)| **of != *path && window.upgrade().is_some_and(|window| !window.is_over()));
        inner.members.push((path.into(), Arc::downgrade(window)));
    }

    /// The longest target duration of its windows.
    pub(crate) fn target(&self) -> Option<TargetDuration> {
        self.lock().target
    }

    /// Takes the target duration of a window.
    pub(crate) fn measured(&self, target: TargetDuration) {
        let mut inner = self.lock();
        inner.target = inner.target.max(Some(target));
    }

    /// Returns the time of a key frame on the clock of the first window. This is the time of the first window's key frame of the
    /// same moment, else `at`.
    pub(crate) fn aligned(&self, window: &Arc<LiveWindow>, at: Duration) -> Duration {
        let inner = self.lock();
        if !inner.leads(window) { inner.nearest(at).filter(|key| key.abs_diff(at) <= SAME).unwrap_or(at) } else { at }
    }

    /// Takes a key frame of a window.
    pub(crate) fn key_frame(&self, window: &Arc<LiveWindow>, at: Duration) {
        let mut inner = self.lock();
        if inner.follow(window) {
            push(&mut inner.keys, at);
        }
    }

    /// Takes the beginning of a window's segment.
    pub(crate) fn opened(&self, window: &Arc<LiveWindow>, at: Duration, segment: SegmentNumber) {
        let mut inner = self.lock();
        if inner.follow(window) {
            push(&mut inner.segments, (at, segment));
        }
    }

    /// Returns the number of a segment that begins at a time. This is the number of the first window's segment at that time, or
    /// the number that such a segment would have.
    pub(crate) fn number(&self, at: Duration) -> SegmentNumber {
        let inner = self.lock();
        let at = at.saturating_add(SAME / 8);
        let place = inner.segments.partition_point(|(start, _)| *start <= at);
        let length = inner.last_duration().map_or(self.segment, |last| last.max(self.segment)).as_nanos().max(1);
        let count = |segments: u128| u64::try_from(segments).unwrap_or(0);
        match (place.checked_sub(1).and_then(|last| inner.segments.get(last)), inner.segments.get(place)) {
            (Some((_, number)), Some(_)) => *number,
            (Some((start, number)), None) => {
                SegmentNumber(number.0.saturating_add(count((at - *start).as_nanos() / length)))
            }
            (None, Some((start, number))) => {
                SegmentNumber(number.0.saturating_sub(count((*start - at).as_nanos().div_ceil(length))))
            }
            (None, None) => SegmentNumber(at.as_secs()),
        }
    }

    /// The windows that are not over, by the paths of their streams.
    pub(super) fn windows(&self) -> Vec<(Arc<str>, Arc<LiveWindow>)> {
        let inner = self.lock();
        let known = inner.members.iter().filter_map(|(path, window)| Some((path.clone(), window.upgrade()?)));
        known.filter(|(_, window)| !window.is_over()).collect()
    }

    /// Returns a hash of the versions of all windows except one run's.
    pub(super) fn version(&self, run: &str) -> u64 {
        let windows = self.windows();
        version(windows.iter().map(|(_, window)| &**window).filter(|window| window.run() != run))
    }

    /// Returns the reports of all other windows for a playlist of the window at `path`.
    pub(super) fn reports(&self, path: &str, track: &str) -> String {
        let mut out = String::new();
        for (of, window) in self.windows().iter().filter(|(of, _)| **of != *path) {
            window.look(|window| {
                let videos = window.tracks().iter().enumerate().filter(|(_, track)| track.kind == MediaKind::Video);
                for (index, video) in videos {
                    let folder = relative_folder(&format!("{path}/{track}"), &format!("{of}/{}", video.name));
                    push_report(&mut out, &format!("{folder}index.m3u8"), window, index);
                }
            });
        }
        out
    }
}

impl Inner {
    fn leads(&self, window: &Arc<LiveWindow>) -> bool {
        std::ptr::eq(self.of_keys.as_ptr(), Arc::as_ptr(window))
    }

    /// Makes a window the first one where there is none. Returns whether it is.
    fn follow(&mut self, window: &Arc<LiveWindow>) -> bool {
        if !self.leads(window) && self.of_keys.upgrade().is_none_or(|first| first.is_over()) {
            self.of_keys = Arc::downgrade(window);
        }
        self.leads(window)
    }

    /// Duration of the first window's last segment that is over.
    fn last_duration(&self) -> Option<Duration> {
        let (last, _) = self.segments.back()?;
        let (before, _) = self.segments.get(self.segments.len().checked_sub(2)?)?;
        last.checked_sub(*before)
    }

    /// The key frame nearest to a time; later ones than are known are foretold by the last two.
    fn nearest(&self, at: Duration) -> Option<Duration> {
        let known = self.keys.iter().copied().min_by_key(|key| key.abs_diff(at));
        let last = *self.keys.back()?;
        let group = last.checked_sub(*self.keys.get(self.keys.len().checked_sub(2)?)?);
        let Some(group) = group.filter(|group| at > last && !group.is_zero()) else { return known };
        let foretold = (1..=FORETOLD).map(|count| last + group * count);
        foretold.chain(known).min_by_key(|key| key.abs_diff(at))
    }
}

/// Returns a hash of the runs and versions of windows.
fn version<'a>(windows: impl Iterator<Item = &'a LiveWindow>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for window in windows {
        window.run().hash(&mut hasher);
        window.look(|window| window.version()).hash(&mut hasher);
    }
    hasher.finish()
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// The streams of a ladder that run, as its playlist and manifest list them.
#[derive(Clone, Debug)]
pub struct LadderView {
    path: String,
    members: Vec<(String, Arc<LiveWindow>)>,
}

impl LadderView {
    /// Makes the ladder at `path` of the windows of streams by their paths.
    pub fn new(path: &str, mut members: Vec<(String, Arc<LiveWindow>)>) -> Self {
        // Several windows are locked in this order only.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|(a, _), (b, _)| a == b);
        Self { path: path.to_owned(), members }
    }

    /// Returns the multivariant playlist; `None` until a window is [ready](LiveWindow::ready).
    pub fn multivariant(&self) -> Option<LiveText> {
        self.text(Text::Multivariant { container: Container::Fmp4 }, |rungs, _| ladder_multivariant(rungs))
    }

    /// Returns the MPD; `None` until a window is [ready](LiveWindow::ready). `clock` is the URL of the server's time.
    pub fn mpd(&self, clock: &'static str) -> Option<LiveText> {
        let extent = Extent::Edge;
        let changed = self.members.iter().map(|(_, window)| window.read().changed).max();
        let away = Away::since(changed.unwrap_or_default());
        self.text(Text::Mpd { clock, extent, away }, |rungs, changed| {
            let published = away.began(changed);
            ladder_mpd(rungs, &ManifestView { run: "", clock, published, away: away.time(), extent })
        })
    }

    /// Returns a text, rendered once a version of the windows.
    fn text(&self, text: Text, render: impl FnOnce(&[Rung<'_>], Duration) -> Option<String>) -> Option<LiveText> {
        let ladder = self.members.iter().find_map(|(_, window)| window.ladder())?;
        let mut texts = ladder.texts.lock().unwrap_or_else(PoisonError::into_inner);
        // What changes after this is rendered with the next request.
        let version = version(self.members.iter().map(|(_, window)| &**window));
        texts.get(version, text, || self.render(render))
    }

    /// Renders the windows, and the wall time of their last change.
    fn render(&self, render: impl FnOnce(&[Rung<'_>], Duration) -> Option<String>) -> Option<String> {
        let bases: Vec<_> = self.members.iter().map(|(path, _)| relative_folder(&self.path, path)).collect();
        let states: Vec<_> = self.members.iter().map(|(_, window)| window.read()).collect();
        let rungs = bases.iter().zip(&states).zip(&self.members);
        let rungs: Vec<_> =
            rungs.map(|((base, state), (_, window))| Rung { base, run: window.run(), window: &state.window }).collect();
        let changed = states.iter().map(|state| state.changed).max().unwrap_or_default();
        render(&rungs, changed)
    }
}

#[cfg(test)]
mod tests;
