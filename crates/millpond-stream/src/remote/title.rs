//! One stored title: its tracks and segments, and the sessions that fetch them.

use super::{
    cutter::{TitleCutter, TitleSample},
    error::RemoteError,
    fetching::Fetching,
    fragment::{Reordering, fragments, reordering},
    grid::Grid,
    listing::Listing,
};
use crate::{
    Feed, Format,
    fragmenter::fits,
    reception::{Connector, Faster, Playback, RtspSource},
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_media::Timescale;
use millpond_package::MediaKind;
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// Sessions with the server that fetch segments of one title at a time.
const MOST_SESSIONS: usize = 4;
/// Pace at which segments are asked for, as a multiple of the usual one. Viewers who seek wait for a quarter of a segment.
const SPEED: f64 = 4.0;
/// Segments ahead of a session up to which a request waits for it: another session would not be faster.
const REACH: u64 = 2;
/// Segments that a session fetches ahead of requests before it ends.
const AHEAD: u64 = 4;
/// Longest wait for a segment.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sessions that may fail for one segment.
const TRIES: u8 = 2;
/// Segments that are kept until the store has read them.
const KEPT: usize = 6;
/// Most bytes of these; one may have more.
const MOST_KEPT: usize = 64 << 20;
/// Longest time for which they are kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Most frames that the formats of a title are waited for.
const MOST_FRAMES: usize = 4096;
/// Longest title. Descriptions with longer ones are those of recorders and cameras.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The result of fetching a segment.
pub(super) type Fetched = Result<Bytes, RemoteError>;

/// A stored title of an RTSP server, cut into segments.
#[derive(Debug)]
pub struct RemoteTitle {
    /// Path of the title with its place.
    path: Arc<str>,
    /// Bytes of the place's name in it, and of the name of the title behind that.
    place: usize,
    source: RtspSource,
    connector: Arc<dyn Connector>,
    fingerprint: u64,
    version: String,
    /// All are known.
    formats: Vec<Option<Format>>,
    /// Index of each track among those of a playback.
    received: Vec<usize>,
    reorderings: Vec<Reordering>,
    /// Ticks from one frame to the next of each track of a playback.
    usual: Vec<i64>,
    /// Bytes a second of each track, as its beginning has them.
    rates: Vec<f64>,
    /// A lock: taken for moments.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    grid: Grid,
    listing: Arc<Listing>,
    sessions: Vec<Session>,
    /// Segments that are waited for.
    wanted: BTreeMap<u64, Wanted>,
    /// Segments that were fetched last.
    kept: VecDeque<Kept>,
    /// Whether the server plays from any time.
    can_seek: bool,
    /// Whether the server may send faster than usual.
    can_hurry: bool,
    has_changed: bool,
    /// Number of the next session.
    next_id: u64,
}

/// A session that runs.
#[derive(Debug)]
struct Session {
    id: u64,
    /// Segment that it fetches.
    next: u64,
    /// Segments before it that nobody has asked for, in a row.
    unasked: u64,
}

/// A segment that was fetched.
#[derive(Debug)]
struct Kept {
    number: u64,
    bytes: Bytes,
    at: Instant,
}

/// A segment that is waited for.
#[derive(Debug)]
struct Wanted {
    tell: watch::Sender<Option<Fetched>>,
    failures: u8,
}

impl RemoteTitle {
    /// Opens what a server described; `None` where it is a live stream. Segments last `least` or more.
    ///
    /// # Errors
    /// The server can't be reached, refuses, or has no track that can be received.
    pub(super) async fn open(
        (path, place): (Arc<str>, usize),
        (source, connector): (RtspSource, Arc<dyn Connector>),
        mut playback: Playback,
        least: Duration,
    ) -> Result<Option<Arc<Self>>, SourceError> {
        let Some(length) = playback.length().filter(|length| *length <= LONGEST) else { return Ok(None) };
        playback.play(Duration::ZERO, None).await?;
        let mut frames = Vec::new();
        while playback.formats().any(|format| format.is_none()) && frames.len() < MOST_FRAMES {
            let Some(frame) = playback.next().await? else { break };
            frames.push(frame);
        }
        let all: Vec<_> = playback.formats().map(|format| format.cloned()).collect();
        let is_packaged = |format: &Format| fits(format) && format.kind != MediaKind::Text;
        let received: Vec<usize> =
            (0..all.len()).filter(|index| all[*index].as_ref().is_some_and(is_packaged)).collect();
        let formats: Vec<Format> = received.iter().filter_map(|index| all[*index].clone()).collect();
        if formats.is_empty() || formats.len() < all.iter().flatten().count() {
            // Fragmented MP4 would lose a track, such as G.711. As a live stream the title has all of them by RTSP.
            return Ok(None);
        }
        let mut cutter = TitleCutter::measuring(&clocks(&formats), least, length);
        let mut done = Vec::new();
        let too_large = |_| SourceError {
            kind: SourceErrorKind::TooMuch,
            address: source.to_string(),
            words: RemoteError::TooLarge.to_string(),
        };
        // What came before the formats were known, then further frames until the grid is known too.
        let mut early = frames.into_iter();
        let is_over = loop {
            let frame = match early.next() {
                Some(frame) => frame,
                None if cutter.grid().is_some() => break false,
                None => match playback.next().await? {
                    Some(frame) => frame,
                    None => break true,
                },
            };
            let Some(track) = received.iter().position(|index| *index == frame.track) else { continue };
            let sample = TitleSample { time: frame.time, is_key: frame.is_key, data: frame.data };
            done.extend(cutter.push(track, sample).map_err(too_large)?);
        };
        if is_over {
            done.extend(cutter.finish());
        }
        let samples = |track| {
            let first = done.iter().filter_map(move |segment| segment.tracks.get(track)).flatten();
            first.chain(cutter.samples(track))
        };
        let reorderings: Vec<_> =
            formats.iter().enumerate().map(|(track, format)| reordering(format, samples(track))).collect();
        let mut usual = vec![0; all.len()];
        received.iter().zip(&reorderings).for_each(|(index, of)| usual[*index] = of.interval());
        let first = samples(0).next().map(|sample| sample.data.clone()).unwrap_or_default();
        let grid = cutter.grid().unwrap_or(Grid { segment: length, length });
        let fingerprint = playback.fingerprint();
        let mut hasher = DefaultHasher::new();
        (fingerprint, grid.segment, &first).hash(&mut hasher);
        let version = format!("{:016x}", hasher.finish());
        let rates: Vec<_> = formats.iter().enumerate().map(|(track, format)| rate(format, samples(track))).collect();
        let told = |(format, rate): (Format, &f64)| Some(Format { bandwidth: (rate * 8.0) as u64, ..format });
        let formats: Vec<_> = formats.into_iter().zip(&rates).map(told).collect();
        let listing = Arc::new(Listing::new(&formats, (&reorderings, &rates), grid));
        let state = State {
            grid,
            listing,
            sessions: if is_over { Vec::new() } else { vec![Session { id: 0, next: 0, unasked: 0 }] },
            wanted: BTreeMap::new(),
            kept: VecDeque::new(),
            can_seek: true,
            can_hurry: true,
            has_changed: false,
            next_id: 1,
        };
        let title = Arc::new(Self {
            path,
            place,
            source,
            connector,
            fingerprint,
            rates,
            usual,
            version,
            formats,
            received,
            reorderings,
            state: Mutex::new(state),
        });
        let next = done.last().map_or(0, |segment| segment.number + 1);
        for segment in done {
            title.complete(0, segment.number, fragments(&segment, &title.reorderings));
        }
        // A session of its own may be faster than the one that measured the title.
        if is_over {
            title.ended(next).map_err(|error| playback.error(SourceErrorKind::NoMedia, error))?;
        } else {
            Fetching::new(title.clone(), 0).start(next);
        }
        Ok(Some(title))
    }

    /// Returns the name of the version in URLs.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the playlists and manifests of the title.
    pub fn listing(&self) -> Arc<Listing> {
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
        self.reorderings.get(track).map_or(0, |reordering| reordering.early())
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
        TitleCutter::new(&clocks(self.formats.iter().flatten()), self.lock().grid, first)
    }

    /// Returns the place of a playback's track in segments.
    pub(super) fn place(&self, track: usize) -> Option<usize> {
        self.received.iter().position(|index| *index == track)
    }

    pub(super) fn reorderings(&self) -> &[Reordering] {
        &self.reorderings
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
        let mut told = {
            let mut state = self.lock();
            if state.has_changed {
                return Err(RemoteError::Changed);
            }
            if number >= state.grid.count() {
                return Err(RemoteError::BehindEnd);
            }
            state.forget_old();
            for session in &mut state.sessions {
                if session.next > number && session.next - number <= AHEAD {
                    session.unasked = 0;
                }
            }
            if let Some(kept) = state.kept.iter().find(|kept| kept.number == number) {
                return Ok(kept.bytes.clone());
            }
            let wanted = state.wanted.entry(number);
            let wanted = wanted.or_insert_with(|| Wanted { tell: watch::Sender::new(None), failures: 0 });
            let told = wanted.tell.subscribe();
            self.cover(&mut state);
            told
        };
        let result = timeout(PATIENCE, told.wait_for(Option::is_some)).await;
        let late = Err(RemoteError::Late(PATIENCE));
        match result {
            Ok(Ok(told)) => told.clone().unwrap_or(late),
            Ok(Err(_)) | Err(_) => late,
        }
    }

    /// Starts sessions for segments that are waited for and that no session will reach soon.
    fn cover(self: &Arc<Self>, state: &mut State) {
        state.wanted.retain(|_, wanted| wanted.tell.receiver_count() > 0);
        let numbers: Vec<u64> = state.wanted.keys().copied().collect();
        for number in numbers {
            let reach = if state.can_seek { REACH } else { u64::MAX };
            let is_reached = |session: &Session| session.next <= number && number - session.next <= reach;
            if state.sessions.iter().any(is_reached) {
                continue;
            }
            let first = if state.can_seek { number } else { 0 };
            let ahead = state.grid.start(number - first);
            if ahead > PATIENCE {
                tell(state, number, &Err(RemoteError::NotSeekable(ahead)));
            } else if state.sessions.len() < MOST_SESSIONS {
                let id = state.next_id;
                state.next_id += 1;
                state.sessions.push(Session { id, next: first, unasked: 0 });
                Fetching::new(self.clone(), id).start(first);
            }
        }
    }

    /// Takes a segment that a session completed. Returns whether the session should go on.
    pub(super) fn complete(self: &Arc<Self>, id: u64, number: u64, bytes: Bytes) -> bool {
        let mut state = self.lock();
        let is_asked = tell(&mut state, number, &Ok(bytes.clone()));
        state.keep(number, bytes);
        let title = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(KEPT_FOR).await;
            title.upgrade().iter().for_each(|title| title.lock().forget_old());
        });
        let next = number + 1;
        state.wanted.retain(|_, wanted| wanted.tell.receiver_count() > 0);
        let last = next.saturating_add(if state.can_seek { REACH } else { u64::MAX });
        let is_awaited = state.wanted.range(next..=last).next().is_some();
        let Some(session) = state.sessions.iter_mut().find(|session| session.id == id) else { return false };
        session.next = next;
        session.unasked = if is_asked { 0 } else { session.unasked + 1 };
        is_awaited || session.unasked < AHEAD
    }

    /// Notes that the server plays from the beginning only.
    pub(super) fn cannot_seek(&self) {
        if std::mem::replace(&mut self.lock().can_seek, false) {
            tracing::warn!(title = %self.path, "the server of a stored title can't seek: it is played from the beginning only");
        }
    }

    /// Returns the speed to ask the server for; `None` where it has none.
    pub(super) fn faster(&self) -> Option<Faster<'_>> {
        self.lock().can_hurry.then_some(Faster { speed: SPEED, usual: &self.usual })
    }

    /// Notes that the server sends at the usual pace only.
    pub(super) fn cannot_hurry(&self) {
        self.lock().can_hurry = false;
    }

    /// Notes where the title ended, after `count` segments. The stated length may be another one.
    ///
    /// # Errors
    /// The title has no segment at all.
    pub(super) fn ended(&self, count: u64) -> Result<(), &'static str> {
        let mut state = self.lock();
        if count == 0 {
            return Err("the title ended before its first picture");
        }
        if count >= state.grid.count() {
            return Ok(());
        }
        let length = state.grid.start(count);
        tracing::warn!(title = %self.path, stated = ?state.grid.length, found = ?length, "a stored title is shorter than its description says");
        state.grid.length = length;
        state.listing = Arc::new(Listing::new(&self.formats, (&self.reorderings, &self.rates), state.grid));
        let behind: Vec<u64> = state.wanted.range(count..).map(|(number, _)| *number).collect();
        for number in behind {
            tell(&mut state, number, &Err(RemoteError::BehindEnd));
        }
        Ok(())
    }

    /// Removes a session that is over. What it was to fetch is fetched by another one, unless that failed too often.
    pub(super) fn over(self: &Arc<Self>, id: u64, error: Option<RemoteError>) {
        let mut state = self.lock();
        let Some(place) = state.sessions.iter().position(|session| session.id == id) else { return };
        let session = state.sessions.remove(place);
        if let Some(error) = error {
            tracing::debug!(title = %self.path, segment = session.next, %error, "a session with the server of a stored title failed");
            let concerned: Vec<u64> = match &error {
                RemoteError::Changed => state.wanted.keys().copied().collect(),
                _ => state.wanted.range(session.next..).take(1 + REACH as usize).map(|(number, _)| *number).collect(),
            };
            for number in concerned {
                let Some(wanted) = state.wanted.get_mut(&number) else { continue };
                wanted.failures += 1;
                if wanted.failures >= TRIES || !error.may_pass() {
                    tell(&mut state, number, &Err(error.clone()));
                }
            }
        }
        self.cover(&mut state);
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

impl State {
    /// Keeps a segment until the store has read it.
    fn keep(&mut self, number: u64, bytes: Bytes) {
        self.kept.retain(|kept| kept.number != number);
        self.kept.push_back(Kept { number, bytes, at: Instant::now() });
        let bytes = |kept: &VecDeque<Kept>| kept.iter().map(|kept| kept.bytes.len()).sum::<usize>();
        while self.kept.len() > KEPT || (self.kept.len() > 1 && bytes(&self.kept) > MOST_KEPT) {
            self.kept.pop_front();
        }
    }

    /// Forgets segments that the store has not asked for in time.
    fn forget_old(&mut self) {
        self.kept.retain(|kept| kept.at.elapsed() < KEPT_FOR);
    }
}

/// Tells a result to all who wait for a segment. Returns whether there are any.
fn tell(state: &mut State, number: u64, result: &Fetched) -> bool {
    let Some(wanted) = state.wanted.remove(&number) else { return false };
    wanted.tell.send_replace(Some(result.clone()));
    wanted.tell.receiver_count() > 0
}

/// Returns the bytes a second of a track's samples.
fn rate<'a>(format: &Format, samples: impl Iterator<Item = &'a TitleSample>) -> f64 {
    let (mut bytes, mut first, mut last) = (0, i64::MAX, i64::MIN);
    for sample in samples {
        bytes += sample.data.len();
        (first, last) = (first.min(sample.time), last.max(sample.time));
    }
    let seconds = last.saturating_sub(first).max(1) as f64 / f64::from(format.timescale());
    bytes as f64 / seconds
}

/// Returns the clocks of tracks, and whether they are pictures.
fn clocks<'a>(formats: impl IntoIterator<Item = &'a Format>) -> Vec<(Timescale, bool)> {
    formats.into_iter().map(|format| (format.track.timescale, format.is_video())).collect()
}
