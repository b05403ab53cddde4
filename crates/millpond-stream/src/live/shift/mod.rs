//! Time shift: a stream's segments, kept in a ring on the disk.
//!
//! Each part is a payload of the ring. The segmenter never waits. A part for which the ring has no room is lost, and its segment
//! becomes a gap when it leaves memory. Epochs are written again each minute, because the ring evicts its oldest files.

mod clip;
mod entry;
mod reader;
mod recovery;
mod stored_cues;
mod stretch;

pub use clip::Clip;
use entry::{StoredEpoch, StoredSegment, StoredTrack, wall_now};
pub(crate) use reader::PartReader;
use stored_cues::StoredCues;
pub use stretch::NoClip;

use millpond_package::live::{
    Cut, PastCue, PastSegment, SegmentNumber, TargetDuration, Window, WindowEpoch, WindowLimits, WindowTrack,
};
use millpond_store::{
    Chunk,
    ring::{Ring, RingError, RingKind, RingLimits, RingRecord, RingStats, RingWriter},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Interval between two writes of the same epoch.
const REFRESH: Duration = Duration::from_secs(60);
/// Seconds that no segment exceeds, where the disk does not tell.
const USUAL_TARGET: u32 = 10;
/// Sets whether a track is the default one of its kind.
const DEFAULT: u32 = 1;

/// Where the past of a stream is kept, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftOptions {
    /// Folder of the rings of all streams.
    pub folder: PathBuf,
    /// Limits of each ring.
    pub limits: RingLimits,
    /// How the stream is cut.
    pub window: super::WindowOptions,
}

/// The past of a stream on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShiftReport {
    /// Figures of its ring.
    pub ring: RingStats,
    /// Wall time of the oldest segment, since the Unix epoch; `None` without segments.
    pub from: Option<Duration>,
    /// Wall time of the newest segment.
    pub to: Option<Duration>,
}

/// The past of a stream, as its window and HTTP use it. All methods may be called on any thread.
#[derive(Debug)]
pub(crate) struct TimeShift {
    ring: Ring,
    age: Duration,
    /// A lock: taken for each cut, and for each look-up.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// By run and number.
    epochs: BTreeMap<(u64, u32), StoredEpoch>,
    /// By rising numbers.
    segments: VecDeque<StoredSegment>,
    cues: StoredCues,
    target: Option<TargetDuration>,
    refreshed: Option<Instant>,
}

/// The numbers with which a window continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShiftEnd {
    pub(crate) next: SegmentNumber,
    pub(crate) target: Option<TargetDuration>,
}

impl TimeShift {
    /// Opens the ring of a stream, and reads its records. It blocks the thread.
    ///
    /// # Errors
    /// Those of [`Ring::open`].
    pub(super) fn open(folder: &Path, path: &str, limits: RingLimits, writer: &RingWriter) -> Result<Self, RingError> {
        let (ring, found) = Ring::open(folder, path, limits, writer)?;
        let state = Mutex::new(recovery::recover(&ring, &found));
        let shift = Self { ring, age: limits.age, state };
        shift.forget(&mut shift.lock());
        Ok(shift)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What operators see.
    pub(super) fn report(&self) -> ShiftReport {
        let state = self.lock();
        let (from, to) = (state.segments.front(), state.segments.back());
        ShiftReport { ring: self.ring.stats(), from: from.map(|s| s.wall), to: to.map(|s| s.wall) }
    }

    /// Where it ends; `None` without segments.
    pub(crate) fn end(&self) -> Option<ShiftEnd> {
        let state = self.lock();
        let last = state.segments.back()?;
        Some(ShiftEnd { next: SegmentNumber(last.number).next(), target: state.target })
    }

    /// Makes an empty window keep the segments that leave memory.
    pub(crate) fn keep(&self, window: &mut Window) {
        window.keep_past(self.age);
    }

    /// Fills an empty window with earlier segments, as far back as the tracks are the same. The window also keeps segments that
    /// leave memory.
    pub(crate) fn restore(&self, window: &mut Window) {
        self.keep(window);
        let state = self.lock();
        let (epochs, segments) = state.past(window.tracks());
        window.restore(epochs, segments);
        state.cues.restore(window);
    }

    /// Returns a window of the newest segments with the same tracks, for a stream that does not run, and the name of its run. The
    /// name and the addresses of media stay the same until another segment follows. `None` without segments.
    pub(crate) fn ended(&self, path: &str, limits: WindowLimits) -> Option<(String, Window)> {
        let (name, target, tracks) = {
            let state = self.lock();
            let last = state.segments.back()?;
            let mut name = DefaultHasher::new();
            (path, last.run, last.number).hash(&mut name);
            (name.finish(), state.target, state.tracks(last.key())?)
        };
        let mut window = Window::new(limits, tracks, 0);
        self.restore(&mut window);
        window.end(target.unwrap_or(TargetDuration::new(USUAL_TARGET)));
        Some((format!("{name:016x}"), window))
    }

    /// Writes an epoch of a run.
    pub(crate) fn begin(&self, run: u64, epoch: &WindowEpoch) {
        let mut state = self.lock();
        state.epochs.insert((run, epoch.number), StoredEpoch::of(epoch));
        self.write(run, epoch);
        state.refreshed = Some(Instant::now());
    }

    fn write(&self, run: u64, epoch: &WindowEpoch) {
        let record = RingRecord {
            kind: RingKind::Epoch,
            track: u16::try_from(epoch.formats.len()).unwrap_or(u16::MAX),
            flags: 0,
            run,
            epoch: epoch.number,
            segment: 0,
            part: 0,
            start: epoch.from,
            duration: Duration::ZERO,
            // The age of a file is that of its newest record.
            wall: epoch.wall,
            source: Duration::ZERO,
        };
        self.ring.append(record, Arc::new([]));
        for (track, format) in (0..).zip(&epoch.formats) {
            let Some((format, init)) = format.as_ref().zip(epoch.init(usize::from(track))) else { continue };
            let flags = if format.is_default { DEFAULT } else { 0 };
            let record = RingRecord { kind: RingKind::Init, track, flags, ..record };
            self.ring.append(record, Arc::new([init.clone()]));
        }
    }

    /// Writes a cue that a window has taken. `run` is that of the window.
    pub(crate) fn cue(&self, run: u64, cue: PastCue, window: &Window) {
        let epoch = window.newest_epoch().map_or(0, |epoch| epoch.number);
        let segment = window.segments().next_back().map_or(0, |segment| segment.number.0);
        let record = stored_cues::record(&cue, (run, epoch, segment));
        self.ring.append(record, Arc::new([cue.section.clone()]));
        self.lock().cues.push(cue);
    }

    /// Gives a decision of the cutter to a window, and to the disk. `run` is that of the window.
    pub(crate) fn push(&self, run: u64, cut: Cut, window: &mut Window) {
        match &cut {
            Cut::Part(part) => self.part(run, part, window),
            Cut::Closed { track, segment, start, duration } => {
                self.close(run, (*track, *segment), (*start, *duration), window);
            }
            Cut::Targets(targets) => self.lock().target = Some(targets.segment),
            Cut::Opened { .. } => {}
        }
        let opens = matches!(cut, Cut::Opened { .. });
        window.push(cut);
        if opens {
            self.open_segment(run, window);
        }
    }

    fn open_segment(&self, run: u64, window: &mut Window) {
        let Some(segment) = window.segments().next_back() else { return };
        let mut state = self.lock();
        if state.segments.back().is_some_and(|last| last.number >= segment.number.0) {
            state.segments.clear();
        }
        let tracks = vec![StoredTrack::default(); window.tracks().len()].into();
        state.segments.push_back(StoredSegment {
            number: segment.number.0,
            run,
            epoch: segment.epoch,
            discontinuity: segment.discontinuity,
            start: segment.start,
            wall: segment.wall,
            is_independent: segment.is_independent,
            tracks,
        });
        for (track, number) in state.settle() {
            window.stored(track, number);
        }
        if state.refreshed.is_none_or(|last| last.elapsed() >= REFRESH)
            && let Some(epoch) = window.newest_epoch()
        {
            self.write(run, epoch);
            self.ring.evict(wall_now());
            state.refreshed = Some(Instant::now());
        }
        self.forget(&mut state);
        if let Some(first) = state.segments.front() {
            window.forget_before(SegmentNumber(first.number));
        }
    }

    fn part(&self, run: u64, part: &millpond_package::live::Part, window: &Window) {
        let mut state = self.lock();
        let Some(scale) = window.tracks().get(part.track).map(|track| track.timescale) else { return };
        let Some(segment) = state.get_mut(part.segment) else { return };
        let record = RingRecord {
            kind: RingKind::Part,
            track: u16::try_from(part.track).unwrap_or(u16::MAX),
            part: part.index.into(),
            start: entry::time(part.start, scale),
            duration: entry::time(part.duration, scale),
            ..segment.record(run)
        };
        let queued = self.ring.append(record, part.bytes.clone());
        if let Some(track) = segment.tracks.get_mut(part.track) {
            track.waiting.push(queued);
        }
    }

    fn close(&self, run: u64, (track, number): (usize, SegmentNumber), (start, duration): (i64, i64), window: &Window) {
        let mut state = self.lock();
        let target = state.target.map_or(0, TargetDuration::seconds);
        let Some(scale) = window.tracks().get(track).map(|track| track.timescale) else { return };
        let Some(segment) = state.get_mut(number) else { return };
        let record = RingRecord {
            kind: RingKind::SegmentEnd,
            track: u16::try_from(track).unwrap_or(u16::MAX),
            part: target,
            start: entry::time(start, scale),
            duration: entry::time(duration, scale),
            ..segment.record(run)
        };
        self.ring.append(record, Arc::new([]));
        if let Some(of_track) = segment.tracks.get_mut(track) {
            of_track.closed = Some((start, duration));
        }
    }

    /// Forgets segments that the ring evicted, or that are too old.
    fn forget(&self, state: &mut State) {
        let newest = state.segments.back().map_or(Duration::ZERO, |last| last.wall);
        while let Some(first) = state.segments.front() {
            let is_old = first.wall.saturating_add(self.age) < newest;
            if !is_old && !first.is_evicted(&self.ring) {
                break;
            }
            state.segments.pop_front();
        }
        let State { epochs, segments, .. } = state;
        if let (Some(first), Some(last)) = (segments.front(), segments.back()) {
            // Epochs of one run are numbered in their order; each has few runs.
            let (first, last) = ((first.run, first.epoch), (last.run, last.epoch));
            let used =
                |key: &(u64, u32)| *key == first || *key == last || segments.iter().any(|s| (s.run, s.epoch) == *key);
            if epochs.len() > 2 {
                epochs.retain(|key, _| used(key));
            }
        }
    }

    /// Returns the places of the parts of a track's segment. `None` where it is not on the disk. It may block the thread.
    pub(super) fn read(&self, track: usize, number: SegmentNumber) -> Option<Vec<(Arc<File>, Range<u64>)>> {
        let places = {
            let state = self.lock();
            let at = state.segments.binary_search_by_key(&number.0, |segment| segment.number).ok()?;
            state.segments.get(at)?.tracks.get(track)?.places.clone()
        };
        if places.is_empty() {
            return None;
        }
        let part = |place| match self.ring.read(place).ok()? {
            Chunk::File { file, range, .. } => Some((file, range)),
            Chunk::Bytes(_) => None,
        };
        places.iter().map(|place| part(*place)).collect()
    }

    /// Number of the segment of a run that begins at a time in ticks of a track.
    pub(super) fn segment_at(&self, run: u64, track: usize, start: i64) -> Option<SegmentNumber> {
        let begins = |segment: &&StoredSegment| {
            let closed = segment.tracks.get(track).and_then(|of_track| of_track.closed);
            segment.run == run && closed.is_some_and(|(at, _)| at == start)
        };
        self.lock().segments.iter().find(begins).map(|segment| SegmentNumber(segment.number))
    }

    /// Has its oldest files removed, until they had `bytes` bytes.
    pub(super) fn free(&self, bytes: u64) {
        self.ring.free(bytes);
    }

    /// Bytes of memory that it holds.
    pub(crate) fn memory(&self) -> u64 {
        let state = self.lock();
        state.segments.iter().map(StoredSegment::memory).sum::<u64>() + state.cues.memory()
    }
}

impl State {
    fn get_mut(&mut self, number: SegmentNumber) -> Option<&mut StoredSegment> {
        let at = self.segments.binary_search_by_key(&number.0, |segment| segment.number).ok()?;
        self.segments.get_mut(at)
    }

    /// Returns the tracks of an epoch. Formats that it lacks are those of another one.
    fn tracks(&self, key: (u64, u32)) -> Option<Vec<WindowTrack>> {
        let count = self.epochs.get(&key)?.formats.len();
        let epochs = || self.epochs.get(&key).into_iter().chain(self.epochs.values().rev());
        let format = |track: usize| {
            let mut formats = epochs().filter(|epoch| epoch.formats.len() == count);
            formats.find_map(|epoch| epoch.formats.get(track)?.as_ref())
        };
        let formats: Option<Vec<_>> = (0..count).map(format).collect();
        formats.map(entry::tracks)
    }

    /// Takes the places of payloads that were written since the last call. Returns the tracks of segments that are complete.
    fn settle(&mut self) -> Vec<(usize, SegmentNumber)> {
        let mut complete = Vec::new();
        for segment in self.segments.iter_mut().rev().take_while(|segment| !segment.is_settled()) {
            let number = SegmentNumber(segment.number);
            let tracks = segment.tracks.iter_mut().enumerate();
            complete.extend(tracks.filter_map(|(track, of)| of.settle().then_some((track, number))));
        }
        complete
    }

    /// Returns what a window with these tracks can have: epochs with new numbers, and segments without a hole.
    fn past(&self, tracks: &[WindowTrack]) -> (Vec<WindowEpoch>, Vec<PastSegment>) {
        let mut segments: Vec<&StoredSegment> = Vec::new();
        for segment in self.segments.iter().rev() {
            let follows = segments.last().is_none_or(|next| next.number == segment.number + 1);
            let fits = |epoch: &StoredEpoch| epoch.fits(tracks);
            if !follows || !self.epochs.get(&segment.key()).is_some_and(fits) {
                break;
            }
            segments.push(segment);
        }
        segments.reverse();
        let mut keys: Vec<(u64, u32)> = segments.iter().map(|segment| segment.key()).collect();
        keys.dedup();
        let first = u32::MAX - u32::try_from(keys.len()).unwrap_or(0);
        let numbers: BTreeMap<(u64, u32), u32> = keys.iter().copied().zip(first..).collect();
        let epoch = |(key, number): (&(u64, u32), u32)| Some(self.epochs.get(key)?.restored(number));
        let epochs = keys.iter().zip(first..).filter_map(epoch).collect();
        let past = |segment: &&StoredSegment| {
            let epoch = numbers.get(&segment.key()).copied()?;
            Some(segment.restored(epoch, tracks))
        };
        (epochs, segments.iter().filter_map(past).collect())
    }
}
