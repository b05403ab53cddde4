//! The window of a running stream, shared by its segmenter and all who wait for it.

use super::lease::Lease;
use bytes::Bytes;
use millpond_package::{
    dash::live::{ManifestView, mpd},
    hls::{
        live::{PlaylistView, media},
        live_multivariant,
    },
    live::{Directives, Edge, PartLookUp, Reload, SegmentNumber, Window},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::watch;

/// Term of a lease until the target duration is known.
const UNMEASURED: Duration = Duration::from_secs(15);
/// Target durations without a request after which a player has left.
const TARGETS: u32 = 3;

/// The segments of a running stream, their version, and what was rendered of them.
///
/// A segmenter changes it. It runs as long as requests [renew](Self::renew) its lease, and keeps the graph of the stream
/// running. Once [over](Self::is_over), a window stays as it is, and [`Manager::window`](crate::Manager::window) makes another.
/// No method waits with a lock held.
#[derive(Debug)]
pub struct LiveWindow {
    run: Box<str>,
    /// A lock: written for each part, read for each request.
    state: RwLock<State>,
    version: watch::Sender<u64>,
    /// A lock: taken while a text is rendered, so that it is rendered once.
    texts: Mutex<Texts>,
    lease: Lease,
}

#[derive(Debug)]
struct State {
    window: Window,
    /// Wall time of the last change, since the Unix epoch.
    changed: Duration,
}

/// Texts of one version.
#[derive(Debug, Default)]
struct Texts {
    version: u64,
    texts: HashMap<Text, Bytes>,
}

/// A text that is rendered from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Text {
    Multivariant,
    Mpd { clock: &'static str },
    Media { track: usize, skip: bool },
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
    /// It left the window, has no media, or lies far ahead.
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
    pub(crate) fn new(run: String, window: Window, linger: Duration) -> Self {
        Self {
            run: run.into(),
            version: watch::Sender::new(window.version()),
            state: RwLock::new(State { window, changed: Duration::ZERO }),
            texts: Mutex::default(),
            lease: Lease::new(linger, UNMEASURED),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the window and wakes all who wait.
    pub(crate) fn change(&self, act: impl FnOnce(&mut Window)) {
        let version = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            act(&mut state.window);
            state.changed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            state.window.version()
        };
        self.version.send_if_modified(|known| std::mem::replace(known, version) != version);
    }

    /// Looks something up in the window. `look` must be short: the segmenter waits for it.
    pub fn look<T>(&self, look: impl FnOnce(&Window) -> T) -> T {
        look(&self.read().window)
    }

    /// Name of the run in URIs: 16 hexadecimal digits. Windows made later have others.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Renews the lease: each request for a playlist or media does. The window ends the linger time of its stream, or three
    /// target durations, after the last one. Returns whether the window still runs.
    pub fn renew(&self) -> bool {
        let target = self.look(|window| window.targets().map(|targets| targets.segment.duration()));
        self.lease.renew(target.map_or(UNMEASURED, |target| target * TARGETS))
    }

    /// Whether nothing changes any more.
    pub fn is_over(&self) -> bool {
        self.lease.is_over()
    }

    /// Waits until the lease is over. Cancel safe.
    pub(crate) async fn expired(&self) {
        self.lease.expired().await;
    }

    /// Ends the window and wakes all who wait.
    pub(crate) fn end(&self) {
        self.lease.end();
        self.version.send_modify(|_| {});
    }

    /// Changes with each change of the window, and when it is over.
    pub fn version(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits until `look` finds something, which is asked after each change. `None` after `patience`, and where the window
    /// is over before. Cancel safe.
    pub async fn when<T>(&self, patience: Duration, mut look: impl FnMut(&Window) -> Option<T>) -> Option<T> {
        let mut versions = self.version();
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
    /// and until the track has a complete segment.
    pub fn media(&self, track: usize, skip: bool) -> Option<Bytes> {
        let view = PlaylistView { run: &self.run, skip };
        self.text(Text::Media { track, skip }, |state| media(&state.window, track, &view))
    }

    /// Returns the multivariant playlist; `None` until the window is [ready](Self::ready).
    pub fn multivariant(&self) -> Option<Bytes> {
        self.text(Text::Multivariant, |state| live_multivariant(&state.window))
    }

    /// Returns the MPD; `None` until the window is [ready](Self::ready). `clock` is the URL of the server's time.
    pub fn mpd(&self, clock: &'static str) -> Option<Bytes> {
        self.text(Text::Mpd { clock }, |state| {
            mpd(&state.window, &ManifestView { run: &self.run, clock, published: state.changed })
        })
    }

    /// Returns a text, rendered once a version.
    fn text(&self, text: Text, render: impl FnOnce(&State) -> Option<String>) -> Option<Bytes> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.read();
        if texts.version != state.window.version() {
            *texts = Texts { version: state.window.version(), texts: HashMap::new() };
        }
        if let Some(known) = texts.texts.get(&text) {
            return Some(known.clone());
        }
        let rendered = Bytes::from(render(&state)?);
        texts.texts.insert(text, rendered.clone());
        Some(rendered)
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
                Some(of_track) if of_track.is_gap() => FoundSegment::Unknown,
                Some(of_track) if of_track.is_closed() || !of_track.parts().is_empty() => FoundSegment::Begun {
                    parts: of_track.parts().iter().map(PartBytes::of).collect(),
                    is_closed: of_track.is_closed(),
                },
                _ if is_next => FoundSegment::Next,
                _ => FoundSegment::Unknown,
            }
        })
    }

    /// Returns the init segment of a track in an epoch.
    pub fn init(&self, track: usize, epoch: u32) -> Option<Bytes> {
        self.look(|window| window.init(track, epoch).cloned())
    }
}
