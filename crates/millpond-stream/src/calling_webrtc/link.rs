//! The connection to a server: the state machine of the peer, with its sockets.

use super::sockets::Sockets;
use millpond_webrtc::{Datagram, Ended, PeerEvent, RtcPeer, SrtpKeys};
use std::{net::SocketAddr, time::Instant};

/// Datagrams that are read before other work gets a turn.
const TURN: usize = 64;

/// A connection to a server. The server is told when it is dropped.
#[derive(Debug)]
pub(crate) struct Link {
    peer: RtcPeer,
    sockets: Sockets,
}

impl Link {
    pub(super) fn new(peer: RtcPeer, sockets: Sockets) -> Self {
        Self { peer, sockets }
    }

    /// Address of the server, once it has answered a check.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.peer.address()
    }

    /// Takes what has arrived, and the time. Gives packets of RTP and RTCP, which are encrypted, to `hear`.
    ///
    /// # Errors
    /// The connection is over.
    pub(crate) fn turn(&mut self, now: Instant, hear: impl FnMut(Datagram, &mut [u8])) -> Result<(), Ended> {
        // There are keys once, which `connect` returns.
        self.take(now, hear).map(drop)
    }

    /// Takes what has arrived, and the time. Returns the keys, once: packets behind the end of the handshake wait for the next call.
    fn take(
        &mut self,
        now: Instant,
        mut hear: impl FnMut(Datagram, &mut [u8]),
    ) -> Result<Option<Box<SrtpKeys>>, Ended> {
        for _ in 0..TURN {
            let Self { peer, sockets } = self;
            let Some((from, datagram)) = sockets.receive() else { break };
            match Datagram::of(datagram) {
                Some(kind @ (Datagram::Rtp | Datagram::Rtcp)) => {
                    if peer.has_checked(from) {
                        hear(kind, datagram);
                    }
                }
                _ => {
                    peer.receive(from, datagram, now)?;
                    if let Some(keys) = self.pass_on() {
                        return Ok(Some(keys));
                    }
                }
            }
        }
        self.peer.tick(now)?;
        Ok(self.pass_on())
    }

    /// Sends what the state machine has to be sent.
    fn pass_on(&mut self) -> Option<Box<SrtpKeys>> {
        let mut keys = None;
        while let Some(event) = self.peer.poll() {
            match event {
                PeerEvent::Send(to, bytes) => self.sockets.send(to, bytes),
                PeerEvent::Connected(_, found) => keys = Some(found),
            }
        }
        self.sockets.flush();
        keys
    }

    /// Sends an encrypted packet of RTP or RTCP.
    pub(crate) fn send(&mut self, packet: Vec<u8>) {
        if let Some(address) = self.peer.address() {
            self.sockets.send(address, packet);
        }
    }

    /// Waits until there is something to do, at most until a time. Cancel safe.
    pub(crate) async fn wait(&mut self, until: Option<Instant>) {
        let next = until.map_or(self.peer.next(), |until| until.min(self.peer.next()));
        tokio::select! {
            () = self.sockets.ready() => {}
            () = tokio::time::sleep_until(next.into()) => {}
        }
    }

    /// Runs until the handshake is complete. Cancel safe.
    ///
    /// # Errors
    /// The connection is over before.
    pub(super) async fn connect(&mut self) -> Result<Box<SrtpKeys>, Ended> {
        loop {
            if let Some(keys) = self.take(Instant::now(), |_, _| ())? {
                return Ok(keys);
            }
            self.wait(None).await;
        }
    }
}

impl Drop for Link {
    /// Tells the server that the connection is over.
    fn drop(&mut self) {
        self.peer.close(Instant::now());
        self.pass_on();
    }
}
