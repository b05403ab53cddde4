//! RTP on an RTSP connection (RFC 2326 10.12).

use crate::wire::Wire;
use millpond_rtp::packet::HEADER;
use millpond_stream::outlet::{Backlog, Datagrams, Outlet, Packets};
use std::sync::Arc;

/// Bytes before each packet: `$`, the channel, and the length.
const PREFIX: usize = 4;

/// Two channels of a connection, for RTP and RTCP of one track.
#[derive(Clone, Debug)]
pub(super) struct Interleaved {
    wire: Arc<Wire>,
    channels: (u8, u8),
}

impl Interleaved {
    pub(super) fn new(wire: Arc<Wire>, channels: (u8, u8)) -> Self {
        Self { wire, channels }
    }

    /// The channels of RTP and RTCP.
    pub(super) fn channels(&self) -> (u8, u8) {
        self.channels
    }

    fn send_on(&self, channel: u8, packet: &[u8]) {
        self.wire.send_on(channel, packet);
    }
}

impl Wire {
    /// Sends a packet on a channel.
    pub(super) fn send_on(&self, channel: u8, packet: &[u8]) {
        let Ok(length) = u16::try_from(packet.len()) else { return };
        self.send(|pending| {
            pending.extend_from_slice(&prefix(channel, length));
            pending.extend_from_slice(packet);
        });
    }
}

impl Outlet for Interleaved {
    fn keep_buffers_short(&self) {
        self.wire.bound_unsent();
    }

    fn backlog(&self) -> Backlog {
        self.wire.backlog()
    }

    fn send(&self, datagrams: &mut Datagrams, packets: &Packets<'_>) {
        // One copy costs less than a system call with a slice for each head and each body.
        let bytes = datagrams.buffer();
        for (header, piece) in packets.iter() {
            bytes.extend_from_slice(&prefix(self.channels.0, (HEADER + piece.len()) as u16));
            bytes.extend_from_slice(header);
            bytes.extend_from_slice(piece.head());
            bytes.extend_from_slice(&packets.frame[piece.body.clone()]);
        }
        self.wire.send_bytes(bytes);
    }

    fn send_whole(&self, _: &mut Datagrams, packet: &[u8]) {
        self.send_on(self.channels.0, packet);
    }

    fn send_reports(&self, _: &mut Datagrams, reports: &[u8]) {
        self.send_on(self.channels.1, reports);
    }
}

fn prefix(channel: u8, length: u16) -> [u8; PREFIX] {
    let [high, low] = length.to_be_bytes();
    [b'$', channel, high, low]
}
