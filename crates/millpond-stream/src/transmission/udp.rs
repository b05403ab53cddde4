//! RTP over UDP.

use crate::outlet::{Datagrams, Outlet, Packets};
use std::net::SocketAddr;

/// Most packets of a frame that leave in one round; the others leave in the next ones (microrounds). Small receive
/// buffers hold some 90 packets.
const BURST: usize = 16;
/// Rounds within which a frame leaves, 30 ms, however large it is: a receiver that buffers 52 ms sees no gap.
const ROUNDS: usize = 6;

/// A receiver's ports. Packets leave from the ports of the sending thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Address for RTP.
    pub rtp: SocketAddr,
    /// Address for RTCP.
    pub rtcp: SocketAddr,
}

/// Number of packets, of a frame that has so many, that may leave in one round.
pub(super) fn burst(packets: usize) -> usize {
    BURST.max(packets.div_ceil(ROUNDS))
}

impl Outlet for Udp {
    fn burst(&self, packets: usize) -> usize {
        burst(packets)
    }

    fn send(&self, datagrams: &mut Datagrams, packets: &Packets<'_>) {
        datagrams.rtp.hold(packets.frame);
        for (header, piece) in packets.iter() {
            datagrams.rtp.add(self.rtp, header, piece);
        }
    }

    fn send_whole(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        datagrams.rtp.add_whole(self.rtp, packet);
    }

    fn send_again(&self, datagrams: &mut Datagrams, packet: &[u8]) {
        datagrams.again.add_plain(self.rtp, packet);
    }

    fn send_reports(&self, datagrams: &mut Datagrams, reports: &[u8]) {
        datagrams.rtcp.add_plain(self.rtcp, reports);
    }

    fn reports_from(&self) -> Option<SocketAddr> {
        Some(self.rtcp)
    }
}
