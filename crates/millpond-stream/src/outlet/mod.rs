//! Where frames leave a graph.

mod batch;

pub(crate) use batch::PACKET;
pub use batch::{Datagrams, SHARED_PACKET};

use bytes::Bytes;
use millpond_rtp::{packet::HEADER, payload::Piece};
use std::{fmt, net::SocketAddr};

/// The way of one track's packets to its receiver.
///
/// Calls come from a sending thread, which serves many subscribers: none of them may wait. An outlet that uses sockets of the
/// sending thread adds packets to `datagrams`, which are sent together at the end of a round. Other outlets do not use
/// `datagrams`.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Keeps few bytes in the system's buffers from now on. Frames that the receiver can't take in time wait in the graph, which
    /// drops the frames that are needed least.
    fn keep_buffers_short(&self) {}

    /// How far the receiver is behind.
    fn backlog(&self) -> Backlog {
        Backlog::Low
    }

    /// Number of packets, of a frame that has so many, that may leave in one round.
    fn burst(&self, packets: usize) -> usize {
        packets
    }

    /// Sends packets of one frame.
    fn send(&self, datagrams: &mut Datagrams, packets: &Packets<'_>);

    /// Sends one packet that nobody else gets, such as an encrypted one.
    fn send_whole(&self, datagrams: &mut Datagrams, packet: &[u8]);

    /// Sends one packet again, which may be longer than others. Only outlets that lose packets do that.
    fn send_again(&self, _: &mut Datagrams, _: &[u8]) {}

    /// Sends a compound of RTCP packets.
    fn send_reports(&self, datagrams: &mut Datagrams, reports: &[u8]);

    /// The address that receiver reports come from; `None` where they don't come to the sending thread.
    fn reports_from(&self) -> Option<SocketAddr> {
        None
    }
}

/// How far a receiver is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backlog {
    /// It keeps up.
    Low,
    /// Frames that can wait should: what waits here can't be chosen from any more.
    Medium,
    /// So much waits for it that frames are dropped.
    High,
    /// It reads nothing, or has left.
    Stuck,
}

/// Packets of one frame: each is an RTP header, the head of its piece, and a part of the frame.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    /// One header for each piece.
    pub headers: &'a [[u8; HEADER]],
    /// The payloads.
    pub pieces: &'a [Piece],
    /// The bytes that the pieces are parts of.
    pub frame: &'a Bytes,
}

impl<'a> Packets<'a> {
    /// Headers and payloads, packet by packet.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8; HEADER], &'a Piece)> + use<'a> {
        self.headers.iter().zip(self.pieces)
    }
}
