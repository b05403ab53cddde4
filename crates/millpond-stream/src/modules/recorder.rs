//! Writes the frames of a channel or live stream into fragmented MP4 files: one, and another one where the formats change or where the
//! plan of the files ends one. No frame is left out between two files.
//!
//! The module passes runs on to a separate thread, which makes fragments and writes them. A queue of [`QUEUE_BYTES`] lies between
//! the two. While the queue is full, runs are left out up to the next key frame, and counted. So a slow disk delays no viewer.
//!
//! A fragment is written in one go when it is complete. A process that is killed leaves a file that plays up to its last
//! fragment. The file is synced to its disk every ten seconds and at the end. So a machine that loses power leaves such a file too,
//! without the media of the last ten seconds. A file that can't be written any more is truncated behind its last whole fragment.

use super::{
    in_band_format::InBandFormat,
    recording_clock::RecordingClock,
    recording_files::{FileFacts, FilePlan, FragmentBytes, NumberedFiles, RecordingFiles},
};
use crate::{
    Counters, Format, Frame, Run,
    fragmenter::{Fragment, FragmentLimits, Fragmenter},
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    live::Program,
};
use futures_util::future::BoxFuture;
use std::{
    io::{self, IoSlice},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// The kind of modules that record.
pub const KIND: ModuleKind = ModuleKind {
    name: "recorder",
    about: "writes the frames of a channel or live stream into a fragmented MP4 file",
    inputs: 1,
    outputs: 0,
};

/// The kind of modules that record without an end.
pub const CONTINUOUS: ModuleKind = ModuleKind {
    name: "archiver",
    about: "writes the frames of a channel or live stream into fragmented MP4 files, one after the other",
    inputs: 1,
    outputs: 0,
};

/// Fragments begin with key frames a second apart or more. One without a key frame for long, or of many bytes, ends before.
const FRAGMENT: FragmentLimits =
    FragmentLimits { least: Duration::from_secs(1), most: Duration::from_secs(10), bytes: 32 << 20 };
/// Most bytes of the frames that wait to be written, and most runs.
const QUEUE_BYTES: usize = 32 << 20;
const QUEUE_RUNS: usize = 256;

/// Shortest gap between frames of the leading track that is noted.
const GAP: Duration = Duration::from_secs(2);
/// Most gaps of a file that are noted.
const GAPS: usize = 1000;

/// Bounds of a recording. It ends where it reaches one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Most bytes of its files.
    pub bytes: u64,
    /// Longest duration.
    pub duration: Duration,
}

impl RecordLimits {
    /// No bounds.
    pub const NONE: Self = Self { bytes: u64::MAX, duration: Duration::MAX };
}

/// Why a recording can't begin.
#[derive(Debug, thiserror::Error)]
pub enum CannotRecord {
    /// Fragmented MP4 can't carry the leading track.
    #[error("{path}: no track that a recording can hold (found {found})")]
    NoTracks {
        /// Path of the asset.
        path: String,
        /// Codecs of the tracks.
        found: String,
    },
    /// The file can't be made.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The system gives no thread.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingEnd {
    /// It was stopped.
    Stopped,
    /// The channel ended.
    ChannelEnded,
    /// Its files have the most bytes.
    Bytes,
    /// It has the longest duration.
    Duration,
    /// The leading track of the stream has a format that a file can't hold.
    Format,
    /// The file can't be written.
    Failed(String),
}

/// A recording at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingState {
    /// Number of its files.
    pub files: u32,
    /// Bytes of its files.
    pub bytes: u64,
    /// Frames in its files.
    pub frames: u64,
    /// Frames that were left out because the disk was slow.
    pub lost: u64,
    /// Duration, gaps included.
    pub duration: Duration,
    /// Why it ended; `None` while it runs.
    pub end: Option<RecordingEnd>,
}

/// A recording of a channel into files, which a module writes. It ends when that is dropped; the last file is completed then.
#[derive(Debug)]
pub struct Recording {
    path: String,
    /// The first file.
    file: PathBuf,
    progress: Arc<Progress>,
    end: watch::Receiver<Option<RecordingEnd>>,
}

/// Counted by the module and the thread.
#[derive(Debug, Default)]
struct Progress {
    files: AtomicU32,
    bytes: AtomicU64,
    frames: AtomicU64,
    lost: AtomicU64,
    millis: AtomicU64,
    /// Whether the recording was stopped.
    is_stopped: AtomicBool,
    /// Bytes of the frames that wait for the thread.
    queued: AtomicUsize,
}

impl Recording {
    /// Makes a new file for a channel, and the module that records into it.
    ///
    /// # Errors
    /// The file exists or can't be made, or no track can be recorded.
    pub(crate) async fn begin(
        counters: &Arc<Counters>,
        program: &Program,
        file: PathBuf,
        limits: RecordLimits,
    ) -> Result<(Self, Box<dyn Module>), CannotRecord> {
        Self::of_plan(KIND, counters, program, Box::new(NumberedFiles::new(file)), limits).await
    }

    /// Makes the module that records a channel into the files of a plan.
    ///
    /// # Errors
    /// The first file can't be made, or no track can be recorded.
    pub(crate) async fn of_plan(
        kind: ModuleKind,
        counters: &Arc<Counters>,
        program: &Program,
        plan: Box<dyn FilePlan>,
        limits: RecordLimits,
    ) -> Result<(Self, Box<dyn Module>), CannotRecord> {
        let file = plan.first().unwrap_or_default();
        let path = program.path().to_owned();
        let lead = program.lead();
        let Some(fragmenter) = program.fragmenter(FRAGMENT) else {
            let found: Vec<_> = program.formats().map(|(_, format)| format.track.codec.parameter()).collect();
            return Err(CannotRecord::NoTracks { path, found: found.join(", ") });
        };
        let (sender, messages) = sync_channel(QUEUE_RUNS);
        let (ends, end) = watch::channel(None);
        let (progress, counters) = (Arc::new(Progress::default()), counters.clone());
        let start = {
            let (program, path, progress, counters) =
                (program.clone(), file.clone(), progress.clone(), counters.clone());
            move || {
                let created = RecordingFiles::create(plan);
                let files = created.map_err(|error| CannotRecord::File { file: path, error })?;
                let is_recorded = |(_, format): &(u16, &Format)| !format.is_private_text();
                let formats: Vec<_> =
                    program.formats().filter(is_recorded).map(|(track, format)| (track, format.clone())).collect();
                let in_band = in_band(&formats, lead);
                let (epoch, skipped, earlier) = (0, 0, Duration::ZERO);
                let (stretch, clock) = (None, RecordingClock::default());
                progress.files.store(files.number(), Ordering::Relaxed);
                let writer = Writer {
                    program,
                    epoch,
                    formats,
                    in_band,
                    files,
                    fragmenter,
                    limits,
                    progress,
                    counters,
                    skipped,
                    earlier,
                    stretch,
                    clock,
                };
                let run = move || ends.send_replace(Some(writer.run(&messages)));
                std::thread::Builder::new().name("recorder".to_owned()).spawn(run).map_err(CannotRecord::Thread)
            }
        };
        // The thread gets the priority of the one that starts it, which must not be that of those that serve.
        let started = tokio::task::spawn_blocking(start).await;
        started.unwrap_or_else(|error| Err(CannotRecord::Thread(io::Error::other(error))))?;
        let recorder = Recorder { kind, sender, lead, is_behind: false, progress: progress.clone(), counters };
        tracing::info!(asset = %path, file = %file.display(), kind = kind.name, "recording begins");
        Ok((Self { path, file, progress, end }, Box::new(recorder)))
    }

    /// Path of the asset.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The first file. Others have `-2`, `-3` and so on at the end of their names. Empty where a plan names the files.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The recording as it is now.
    #[must_use]
    pub fn state(&self) -> RecordingState {
        let Progress { bytes, frames, lost, millis, .. } = &*self.progress;
        let [bytes, frames, lost, millis] = [bytes, frames, lost, millis].map(|count| count.load(Ordering::Relaxed));
        let (files, end) = (self.progress.files.load(Ordering::Relaxed), self.end.borrow().clone());
        RecordingState { files, bytes, frames, lost, duration: Duration::from_millis(millis), end }
    }

    /// Notes that the module is dropped because the recording is stopped. The file is completed by another thread:
    /// [`ended`](Self::ended) waits for it.
    pub fn stop(&self) {
        self.progress.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Waits for the end: the file is complete then. Cancel safe.
    pub async fn ended(&self) -> RecordingState {
        let _ = self.end.clone().wait_for(Option::is_some).await;
        self.state()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Frames for the thread.
struct Message {
    run: Run,
    /// Whether frames before it were left out.
    follows_gap: bool,
}

/// Passes frames on to the thread that writes them.
struct Recorder {
    kind: ModuleKind,
    sender: SyncSender<Message>,
    /// The track whose key frames a fragment can begin with.
    lead: u16,
    /// Whether frames are left out up to the next key frame.
    is_behind: bool,
    progress: Arc<Progress>,
    counters: Arc<Counters>,
}

impl Recorder {
    /// Passes a run on, or leaves it out. Returns `false` where the thread has ended.
    fn pass(&mut self, run: Run) -> bool {
        let has_key = run.iter().any(|frame| frame.track == self.lead && frame.is_sync);
        let bytes: usize = run.iter().map(|frame| frame.data.len()).sum();
        let frames = run.len() as u64;
        let queued = self.progress.queued.load(Ordering::Relaxed);
        let has_room = queued == 0 || queued.saturating_add(bytes) <= QUEUE_BYTES;
        if has_room && (has_key || !self.is_behind) {
            // Counted before it is sent: the thread takes it off.
            self.progress.queued.fetch_add(bytes, Ordering::Relaxed);
            match self.sender.try_send(Message { run, follows_gap: self.is_behind }) {
                Ok(()) => {
                    self.is_behind = false;
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) => self.progress.queued.fetch_sub(bytes, Ordering::Relaxed),
            };
        }
        if !self.is_behind {
            let queued = self.progress.queued.load(Ordering::Relaxed);
            tracing::warn!(queued, "recording is behind: its disk is slow; frames are left out up to a key frame");
        }
        self.is_behind = true;
        self.progress.lose(frames, &self.counters);
        true
    }
}

impl Progress {
    fn lose(&self, frames: u64, counters: &Counters) {
        self.lost.fetch_add(frames, Ordering::Relaxed);
        counters.unrecorded_frames.fetch_add(frames, Ordering::Relaxed);
    }
}

impl Module for Recorder {
    fn kind(&self) -> &'static str {
        self.kind.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, _: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            while let Ok(run) = input.next().await {
                if !self.pass(run) {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Makes fragments and writes them, on a thread of its own.
struct Writer {
    program: Program,
    /// Epoch of the last frame.
    epoch: u32,
    /// Tracks of the file that is written, with their formats.
    formats: Vec<(u16, Format)>,
    /// The leading track, if its frames hold parameter sets.
    in_band: Option<InBandFormat>,
    files: RecordingFiles,
    fragmenter: Fragmenter,
    limits: RecordLimits,
    progress: Arc<Progress>,
    counters: Arc<Counters>,
    /// Frames that the fragmenter left out, as far as they were counted.
    skipped: u64,
    /// Duration of the files before this one.
    earlier: Duration,
    /// The stretch of the stream in the file; `None` before its first key frame.
    stretch: Option<Stretch>,
    clock: RecordingClock,
}

/// The stretch of a stream that a file holds.
#[derive(Debug)]
struct Stretch {
    /// Wall time of its first frame.
    wall: Duration,
    /// Due time of the first and of the last frame of the leading track.
    from: Duration,
    to: Duration,
    gaps: Vec<(Duration, Duration)>,
    /// Frames that the recording had lost before.
    lost: u64,
}

impl Stretch {
    fn new(wall: Duration, at: Duration, lost: u64) -> Self {
        Self { wall, from: at, to: at, gaps: Vec::new(), lost }
    }

    /// Takes the due time of a frame of the leading track.
    fn reach(&mut self, at: Duration) {
        let gap = at.saturating_sub(self.to);
        if gap >= GAP && self.gaps.len() < GAPS {
            self.gaps.push((self.to.saturating_sub(self.from), gap));
        }
        self.to = self.to.max(at);
    }
}

impl Writer {
    /// Writes up to the end of the recording. Returns the reason of the end.
    fn run(mut self, messages: &Receiver<Message>) -> RecordingEnd {
        self.counters.recordings.fetch_add(1, Ordering::Relaxed);
        let ended = self.take_all(messages).err();
        let end = ended.unwrap_or_else(|| match self.progress.is_stopped.load(Ordering::Relaxed) {
            true => RecordingEnd::Stopped,
            false => RecordingEnd::ChannelEnded,
        });
        let end = match self.complete(None, Some(&end)) {
            Ok(()) => end,
            Err(error) => error.into(),
        };
        self.tell(&end);
        self.counters.recordings.fetch_sub(1, Ordering::Relaxed);
        end
    }

    /// Writes until the module has left.
    ///
    /// # Errors
    /// Another reason of the end.
    fn take_all(&mut self, messages: &Receiver<Message>) -> Result<(), RecordingEnd> {
        for Message { run, follows_gap } in messages {
            let bytes = run.iter().map(|frame| frame.data.len()).sum();
            self.progress.queued.fetch_sub(bytes, Ordering::Relaxed);
            if follows_gap && let Some(fragment) = self.fragmenter.gap() {
                self.write(&fragment)?;
            }
            for frame in run.iter() {
                self.enter(frame.epoch)?;
                self.follow(frame)?;
                self.turn(frame)?;
                if self.duration() >= self.limits.duration {
                    self.finish()?;
                    return Err(RecordingEnd::Duration);
                }
                if let Some(fragment) = self.fragmenter.push(frame) {
                    self.write(&fragment)?;
                }
            }
            self.count_skipped();
        }
        self.finish()
    }

    /// Begins the epoch of a frame, and another file where its tracks have other formats.
    fn enter(&mut self, epoch: u32) -> Result<(), RecordingEnd> {
        if std::mem::replace(&mut self.epoch, epoch) == epoch {
            return Ok(());
        }
        let Some(formats) = self.program.formats_of(epoch).filter(|new| !are_alike(new, &self.formats)) else {
            return Ok(());
        };
        self.in_band = in_band(&formats, self.program.lead());
        self.next_file(formats)
    }

    /// Begins another file where the pictures have another size by the parameter sets of a key frame.
    fn follow(&mut self, frame: &Frame) -> Result<(), RecordingEnd> {
        let Some((track, format)) = self.in_band.as_mut().and_then(|in_band| in_band.change(frame)) else {
            return Ok(());
        };
        let mut formats = self.formats.clone();
        formats.iter_mut().filter(|(known, _)| *known == track).for_each(|(_, known)| *known = format.clone());
        self.next_file(formats)
    }

    /// Notes the time of a frame. Goes on in another file where the plan ends this one before the frame.
    fn turn(&mut self, frame: &Frame) -> Result<(), RecordingEnd> {
        if frame.track != self.program.lead() {
            return Ok(());
        }
        if frame.is_sync {
            let wall = self.wall(frame);
            let ends = |stretch: &Stretch| {
                let lasts = frame.due.saturating_sub(stretch.from);
                self.files.ends(stretch.wall, wall, lasts)
            };
            if self.stretch.as_ref().is_some_and(ends) {
                self.earlier = self.duration();
                if let Some(fragment) = self.fragmenter.turn(frame) {
                    self.write(&fragment)?;
                }
                self.complete(Some(frame.due), None)?;
            }
            let lost = || self.progress.lost.load(Ordering::Relaxed);
            self.stretch.get_or_insert_with(|| Stretch::new(wall, frame.due, lost()));
        }
        self.stretch.iter_mut().for_each(|stretch| stretch.reach(frame.due));
        Ok(())
    }

    /// Wall time of a frame on the clock of this machine.
    fn wall(&mut self, frame: &Frame) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch = self.program.feed().epoch(frame.epoch);
        let arrival = epoch.map(|epoch| (epoch.arrival + frame.due).saturating_sub(epoch.from));
        self.clock.wall(arrival, now)
    }

    /// Completes the file, whose last frame is followed by one that is due at `next`.
    fn complete(&mut self, next: Option<Duration>, end: Option<&RecordingEnd>) -> io::Result<()> {
        let Stretch { from, to, gaps, lost, .. } =
            self.stretch.take().unwrap_or_else(|| Stretch::new(Duration::ZERO, Duration::ZERO, 0));
        let next = next.filter(|next| next.saturating_sub(to) < GAP).unwrap_or(to);
        let lost = self.progress.lost.load(Ordering::Relaxed).saturating_sub(lost);
        let facts = FileFacts { duration: next.saturating_sub(from), lost, gaps };
        self.files.complete(facts, matches!(end, Some(RecordingEnd::Failed(_))), end)
    }

    /// Completes the file, and goes on in another one with tracks of these formats.
    fn next_file(&mut self, formats: Vec<(u16, Format)>) -> Result<(), RecordingEnd> {
        self.finish()?;
        let fragmenter = Fragmenter::new(formats.iter().map(|(track, of)| (*track, of)), self.program.lead(), FRAGMENT);
        let fragmenter = fragmenter.ok_or(RecordingEnd::Format)?.with_clean_holes();
        self.count_skipped();
        self.earlier = self.duration();
        (self.fragmenter, self.formats, self.skipped) = (fragmenter, formats, 0);
        self.complete(None, None)?;
        Ok(())
    }

    fn count_skipped(&mut self) {
        let skipped = self.fragmenter.skipped();
        self.progress.lose(skipped - self.skipped, &self.counters);
        self.skipped = skipped;
    }

    /// Duration of all files, gaps included.
    fn duration(&self) -> Duration {
        self.earlier + self.fragmenter.duration()
    }

    /// Writes the frames that wait for the end of their fragment.
    fn finish(&mut self) -> Result<(), RecordingEnd> {
        match self.fragmenter.finish() {
            Some(fragment) => self.write(&fragment),
            None => Ok(()),
        }
    }

    /// Writes a fragment, and the init segment before the first one.
    fn write(&mut self, fragment: &Fragment) -> Result<(), RecordingEnd> {
        let parts = || fragment.init.iter().chain([&fragment.head]).chain(&fragment.frames);
        let length: u64 = parts().map(|part| part.len() as u64).sum();
        let before = self.progress.bytes.load(Ordering::Relaxed);
        if before.saturating_add(length) > self.limits.bytes {
            return Err(RecordingEnd::Bytes);
        }
        let frames = fragment.frames.len() as u64;
        let rest = [&fragment.head].into_iter().chain(&fragment.frames).map(|part| IoSlice::new(part)).collect();
        let began = self.stretch.as_ref().map_or(Duration::ZERO, |stretch| stretch.wall);
        self.files.write(began, FragmentBytes { init: fragment.init.as_deref(), rest, frames })?;
        self.progress.files.store(self.files.number(), Ordering::Relaxed);
        self.progress.bytes.store(before + length, Ordering::Relaxed);
        self.progress.frames.fetch_add(frames, Ordering::Relaxed);
        self.progress.millis.store(self.duration().as_millis() as u64, Ordering::Relaxed);
        self.counters.recorded_bytes.fetch_add(length, Ordering::Relaxed);
        self.counters.recorded_frames.fetch_add(frames, Ordering::Relaxed);
        Ok(())
    }

    fn tell(&self, end: &RecordingEnd) {
        let Progress { bytes, frames, lost, millis, .. } = &*self.progress;
        let [bytes, frames, lost, ms] = [bytes, frames, lost, millis].map(|count| count.load(Ordering::Relaxed));
        let (asset, file, files) = (self.program.path(), self.files.first().display(), self.files.number());
        match end {
            RecordingEnd::Failed(error) => {
                self.counters.failed_recordings.fetch_add(1, Ordering::Relaxed);
                let file = self.files.path().display();
                tracing::error!(%asset, %file, files, error, bytes, frames, lost, ms, "recording ends: its file can't be written");
            }
            end => {
                let ended = end.name();
                tracing::info!(%asset, %file, files, bytes, frames, lost, ms, ended, "recording ended");
            }
        }
    }
}

/// Returns the watch on the leading track of formats, if its frames hold parameter sets.
fn in_band(formats: &[(u16, Format)], lead: u16) -> Option<InBandFormat> {
    let (track, format) = formats.iter().find(|(track, _)| *track == lead)?;
    InBandFormat::of(*track, format)
}

/// Whether tracks are the same, with the same sample entries and timescales: frames of both can be in one file.
fn are_alike(new: &[(u16, Format)], known: &[(u16, Format)]) -> bool {
    let entry = |(track, format): &(u16, Format)| (*track, format.track.sample_entry.clone(), format.timescale());
    new.iter().map(entry).eq(known.iter().map(entry))
}

impl From<io::Error> for RecordingEnd {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl RecordingEnd {
    /// Name in logs and replies.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::ChannelEnded => "channel ended",
            Self::Bytes => "size reached",
            Self::Duration => "duration reached",
            Self::Format => "format changed",
            Self::Failed(_) => "failed",
        }
    }
}
