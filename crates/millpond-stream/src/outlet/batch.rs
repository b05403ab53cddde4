//! Packets to many receivers in one system call: `sendmmsg`, and the kernel's segmentation for the packets of a frame.

use bytes::Bytes;
use millpond_rtp::payload::Piece;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use std::{
    fmt,
    io::IoSlice,
    net::{SocketAddr, UdpSocket},
    ops::Range,
    os::fd::AsRawFd as _,
    sync::Arc,
};

/// Bytes of an RTP packet with its header. All packets of a frame but the last have this size, so that the kernel can cut
/// them. It fits an Ethernet frame with space for a tunnel's headers.
pub(crate) const PACKET: usize = 1400;
/// The same for peers of WebRTC: browsers send no larger packets, and expect none (RFC 8834 4.1, RFC 8261 5).
pub const SHARED_PACKET: usize = 1200;
/// Most packets in one message (UDP_MAX_SEGMENTS is 64, and a message has less than 64 KiB).
const TRAIN: usize = 44;
/// Most messages in one call.
const MESSAGES: usize = 64;
/// Bytes of a buffer that stay allocated: more than most key frames have.
const BUFFER: usize = 256 << 10;

/// Packets that are sent together.
pub(crate) struct Batch {
    heads: Vec<u8>,
    /// Frames that packets refer to; the first one is empty.
    frames: Vec<Bytes>,
    parts: Vec<Part>,
    messages: Vec<Message>,
    headers: MultiHeaders<SockaddrStorage>,
    /// Bytes of the packets that the kernel cuts messages in; `None` where it cuts none.
    cuts: Option<usize>,
    failed: u64,
}

/// Datagrams that a sending thread sends at the end of a round.
pub struct Datagrams {
    pub(crate) rtp: Batch,
    pub(crate) rtcp: Batch,
    /// Retransmissions, which are longer than the kernel's cuts.
    pub(crate) again: Batch,
    /// Packets that leave from sockets which the sending threads share. There are few such sockets.
    shared: Vec<SharedBatches>,
    /// Bytes of one frame for a connection.
    buffer: Vec<u8>,
}

impl Datagrams {
    pub(crate) fn new() -> Self {
        let (rtp, rtcp, again) = (Batch::new(), Batch::new(), Batch::uncut());
        Self { rtp, rtcp, again, shared: Vec::new(), buffer: Vec::new() }
    }

    /// Adds a packet that leaves from a socket which the sending threads share.
    pub(crate) fn add_shared(&mut self, socket: &Arc<UdpSocket>, to: SocketAddr, packet: &[u8]) {
        let known = self.shared.iter().position(|known| Arc::ptr_eq(&known.socket, socket));
        let at = known.unwrap_or_else(|| {
            let (packets, again) = (Batch::cut_at(SHARED_PACKET), Batch::uncut());
            self.shared.push(SharedBatches { socket: socket.clone(), packets, again });
            self.shared.len() - 1
        });
        let SharedBatches { packets, again, .. } = &mut self.shared[at];
        let batch = if packet.len() > SHARED_PACKET { again } else { packets };
        batch.add_whole(to, packet);
    }

    /// Sends the packets that leave from shared sockets. Sockets that nobody uses any more are forgotten. Returns the number of
    /// messages that could not be sent.
    pub(crate) fn flush_shared(&mut self) -> u64 {
        let mut failed = 0;
        self.shared.retain_mut(|SharedBatches { socket, packets, again }| {
            for batch in [packets, again] {
                batch.flush(socket);
                failed += batch.failures();
            }
            Arc::strong_count(socket) > 1
        });
        failed
    }

    /// An empty buffer, for an outlet that sends at once. It keeps its memory from one frame to the next.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        &mut self.buffer
    }
}

/// Packets that leave from a shared socket.
struct SharedBatches {
    socket: Arc<UdpSocket>,
    packets: Batch,
    /// Packets that are longer than the kernel's cuts.
    again: Batch,
}

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rtp, rtcp, again] = [&self.rtp, &self.rtcp, &self.again].map(|batch| batch.parts.len());
        let shared: usize = self.shared.iter().map(|batches| batches.packets.parts.len()).sum();
        let mut text = f.debug_struct("Datagrams");
        text.field("rtp", &rtp).field("rtcp", &rtcp).field("again", &again).field("shared", &shared).finish()
    }
}

/// A packet: a head of its own, and a part of a frame.
struct Part {
    head: Range<usize>,
    frame: usize,
    body: Range<usize>,
}

struct Message {
    to: SocketAddr,
    parts: Range<usize>,
    /// Whether its last packet is shorter, so that no other can follow.
    is_closed: bool,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self::cut_at(PACKET)
    }

    /// Creates a batch whose messages the kernel cuts in packets of a size.
    fn cut_at(size: usize) -> Self {
        Self::with(Some(size))
    }

    /// Creates a batch whose messages are packets.
    fn uncut() -> Self {
        Self::with(None)
    }

    fn with(cuts: Option<usize>) -> Self {
        Self {
            heads: Vec::new(),
            frames: vec![Bytes::new()],
            parts: Vec::new(),
            messages: Vec::new(),
            headers: Self::headers(cuts.is_some()),
            cuts,
            failed: 0,
        }
    }

    /// Space of control messages that stays empty would be sent with the others, and refused (EINVAL).
    fn headers(cuts: bool) -> MultiHeaders<SockaddrStorage> {
        MultiHeaders::preallocate(MESSAGES, cuts.then(|| nix::cmsg_space!(u16)))
    }

    /// Returns the number of messages that could not be sent since the last call.
    pub(crate) fn failures(&mut self) -> u64 {
        std::mem::take(&mut self.failed)
    }

    /// Sets the frame that packets added from now on are parts of.
    pub(crate) fn hold(&mut self, frame: &Bytes) {
        self.frames.push(frame.clone());
    }

    /// Adds a packet of the frame that was set last: its header, then the payload.
    pub(crate) fn add(&mut self, to: SocketAddr, header: &[u8], piece: &Piece) {
        let from = self.heads.len();
        self.heads.extend_from_slice(header);
        self.heads.extend_from_slice(piece.head());
        let frame = self.frames.len() - 1;
        self.part(to, Part { head: from..self.heads.len(), frame, body: piece.body.clone() });
    }

    /// Adds a packet that shares no bytes with others.
    pub(crate) fn add_whole(&mut self, to: SocketAddr, packet: &[u8]) {
        let from = self.heads.len();
        self.heads.extend_from_slice(packet);
        self.part(to, Part { head: from..self.heads.len(), frame: 0, body: 0..0 });
    }

    /// Adds a packet to the last message, if that has the same address and the kernel can split it there. Else adds it to a new
    /// message.
    fn part(&mut self, to: SocketAddr, part: Part) {
        let length = part.head.len() + part.body.len();
        self.parts.push(part);
        let end = self.parts.len();
        let is_closed = self.cuts.is_none_or(|size| length < size);
        match self.messages.last_mut() {
            Some(last) if last.to == to && !last.is_closed && last.parts.len() < TRAIN => {
                last.parts.end = end;
                last.is_closed = is_closed;
            }
            _ => self.messages.push(Message { to, parts: end - 1..end, is_closed }),
        }
    }

    /// Adds a message of its own.
    pub(crate) fn add_plain(&mut self, to: SocketAddr, bytes: &[u8]) {
        let from = self.heads.len();
        self.heads.extend_from_slice(bytes);
        self.parts.push(Part { head: from..self.heads.len(), frame: 0, body: 0..0 });
        let end = self.parts.len();
        self.messages.push(Message { to, parts: end - 1..end, is_closed: true });
    }

    /// Sends all packets. Those that can't be sent are lost, as on the network.
    pub(crate) fn flush(&mut self, socket: &UdpSocket) {
        let messages = std::mem::take(&mut self.messages);
        for some in messages.chunks(MESSAGES) {
            self.send(socket, some);
        }
        self.messages = messages;
        self.clear();
    }

    /// Takes all packets, with their addresses.
    #[cfg(test)]
    pub(crate) fn take(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let Self { heads, frames, parts, messages, .. } = self;
        let each =
            messages.iter().flat_map(|message| parts[message.parts.clone()].iter().map(|part| (message.to, part)));
        let bytes = |part: &Part| [&heads[part.head.clone()], &frames[part.frame][part.body.clone()]].concat();
        let packets = each.map(|(to, part)| (to, bytes(part))).collect();
        self.clear();
        packets
    }

    fn clear(&mut self) {
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
        let size = cuts.unwrap_or(PACKET) as u16;
        let control = [ControlMessage::UdpGsoSegments(&size)];
        let control = if cuts.is_some() { &control[..] } else { &[] };
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
                Err(nix::errno::Errno::EIO | nix::errno::Errno::EINVAL) if cuts.is_some() => {
                    // This kernel or this route can't cut: from the next round on packets are sent one by one.
                    *cuts = None;
                    *headers = Self::headers(false);
                    *failed += (messages.len() - sent) as u64;
                    return;
                }
                // It concerns the first message: nobody listens there (ECONNREFUSED), or the socket's buffer is full.
                Err(_) => {
                    *failed += 1;
                    sent += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_whether_the_kernel_cuts_or_not() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        to.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let address = to.local_addr().unwrap();
        for mut batch in [Batch::new(), Batch::uncut()] {
            let cuts = batch.cuts;
            for number in 0..3 {
                batch.add_whole(address, &[number; PACKET]);
            }
            batch.flush(&from);
            assert_eq!(batch.failures(), 0, "cuts: {cuts:?}");
            for number in 0..3 {
                let mut buffer = [0; 2 * PACKET];
                assert_eq!((to.recv(&mut buffer).unwrap(), buffer[0]), (PACKET, number), "cuts: {cuts:?}");
            }
        }
    }
}
