//! Many packets of one socket in one system call (`recvmmsg`).

use bytes::Bytes;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use std::{
    io::{self, IoSliceMut},
    net::{Ipv6Addr, SocketAddr},
    os::fd::AsRawFd as _,
};
use tokio::{io::Interest, net::UdpSocket};

/// Packets of one call.
const PACKETS: usize = 32;
/// Longest packet in bytes. The system backs only those pages of a buffer that packets filled.
const MOST_BYTES: usize = 64 << 10;
/// Calls for one socket before the others have their turn.
const CALLS: usize = 8;

/// Buffers for the packets of one call, which exist from the first call on.
#[derive(Default)]
pub(in crate::reception) struct Batch(Vec<u8>);

impl Batch {
    /// Takes packets that wait, each with the address of its sender. Never blocks.
    pub(in crate::reception) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(Option<SocketAddr>, Bytes),
    ) {
        for _ in 0..CALLS {
            // Errors, such as that of a report to a closed port, belong to packets that were sent.
            if !matches!(socket.try_io(Interest::READABLE, || self.once(socket, &mut each)), Ok(PACKETS)) {
                return;
            }
        }
    }

    /// Makes one call. Returns the number of packets.
    fn once(&mut self, socket: &UdpSocket, each: &mut impl FnMut(Option<SocketAddr>, Bytes)) -> io::Result<usize> {
        if self.0.is_empty() {
            self.0 = vec![0; PACKETS * MOST_BYTES];
        }
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(PACKETS, None);
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.0.chunks_exact_mut(MOST_BYTES).map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let packets = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        let mut count = 0;
        for packet in packets {
            count += 1;
            let bytes = packet.iovs().next().unwrap_or_default();
            each(packet.address.as_ref().and_then(sender), Bytes::copy_from_slice(bytes));
        }
        Ok(count)
    }
}

fn sender(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::new(address.ip().into(), address.port()));
    let canonical = |ip: Ipv6Addr, port| SocketAddr::new(ip.to_canonical(), port);
    v4.or_else(|| address.as_sockaddr_in6().map(|address| canonical(address.ip(), address.port())))
}
