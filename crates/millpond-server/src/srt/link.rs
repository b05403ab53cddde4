//! A connection with its socket: datagrams in and out, at their times.

use super::sessions::Entry;
use bytes::Bytes;
use millpond_srt::{Counts, SrtConnection, SrtEnded, SrtReceived};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant},
};

/// Datagrams that are taken before others get a turn.
const TURN: usize = 64;

/// A connection with its socket.
pub(super) struct Link {
    connection: SrtConnection,
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    /// Start of the connection's clock.
    clock: Instant,
    entry: Entry,
}

impl Link {
    pub(super) fn new(
        connection: SrtConnection,
        (socket, peer): (Arc<UdpSocket>, SocketAddr),
        clock: Instant,
        entry: Entry,
    ) -> Self {
        Self { connection, socket, peer, clock, entry }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Counts of the connection so far.
    pub(super) fn counts(&self) -> Counts {
        self.connection.counts()
    }

    /// Longest payload, in bytes.
    pub(super) fn longest_payload(&self) -> usize {
        self.connection.longest_payload()
    }

    /// Time for which payloads are held: those received, and those sent.
    pub(super) fn latency(&self) -> (Duration, Duration) {
        self.connection.latency()
    }

    /// Gives payloads to be sent.
    pub(super) fn send(&mut self, payloads: impl Iterator<Item = Bytes>) {
        let now = self.now();
        payloads.for_each(|payload| self.connection.send(payload, now));
    }

    /// Does what is due, and sends what is to be sent.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn advance(&mut self) -> Result<(), SrtEnded> {
        let now = self.now();
        self.connection.tick(now)?;
        while let Some(datagram) = self.connection.poll(now) {
            // A datagram that the socket refuses counts as lost: the peer asks for it again.
            let _ = self.socket.send_to(&datagram, self.peer);
        }
        Ok(())
    }

    /// Waits until datagrams have arrived, or something is due. Cancel safe.
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) async fn wait(&mut self) -> Result<(), SrtEnded> {
        let next = self.clock + self.connection.next();
        tokio::select! {
            datagram = self.entry.inbox.recv() => {
                let now = self.now();
                let others = std::iter::from_fn(|| self.entry.inbox.try_recv().ok()).take(TURN);
                for datagram in datagram.into_iter().chain(others) {
                    self.connection.receive(&datagram, now)?;
                }
            }
            () = tokio::time::sleep_until(next.into()) => {}
        }
        Ok(())
    }

    /// Returns a payload that is due.
    pub(super) fn deliver(&mut self) -> Option<SrtReceived> {
        let now = self.now();
        self.connection.deliver(now)
    }

    /// Whether an operator ends the session.
    pub(super) fn is_kicked(&self) -> bool {
        *self.entry.kicked.borrow()
    }

    /// Tells the peer that the connection ends.
    pub(super) fn close(mut self) {
        let now = self.now();
        let last = self.connection.close(now);
        let _ = self.socket.send_to(&last, self.peer);
    }
}
