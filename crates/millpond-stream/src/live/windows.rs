//! All windows of an engine.

use super::{
    EndedWindows, Ladder, LiveWindow, Program, ShiftOptions, ShiftReport, TimeShift, copied,
    window_track::{PackagedTrack, packaged},
};
use crate::{cannot_open::CannotOpen, fragmenter::fits, graph::LiveMemory};
use millpond_media::{Codec, PrivateForm, PrivateText, teletext::TeletextPage};
use millpond_package::{
    CaptionRule,
    live::{Continuation, CutRules, SegmentNumber, TargetDuration, Window, WindowLimits, WindowTrack},
};
use millpond_store::ring::{RingError, RingWriter};
use millpond_utc::WallClock;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};

/// Most paths whose last window is remembered.
const REMEMBERED: usize = 4096;

/// Attempts to open a ring that is in use, and the time between two of them.
const ATTEMPTS: (usize, Duration) = (30, Duration::from_millis(50));
/// Term of a lease that never ends: a year.
pub(super) const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Time that segments stay beyond twice the duration of a playlist.
const SPARE: Duration = Duration::from_secs(10);
/// Time for which segments of a window stay whose stream goes on with other tracks.
const LATE: Duration = Duration::from_secs(15);
/// Most windows that stay so.
const MOST_LATE: usize = 64;

/// How a stream is cut, which segments are kept, and which captions manifests announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Longest part; `None` makes each segment one part.
    pub part: Option<Duration>,
    /// Least duration of a segment.
    pub segment: Duration,
    /// Time that playlists list.
    pub listed: Duration,
    /// Most bytes of memory for media. The oldest segments leave first.
    pub bytes: u64,
    /// The ladder of a stream that is one rendition of several.
    pub ladder: Option<LadderId>,
    /// The rule by which manifests announce captions within pictures.
    pub captions: Arc<CaptionRule>,
}

/// Name of a ladder, whose streams are cut at the same times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LadderId(u64);

impl LadderId {
    /// Makes the name of the ladder at a path.
    pub fn of(path: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self {
            part: Some(Duration::from_millis(334)),
            segment: Duration::from_secs(2),
            listed: Duration::from_secs(30),
            bytes: 64 << 20,
            ladder: None,
            captions: Arc::default(),
        }
    }
}

impl WindowOptions {
    fn rules(&self, target: Option<TargetDuration>) -> CutRules {
        CutRules { part: self.part, segment: self.segment, target, is_aligned: self.ladder.is_some() }
    }

    pub(super) fn limits(&self) -> WindowLimits {
        // Segments stay for the duration of a playlist after they left it (RFC 8216 6.2.2).
        let age = self.listed * 2 + SPARE;
        let segments = age.as_millis() / self.segment.as_millis().max(500);
        let segments = usize::try_from(segments).unwrap_or(usize::MAX).saturating_add(8);
        WindowLimits { segments, bytes: self.bytes, age, listed: self.listed }
    }
}

/// The run of a window's stream.
type Key = u64;

/// The numbers with which the next window of a path continues.
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

/// [`Windows`] that may be gone.
pub(super) struct WeakWindows(Weak<Mutex<Inner>>);

impl WeakWindows {
    pub(super) fn upgrade(&self) -> Option<Windows> {
        self.0.upgrade().map(Windows)
    }
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// The clock by which runs are numbered.
    clock: WallClock,
    running: HashMap<Key, Weak<LiveWindow>>,
    /// Paths and windows, by the names of runs.
    runs: HashMap<Box<str>, (Box<str>, Weak<LiveWindow>)>,
    /// The newest windows of live streams, by their paths.
    of_streams: HashMap<Box<str>, Weak<LiveWindow>>,
    past: HashMap<Box<str>, Past>,
    /// The past of streams on the disk, by their paths.
    shifts: HashMap<Box<str>, Weak<TimeShift>>,
    /// Made for the first of these.
    writer: Option<RingWriter>,
    ladders: HashMap<LadderId, Weak<Ladder>>,
    /// Windows of streams that do not run.
    pub(super) ended: EndedWindows,
    /// Windows whose segments stay after their end.
    kept: Vec<Arc<LiveWindow>>,
    /// Windows whose segments stay for a while, because their streams go on with other tracks.
    late: Vec<Arc<LiveWindow>>,
    /// Copies of windows of other servers, by the paths of their streams, and whether they were left to the streams.
    copies: HashMap<Box<str>, (Arc<LiveWindow>, bool)>,
}

/// A window as [`Windows::open`] finds it.
pub(crate) enum Found {
    /// It runs.
    Running(Arc<LiveWindow>),
    /// It waits for its segmenter.
    New(Box<NewWindow>),
}

/// A new window, and the parts that its segmenter needs.
pub(crate) struct NewWindow {
    pub(crate) window: Arc<LiveWindow>,
    /// In the order of the window.
    pub(crate) tracks: Vec<PackagedTrack>,
    pub(crate) rules: CutRules,
    /// Number of the first segment.
    pub(crate) first: SegmentNumber,
    /// The past of the stream on the disk, and the number of the run.
    pub(crate) past: Option<(Arc<TimeShift>, u64)>,
    /// Where it goes on, if it is the copy of a window of another server.
    pub(crate) continuation: Option<Continuation>,
    pub(crate) ending: Ending,
}

/// Ends a window when it is dropped, and remembers where it ended.
pub(crate) struct Ending {
    window: Arc<LiveWindow>,
    windows: Windows,
    path: Box<str>,
}

impl Ending {
    /// Waits for the end of the window's lease, and ends the window. Dropping the future ends it too.
    pub(crate) async fn lease(self) {
        tokio::select! {
            () = self.window.expired() => {}
            () = self.window.over() => {}
        }
    }
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
        if inner.keeps(&self.window) {
            return;
        }
        inner.running.retain(|_, window| window.upgrade().is_some_and(|window| !window.is_over()));
        match Handle::try_current() {
            Ok(runtime) if self.window.is_succeeded() && inner.late.len() < MOST_LATE => {
                let (windows, window) = (self.windows.clone(), self.window.clone());
                inner.late.push(window.clone());
                runtime.spawn(async move {
                    sleep(LATE).await;
                    windows.lock().forget_late(&window);
                });
            }
            _ => inner.forget_run(&self.window),
        }
        if inner.of_streams.get(&self.path).is_some_and(|newest| newest.ptr_eq(&Arc::downgrade(&self.window))) {
            inner.of_streams.remove(&self.path);
        }
        if let Some(past) = past {
            if inner.past.len() >= REMEMBERED {
                inner.past.clear();
            }
            inner.past.insert(std::mem::take(&mut self.path), past);
        }
    }
}

impl Windows {
    /// No windows so far. Runs are numbered by `clock`.
    pub(crate) fn new(clock: WallClock) -> Self {
        Self(Arc::new(Mutex::new(Inner { clock, ..Inner::default() })))
    }

    /// Returns the past of a stream on the disk: the known one, else it is opened. It blocks the thread.
    ///
    /// # Errors
    /// The disk's, or that the system gives no thread.
    pub(crate) fn open_shift(&self, path: &str, options: &ShiftOptions) -> Result<Arc<TimeShift>, RingError> {
        if let Some(known) = self.shift(path) {
            return Ok(known);
        }
        let writer = {
            let mut inner = self.lock();
            match &inner.writer {
                Some(writer) => writer.clone(),
                None => {
                    let no_thread = |error| RingError::File { file: options.folder.clone(), what: "writing", error };
                    inner.writer.insert(RingWriter::start().map_err(no_thread)?).clone()
                }
            }
        };
        let mut attempts = ATTEMPTS.0;
        let shift = loop {
            match TimeShift::open(&options.folder, path, options.limits, &writer) {
                // The writer is closing it, or another viewer opens it.
                Err(RingError::Locked { .. }) if attempts > 0 => {
                    attempts -= 1;
                    std::thread::sleep(ATTEMPTS.1);
                }
                opened => break Arc::new(opened?),
            }
            if let Some(known) = self.shift(path) {
                return Ok(known);
            }
        };
        let mut inner = self.lock();
        inner.shifts.retain(|_, shift| shift.strong_count() > 0);
        inner.shifts.insert(path.into(), Arc::downgrade(&shift));
        Ok(shift)
    }

    /// Returns the past of a stream on the disk, where it is open.
    pub(crate) fn shift(&self, path: &str) -> Option<Arc<TimeShift>> {
        self.lock().shifts.get(path).and_then(Weak::upgrade)
    }

    /// Returns the window of a stream with a past on the disk, while it runs.
    pub(crate) fn with_past(&self, path: &str) -> Option<Arc<LiveWindow>> {
        let inner = self.lock();
        let mut windows =
            inner.runs.values().filter(|(of, _)| **of == *path).filter_map(|(_, window)| window.upgrade());
        windows.find(|window| window.has_past() && !window.is_over() && !window.is_ended())
    }

    /// Wall times since the Unix epoch of the oldest and the newest moment that is kept of a live stream; `None` where nothing
    /// is kept.
    pub(crate) fn kept(&self, path: &str) -> Option<(Duration, Duration)> {
        let window = self.with_past(path)?;
        window.look(|window| {
            let (first, last) = (window.segments().next()?, window.segments().next_back()?);
            let lasts = |track: usize| {
                let scale = window.tracks().get(track)?.timescale;
                Some(Duration::from_secs_f64(scale.seconds(last.track(track)?.duration()).max(0.0)))
            };
            let lasts = (0..window.tracks().len()).filter_map(lasts).max().unwrap_or_default();
            Some((first.wall, last.wall.saturating_add(lasts)))
        })
    }

    /// Keeps the segments of a stream's window while this exists.
    pub(crate) fn keep(&self, path: &str) {
        let mut inner = self.lock();
        let known = inner.of_streams.get(path).and_then(Weak::upgrade);
        inner.kept.extend(known);
    }

    /// Returns a report of the past of a stream, where it is open.
    pub(crate) fn shift_report(&self, path: &str) -> Option<ShiftReport> {
        self.shift(path).map(|shift| shift.report())
    }

    /// Returns windows that last no longer for this.
    pub(super) fn downgrade(&self) -> WeakWindows {
        WeakWindows(Arc::downgrade(&self.0))
    }

    /// Returns the window of a run by its key, unless it is over.
    pub(crate) fn running(&self, key: u64) -> Option<Arc<LiveWindow>> {
        self.lock().running(&key)
    }

    /// Returns the window of a run, while it runs. `path` is the path of the channel or live stream, or of one of its renditions.
    pub(crate) fn of_run(&self, path: &str, run: &str) -> Option<Arc<LiveWindow>> {
        let inner = self.lock();
        let (of, window) = inner.runs.get(run)?;
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        path.strip_prefix(&**of).filter(|rest| is_below(rest))?;
        let stays =
            |window: &Arc<LiveWindow>| inner.keeps(window) || inner.late.iter().any(|late| Arc::ptr_eq(late, window));
        window.upgrade().filter(|window| !window.is_over() || stays(window))
    }

    /// Returns the window of a live stream that runs, with its lease renewed.
    pub(crate) fn of_stream(&self, path: &str) -> Option<Arc<LiveWindow>> {
        let known = self.lock().of_streams.get(path).and_then(Weak::upgrade);
        known.filter(|window| !window.is_over() && window.renew())
    }

    /// Returns the windows of a ladder's streams that run, by the paths of these.
    pub(crate) fn of_ladder(&self, id: LadderId) -> Vec<(Arc<str>, Arc<LiveWindow>)> {
        let ladder = self.lock().ladders.get(&id).and_then(Weak::upgrade);
        ladder.map_or_else(Vec::new, |ladder| ladder.windows())
    }

    /// Returns the window of a program: the one that runs, else a new one. `memory` is shared by all streams. A relay
    /// (`is_relay`) keeps no past: the server that has the source does.
    ///
    /// # Errors
    /// [`CannotOpen::NoTracks`]: live segments can carry none of the tracks.
    pub(crate) fn open(
        &self,
        program: &Program,
        options: WindowOptions,
        (memory, is_relay): (&LiveMemory, bool),
    ) -> Result<Found, CannotOpen> {
        let mut inner = self.lock();
        let key = program.key();
        if let Some(known) = inner.running(&key) {
            return Ok(Found::Running(known));
        }
        let tracks = packaged(program.formats());
        if tracks.is_empty() {
            return Err(CannotOpen::NoTracks);
        }
        tell_others(program, options.part.is_some());
        let shift = inner.shifts.get(program.path()).and_then(Weak::upgrade).filter(|_| !is_relay);
        let options = WindowOptions { bytes: options.bytes.min(memory.window_bytes()), ..options };
        let ladder = inner.ladder(&options);
        if shift.is_none()
            && ladder.is_none()
            && let Some((window, continuation)) = inner.take_copy(program.path(), &tracks)
        {
            let (path, first) = (program.path().into(), continuation.segment);
            let ending = Ending { window: window.clone(), windows: self.clone(), path };
            inner.running.insert(key, Arc::downgrade(&window));
            let (rules, past, continuation) = (options.rules(None), None, Some(continuation));
            return Ok(Found::New(Box::new(NewWindow { window, tracks, rules, first, past, continuation, ending })));
        }
        let (window, rules, first) =
            inner.make(program.path(), &tracks, &options, (ladder.as_deref(), shift.as_deref()));
        let run = fastrand::u64(..);
        let linger = if shift.is_some() { FOREVER } else { program.linger() };
        let window = LiveWindow::new(format!("{run:016x}"), window, linger, shift.clone());
        let of_stream = program.memory().cloned().unwrap_or_else(|| memory.of_channel());
        let window = Arc::new(window.counted_in(of_stream).in_ladder(ladder.clone(), program.path()));
        if let Some(ladder) = ladder {
            ladder.add(program.path(), &window);
        }
        let ending = Ending { window: window.clone(), windows: self.clone(), path: program.path().into() };
        inner.name(program.path(), &window);
        inner.of_streams.insert(program.path().into(), Arc::downgrade(&window));
        inner.running.insert(key, Arc::downgrade(&window));
        let past = shift.map(|shift| (shift, run));
        let continuation = None;
        Ok(Found::New(Box::new(NewWindow { window, tracks, rules, first, past, continuation, ending })))
    }

    /// Makes a copy the window of a stream. Returns whether it is: a window that runs here stays, unless the copy is of the same run. Then another
    /// server has gone on with it.
    pub(super) fn add_copy(&self, path: &str, window: &Arc<LiveWindow>) -> bool {
        let mut inner = self.lock();
        let known = inner.of_streams.get(path).and_then(Weak::upgrade).filter(|known| !known.is_over());
        let is_copy =
            |known: &Arc<LiveWindow>| inner.copies.get(path).is_some_and(|(copy, _)| Arc::ptr_eq(copy, known));
        if let Some(known) = known.filter(|known| !is_copy(known)) {
            if known.run() != window.run() || known.has_past() {
                return false;
            }
            known.displace();
        }
        inner.name(path, window);
        inner.of_streams.insert(path.into(), Arc::downgrade(window));
        if let Some((before, _)) = inner.copies.insert(path.into(), (window.clone(), false)) {
            inner.end_copy(&before);
        }
        true
    }

    /// Leaves a copy to the stream of its path.
    pub(super) fn leave_copy(&self, path: &str, window: Arc<LiveWindow>) {
        let mut inner = self.lock();
        match inner.copies.get_mut(path) {
            Some((known, is_left)) if Arc::ptr_eq(known, &window) => *is_left = true,
            _ => return,
        }
        drop(inner);
        let (windows, path) = (self.clone(), Box::<str>::from(path));
        tokio::spawn(async move {
            sleep(copied::PATIENCE).await;
            windows.forget_copy(&path, &window);
        });
    }

    /// Ends a copy, unless its stream goes on in it.
    pub(super) fn forget_copy(&self, path: &str, window: &Arc<LiveWindow>) {
        let mut inner = self.lock();
        if inner.copies.get(path).is_some_and(|(known, _)| Arc::ptr_eq(known, window)) {
            inner.copies.remove(path);
            inner.end_copy(window);
        }
    }

    /// The copy of another server's window of a stream.
    pub(crate) fn copy_of(&self, path: &str) -> Option<Arc<LiveWindow>> {
        self.lock().copies.get(path).map(|(window, _)| window.clone())
    }

    /// The newest window of a stream, for a server that copies it: one whose segments are cut here. Its lease stays as it is.
    pub(crate) fn to_copy(&self, path: &str) -> Option<Arc<LiveWindow>> {
        let inner = self.lock();
        let window = inner.of_streams.get(path).and_then(Weak::upgrade).filter(|window| !window.is_over())?;
        (!window.is_copy() && !window.has_past() && window.ladder().is_none()).then_some(window)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first discontinuity sequence number of a path, at a Unix time in seconds. It is another one after a restart of
/// the process. It is small: hls.js visits all lesser numbers at each reload.
const fn first_discontinuity(now: u64) -> u64 {
    (now / 4) % 32_768
}

impl Inner {
    /// Makes the window of a run known by its name.
    pub(super) fn name(&mut self, path: &str, window: &Arc<LiveWindow>) {
        self.runs.insert(window.run().into(), (path.into(), Arc::downgrade(window)));
    }

    /// Ends a copy that no stream goes on in.
    fn end_copy(&mut self, window: &Arc<LiveWindow>) {
        window.end();
        self.forget_run(window);
    }

    /// Forgets the name of a window's run, unless another window has the run now.
    fn forget_run(&mut self, window: &Arc<LiveWindow>) {
        if self.runs.get(window.run()).is_some_and(|(_, known)| known.ptr_eq(&Arc::downgrade(window))) {
            self.runs.remove(window.run());
        }
    }

    /// Returns the copy that was left to a stream, and where it goes on. One with other tracks ends.
    fn take_copy(&mut self, path: &str, tracks: &[PackagedTrack]) -> Option<(Arc<LiveWindow>, Continuation)> {
        if !self.copies.get(path)?.1 {
            return None;
        }
        let (window, _) = self.copies.remove(path)?;
        let is_same = window.look(|window| {
            let of_window = |(track, known): (&PackagedTrack, &WindowTrack)| track.of_window() == *known;
            window.tracks().len() == tracks.len() && tracks.iter().zip(window.tracks()).all(of_window)
        });
        let mut continuation = None;
        if is_same {
            window.change(|window| continuation = window.continue_anew());
        }
        let Some(continuation) = continuation else {
            self.end_copy(&window);
            return None;
        };
        window.set_continued();
        window.renew();
        Some((window, continuation))
    }

    /// Whether segments of a window stay after its end, until the process ends.
    fn keeps(&self, window: &Arc<LiveWindow>) -> bool {
        self.kept.iter().any(|kept| Arc::ptr_eq(kept, window))
    }

    /// Forgets a window that ended long enough ago.
    fn forget_late(&mut self, window: &Arc<LiveWindow>) {
        self.late.retain(|late| !Arc::ptr_eq(late, window));
        self.forget_run(window);
    }

    /// Forgets runs whose windows are gone.
    pub(super) fn forget_runs(&mut self) {
        self.runs.retain(|_, (_, window)| window.strong_count() > 0);
    }

    /// The window of a key that is not over.
    fn running(&self, key: &Key) -> Option<Arc<LiveWindow>> {
        self.running.get(key).and_then(Weak::upgrade).filter(|known| !known.is_over())
    }

    /// The ladder of a new window, where it is one of any.
    fn ladder(&mut self, options: &WindowOptions) -> Option<Arc<Ladder>> {
        let id = options.ladder?;
        if let Some(known) = self.ladders.get(&id).and_then(Weak::upgrade) {
            return Some(known);
        }
        self.ladders.retain(|_, ladder| ladder.strong_count() > 0);
        let now = self.clock.now().as_secs();
        let new = Arc::new(Ladder::new(options.segment, first_discontinuity(now)));
        self.ladders.insert(id, Arc::downgrade(&new));
        Some(new)
    }

    /// Returns an empty window, and the rules for its segmenter. It goes on from the last one of its path. Media sequence
    /// numbers are at least the Unix time in seconds, so that they rise over restarts of the process.
    fn make(
        &self,
        path: &str,
        tracks: &[PackagedTrack],
        options: &WindowOptions,
        (ladder, shift): (Option<&Ladder>, Option<&TimeShift>),
    ) -> (Window, CutRules, SegmentNumber) {
        let now = self.clock.now().as_secs();
        let past = self.past.get(path);
        let stored = shift.and_then(TimeShift::end);
        let first = past.map_or(0, |past| past.next.0);
        let first = match ladder {
            // Streams of a ladder count from their first key frames instead, to have equal numbers.
            Some(_) => first,
            // Playlists of the past list segments before and after a restart, so their numbers have no hole.
            None => first.max(stored.map_or(now, |end| end.next.0)),
        };
        let least = past.map(|past| past.discontinuity.saturating_add(1));
        let discontinuity = match ladder {
            Some(ladder) => ladder.discontinuity(least.unwrap_or(0)),
            None => least.unwrap_or_else(|| first_discontinuity(now)),
        };
        let tracks = tracks.iter().map(PackagedTrack::of_window).collect();
        let mut window = Window::new(options.limits(), tracks, discontinuity).with_captions(options.captions.clone());
        match (shift, ladder) {
            (Some(shift), None) => shift.restore(&mut window),
            // Neither numbers nor discontinuities of an earlier run are those of the other streams.
            (Some(shift), Some(_)) => shift.keep(&mut window),
            (None, _) => {}
        }
        let target = past.and_then(|past| past.target).or(stored.and_then(|end| end.target));
        (window, options.rules(target), SegmentNumber(first))
    }
}

/// Tells in the log what becomes of tracks that live segments can't carry as they are.
fn tell_others(program: &Program, has_parts: bool) {
    for (_, format) in program.formats().filter(|(_, format)| !fits(format)) {
        let (stream, track, codec) = (program.path(), &format.name, format.track.codec.name());
        let why = match &format.track.codec {
            Codec::PrivateText(text) if !text.pages.is_empty() => {
                let pages: Vec<_> = text.pages.iter().map(TeletextPage::name).collect();
                // Teletext arrives later than pictures.
                let hint = has_parts
                    .then_some("viewers with low latency see them late: live-part = \"off\" shows them in time");
                tracing::info!(stream, %track, pages = pages.join(", "), hint, "teletext subtitles become WebVTT");
                continue;
            }
            Codec::PrivateText(PrivateText { form: PrivateForm::Teletext, .. }) => "no page of subtitles is announced",
            Codec::PrivateText(_) => "they are pictures",
            _ => {
                tracing::info!(stream, %track, codec, "left out of HLS, DASH and stream.mp4, which can't carry it");
                continue;
            }
        };
        tracing::info!(stream, %track, codec, why, "left out of HLS and DASH, passed on in transport streams");
    }
}
