//! The window of a running stream, shared by its segmenter and all waiting requests.

use super::{
    Ladder, LiveText, PartReader, TimeShift,
    lease::Lease,
    texts::{Away, Text, Texts},
    transport::Transports,
};
use crate::graph::LiveMemory;
use bytes::Bytes;
use millpond_package::{
    dash::live::{ManifestView, mpd},
    hls::{
        Container,
        live::{PlaylistView, media},
        live_multivariant,
    },
    live::{Directives, Edge, Extent, PartLookUp, Reload, SegmentNumber, TextSample, Window, live_webvtt},
};
use std::{
    fs::File,
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Term of a lease until the target duration is known.
const UNMEASURED: Duration = Duration::from_secs(15);
/// Most bytes of a segment's subtitles.
const MOST_TEXT: usize = 4 << 20;
/// End of the URLs of playlists.
const PLAYLIST: &str = "index.m3u8";
/// Target durations without a request after which a player has left.
const TARGETS: u32 = 3;

/// The segments of a running stream, their version, and the texts that were rendered from them.
///
/// A segmenter changes it. It runs while requests [renew](Self::renew) its lease, and keeps the graph of the stream running. Once
/// [over](Self::is_over), a window stays as it is, and [`Manager::window`](crate::Manager::window) makes another. No method waits
/// with a lock held.
#[derive(Debug)]
pub struct LiveWindow {
    run: Box<str>,
    /// A lock: written for each part, read for each request.
    state: RwLock<State>,
    version: watch::Sender<u64>,
    /// The versions of the tracks.
    tracks: Box<[watch::Sender<u64>]>,
    /// A lock: taken while a text is rendered, so that it is rendered once.
    texts: Mutex<Texts>,
    pub(super) transports: Transports,
    lease: Lease,
    /// The past of the stream on the disk.
    shift: Option<Arc<TimeShift>>,
    /// Its ladder, and its path there.
    ladder: Option<(Arc<Ladder>, Box<str>)>,
    /// Whether the stream continues with other tracks, in another window.
    is_succeeded: AtomicBool,
    /// One of [`ORIGINS`].
    origin: AtomicU8,
}

/// Where the segments of a window are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Origin {
    /// Here.
    Own,
    /// At another server, whose window it follows.
    Copy,
    /// At another server first, and here now.
    Continued,
    /// Here, until another server went on with the run.
    Displaced,
}

/// All origins, by their numbers.
const ORIGINS: [Origin; 4] = [Origin::Own, Origin::Copy, Origin::Continued, Origin::Displaced];

#[derive(Debug)]
pub(super) struct State {
    pub(super) window: Window,
    /// Wall time of the last change, since the Unix epoch.
    pub(super) changed: Duration,
}

/// The result of looking a part up in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundPart {
    /// It is complete.
    Complete(PartBytes),
    /// It is the next one of its track, at which playlists hint: it can be waited for.
    Next,
    /// It left the window, or never was announced.
    Unknown,
}

/// The result of looking a segment of one track up in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSegment {
    /// It has begun.
    Begun {
        /// Its parts so far, in order.
        parts: Vec<PartBytes>,
        /// Whether no further part follows.
        is_closed: bool,
    },
    /// It is one of the next two of its track: it can be waited for.
    Next,
    /// It left memory, has no media, or lies far ahead.
    Unknown,
}

/// The bytes of a part, shared with the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartBytes {
    /// `moof` and the header of `mdat`, then each sample.
    pub bytes: Arc<[Bytes]>,
    /// Length of all in bytes.
    pub len: u64,
}

impl PartBytes {
    fn of(part: &millpond_package::live::Part) -> Self {
        Self { bytes: part.bytes.clone(), len: part.len() }
    }
}

impl LiveWindow {
    /// Makes the window of a run, with a lease of `linger` or longer.
    pub(crate) fn new(run: String, window: Window, linger: Duration, shift: Option<Arc<TimeShift>>) -> Self {
        Self {
            run: run.into(),
            version: watch::Sender::new(window.version()),
            tracks: window.tracks().iter().map(|_| watch::Sender::new(0)).collect(),
            state: RwLock::new(State { window, changed: Duration::ZERO }),
            texts: Mutex::default(),
            transports: Transports::default(),
            lease: Lease::new(linger, UNMEASURED),
            shift,
            ladder: None,
            is_succeeded: AtomicBool::new(false),
            origin: AtomicU8::new(Origin::Own as u8),
        }
    }

    /// Counts the transport stream segments that are made of it in the memory of its stream.
    pub(super) fn counted_in(self, memory: LiveMemory) -> Self {
        Self { transports: Transports::counted_in(memory), ..self }
    }

    /// Makes it the copy of another server's window.
    pub(super) fn into_copy(self) -> Self {
        Self { origin: AtomicU8::new(Origin::Copy as u8), ..self }
    }

    /// Notes that its segments are cut here from now on.
    pub(super) fn set_continued(&self) {
        self.origin.store(Origin::Continued as u8, Ordering::Relaxed);
    }

    /// Whether it follows the window of another server, which may be ahead of it by the way of a part.
    pub fn is_copy(&self) -> bool {
        self.origin() == Origin::Copy
    }

    /// Whether another server has cut some of its segments. That one may have listed some that this window lacks.
    pub fn is_of_another(&self) -> bool {
        matches!(self.origin(), Origin::Copy | Origin::Continued)
    }

    /// Ends it, because another server went on with its run.
    pub(super) fn displace(&self) {
        self.origin.store(Origin::Displaced as u8, Ordering::Relaxed);
        self.end();
    }

    /// Whether another server went on with its run.
    pub fn is_displaced(&self) -> bool {
        self.origin() == Origin::Displaced
    }

    fn origin(&self) -> Origin {
        ORIGINS.get(usize::from(self.origin.load(Ordering::Relaxed))).copied().unwrap_or(Origin::Own)
    }

    /// Makes it one of a ladder, as the window of the stream at `path`.
    pub(super) fn in_ladder(self, ladder: Option<Arc<Ladder>>, path: &str) -> Self {
        Self { ladder: ladder.map(|ladder| (ladder, path.into())), ..self }
    }

    /// The ladder that it is one of.
    pub(crate) fn ladder(&self) -> Option<&Arc<Ladder>> {
        self.ladder.as_ref().map(|(ladder, _)| ladder)
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the window, and wakes the requests that wait for the change.
    pub(crate) fn change(&self, act: impl FnOnce(&mut Window)) {
        let wake = |sender: &watch::Sender<u64>, version: u64| {
            sender.send_if_modified(|known| std::mem::replace(known, version) != version);
        };
        {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            act(&mut state.window);
            state.changed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        }
        // Those who are woken read the window.
        let state = self.read();
        wake(&self.version, state.window.version());
        self.tracks.iter().enumerate().for_each(|(track, sender)| wake(sender, state.window.track_version(track)));
    }

    /// Looks something up in the window. `look` must be short: the segmenter waits for it.
    pub fn look<T>(&self, look: impl FnOnce(&Window) -> T) -> T {
        look(&self.read().window)
    }

    /// Name of the run in URIs: 16 hexadecimal digits. Windows made later have others.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Renews the lease: each request for a playlist or media does. The window ends after its last request, by the linger time of
    /// its stream or by three target durations. Returns whether the window still runs.
    ///
    /// A request for one stream of a ladder renews all of them: players switch between them at any time.
    pub fn renew(&self) -> bool {
        if let Some((ladder, _)) = &self.ladder {
            ladder.windows().iter().for_each(|(_, window)| {
                window.renew_alone();
            });
        }
        self.renew_alone()
    }

    fn renew_alone(&self) -> bool {
        let target = self.look(|window| window.targets().map(|targets| targets.segment.duration()));
        self.lease.renew(target.map_or(UNMEASURED, |target| target * TARGETS))
    }

    /// Whether players have asked for it within the time of its lease.
    pub fn is_watched(&self) -> bool {
        self.lease.is_fresh()
    }

    /// Whether nothing changes any more.
    pub fn is_over(&self) -> bool {
        self.lease.is_over()
    }

    /// Waits until the lease is over. Cancel safe.
    pub(crate) async fn expired(&self) {
        self.lease.expired().await;
    }

    /// Waits until nothing changes any more. Cancel safe.
    pub(crate) async fn over(&self) {
        let mut versions = self.version();
        while !self.is_over() && versions.changed().await.is_ok() {}
    }

    /// Notes that the stream continues with other tracks, in another window.
    pub(crate) fn succeed(&self) {
        self.is_succeeded.store(true, Ordering::Relaxed);
    }

    /// Whether the stream continues with other tracks, in another window.
    pub(super) fn is_succeeded(&self) -> bool {
        self.is_succeeded.load(Ordering::Relaxed)
    }

    /// Ends the window, and wakes all waiting requests.
    pub(crate) fn end(&self) {
        self.lease.end();
        self.version.send_modify(|_| {});
        self.tracks.iter().for_each(|sender| sender.send_modify(|_| {}));
    }

    /// Changes with each change of the window, and when it is over.
    pub fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits until `look` finds something, which is asked after each change. `None` after `patience`, and where the window
    /// is over before. Cancel safe.
    pub async fn when<T>(&self, patience: Duration, look: impl FnMut(&Window) -> Option<T>) -> Option<T> {
        self.when_changed(self.version(), patience, look).await
    }

    /// Waits as [`when`](Self::when) does; `look` is asked after each change of one track only.
    pub async fn when_track<T>(
        &self,
        track: usize,
        patience: Duration,
        look: impl FnMut(&Window) -> Option<T>,
    ) -> Option<T> {
        let versions = self.tracks.get(track).unwrap_or(&self.version).subscribe();
        self.when_changed(versions, patience, look).await
    }

    async fn when_changed<T>(
        &self,
        mut versions: watch::Receiver<u64>,
        patience: Duration,
        mut look: impl FnMut(&Window) -> Option<T>,
    ) -> Option<T> {
        let found = async {
            loop {
                versions.borrow_and_update();
                if let Some(found) = self.look(&mut look) {
                    return Some(found);
                }
                if self.is_over() {
                    return None;
                }
                versions.changed().await.ok()?;
            }
        };
        tokio::time::timeout(patience, found).await.ok().flatten()
    }

    /// Waits until all tracks have a complete segment, so that players can begin. Returns whether they have. Cancel safe.
    pub async fn ready(&self, patience: Duration) -> bool {
        self.when(patience, |window| window.is_ready().then_some(())).await.is_some()
    }

    /// Index of the track of a name, such as `v1`.
    pub fn track(&self, name: &str) -> Option<usize> {
        self.look(|window| window.track(name))
    }

    /// Returns the media playlist of a track. `skip` leaves segments before the skip boundary out. `None` for unknown tracks,
    /// for those without segments in the container, and until the track has a complete segment.
    pub fn media(&self, container: Container, track: usize, skip: bool) -> Option<LiveText> {
        let view = PlaylistView { run: &self.run, container, skip, extent: Extent::Edge, query: "" };
        // Before the window is locked: no two are but in the order of their paths.
        let ladder = self.ladder.as_ref().filter(|_| container == Container::Fmp4);
        let others = ladder.map_or(0, |(ladder, _)| ladder.version(&self.run));
        let text = Text::Media { container, track, skip, extent: Extent::Edge, others };
        let Some((ladder, path)) = ladder else {
            return self.text(text, |state| media(&state.window, track, &view));
        };
        if let Some(known) = self.known_text(&text) {
            return Some(known);
        }
        let name = self.look(|window| window.tracks().get(track).map(|track| track.name.clone()))?;
        let reports = ladder.reports(path, &name);
        self.text(text, |state| Some(media(&state.window, track, &view)? + &reports))
    }

    /// Returns the media playlist of a track for an extent of the stream, with fragmented MP4. `query` selects the same extent,
    /// with its `?`, in the URLs of playlists. Only those of the [edge](Extent::Edge) report other streams of a ladder.
    pub fn media_of(&self, track: usize, skip: bool, (extent, query): (Extent, &str)) -> Option<LiveText> {
        let container = Container::Fmp4;
        if extent == Extent::Edge {
            return self.media(container, track, skip);
        }
        let view = PlaylistView { run: &self.run, container, skip, extent, query };
        let text = Text::Media { container, track, skip, extent, others: 0 };
        self.text(text, |state| media(&state.window, track, &view))
    }

    /// Returns the multivariant playlist; `None` until the window is [ready](Self::ready), and where the container can carry no
    /// track of the newest epoch. `query` is the query of its playlists, with its `?`.
    pub fn multivariant(&self, container: Container, query: &str) -> Option<LiveText> {
        let text = self.text(Text::Multivariant { container }, |state| live_multivariant(&state.window, container))?;
        if query.is_empty() || container == Container::Ts {
            return Some(text);
        }
        let text = std::str::from_utf8(&text.bytes).ok()?;
        Some(text.replace(PLAYLIST, &format!("{PLAYLIST}{query}")).into())
    }

    /// Returns the MPD of an extent; `None` until the window is [ready](Self::ready). `clock` is the URL of the server's time.
    pub fn mpd(&self, clock: &'static str, extent: Extent) -> Option<LiveText> {
        let away = if self.is_ended() { Away::default() } else { Away::since(self.read().changed) };
        self.text(Text::Mpd { clock, extent, away }, |state| {
            let published = away.began(state.changed);
            mpd(&state.window, &ManifestView { run: &self.run, clock, published, away: away.time(), extent })
        })
    }

    /// Returns the number of the segment at a wall time since the Unix epoch. This is the last segment that begins at or before
    /// `wall`, else the first segment.
    pub fn at(&self, wall: Duration) -> Option<SegmentNumber> {
        self.look(|window| window.at(wall))
    }

    /// Whether it has only the past of a stream that does not run: no segment follows.
    pub fn is_ended(&self) -> bool {
        self.look(Window::is_ended)
    }

    /// Whether the past of the stream is kept on the disk.
    pub fn has_past(&self) -> bool {
        self.shift.is_some()
    }

    /// Returns the file ranges of a track's segment that left memory. `None` where it is not on the disk. It may block the
    /// thread.
    pub fn stored(&self, track: usize, number: SegmentNumber) -> Option<Vec<(Arc<File>, Range<u64>)>> {
        self.shift.as_ref()?.read(track, number)
    }

    /// Returns the number of the segment that began at a time of an earlier run, in ticks of the track's timescale. `None` where
    /// it is not on the disk.
    pub fn stored_at(&self, run: &str, track: usize, start: i64) -> Option<SegmentNumber> {
        let run = u64::from_str_radix(run, 16).ok()?;
        self.shift.as_ref()?.segment_at(run, track, start)
    }

    /// Returns a text that was rendered from the present version.
    fn known_text(&self, text: &Text) -> Option<LiveText> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.read().window.version();
        texts.known(version, text)
    }

    /// Returns a text, rendered once a version.
    fn text(&self, text: Text, render: impl FnOnce(&State) -> Option<String>) -> Option<LiveText> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.read();
        texts.get(state.window.version(), text, || render(&state))
    }

    /// Decides when a playlist request with directives is answered.
    pub fn decide(&self, directives: &Directives, track: usize) -> Reload {
        self.look(|window| directives.decide(window, track))
    }

    /// Looks a part up by its index in a segment.
    pub fn part(&self, track: usize, segment: SegmentNumber, part: u16) -> FoundPart {
        self.look(|window| match window.part(track, Edge { segment, part }) {
            PartLookUp::Complete(part) => FoundPart::Complete(PartBytes::of(part)),
            PartLookUp::Next => FoundPart::Next,
            PartLookUp::Unknown => FoundPart::Unknown,
        })
    }

    /// Looks a segment of a track up.
    pub fn segment(&self, track: usize, number: SegmentNumber) -> FoundSegment {
        self.look(|window| {
            let next = window.next_segment(track);
            let is_next = next.is_some_and(|next| number == next || number == next.next());
            match window.segment(number).and_then(|segment| segment.track(track)) {
                Some(of_track) if of_track.is_closed() && of_track.parts().is_empty() => FoundSegment::Unknown,
                Some(of_track) if of_track.is_closed() || !of_track.parts().is_empty() => FoundSegment::Begun {
                    parts: of_track.parts().iter().map(PartBytes::of).collect(),
                    is_closed: of_track.is_closed(),
                },
                _ if is_next => FoundSegment::Next,
                _ => FoundSegment::Unknown,
            }
        })
    }

    /// Returns a complete segment of subtitles as WebVTT, from memory or from the disk. It may block the thread. `None` where there is none,
    /// and for other tracks.
    pub fn webvtt(&self, track: usize, number: SegmentNumber, container: Container) -> Option<String> {
        let known = self.look(|window| window.is_text(track).then(|| window.text_samples(track, number)))?;
        // A segment that is listed and has no texts is a file without cues.
        let is_empty = || {
            let is_closed = self.look(|window| {
                window.segment(number).is_some_and(|segment| segment.track(track).is_none_or(|of| of.is_closed()))
            });
            is_closed.then(Vec::new)
        };
        let samples = known.or_else(|| self.stored_text(track, number)).or_else(is_empty)?;
        Some(live_webvtt(samples, container))
    }

    /// Reads the samples of a segment of subtitles from the disk.
    fn stored_text(&self, track: usize, number: SegmentNumber) -> Option<Vec<TextSample>> {
        let init = self.look(|window| window.init(track, window.segment(number)?.epoch).cloned())?;
        let mut reader = PartReader::new(init);
        let mut samples = Vec::new();
        for (file, range) in self.stored(track, number)? {
            let length =
                usize::try_from(range.end.saturating_sub(range.start)).ok().filter(|length| *length <= MOST_TEXT)?;
            let mut part = vec![0; length];
            file.read_exact_at(&mut part, range.start).ok()?;
            samples.extend(reader.samples(&part).into_iter().map(|sample| TextSample {
                start: sample.dts,
                duration: sample.duration,
                data: sample.data,
            }));
        }
        Some(samples)
    }

    /// Returns the init segment of a track in an epoch.
    pub fn init(&self, track: usize, epoch: u32) -> Option<Bytes> {
        self.look(|window| window.init(track, epoch).cloned())
    }
}
