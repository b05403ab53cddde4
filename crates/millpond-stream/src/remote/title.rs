//! One stored title: its tracks and segments, and the sessions that fetch them.

use super::{
    cutter::{CutSegment, TitleCutter},
    end::EndEvidence,
    error::RemoteError,
    fetching::Fetching,
    fragment::fragments,
    grid::Grid,
    listing::TitleListing,
    measured::{Measured, TitleTracks, measure},
    queue::{Asked, FetchQueue, Fetched, HELD_FOR, KEPT_FOR, PATIENCE, SessionId, Step, ToStart},
};
use crate::{
    Feed, Format,
    reception::{Connector, Faster, LONGEST_TITLE, Playback, RtspSource},
    source_health::{SourceError, SourceErrorKind},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// Pace at which segments are asked for, as a multiple of the usual one. Viewers who seek wait for a quarter of a segment.
const SPEED: f64 = 4.0;

/// A stored title of an RTSP server, cut into segments.
#[derive(Debug)]
pub struct RemoteTitle {
    /// Path of the title with its place.
    path: Arc<str>,
    /// Bytes of the place's name in it.
    place: usize,
    source: RtspSource,
    connector: Arc<dyn Connector>,
    fingerprint: u64,
    version: String,
    /// All are known.
    formats: Vec<Option<Format>>,
    tracks: TitleTracks,
    /// A lock: taken for moments.
    state: Mutex<State>,
    /// Told of each request for a segment.
    asked: Notify,
}

#[derive(Debug)]
struct State {
    grid: Grid,
    listing: Arc<TitleListing>,
    queue: FetchQueue,
    /// Whether the server may send faster than usual.
    can_hurry: bool,
    end: EndEvidence,
    /// Whether the server has sought before.
    has_sought: bool,
    has_changed: bool,
    /// Reason why the title can't be played to its end.
    unplayable: Option<Arc<SourceError>>,
}

impl RemoteTitle {
    /// Opens what a server described; `None` where it is a live stream. Segments last `least` or more.
    ///
    /// # Errors
    /// The server can't play the title from its beginning.
    pub(super) async fn open(
        (path, place): (Arc<str>, usize),
        (source, connector): (RtspSource, Arc<dyn Connector>),
        mut playback: Playback,
        least: Duration,
    ) -> Result<Option<Arc<Self>>, SourceError> {
        let Some(length) = playback.length().filter(|length| *length <= LONGEST_TITLE) else { return Ok(None) };
        let Some(measured) = measure(&mut playback, (least, length)).await? else { return Ok(None) };
        let Measured { formats, tracks, grid, version, done, is_over } = measured;
        let listing = Arc::new(TitleListing::new(&formats, &tracks, grid));
        let state = State {
            grid,
            listing,
            queue: FetchQueue::default(),
            can_hurry: true,
            end: EndEvidence::default(),
            has_sought: false,
            has_changed: false,
            unplayable: None,
        };
        let fingerprint = playback.fingerprint();
        let state = Mutex::new(state);
        let asked = Notify::new();
        let title = Self { path, place, source, connector, fingerprint, version, formats, tracks, state, asked };
        let title = Arc::new(title);
        let next = done.last().map_or(0, |segment| segment.number + 1);
        let session = title.lock().queue.start(next);
        for segment in done {
            title.complete(session.id, &segment);
        }
        // A session of its own may be faster than the one that measured the title.
        if is_over {
            title.over(session.id, None);
            if next == 0 {
                return Err(playback.error(SourceErrorKind::NoMedia, "the title ended before its first picture"));
            }
            // Where it is shorter than stated, the next session ends there too.
            title.ended(next).ok();
        } else {
            title.begin([session]);
        }
        Ok(Some(title))
    }

    /// Returns the name of the version in URLs.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the playlists and manifests of the title.
    pub fn listing(&self) -> Arc<TitleListing> {
        self.lock().listing.clone()
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> u64 {
        self.lock().grid.count()
    }

    /// Returns whether the server has had another title under the name since.
    pub(super) fn has_changed(&self) -> bool {
        self.lock().has_changed
    }

    /// Returns the reason why the title can't be played to its end, once a session has met it.
    pub fn unplayable(&self) -> Option<Arc<SourceError>> {
        self.lock().unplayable.clone()
    }

    /// Returns whether a description is that of this title. Otherwise, the title counts as changed.
    pub(super) fn is_described_by(&self, playback: &Playback) -> bool {
        let is_same = playback.fingerprint() == self.fingerprint;
        if !is_same {
            self.lock().has_changed = true;
        }
        is_same
    }

    /// Returns the length.
    pub fn length(&self) -> Duration {
        self.lock().grid.length
    }

    /// Returns the segment of a time.
    pub(super) fn number_at(&self, at: Duration) -> u64 {
        self.lock().grid.of(at)
    }

    /// Returns the media time of presentation time 0 of a track, in its ticks.
    pub(super) fn early(&self, track: usize) -> i64 {
        self.tracks.reorderings.get(track).map_or(0, |reordering| reordering.early())
    }

    /// Returns the name of its place, and its name there.
    pub(super) fn place_and_name(&self) -> (&str, &str) {
        let (place, name) = self.path.split_at(self.place);
        (place, name.trim_start_matches('/'))
    }

    pub(super) fn source(&self) -> (&RtspSource, &Arc<dyn Connector>) {
        (&self.source, &self.connector)
    }

    /// Asks the server whether it still has the title. One that can't be reached leaves what is cached in use.
    pub(super) async fn check(&self) {
        match Playback::describe(&self.source, &self.connector).await {
            Ok(playback) => {
                self.is_described_by(&playback);
            }
            Err(error) if RemoteError::from(error.clone()).may_pass() => {}
            Err(error) => {
                tracing::debug!(title = %self.path, %error, "a stored title is gone");
                self.lock().has_changed = true;
            }
        }
    }

    /// Returns a cutter of frames from before a segment on.
    pub(super) fn cutter(&self, first: u64) -> TitleCutter {
        TitleCutter::new(&self.tracks.clocks, self.lock().grid, first)
    }

    /// Returns the place of a playback's track in segments.
    pub(super) fn place(&self, track: usize) -> Option<usize> {
        self.tracks.received.iter().position(|index| *index == track)
    }

    /// Returns the nominal beginning of a segment.
    pub(super) fn start(&self, number: u64) -> Duration {
        self.lock().grid.start(number)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches a segment: from memory where it was fetched just now, else from the server. Concurrent calls share one session. Cancel safe.
    ///
    /// # Errors
    /// The title has no such segment, the server failed, or was too slow.
    pub(super) async fn fetch(self: &Arc<Self>, number: u64) -> Fetched {
        let (mut told, missing) = {
            let mut state = self.lock();
            if state.has_changed {
                return Err(RemoteError::Changed);
            }
            if number >= state.grid.count() {
                return Err(RemoteError::BehindEnd);
            }
            match state.queue.ask(number) {
                Asked::Kept(bytes) => {
                    self.asked.notify_waiters();
                    return Ok(bytes);
                }
                Asked::Awaited(told) => (told, state.missing()),
            }
        };
        self.asked.notify_waiters();
        self.begin(missing);
        let late = Err(RemoteError::Late(PATIENCE));
        match timeout(PATIENCE, told.wait_for(Option::is_some)).await {
            Ok(Ok(told)) => told.clone().unwrap_or(late),
            Ok(Err(_)) | Err(_) => late,
        }
    }

    /// Begins sessions.
    fn begin(self: &Arc<Self>, sessions: impl IntoIterator<Item = ToStart>) {
        sessions.into_iter().for_each(|session| Fetching::new(self.clone(), session.id).start(session.first));
    }

    /// Takes a segment that a session completed. Returns how the session continues.
    pub(super) fn complete(self: &Arc<Self>, id: SessionId, segment: &CutSegment) -> Step {
        let title = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(KEPT_FOR).await;
            title.upgrade().iter().for_each(|title| title.lock().queue.forget_old());
        });
        let bytes = fragments(segment, &self.tracks.reorderings);
        let mut state = self.lock();
        if segment.tracks.iter().any(|samples| !samples.is_empty()) {
            state.end.has_media(segment.number);
        }
        state.queue.complete(id, segment.number, bytes)
    }

    /// Waits until a session that is ahead of all viewers may go on. Returns false where nobody asks for more in time. Cancel safe.
    pub(super) async fn may_go_on(&self, id: SessionId) -> bool {
        loop {
            // From here on no request is missed.
            let asked = self.asked.notified();
            let step = self.lock().queue.step(id);
            if step != Step::Hold {
                return step == Step::GoOn;
            }
            if timeout(HELD_FOR, asked).await.is_err() {
                return false;
            }
        }
    }

    /// Returns a time behind the beginning that a title with more than one segment has, whatever its stated length.
    pub(super) fn early_time(&self) -> Duration {
        let grid = self.lock().grid;
        grid.start(1) + grid.segment / 2
    }

    /// Returns whether the server is known to seek.
    pub(super) fn has_sought(&self) -> bool {
        self.lock().has_sought
    }

    /// Notes that the server can seek.
    pub(super) fn can_seek(&self) {
        self.lock().has_sought = true;
    }

    /// Notes that the server plays from the beginning only.
    pub(super) fn cannot_seek(&self) {
        let mut state = self.lock();
        let reach = state.grid.within(PATIENCE);
        if state.queue.only_forward(reach) {
            let title = &*self.path;
            tracing::warn!(title, "the server of a stored title can't seek: it is played from the beginning only");
        }
    }

    /// Returns the speed to ask the server for; `None` where it has none.
    pub(super) fn faster(&self) -> Option<Faster<'_>> {
        self.lock().can_hurry.then_some(Faster { speed: SPEED, usual: &self.tracks.usual })
    }

    /// Notes that the server sends at the usual pace only.
    pub(super) fn cannot_hurry(&self) {
        self.lock().can_hurry = false;
    }

    /// Notes that a session found nothing after `count` segments. The stated length is corrected once a second session agrees.
    ///
    /// # Errors
    /// The title has no segment at all, or another session decides.
    pub(super) fn ended(&self, count: u64) -> Result<(), &'static str> {
        if count == 0 {
            return Err("the title ended before its first picture");
        }
        let mut state = self.lock();
        let stated = state.grid.count();
        if count >= stated {
            return Ok(());
        }
        let count = state.end.nothing_after(count, stated).ok_or("the title ended before its stated length")?;
        let (title, stated, found) = (&*self.path, state.grid.length, state.grid.start(count));
        tracing::warn!(title, ?stated, ?found, "a stored title is shorter than its description says");
        state.grid.length = found;
        state.listing = Arc::new(TitleListing::new(&self.formats, &self.tracks, state.grid));
        state.queue.refuse_from(count, &RemoteError::BehindEnd);
        Ok(())
    }

    /// Removes a session that is over. What it was to fetch is fetched by another one, unless that failed too often.
    pub(super) fn over(self: &Arc<Self>, id: SessionId, error: Option<RemoteError>) {
        if let Some(error) = &error {
            tracing::debug!(title = %self.path, %error, "a session with the server of a stored title failed");
        }
        let missing = {
            let mut state = self.lock();
            state.queue.over(id, error.as_ref());
            match &error {
                Some(error @ RemoteError::Changed) => state.queue.refuse_from(0, error),
                Some(RemoteError::Source(error))
                    if error.kind == SourceErrorKind::NoMedia && state.unplayable.replace(error.clone()).is_none() =>
                {
                    tracing::warn!(title = %self.path, %error, "a stored title can't be played to its end");
                }
                _ => {}
            }
            state.missing()
        };
        self.begin(missing);
    }
}

impl State {
    /// Returns the sessions that segments are missing.
    fn missing(&mut self) -> Vec<ToStart> {
        self.queue.sessions_to_start(self.grid)
    }
}

impl Feed for RemoteTitle {
    fn path(&self) -> &str {
        &self.path
    }

    fn id(&self) -> u64 {
        u64::from_str_radix(&self.version, 16).unwrap_or(0)
    }

    fn formats(&self) -> &[Option<Format>] {
        &self.formats
    }
}
