//! Lines of sessions in the access log.

use millpond_stream::{Observer, SentTotals};
use std::{
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// A session as the access log tells it.
#[derive(Debug, Default)]
pub(super) struct Record {
    about: Option<About>,
    packets: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct About {
    number: u64,
    client: SocketAddr,
    asset: String,
    agent: Option<String>,
    /// When it began to play. A lock: taken when it begins and when it ends.
    began: Mutex<Option<Instant>>,
}

impl Record {
    /// Creates the record of a session. `is_logged` tells whether it writes lines.
    pub(super) fn new(number: u64, client: SocketAddr, asset: &str, agent: Option<String>, is_logged: bool) -> Self {
        let about = About { number, client, asset: asset.to_owned(), agent, began: Mutex::default() };
        Self { about: is_logged.then_some(about), ..Self::default() }
    }

    /// Logs that the session plays, the first time.
    pub(super) fn plays(&self) {
        let Some(About { number, client, asset, agent, began }) = &self.about else { return };
        let is_first = began.lock().unwrap_or_else(PoisonError::into_inner).replace(Instant::now()).is_none();
        if is_first {
            let session = format_args!("{number:x}");
            tracing::info!(target: millpond_logging::ACCESS, %session, peer = %client, asset, transport = "udp", agent,
                "WebRTC session plays");
        }
    }

    /// Logs that the session has ended.
    pub(super) fn ends(&self, why: &dyn std::fmt::Display) {
        let Some(About { number, client, asset, agent, began }) = &self.about else { return };
        let began = *began.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = began.map(|began| began.elapsed().as_millis() as u64);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (packets, bytes, lost) = (count(&self.packets), count(&self.bytes), count(&self.lost));
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
