//! Streams that publishers push.

use crate::{
    graph::Shared,
    notice::{Notice, StreamNotices},
    reception::{AnnouncedMedia, ModuleFrames},
    registry::NodeId,
    source_health::SourceError,
};
use bytes::Bytes;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{self, UnboundedReceiver, UnboundedSender},
};

/// Bytes that wait between a publisher and its reception. At this limit the publisher waits.
const QUEUE: u32 = 4 << 20;
/// Memory of a piece in the queue beside its bytes.
const PIECE: u32 = 128;
/// Silence of a publisher after which another one takes its place, whatever [`Conflict`] says: connections that break
/// without a word hold their name no longer than this.
const SILENT: Duration = Duration::from_secs(10);

/// Interval at which a publication without pieces looks whether it has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The treatment of a second publisher of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// It is refused while the first publisher exists.
    #[default]
    Refuse,
    /// It replaces the first publisher.
    Replace,
}

/// Media that is pushed, by its format.
#[derive(Debug)]
pub enum PublishedMedia {
    /// RTP and RTCP packets. The channel of a piece is its interleaved channel; packets by UDP are read by the reception.
    Rtp(Box<AnnouncedMedia>),
    /// An MPEG transport stream with one programme (ISO/IEC 13818-1). The channel is not used.
    Transport,
    /// Fragmented MP4 (ISO/IEC 14496-12 8.8). An empty piece means that the next piece of its channel begins with a box.
    Fragments {
        /// Whether tracks arrive each on its own channel, as in CMAF. Others are then waited for at the beginning.
        is_split: bool,
    },
    /// FLV tags, each a piece of its own: header and body. The channel is not used.
    Flv,
    /// Frames of a module that is attached to another stream. They come by a pipe, and there are no pieces.
    Frames(Box<ModuleFrames>),
}

impl PublishedMedia {
    /// Returns the name of the format, as notices have it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Rtp(_) => "rtp",
            Self::Transport => "mpeg-ts",
            Self::Fragments { .. } => "fmp4",
            Self::Flv => "flv",
            Self::Frames(_) => "frames",
        }
    }

    /// Tells the module that takes the frames of a module.
    pub(crate) fn lead_to(&self, reception: NodeId) {
        if let Self::Frames(frames) = self {
            frames.lead_to(reception);
        }
    }

    /// Path of the stream whose frames a module gives; `None` for publishers from outside.
    pub(crate) fn stream(&self) -> Option<&str> {
        match self {
            Self::Frames(frames) => Some(frames.stream()),
            _ => None,
        }
    }
}

/// Why a publication ended before its publisher left.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PublicationEnd {
    /// Another publisher took its place.
    #[error("another publisher took the place of this one")]
    Replaced,
    /// Its media can't be received.
    #[error(transparent)]
    Failed(Arc<SourceError>),
    /// The stream is closed.
    #[error("the stream is closed")]
    Closed,
    /// Another process of the server takes publishers now.
    #[error("another process of the server takes publishers now: push again")]
    HandedOver,
}

impl PublicationEnd {
    /// Returns its name, and its words where they tell more.
    fn told(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Replaced => ("replaced", None),
            Self::Failed(error) => ("failed", Some(error.to_string())),
            Self::Closed => ("closed", None),
            Self::HandedOver => ("handed-over", None),
        }
    }
}

/// A push that is being received. The publisher leaves by dropping it. Viewers then wait 15 s for the next publisher.
#[derive(Debug)]
pub struct Publication {
    pieces: UnboundedSender<Piece>,
    room: Arc<Semaphore>,
    presence: Arc<Presence>,
    /// Keeps the stream open without viewers, so that the first one begins with a key frame at once.
    _shared: Arc<Shared>,
}

/// Bytes of a publisher.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) channel: u8,
    pub(crate) bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

/// The end of a publication's queue that gives pieces.
pub(crate) type Queue = UnboundedReceiver<Piece>;

/// The state that publisher and reception share.
#[derive(Debug)]
pub(crate) struct Presence {
    began: Instant,
    /// Milliseconds from `began` to the last sign of the publisher.
    heard: AtomicU64,
    pieces: AtomicU64,
    bytes: AtomicU64,
    ended: OnceLock<PublicationEnd>,
    /// Path of the stream whose frames a module gives.
    stream: Option<Arc<str>>,
    /// Name of the format of its media.
    media: &'static str,
    notices: StreamNotices,
    /// [`UNTOLD`], [`BEGUN`] or [`OVER`].
    told: AtomicU8,
}

/// No notice of a publication was posted.
const UNTOLD: u8 = 0;
/// Its beginning was posted.
const BEGUN: u8 = 1;
/// Its end was posted.
const OVER: u8 = 2;

impl Presence {
    fn new(media: &PublishedMedia, notices: StreamNotices) -> Self {
        let [heard, pieces, bytes] = [0; 3].map(AtomicU64::new);
        let (stream, media, told) = (media.stream().map(Arc::from), media.name(), AtomicU8::new(UNTOLD));
        Self { began: Instant::now(), heard, pieces, bytes, ended: OnceLock::new(), stream, media, notices, told }
    }

    /// Posts that it begins.
    pub(crate) fn post_beginning(&self) {
        if self.told.compare_exchange(UNTOLD, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.notices.post(Notice::PublisherBegan { media: self.media });
        }
    }

    /// Posts that it is over, once, if its beginning was posted.
    fn post_end(&self, (reason, words): (&'static str, Option<String>)) {
        if self.told.compare_exchange(BEGUN, OVER, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let (media, lasted) = (self.media, self.began.elapsed());
            let bytes = self.bytes.load(Ordering::Relaxed);
            self.notices.post(Notice::PublisherEnded { media, reason, words, lasted, bytes });
        }
    }

    /// Path of the stream whose frames a module gives; `None` for publishers from outside.
    pub(crate) fn stream(&self) -> Option<&Arc<str>> {
        self.stream.as_ref()
    }

    /// Notes that a piece or a packet arrived.
    pub(crate) fn hear(&self, bytes: usize) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.stay();
    }

    /// Notes that the publisher is there.
    fn stay(&self) {
        self.heard.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Notes why it ended. The first reason counts.
    pub(crate) fn end(&self, why: PublicationEnd) {
        self.post_end(why.told());
        let _ = self.ended.set(why);
    }

    /// Whether its publisher is there.
    pub(crate) fn is_active(&self) -> bool {
        self.ended.get().is_none() && self.silence() < SILENT
    }

    fn silence(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed)))
    }
}

impl Publication {
    /// Creates a publication, and the parts of it that its reception needs: the queue and the presence.
    pub(crate) fn new(
        shared: Arc<Shared>,
        media: &PublishedMedia,
        notices: StreamNotices,
    ) -> (Self, Queue, Arc<Presence>) {
        let (pieces, queue) = mpsc::unbounded_channel();
        let presence = Arc::new(Presence::new(media, notices));
        let room = Arc::new(Semaphore::new(QUEUE as usize));
        let publication = Self { pieces, room, presence: presence.clone(), _shared: shared };
        (publication, queue, presence)
    }

    /// Gives a piece of media to the reception. Waits while 4 MiB wait. Cancel safe: a cancelled piece was not given.
    ///
    /// # Errors
    /// The reason why the publication ended.
    pub async fn push(&self, channel: u8, bytes: Bytes) -> Result<(), PublicationEnd> {
        if let Some(why) = self.presence.ended.get() {
            return Err(why.clone());
        }
        let cost = u32::try_from(bytes.len()).map_or(QUEUE, |length| length.saturating_add(PIECE).min(QUEUE));
        let room = match self.room.clone().try_acquire_many_owned(cost) {
            Ok(room) => room,
            Err(_) => tokio::select! {
                room = self.room.clone().acquire_many_owned(cost) => room.map_err(|_| self.why())?,
                () = self.pieces.closed() => return Err(self.why()),
            },
        };
        self.pieces.send(Piece { channel, bytes, _room: room }).map_err(|_| self.why())
    }

    /// Waits until the reception has taken all pieces that were given to it.
    ///
    /// # Errors
    /// The reason why the publication ended.
    pub async fn taken(&self) -> Result<(), PublicationEnd> {
        tokio::select! {
            _ = self.room.acquire_many(QUEUE) => {}
            () = self.pieces.closed() => {}
        }
        self.ended().map_or(Ok(()), Err)
    }

    /// Stays without media, and waits until it has ended. Cancel safe.
    pub(crate) async fn over(&self) -> PublicationEnd {
        loop {
            if let Some(why) = self.ended() {
                return why;
            }
            self.presence.stay();
            let _ = tokio::time::timeout(LOOK, self.pieces.closed()).await;
        }
    }

    /// The reason why it ended; `None` while it is received.
    pub fn ended(&self) -> Option<PublicationEnd> {
        (self.pieces.is_closed() || self.presence.ended.get().is_some()).then(|| self.why())
    }

    /// Time since media last arrived, or since the beginning.
    pub fn silence(&self) -> Duration {
        self.presence.silence()
    }

    /// Pieces or packets that arrived, and their bytes.
    pub fn received(&self) -> (u64, u64) {
        (self.presence.pieces.load(Ordering::Relaxed), self.presence.bytes.load(Ordering::Relaxed))
    }

    fn why(&self) -> PublicationEnd {
        self.presence.ended.get().cloned().unwrap_or(PublicationEnd::Closed)
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.presence.post_end(("left", None));
    }
}
