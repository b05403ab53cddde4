//! The listener for other nodes of the cluster.

use crate::{
    cluster::RELAY,
    rtsp::{self, CurrentRtsp},
};
use millpond_connections::tls::{HandshakeFault, handshake_fault};
use millpond_http::wire::NodeSide;
use std::{
    collections::HashSet,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{net::TcpStream, sync::watch};
use tokio_rustls::server::TlsStream;

/// Time after which a fault is told again.
const AGAIN: Duration = Duration::from_secs(600);
/// Most faults that are told in this time.
const MOST: usize = 64;
/// Cure of faults of certificates.
const CERTIFICATE: &str = "give each node a certificate of an authority in cluster-node-ca; its subjectAltName has the host of the \
                           node's cluster-node-url, such as DNS:edge1.example.org or IP:10.0.0.1";
/// Cure of peers that are no nodes.
const PROTOCOL: &str = "only nodes connect to cluster-node-listen, with TLS: send viewers and health checks to the address of http or \
                        https";

/// The listener for other nodes of the cluster. Relays take streams from it by RTSP.
pub(super) struct NodeListener {
    rtsp: CurrentRtsp,
    /// Turns true when RTSP sessions end.
    end: watch::Receiver<bool>,
    /// A lock, held for a look-up.
    told: Mutex<Told>,
}

impl NodeListener {
    pub(super) fn new(rtsp: CurrentRtsp, end: watch::Receiver<bool>) -> Self {
        Self { rtsp, end, told: Mutex::new(Told::new(Instant::now())) }
    }
}

impl NodeSide for NodeListener {
    fn refused(&self, peer: SocketAddr, error: &io::Error) {
        let (fault, cure) = match handshake_fault(error) {
            HandshakeFault::Certificate(fault) => (fault, CERTIFICATE),
            HandshakeFault::Protocol(fault) => (fault, PROTOCOL),
            HandshakeFault::Ended(fault) => {
                return tracing::debug!(%peer, fault, "a connection to the listener for nodes ended before its handshake");
            }
        };
        let is_new = self.told.lock().unwrap_or_else(PoisonError::into_inner).is_new(peer.ip(), &fault, Instant::now());
        if is_new {
            tracing::warn!(%peer, fault, cure, "a connection to the listener for nodes is refused");
        } else {
            tracing::debug!(%peer, fault, "a connection to the listener for nodes is refused");
        }
    }

    fn takes(&self, protocol: Option<&[u8]>) -> bool {
        protocol == Some(RELAY)
    }

    async fn serve(&self, stream: TlsStream<TcpStream>, peer: SocketAddr) {
        let (rtsp, mut end) = (self.rtsp.load_full(), self.end.clone());
        tokio::select! {
            served = rtsp::serve_node(stream, peer, &rtsp) => if let Err(error) = served {
                tracing::debug!(%peer, %error, "RTSP connection of a node ended");
            },
            _ = end.wait_for(|end| *end) => {}
        }
    }
}

/// Faults that were told, so that a peer that comes again and again does not fill the log.
struct Told {
    since: Instant,
    faults: HashSet<(IpAddr, String)>,
}

impl Told {
    fn new(now: Instant) -> Self {
        Self { since: now, faults: HashSet::new() }
    }

    /// Whether a fault of a peer must be told.
    fn is_new(&mut self, peer: IpAddr, fault: &str, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= AGAIN {
            *self = Self::new(now);
        }
        self.faults.len() < MOST && self.faults.insert((peer, fault.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_once_in_a_while() {
        let now = Instant::now();
        let mut told = Told::new(now);
        let peer: IpAddr = [10, 0, 0, 1].into();
        assert!(
            told.is_new(peer, "it shows no certificate", now) && !told.is_new(peer, "it shows no certificate", now)
        );
        assert!(told.is_new(peer, "another", now) && told.is_new([10, 0, 0, 2].into(), "another", now));
        for fault in 0..1000 {
            told.is_new(peer, &fault.to_string(), now);
        }
        assert_eq!(told.faults.len(), MOST);
        assert!(told.is_new(peer, "another", now + AGAIN));
    }
}
