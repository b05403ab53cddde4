//! Sessions as the access log and operators see them.

use crate::bit_rate::BitRate;
use millpond_srt::Counts;
use std::{
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

/// The record of one session.
#[derive(Debug)]
pub(super) struct Record {
    /// Its number.
    pub(super) number: u64,
    pub(super) client: SocketAddr,
    /// Path of the stream.
    pub(super) asset: String,
    /// Whether the client publishes. Others play.
    pub(super) publishes: bool,
    /// The version of SRT that the client tells.
    pub(super) agent: String,
    pub(super) began: SystemTime,
    since: Instant,
    /// Whether lines are logged.
    is_logged: bool,
    /// A lock: taken when an operator looks.
    rate: Mutex<BitRate>,
    bytes: AtomicU64,
}

impl Record {
    /// Creates the record of a session that begins now.
    pub(super) fn new(
        number: u64,
        (client, agent): (SocketAddr, String),
        (asset, publishes): (&str, bool),
        is_logged: bool,
    ) -> Self {
        let (asset, began, since) = (asset.to_owned(), SystemTime::now(), Instant::now());
        let (rate, bytes) = (Mutex::default(), AtomicU64::new(0));
        Self { number, client, asset, publishes, agent, began, since, is_logged, rate, bytes }
    }

    /// Bytes of media so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bits a second.
    pub(super) fn rate(&self) -> u64 {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner).look(self.since, self.bytes())
    }

    /// Takes the counts of its connection.
    pub(super) fn count(&self, counts: &Counts) {
        let (_, bytes) = if self.publishes { counts.received } else { counts.sent };
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Logs that the session plays or publishes.
    pub(super) fn begins(&self, is_encrypted: bool, latency: Duration) {
        if !self.is_logged {
            return;
        }
        let Self { number, client, asset, agent, .. } = self;
        let (session, latency) = (format_args!("{number:x}"), latency.as_millis() as u64);
        let words = if self.publishes { "SRT session publishes" } else { "SRT session plays" };
        tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, asset, transport = "udp", agent, is_encrypted,
            latency_ms = latency, "{words}");
    }

    /// Logs that the session has ended.
    pub(super) fn ends(&self, counts: &Counts, why: &dyn std::fmt::Display) {
        self.count(counts);
        if !self.is_logged {
            return;
        }
        let Self { number, client, asset, agent, .. } = self;
        let ms = self.since.elapsed().as_millis() as u64;
        let session = format_args!("{number:x}");
        let method = if self.publishes { "PUBLISH" } else { "PLAY" };
        let ((packets, bytes), lost) =
            if self.publishes { (counts.received, counts.lost) } else { (counts.sent, counts.dropped) };
        let (repeated, rtt) = (counts.repeated, counts.rtt.as_micros() as u64);
        tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, client = %client.ip(), method, asset,
            protocol = "SRT", status = 200_u16, transport = "udp", agent, packets, bytes, lost, repeated, rtt_us = rtt, ms, ended = %why,
            "SRT session ended");
    }
}
