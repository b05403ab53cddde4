//! UDP sockets of a track.

use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt as options};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};
use tokio::net::UdpSocket;

/// Bytes that the system holds for the media of one track: a burst of large key frames while the process waits for a
/// processor.
const BUFFER: usize = 4 << 20;
/// Pairs that are tried before there is none.
const TRIES: usize = 100;

/// Sockets for RTP and RTCP.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) rtp: UdpSocket,
    pub(super) rtcp: UdpSocket,
    /// Their port numbers.
    pub(super) numbers: (u16, u16),
}

impl Ports {
    /// Binds a free even port and the odd one above it (RFC 3550 11) at a local address.
    pub(super) fn open(address: IpAddr) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..TRIES {
            let first = bound(SocketAddr::new(address, 0), false)?;
            let number = first.local_addr()?.port();
            match bound(SocketAddr::new(address, number ^ 1), false) {
                Ok(second) if number.is_multiple_of(2) => return Self::new(first, second),
                Ok(second) => return Self::new(second, first),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Joins a multicast group on the interface of a local address. Other receivers of the machine may have joined it too.
    pub(super) fn join(group: IpAddr, ports: (u16, u16), interface: IpAddr) -> io::Result<Self> {
        // Sockets at the address of the group get no packets of other groups on the same port.
        let joined = |port| {
            let socket = bound(SocketAddr::new(group, port), true)?;
            match (group, interface) {
                (IpAddr::V4(group), IpAddr::V4(interface)) => socket.join_multicast_v4(group, interface)?,
                (IpAddr::V4(group), IpAddr::V6(_)) => socket.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?,
                (IpAddr::V6(group), _) => socket.join_multicast_v6(&group, 0)?,
            }
            io::Result::Ok(socket)
        };
        Self::new(joined(ports.0)?, joined(ports.1)?)
    }

    fn new(rtp: UdpSocket, rtcp: UdpSocket) -> io::Result<Self> {
        enlarge(&rtp)?;
        let numbers = (rtp.local_addr()?.port(), rtcp.local_addr()?.port());
        Ok(Self { rtp, rtcp, numbers })
    }
}

/// Gives a socket a large receive buffer.
pub(in crate::reception) fn enlarge(socket: &UdpSocket) -> io::Result<()> {
    // Beyond the system's limit only with privileges.
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &BUFFER)?;
    }
    Ok(())
}

/// Binds a socket. One that `is_shared` allows others of the machine at the same address.
pub(in crate::reception) fn bound(address: SocketAddr, is_shared: bool) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if is_shared {
        options::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &address)?;
    UdpSocket::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pairs_are_even_and_odd() {
        let all: Vec<Ports> = (0..20).map(|_| Ports::open(Ipv4Addr::LOCALHOST.into()).unwrap()).collect();
        for ports in &all {
            assert!(ports.numbers.0.is_multiple_of(2) && ports.numbers.1 == ports.numbers.0 + 1);
            assert_eq!(ports.rtp.local_addr().unwrap().port(), ports.numbers.0);
        }
    }
}
