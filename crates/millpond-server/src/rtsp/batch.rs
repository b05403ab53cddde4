//! Packets to many receivers in one system call: `sendmmsg`, and the kernel's segmentation for the packets of a frame.

use bytes::Bytes;
use millpond_rtp::payload::Piece;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use std::{
    io::IoSlice,
    net::{SocketAddr, UdpSocket},
    ops::Range,
    os::fd::AsRawFd as _,
};

/// Bytes of an RTP packet, its header included: all of a frame's but the last are of this size, so that the kernel can cut
/// them. Fits an Ethernet frame with room for a tunnel.
pub(super) const PACKET: usize = 1400;
/// Packets in one message: what the kernel takes (UDP_MAX_SEGMENTS is 64, and all together less than 64 KiB).
const TRAIN: usize = 44;
/// Messages in one call.
const MESSAGES: usize = 64;

/// Packets that wait for the call.
pub(super) struct Batch {
    heads: Vec<u8>,
    /// Frames that packets are parts of; the first one is empty.
    frames: Vec<Bytes>,
    parts: Vec<Part>,
    messages: Vec<Message>,
    headers: MultiHeaders<SockaddrStorage>,
    /// Whether the kernel cuts messages in packets.
    cuts: bool,
    failed: u64,
}

/// A head of our own and what follows it.
struct Part {
    head: Range<usize>,
    frame: usize,
    body: Range<usize>,
}

struct Message {
    to: SocketAddr,
    parts: Range<usize>,
    /// Whether its last packet is shorter, so that nothing may follow.
    is_closed: bool,
}

impl Batch {
    pub(super) fn new() -> Self {
        let space = nix::cmsg_space!(u16);
        Self {
            heads: Vec::new(),
            frames: vec![Bytes::new()],
            parts: Vec::new(),
            messages: Vec::new(),
            headers: MultiHeaders::preallocate(MESSAGES, Some(space)),
            cuts: true,
            failed: 0,
        }
    }

    /// Messages that could not be sent since the last call.
    pub(super) fn failures(&mut self) -> u64 {
        std::mem::take(&mut self.failed)
    }

    /// The packets that are added from now on are parts of this frame.
    pub(super) fn hold(&mut self, frame: &Bytes) {
        self.frames.push(frame.clone());
    }

    /// Adds a packet of the frame that was told last: its header, then the payload.
    pub(super) fn add(&mut self, to: SocketAddr, header: &[u8], piece: &Piece) {
        let from = self.heads.len();
        self.heads.extend_from_slice(header);
        self.heads.extend_from_slice(piece.head());
        let frame = self.frames.len() - 1;
        self.part(to, Part { head: from..self.heads.len(), frame, body: piece.body.clone() });
    }

    /// Adds a packet that is nobody else's.
    pub(super) fn add_whole(&mut self, to: SocketAddr, packet: &[u8]) {
        let from = self.heads.len();
        self.heads.extend_from_slice(packet);
        self.part(to, Part { head: from..self.heads.len(), frame: 0, body: 0..0 });
    }

    /// To the last message, where it goes the same way and the kernel can cut it off there; else to a new one.
    fn part(&mut self, to: SocketAddr, part: Part) {
        let length = part.head.len() + part.body.len();
        self.parts.push(part);
        let end = self.parts.len();
        let is_closed = length < PACKET;
        match self.messages.last_mut() {
            Some(last) if self.cuts && last.to == to && !last.is_closed && last.parts.len() < TRAIN => {
                last.parts.end = end;
                last.is_closed = is_closed;
            }
            _ => self.messages.push(Message { to, parts: end - 1..end, is_closed }),
        }
    }

    /// Adds a message of its own.
    pub(super) fn add_plain(&mut self, to: SocketAddr, bytes: &[u8]) {
        let from = self.heads.len();
        self.heads.extend_from_slice(bytes);
        self.parts.push(Part { head: from..self.heads.len(), frame: 0, body: 0..0 });
        let end = self.parts.len();
        self.messages.push(Message { to, parts: end - 1..end, is_closed: true });
    }

    /// Sends all of it. What can't be sent is lost, as on the way.
    pub(super) fn flush(&mut self, socket: &UdpSocket) {
        let messages = std::mem::take(&mut self.messages);
        for some in messages.chunks(MESSAGES) {
            self.send(socket, some);
        }
        self.messages = messages;
        self.messages.clear();
        self.parts.clear();
        self.heads.clear();
        self.frames.truncate(1);
    }

    fn send(&mut self, socket: &UdpSocket, messages: &[Message]) {
        let Self { heads, frames, parts, headers, cuts, failed, .. } = self;
        let slices: Vec<IoSlice<'_>> = messages
            .iter()
            .flat_map(|message| &parts[message.parts.clone()])
            .flat_map(|part| {
                [IoSlice::new(&heads[part.head.clone()]), IoSlice::new(&frames[part.frame][part.body.clone()])]
            })
            .collect();
        let first = messages.first().map_or(0, |message| message.parts.start);
        let each: Vec<&[IoSlice<'_>]> = messages
            .iter()
            .map(|message| &slices[2 * (message.parts.start - first)..2 * (message.parts.end - first)])
            .collect();
        let to: Vec<Option<SockaddrStorage>> = messages.iter().map(|message| Some(message.to.into())).collect();
        let size = PACKET as u16;
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let control = if *cuts { &control[..] } else { &[] };
        let mut sent = 0;
        while sent < messages.len() {
            let result = sendmmsg(
                socket.as_raw_fd(),
                headers,
                each[sent..].iter(),
                &to[sent..],
                control,
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
            );
            match result {
                Ok(results) => sent += results.count().max(1),
                Err(nix::errno::Errno::EINTR) => {}
                Err(nix::errno::Errno::EIO | nix::errno::Errno::EINVAL) if *cuts => {
                    // This kernel, or the way there, can't: from the next round on packets go one by one.
                    *cuts = false;
                    *failed += (messages.len() - sent) as u64;
                    return;
                }
                // The first of them: nobody listens there (ECONNREFUSED), or the socket's buffer is full.
                Err(_) => {
                    *failed += 1;
                    sent += 1;
                }
            }
        }
    }
}
