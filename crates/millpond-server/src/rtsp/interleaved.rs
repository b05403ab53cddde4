//! RTP on an RTSP connection (RFC 2326 10.12).

use super::wire::Wire;
use millpond_rtp::packet::HEADER;
use millpond_stream::outlet::{Backlog, Datagrams, Outlet, Packets};
use std::{io::IoSlice, sync::Arc};

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
    fn backlog(&self) -> Backlog {
        self.wire.backlog()
    }

    fn send(&self, _: &mut Datagrams, packets: &Packets<'_>) {
        let size: usize = packets.pieces.iter().map(|piece| PREFIX + HEADER + piece.head().len()).sum();
        let mut heads = Vec::with_capacity(size);
        let mut ends = Vec::with_capacity(packets.pieces.len());
        for (header, piece) in packets.iter() {
            heads.extend_from_slice(&prefix(self.channels.0, (HEADER + piece.len()) as u16));
            heads.extend_from_slice(header);
            heads.extend_from_slice(piece.head());
            ends.push(heads.len());
        }
        let mut slices = Vec::with_capacity(2 * ends.len());
        let mut start = 0;
        for (end, piece) in ends.into_iter().zip(packets.pieces) {
            slices.push(IoSlice::new(&heads[start..end]));
            slices.push(IoSlice::new(&packets.frame[piece.body.clone()]));
            start = end;
        }
        self.wire.send_slices(&mut slices);
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
