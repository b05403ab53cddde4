//! Packets as they are on the wire (draft-sharabayko-srt-01 3).

mod losses;
mod read;
mod write;

pub use losses::{Losses, SequenceRange};
pub use read::read;
pub(crate) use read::word;
pub use write::PacketWriter;

use crate::{Sequence, handshake::Handshake};

/// Bytes of a packet's header.
pub const HEADER: usize = 16;

/// Longest payload of a data packet: what an Ethernet frame of 1500 bytes has room for, behind the headers of IPv4, UDP and SRT.
pub const PAYLOAD: usize = 1500 - 28 - HEADER;

/// The id of a socket: packets name that of their receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u32);

impl SocketId {
    /// The receiver of packets before a connection.
    pub const LISTENER: Self = Self(0);
}

/// Which of two keys a payload is encrypted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySlot {
    /// The even key.
    Even,
    /// The odd key.
    Odd,
}

/// A packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet<'a> {
    /// Microseconds since the sender's start, modulo 2^32.
    pub timestamp: u32,
    /// The socket that it is for.
    pub to: SocketId,
    /// Its body.
    pub body: SrtBody<'a>,
}

/// Body of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum SrtBody<'a> {
    /// A payload.
    Data(Data<'a>),
    /// A step of the handshake, and the bytes of its extensions.
    Handshake(Handshake, &'a [u8]),
    /// The peer is there.
    KeepAlive,
    /// All packets before a number have arrived.
    Acknowledgement(Acknowledgement),
    /// Packets are missing.
    Losses(Losses<'a>),
    /// The connection ends.
    Shutdown,
    /// An acknowledgement has arrived.
    Acknowledged(u32),
    /// Packets won't be sent again.
    Dropped(SequenceRange),
    /// Key material: of the next key, or, where `is_answer`, as its receiver has taken it.
    KeyMaterial {
        /// Whether it answers key material of the other side.
        is_answer: bool,
        /// The message.
        bytes: &'a [u8],
    },
    /// Another control packet, which changes nothing here.
    Other,
}

/// A data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Its number.
    pub sequence: Sequence,
    /// Number of its message, 26 bits. Live streams have one packet a message.
    pub message: u32,
    /// The key that the payload is encrypted with; `None` for a clear one.
    pub key: Option<KeySlot>,
    /// Whether it was sent before.
    pub is_again: bool,
    /// The payload.
    pub payload: &'a [u8],
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Its own number; 0 for a light one, which is not acknowledged.
    pub number: u32,
    /// The first packet that has not arrived.
    pub next: Sequence,
    /// Measurements of the receiver; `None` in a light acknowledgement.
    pub report: Option<Report>,
}

/// Measurements of a receiver. Times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Round-trip time.
    pub rtt: u32,
    /// Its mean deviation.
    pub deviation: u32,
    /// Packets that its buffer has room for.
    pub room: u32,
    /// Packets a second.
    pub packets: u32,
    /// Bytes a second.
    pub bytes: u32,
}
