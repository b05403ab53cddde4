//! Live streams, their segments and their past, as the manager gives them.

use super::Manager;
use crate::{
    cannot_open::CannotOpen,
    live::{Clip, LadderId, LiveFeed, LiveWindow, NoClip, Program, WindowCopy, WindowOptions},
    reception::{Conflict, Publication},
    source_health::SourceError,
    splice::InsertionReport,
    stored::StoredMedia,
    streams::{
        CannotInsert, LiveRequest, LiveStream, NewestKeyFrame, PublishRefused, PublishRequest, StreamReport, Streams,
        follow,
    },
};
use millpond_store::ring::{RingError, SweepLimits};
use std::{path::Path, sync::Arc, time::Duration};

impl Manager {
    pub(super) fn live_streams(&self) -> &Streams {
        &self.streams
    }

    /// The live stream of a viewer's request: the one that is known by its path, else a new one. It is not opened yet. A stream of the
    /// same path with another source is replaced; its viewers stay until they leave. Where one of both is relayed and gives frames, it stays.
    ///
    /// # Errors
    /// [`CannotOpen::Streams`]: there are too many.
    pub fn live(&self, request: LiveRequest) -> Result<Arc<LiveStream>, CannotOpen> {
        self.streams.find(request)
    }

    /// Opens a live stream, unless it runs, and waits until its formats are known. The stream stays open while the feed exists.
    /// Cancel safe.
    ///
    /// # Errors
    /// What its source did at the first attempt, or within the last second; [`TimedOut`](crate::SourceErrorKind::TimedOut)
    /// where formats were not known within `patience`; [`NotBegun`](crate::SourceErrorKind::NotBegun) for a phase whose turn comes later.
    pub async fn live_feed(
        &self,
        stream: &Arc<LiveStream>,
        patience: Duration,
    ) -> Result<Arc<LiveFeed>, Arc<SourceError>> {
        self.streams.feed(stream, patience).await
    }

    /// Returns the frames of a ladder for one viewer: the frames of the best stream that the viewer's network can carry. All
    /// streams stay open while the program exists. `path` is the ladder's path. Streams whose pictures can't take the place of
    /// the best one's are left out. Cancel safe.
    ///
    /// # Errors
    /// There is no stream, or the best one has no key frame for long.
    pub async fn follow(&self, path: &str, feeds: Vec<Arc<LiveFeed>>) -> Result<Program, CannotOpen> {
        follow(&self.registry, path, feeds, self.options().viewer_queue).await
    }

    /// Begins a publication. Viewers that wait for the stream get it, and it stays open while it is published.
    ///
    /// # Errors
    /// Another publisher pushes the stream, or there are too many streams.
    pub fn publish(&self, request: PublishRequest) -> Result<Publication, PublishRefused> {
        self.streams.publish(request)
    }

    /// Tells whether a publication of the stream would be refused now because of another publisher.
    pub fn is_taken(&self, path: &str, conflict: Conflict) -> bool {
        conflict == Conflict::Refuse && self.streams.get(path).is_some_and(|stream| stream.is_taken())
    }

    /// Ends the live stream of a path: its source is closed, its publisher is disconnected, and its viewers get no more frames. The
    /// next viewer or publisher begins it again. Returns whether it ran.
    pub fn end_stream(&self, path: &str) -> bool {
        self.streams.end(path)
    }

    /// Ends all published streams, and takes no publisher any more: another process of the server takes them. Segments of the
    /// streams stay until the engine is dropped.
    pub fn hand_over_publishers(&self) {
        self.streams.hand_over_publishers();
    }

    /// Tells whether another process of the server takes publishers.
    pub fn has_handed_over(&self) -> bool {
        self.streams.has_handed_over()
    }

    /// Disconnects the publisher of a stream: its next media is refused. Returns whether there was one.
    pub fn end_publication(&self, path: &str) -> bool {
        self.streams.get(path).is_some_and(|stream| stream.end_publication())
    }

    /// Tells whether the live stream of a path is running.
    pub fn is_running(&self, path: &str) -> bool {
        self.streams.is_running(path)
    }

    /// Tells whether the live stream of a path comes from another server that has its source.
    pub fn is_relay(&self, path: &str) -> bool {
        self.streams.is_relay(path)
    }

    /// Returns the newest key frame of the live stream of a path; `None` while it does not run, or has none. The stream is neither
    /// opened nor kept running.
    pub fn newest_key_frame(&self, path: &str) -> Option<NewestKeyFrame> {
        self.streams.key_frame(path)
    }

    /// Whether the source of a stream failed just now, so that another attempt would take time.
    pub fn failed_just_now(&self, path: &str) -> bool {
        self.streams.get(path).is_some_and(|stream| stream.failed_just_now())
    }

    /// Paths of the live streams that are running in the folder `path`, not below another one.
    pub fn running_in(&self, path: &str) -> Vec<Arc<str>> {
        self.streams.running_in(path)
    }

    /// Reports of the live streams that are running, failed just now, or gave frames before, by their paths.
    pub fn streams(&self) -> Vec<StreamReport> {
        self.streams.reports()
    }

    /// Inserts a clip into a running live stream, at the next key frame, or at the first key frame from a Unix time on. Called
    /// within a runtime. With a `session`, the number of a module in the registry that gives frames to one viewer, that viewer
    /// alone gets it.
    ///
    /// # Errors
    /// The stream does not run, has no such viewer, too many clips wait, or viewers could not play the clip.
    pub fn insert(
        &self,
        path: &str,
        clip: Arc<StoredMedia>,
        when: (Option<Duration>, Option<u64>),
    ) -> Result<InsertionReport, CannotInsert> {
        self.streams.insert(path, &clip, when)
    }

    /// Reports of the insertions that wait, play, or ended not long ago.
    pub fn insertions(&self) -> Vec<InsertionReport> {
        self.streams.insertions().reports()
    }

    /// Cancels an insertion. If the clip plays, the stream continues with the source's next key frame. `None` where there is no
    /// such insertion.
    pub fn cancel_insertion(&self, id: u64) -> Option<InsertionReport> {
        self.streams.insertions().cancel(id)
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
        self.streams.window(program, options)
    }

    /// The window of a run, while it runs. `path` is the path of the channel or live stream, or of one of its renditions.
    pub fn window_of_run(&self, path: &str, run: &str) -> Option<Arc<LiveWindow>> {
        self.streams.windows().of_run(path, run)
    }

    /// The window of a live stream that runs, with its lease renewed. It takes less work than to [open](Self::window) it.
    pub fn window_of_stream(&self, path: &str) -> Option<Arc<LiveWindow>> {
        self.streams.windows().of_stream(path)
    }

    /// The window of a live stream that is cut here, for a server that copies it. Its lease stays as it is. `None` for streams of
    /// ladders, and for those whose past is kept.
    pub fn window_to_copy(&self, path: &str) -> Option<Arc<LiveWindow>> {
        self.streams.windows().to_copy(path)
    }

    /// The copy of the window that another server has of a live stream, while one is kept. Its lease stays as it is.
    pub fn copy_of_stream(&self, path: &str) -> Option<Arc<LiveWindow>> {
        self.streams.windows().copy_of(path)
    }

    /// Begins the copy of the window that another server has of a live stream. `linger` is the time for which viewers keep it.
    pub fn copy_window(&self, path: &str, options: WindowOptions, linger: Duration) -> WindowCopy {
        WindowCopy::new(self.streams.windows().clone(), path, (options, linger), self.streams.memory())
    }

    /// The window of a live stream with a past on the disk, while it runs. `path` is the stream's path.
    pub fn window_with_past(&self, path: &str) -> Option<Arc<LiveWindow>> {
        self.streams.windows().with_past(path)
    }

    /// The windows of a ladder's streams that run, by the paths of these.
    pub fn ladder(&self, id: LadderId) -> Vec<(Arc<str>, Arc<LiveWindow>)> {
        self.streams.windows().of_ladder(id)
    }

    /// Wall times since the Unix epoch of the oldest and the newest moment that is kept of a live stream; `None` where nothing
    /// is kept.
    pub fn kept(&self, path: &str) -> Option<(Duration, Duration)> {
        self.streams.windows().kept(path)
    }

    /// Returns the clip of a stream's past from one wall time since the Unix epoch to another. The end must not lie ahead. A
    /// stream that runs is waited for until the clip is on the disk. Cancel safe.
    ///
    /// # Errors
    /// Nothing of it is kept, or it can't be one file.
    pub async fn clip(&self, request: &LiveRequest, start: Duration, end: Duration) -> Result<Clip, NoClip> {
        let options = request.shift.as_ref().ok_or(NoClip::NotKept)?;
        let is_running = || self.is_running(&request.path);
        self.streams.windows().clip((&request.path, options), (start, end), is_running).await
    }

    /// Returns a window with the past of a stream that does not run: its newest segments with the same tracks. `None` where
    /// nothing is kept. Cancel safe.
    pub async fn ended_window(&self, request: &LiveRequest) -> Option<Arc<LiveWindow>> {
        self.streams.windows().ended(&request.path, request.shift.as_ref()?).await
    }

    /// Removes the pasts of streams that are not written any more. Also removes the oldest files of all pasts in a folder while
    /// the pasts exceed a limit. It blocks the thread.
    ///
    /// # Errors
    /// The disk's.
    pub fn sweep_past(&self, folder: &Path, limits: SweepLimits) -> Result<(), RingError> {
        self.streams.windows().sweep(folder, limits)
    }
}
