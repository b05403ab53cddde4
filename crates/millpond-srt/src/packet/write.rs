//! Writing packets.

use super::{
    Acknowledgement, Data, HEADER, KeySlot, SequenceRange, SocketId,
    read::{
        ACKNOWLEDGED, ACKNOWLEDGEMENT, CONTROL, DROPPED, HANDSHAKE, KEEP_ALIVE, KEY_ANSWER, KEY_REQUEST, LOSSES,
        SHUTDOWN, USER,
    },
};
use crate::handshake::Handshake;

/// A packet alone in its message, which may be delivered by itself.
const SOLO: u32 = 3 << 30;
/// Words of a loss list that fit into a packet, with room for a range.
const LIST: usize = (super::PAYLOAD / 4 - 2) * 4;

/// Writes packets of one time for one socket.
#[derive(Clone, Copy, Debug)]
pub struct PacketWriter {
    /// Microseconds since the start, modulo 2^32.
    pub timestamp: u32,
    /// The socket that they are for.
    pub to: SocketId,
}

impl PacketWriter {
    fn packet(self, first: u32, info: u32, room: usize) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + room);
        for word in [first, info, self.timestamp, self.to.0] {
            packet.extend(word.to_be_bytes());
        }
        packet
    }

    fn control(self, kind: u16, subtype: u16, info: u32, content: &[u8]) -> Vec<u8> {
        let first = CONTROL | u32::from(kind) << 16 | u32::from(subtype);
        let mut packet = self.packet(first, info, content.len());
        packet.extend_from_slice(content);
        packet
    }

    /// A payload.
    #[must_use]
    pub fn data(self, data: &Data<'_>) -> Vec<u8> {
        let key = match data.key {
            None => 0,
            Some(KeySlot::Even) => 1,
            Some(KeySlot::Odd) => 2,
        };
        let info = SOLO | key << 27 | u32::from(data.is_again) << 26 | data.message & 0x03ff_ffff;
        let mut packet = self.packet(data.sequence.get(), info, data.payload.len());
        packet.extend_from_slice(data.payload);
        packet
    }

    /// A step of the handshake, with the bytes of its extensions.
    pub(crate) fn handshake(self, handshake: &Handshake, extensions: &[u8]) -> Vec<u8> {
        let mut content = handshake.write();
        content.extend_from_slice(extensions);
        self.control(HANDSHAKE, 0, 0, &content)
    }

    /// A sign that the peer is there.
    #[must_use]
    pub fn keep_alive(self) -> Vec<u8> {
        // Old peers expect a word behind each header.
        self.control(KEEP_ALIVE, 0, 0, &[0; 4])
    }

    /// An acknowledgement.
    #[must_use]
    pub fn acknowledgement(self, of: &Acknowledgement) -> Vec<u8> {
        let mut content = of.next.get().to_be_bytes().to_vec();
        if let Some(report) = &of.report {
            // The capacity of the link is not measured.
            for word in [report.rtt, report.deviation, report.room, report.packets, 0, report.bytes] {
                content.extend(word.to_be_bytes());
            }
        }
        self.control(ACKNOWLEDGEMENT, 0, of.number, &content)
    }

    /// A list of lost packets. Ranges that do not fit are left out.
    #[must_use]
    pub fn losses(self, ranges: impl IntoIterator<Item = SequenceRange>) -> Vec<u8> {
        let mut content = Vec::new();
        for range in ranges {
            if content.len() > LIST {
                break;
            }
            range.write(&mut content);
        }
        self.control(LOSSES, 0, 0, &content)
    }

    /// The end of a connection.
    #[must_use]
    pub fn shutdown(self) -> Vec<u8> {
        self.control(SHUTDOWN, 0, 0, &[0; 4])
    }

    /// The arrival of an acknowledgement.
    #[must_use]
    pub fn acknowledged(self, number: u32) -> Vec<u8> {
        self.control(ACKNOWLEDGED, 0, number, &[0; 4])
    }

    /// Packets that won't be sent again.
    #[must_use]
    pub fn dropped(self, range: SequenceRange) -> Vec<u8> {
        let content = [range.first, range.last].map(|number| number.get().to_be_bytes()).concat();
        self.control(DROPPED, 0, 0, &content)
    }

    /// Key material, or the answer to it.
    #[must_use]
    pub fn key_material(self, is_answer: bool, message: &[u8]) -> Vec<u8> {
        self.control(USER, if is_answer { KEY_ANSWER } else { KEY_REQUEST }, 0, message)
    }
}
