//! RTP to peers that share one port of the server (RFC 8834): all packets of a peer leave from it, and its reports arrive there.

use super::udp;
use crate::outlet::{Datagrams, Outlet, Packets};
use arc_swap::ArcSwap;
use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
};

/// A peer behind a port that many peers share. Its address may change while it plays.
#[derive(Clone, Debug)]
pub struct SharedPort {
    socket: Arc<UdpSocket>,
    to: Arc<ArcSwap<SocketAddr>>,
}

impl SharedPort {
    /// A peer at an address. Packets leave from `socket`, which must not block.
    #[must_use]
    pub fn new(socket: Arc<UdpSocket>, to: SocketAddr) -> Self {
        Self { socket, to: Arc::new(ArcSwap::from_pointee(to)) }
    }

    /// Sends all further packets to another address of the peer.
    pub fn move_to(&self, to: SocketAddr) {
        self.to.store(Arc::new(to));
    }

    fn add(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        datagrams.add_shared(&self.socket, **self.to.load(), packet);
    }
}

impl Outlet for SharedPort {
    fn burst(&self, packets: usize) -> usize {
        udp::burst(packets)
    }

    /// All packets of such peers are encrypted: none has parts that others share.
    fn send(&self, datagrams: &mut Datagrams, packets: &Packets<'_>) {
        for (header, piece) in packets.iter() {
            self.add(datagrams, &[&header[..], piece.head(), &packets.frame[piece.body.clone()]].concat());
        }
    }

    fn send_whole(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        self.add(datagrams, packet);
    }

    fn send_again(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        self.add(datagrams, packet);
    }

    fn send_reports(&self, datagrams: &mut Datagrams, reports: &[u8]) {
        self.add(datagrams, reports);
    }

    fn reports_from(&self) -> Option<SocketAddr> {
        Some(**self.to.load())
    }
}
