//! Sessions as the access log and operators see them.

use crate::bit_rate::BitRate;
use millpond_stream::{Observer, SentTotals};
use std::{
    net::SocketAddr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

/// The record of one session.
#[derive(Debug)]
pub(super) struct Record {
    /// Number of the session's module in the graph of the admin API.
    pub(super) number: u64,
    pub(super) client: SocketAddr,
    pub(super) asset: String,
    pub(super) agent: Option<String>,
    pub(super) began: SystemTime,
    /// Whether lines are logged.
    is_logged: bool,
    played: OnceLock<Instant>,
    /// A lock: taken when an operator looks.
    rate: Mutex<BitRate>,
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
}

impl Record {
    /// Creates the record of a session that begins now.
    pub(super) fn new(
        (number, asset): (u64, &str),
        (client, agent): (SocketAddr, Option<String>),
        is_logged: bool,
    ) -> Self {
        let [packets, bytes, lost] = [0; 3].map(AtomicU64::new);
        let (asset, began, played) = (asset.to_owned(), SystemTime::now(), OnceLock::new());
        Self { number, client, asset, agent, began, is_logged, played, rate: Mutex::default(), packets, bytes, lost }
    }

    /// Whether the session has played.
    pub(super) fn has_played(&self) -> bool {
        self.played.get().is_some()
    }

    /// Bits a second of a session that has sent `bytes`; `None` before it plays.
    pub(super) fn rate(&self, bytes: u64) -> Option<u64> {
        let began = *self.played.get()?;
        Some(self.rate.lock().unwrap_or_else(PoisonError::into_inner).look(began, bytes))
    }

    /// Logs that the session plays, the first time.
    pub(super) fn plays(&self) {
        let Self { number, client, asset, agent, .. } = self;
        if self.played.set(Instant::now()).is_ok() && self.is_logged {
            let session = format_args!("{number:x}");
            tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, asset, transport = "udp", agent,
                "WebRTC session plays");
        }
    }

    /// Logs that the session has ended.
    pub(super) fn ends(&self, why: &dyn std::fmt::Display) {
        if !self.is_logged {
            return;
        }
        let Self { number, client, asset, agent, .. } = self;
        let ms = self.played.get().map(|began| began.elapsed().as_millis() as u64);
        let [packets, bytes, lost] =
            [&self.packets, &self.bytes, &self.lost].map(|counter| counter.load(Ordering::Relaxed));
        let (session, protocol) = (format_args!("{number:x}"), "WebRTC");
        tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, client = %client.ip(), method = "PLAY", asset,
            protocol, status = 200_u16, transport = "udp", agent, packets, bytes, lost, ms, ended = %why, "WebRTC session ended");
    }
}

impl Observer for Record {
    fn stopped(&self, sent: SentTotals) {
        self.packets.store(sent.packets, Ordering::Relaxed);
        self.bytes.store(sent.bytes, Ordering::Relaxed);
        self.lost.store(sent.lost, Ordering::Relaxed);
    }
}
