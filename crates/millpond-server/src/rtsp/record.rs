//! Log lines of a session: one when it first plays, and one at its end.

use millpond_stream::Observer;
use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its client sent TEARDOWN.
    Teardown,
    /// The connection of its packets ended.
    ConnectionLost,
    /// Its client was silent for a minute.
    Silent,
    /// Its client read nothing.
    Stuck,
    /// Another publisher took its place.
    Replaced,
    /// The media that its client pushes can't be received.
    Unreceivable,
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            Self::Teardown => "teardown",
            Self::ConnectionLost => "connection_lost",
            Self::Silent => "silent",
            Self::Stuck => "client_slow",
            Self::Replaced => "replaced",
            Self::Unreceivable => "unreceivable",
        }
    }
}

/// The record of one session. Its last line is written when it is dropped, which is after the last packet.
#[derive(Debug, Default)]
pub(super) struct Record {
    about: Option<About>,
    played: OnceLock<Instant>,
    ended: OnceLock<End>,
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// The session that a record describes.
#[derive(Clone, Debug)]
pub(super) struct About {
    /// Number of the session in `/graph`; of publishers a random one.
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) asset: String,
    /// User agent of the client.
    pub(super) agent: Option<String>,
    /// Counts the records that have not ended.
    pub(super) _open: Arc<()>,
}

impl Record {
    /// Creates the record of a session. Without `about`, nothing is logged.
    pub(super) fn new(about: Option<About>) -> Self {
        let (packets, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { about, played: OnceLock::new(), ended: OnceLock::new(), packets, bytes }
    }

    /// Logs that the session plays over `transport`.
    pub(super) fn plays(&self, transport: &'static str) {
        self.begins(transport, "plays");
    }

    /// Logs that the session's client publishes over `transport`.
    pub(super) fn publishes(&self, transport: &'static str) {
        self.begins(transport, "publishes");
    }

    fn begins(&self, transport: &'static str, what: &'static str) {
        let is_first = self.played.set(Instant::now()).is_ok();
        if let Some(About { id, peer, asset, agent, .. }) = self.about.as_ref().filter(|_| is_first) {
            let session = format_args!("{id:x}");
            tracing::info!(%session, %peer, asset, transport, agent, "RTSP session {what}");
        }
    }

    /// Sets the reason of the session's end. The first one counts.
    pub(super) fn ends(&self, why: End) {
        let _ = self.ended.set(why);
    }
}

impl Observer for Record {
    fn is_stuck(&self) {
        self.ends(End::Stuck);
    }

    fn stopped(&self, packets: u64, bytes: u64) {
        self.packets.store(packets, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let (Some(About { id, peer, asset, agent, .. }), Some(played)) = (&self.about, self.played.get()) else {
            return;
        };
        let (packets, bytes) = (*self.packets.get_mut(), *self.bytes.get_mut());
        let ended = self.ended.get().map_or("shutdown", |end| end.name());
        let session = format_args!("{id:x}");
        let ms = played.elapsed().as_millis() as u64;
        tracing::info!(%session, %peer, asset, agent, packets, bytes, ms, ended, "RTSP session ended");
    }
}
