//! The connection of one session: the state machine of its peer, and the datagrams of it.

use super::{
    outlet::PeerOutlet,
    sessions::{EndedBy, Entry, Received},
    tcp,
};
use crate::wire::Wire;
use bytes::Bytes;
use millpond_webrtc::{Datagram, Ended, PeerEvent, RtcPeer, SrtpKeys};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::Instant,
};
use tokio::sync::watch;

/// The connection of a session. It is over when it is dropped.
pub(super) struct Connection {
    socket: Arc<UdpSocket>,
    /// Connections of TCP by the peer's addresses, the newest one last.
    wires: Vec<(SocketAddr, Arc<Wire>)>,
    pub(super) peer: RtcPeer,
    pub(super) entry: Entry,
}

/// Connections of TCP of one session.
const WIRES: usize = 4;

/// An event of a connection for its session.
pub(super) enum ConnectionEvent {
    /// A datagram of RTP or RTCP.
    Media(Bytes),
    /// The handshake is complete.
    Connected(Box<SrtpKeys>),
}

impl Connection {
    pub(super) fn new(socket: Arc<UdpSocket>, peer: RtcPeer, entry: Entry) -> Self {
        Self { socket, wires: Vec::new(), peer, entry }
    }

    /// Takes a datagram. Returns it where it is of RTP or RTCP, else what follows from it.
    pub(super) fn receive(&mut self, received: Received) -> Result<Option<ConnectionEvent>, Ended> {
        let Received { from, bytes, wire } = received;
        match Datagram::of(&bytes) {
            Some(Datagram::Rtp | Datagram::Rtcp) => {
                Ok(self.peer.has_checked(from).then_some(ConnectionEvent::Media(bytes)))
            }
            _ => {
                self.peer.receive(from, &bytes, Instant::now())?;
                if self.peer.has_checked(from) {
                    self.keep(from, wire);
                } else if let Some(wire) = wire {
                    // Whoever has no valid check holds no connection.
                    wire.shut();
                }
                Ok(self.send())
            }
        }
    }

    /// Takes the time.
    pub(super) fn tick(&mut self) -> Result<Option<ConnectionEvent>, Ended> {
        self.peer.tick(Instant::now())?;
        Ok(self.send())
    }

    /// Tells the peer that the session is over.
    pub(super) fn close(&mut self) {
        self.peer.close(Instant::now());
        let _ = self.send();
    }

    /// Sends a packet of media, which is protected.
    pub(super) fn send_media(&self, packet: &[u8]) {
        if let Some(address) = self.peer.address() {
            self.send_to(packet, address);
        }
    }

    /// The way of media to the peer; `None` before its first check.
    pub(super) fn outlet(&self) -> Option<PeerOutlet> {
        let address = self.peer.address()?;
        Some(PeerOutlet::new(self.socket.clone(), address, self.wire(address).cloned()))
    }

    /// Moves the way of media where the peer is now.
    pub(super) fn direct(&self, outlet: &PeerOutlet) {
        if let Some(address) = self.peer.address() {
            outlet.move_to(address, self.wire(address).cloned());
        }
    }

    fn wire(&self, address: SocketAddr) -> Option<&Arc<Wire>> {
        self.wires.iter().find(|(of, _)| *of == address).map(|(_, wire)| wire)
    }

    /// Keeps the way on which an address of the peer has made a valid check.
    fn keep(&mut self, from: SocketAddr, wire: Option<Arc<Wire>>) {
        let Some(wire) = wire else {
            self.wires.retain(|(of, _)| *of != from);
            return self.entry.claim(from);
        };
        if self.wire(from).is_some_and(|known| Arc::ptr_eq(known, &wire)) {
            return;
        }
        self.wires.retain(|(of, _)| *of != from);
        self.wires.push((from, wire));
        if self.wires.len() > WIRES {
            self.wires.remove(0).1.shut();
        }
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) {
        match self.wire(to) {
            Some(wire) => tcp::send(wire, datagram),
            // A datagram that can't be sent is one that was lost.
            None => _ = self.socket.send_to(datagram, to),
        }
    }

    /// Sends what the peer has to be sent.
    fn send(&mut self) -> Option<ConnectionEvent> {
        let mut connected = None;
        while let Some(event) = self.peer.poll() {
            match event {
                PeerEvent::Send(to, bytes) => self.send_to(&bytes, to),
                PeerEvent::Connected(_, keys) => connected = Some(ConnectionEvent::Connected(keys)),
            }
        }
        connected
    }

    /// A receiver of the word of others who end the session.
    pub(super) fn end(&self) -> watch::Receiver<Option<EndedBy>> {
        self.entry.end.clone()
    }
}

/// Waits until something other than its default is told. `None` where nobody can tell it any more.
pub(super) async fn told<T: Copy + Default + PartialEq>(word: &mut watch::Receiver<T>) -> Option<T> {
    word.wait_for(|word| *word != T::default()).await.ok().map(|word| *word)
}
