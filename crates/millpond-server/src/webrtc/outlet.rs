//! The way of media to one peer: the UDP port, or a connection of TCP.

use super::tcp;
use crate::wire::Wire;
use arc_swap::ArcSwapOption;
use millpond_stream::{
    SharedPort,
    outlet::{Backlog, Datagrams, Outlet, Packets},
};
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
};

/// The way of media to a peer, which may move. Clones move together.
#[derive(Clone, Debug)]
pub(super) struct PeerOutlet {
    port: SharedPort,
    /// The connection; `None` while media takes the UDP port.
    wire: Arc<ArcSwapOption<Wire>>,
}

impl PeerOutlet {
    pub(super) fn new(socket: Arc<UdpSocket>, address: SocketAddr, wire: Option<Arc<Wire>>) -> Self {
        let outlet = Self { port: SharedPort::new(socket, address), wire: Arc::default() };
        outlet.move_to(address, wire);
        outlet
    }

    /// Sends all further packets to an address, by UDP or on a connection.
    pub(super) fn move_to(&self, address: SocketAddr, wire: Option<Arc<Wire>>) {
        self.port.move_to(address);
        let known = self.wire.load();
        if known.as_ref().map(Arc::as_ptr) == wire.as_ref().map(Arc::as_ptr) {
            return;
        }
        if let Some(wire) = &wire {
            wire.bound_unsent();
        }
        self.wire.store(wire);
    }
}

impl Outlet for PeerOutlet {
    fn backlog(&self) -> Backlog {
        self.wire.load().as_ref().map_or(Backlog::Low, |wire| wire.backlog())
    }

    fn burst(&self, packets: usize) -> usize {
        if self.wire.load().is_some() { packets } else { self.port.burst(packets) }
    }

    /// All packets of such peers are encrypted: none has parts that others share.
    fn send(&self, datagrams: &mut Datagrams, packets: &Packets<'_>) {
        for (header, piece) in packets.iter() {
            self.send_whole(datagrams, &[&header[..], piece.head(), &packets.frame[piece.body.clone()]].concat());
        }
    }

    /// On a connection each packet of a frame is queued: whether there is room was asked before the frame.
    fn send_whole(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        match self.wire.load().as_ref() {
            Some(wire) => tcp::queue(wire, packet),
            None => self.port.send_whole(datagrams, packet),
        }
    }

    /// A TCP connection repeats lost segments itself, so RTP packets are not sent on it again.
    fn send_again(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        if self.wire.load().is_none() {
            self.port.send_again(datagrams, packet);
        }
    }

    fn send_reports(&self, datagrams: &mut Datagrams, reports: &[u8]) {
        self.send_whole(datagrams, reports);
    }

    fn reports_from(&self) -> Option<SocketAddr> {
        self.port.reports_from()
    }
}
