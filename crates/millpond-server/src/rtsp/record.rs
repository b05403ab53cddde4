//! Log lines of a session: one when it first plays, and one at its end.

use crate::bit_rate::BitRate;
use millpond_stream::{Observer, SentTotals};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
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
    /// The token of its client ended, or was revoked.
    Expired,
    /// The media that its client pushes can't be received.
    Unreceivable,
    /// An operator ended it.
    Kicked,
    /// Another process of the server takes publishers.
    HandedOver,
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            Self::Teardown => "teardown",
            Self::ConnectionLost => "connection_lost",
            Self::Silent => "silent",
            Self::Stuck => "client_slow",
            Self::Replaced => "replaced",
            Self::Expired => "expired",
            Self::Unreceivable => "unreceivable",
            Self::Kicked => "kicked",
            Self::HandedOver => "handed_over",
        }
    }
}

/// The record of one session. Its last line is written when it is dropped, which is after the last packet.
#[derive(Debug, Default)]
pub(super) struct Record {
    about: Option<About>,
    /// Whether the session's lines are logged.
    is_logged: bool,
    /// Begin of PLAY or RECORD.
    played: OnceLock<Played>,
    /// Rate of the session. A lock: taken when an operator looks.
    rate: Mutex<BitRate>,
    ended: OnceLock<End>,
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Packets that the receiver's reports say are lost.
    lost: AtomicU64,
}

/// The begin of a session's media.
#[derive(Clone, Copy, Debug)]
struct Played {
    at: Instant,
    transport: &'static str,
    /// `PLAY` or `RECORD`.
    method: &'static str,
}

/// The session that a record describes.
#[derive(Clone, Debug)]
pub(super) struct About {
    /// Time at which it was set up.
    pub(super) began: SystemTime,
    /// Number of the session's module in the graph of the admin API; of publishers a random one.
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) asset: String,
    /// User agent of the client.
    pub(super) agent: Option<String>,
    /// Counts the records that have not ended.
    pub(super) _open: Arc<()>,
}

impl Record {
    /// Creates the record of a session. `is_logged` tells whether it writes lines.
    pub(super) fn new(about: About, is_logged: bool) -> Self {
        Self {
            about: Some(about),
            is_logged,
            played: OnceLock::new(),
            rate: Mutex::default(),
            ended: OnceLock::new(),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// The session.
    pub(super) fn about(&self) -> Option<&About> {
        self.about.as_ref()
    }

    /// The transport of the session, once it has played or published.
    pub(super) fn transport(&self) -> Option<&'static str> {
        self.played.get().map(|played| played.transport)
    }

    /// Bits a second of a session that has sent or received `bytes`, since the look before this one. Looks within 2 s of
    /// each other give the same rate.
    pub(super) fn rate(&self, bytes: u64) -> Option<u64> {
        let began = self.played.get()?.at;
        Some(self.rate.lock().unwrap_or_else(PoisonError::into_inner).look(began, bytes))
    }

    /// Logs that the session plays over `transport`.
    pub(super) fn plays(&self, transport: &'static str) {
        self.begins((transport, "PLAY"), "plays");
    }

    /// Logs that the session's client publishes over `transport`.
    pub(super) fn publishes(&self, transport: &'static str) {
        self.begins((transport, "RECORD"), "publishes");
    }

    fn begins(&self, (transport, method): (&'static str, &'static str), what: &'static str) {
        let is_first = self.played.set(Played { at: Instant::now(), transport, method }).is_ok();
        if let Some(About { id, peer, asset, agent, .. }) = self.about.as_ref().filter(|_| is_first && self.is_logged) {
            let session = format_args!("{id:x}");
            tracing::info!(target: millpond_logging::ACCESS, %session, %peer, asset, transport, agent, "RTSP session {what}");
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

    fn stopped(&self, sent: SentTotals) {
        self.packets.store(sent.packets, Ordering::Relaxed);
        self.bytes.store(sent.bytes, Ordering::Relaxed);
        self.lost.store(sent.lost, Ordering::Relaxed);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let (Some(About { id, peer, asset, agent, .. }), Some(played)) = (&self.about, self.played.get()) else {
            return;
        };
        if !self.is_logged {
            return;
        }
        let Played { at, transport, method } = *played;
        let (packets, bytes, lost) = (*self.packets.get_mut(), *self.bytes.get_mut(), *self.lost.get_mut());
        // The source of a publisher counts its lost packets.
        let lost = (method == "PLAY").then_some(lost);
        let ended = self.ended.get().map_or("shutdown", |end| end.name());
        let (session, protocol, client) = (format_args!("{id:x}"), "RTSP/1.0", peer.ip());
        let ms = at.elapsed().as_millis() as u64;
        tracing::info!(target: millpond_logging::ACCESS, %session, %peer, %client, method, asset, protocol, status = 200_u16,
            transport, agent, packets, bytes, lost, ms, ended, "RTSP session ended");
    }
}
