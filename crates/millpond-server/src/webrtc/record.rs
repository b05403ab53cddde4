//! Sessions as the access log and operators see them.

use super::Client;
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
    /// When its media began, and the method: `PLAY` or `PUBLISH`.
    begun: OnceLock<(Instant, &'static str)>,
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
        Client { address: client, agent }: Client,
        is_logged: bool,
    ) -> Self {
        let [packets, bytes, lost] = [0; 3].map(AtomicU64::new);
        let (asset, began, begun) = (asset.to_owned(), SystemTime::now(), OnceLock::new());
        Self { number, client, asset, agent, began, is_logged, begun, rate: Mutex::default(), packets, bytes, lost }
    }

    /// Whether the session's media has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.get().is_some()
    }

    /// Bits a second of a session that has sent `bytes`; `None` before its media begins.
    pub(super) fn rate(&self, bytes: u64) -> Option<u64> {
        let (began, _) = *self.begun.get()?;
        Some(self.rate.lock().unwrap_or_else(PoisonError::into_inner).look(began, bytes))
    }

    /// Logs that the session plays, the first time.
    pub(super) fn plays(&self) {
        self.begins("PLAY", "plays");
    }

    /// Logs that the session publishes.
    pub(super) fn publishes(&self) {
        self.begins("PUBLISH", "publishes");
    }

    fn begins(&self, method: &'static str, what: &'static str) {
        let Self { number, client, asset, agent, .. } = self;
        if self.begun.set((Instant::now(), method)).is_ok() && self.is_logged {
            let session = format_args!("{number:x}");
            tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, asset, transport = "udp", agent,
                "WebRTC session {what}");
        }
    }

    /// Logs that the session has ended.
    pub(super) fn ends(&self, why: &dyn std::fmt::Display) {
        if !self.is_logged {
            return;
        }
        let Self { number, client, asset, agent, .. } = self;
        let begun = self.begun.get().copied();
        let (ms, method) = (begun.map(|(at, _)| at.elapsed().as_millis() as u64), begun.map(|(_, method)| method));
        let [packets, bytes, lost] =
            [&self.packets, &self.bytes, &self.lost].map(|counter| counter.load(Ordering::Relaxed));
        let (session, protocol) = (format_args!("{number:x}"), "WebRTC");
        tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, client = %client.ip(), method, asset,
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
