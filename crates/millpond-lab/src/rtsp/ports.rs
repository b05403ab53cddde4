//! The pair of UDP ports that a track is received on.

use nix::sys::socket::{setsockopt, sockopt};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
};

/// Bytes that the kernel holds for one port, as far as it allows: seconds of media, so that reading seldom
/// loses nothing.
const HELD: usize = 1 << 20;
/// Pairs tried before there is none.
const TRIES: usize = 100;

/// An even port for RTP and the odd one above it for RTCP (RFC 3550 11).
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) rtp: UdpSocket,
    pub(crate) rtcp: UdpSocket,
    /// Their numbers.
    pub(crate) numbers: (u16, u16),
}

impl Ports {
    /// Binds a free pair at a local address. Each packet has the time at which the kernel received it.
    pub(crate) fn open(address: IpAddr) -> io::Result<Self> {
        let (rtp, rtcp, numbers) = pair(address)?;
        prepare(&rtp)?;
        setsockopt(&rtcp, sockopt::ReceiveTimestampns, &true)?;
        Ok(Self { rtp, rtcp, numbers })
    }

    /// Binds a free pair that is never read, with the smallest buffers.
    pub(crate) fn open_unread(address: IpAddr) -> io::Result<Self> {
        let (rtp, rtcp, numbers) = pair(address)?;
        for socket in [&rtp, &rtcp] {
            setsockopt(socket, sockopt::RcvBuf, &0)?;
        }
        Ok(Self { rtp, rtcp, numbers })
    }
}

/// Prepares a socket for media: each packet has the time at which the kernel received it, and many may wait.
pub(crate) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
    // Beyond the system's limit only with privileges.
    if setsockopt(socket, sockopt::RcvBufForce, &HELD).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &HELD)?;
    }
    Ok(())
}

/// A socket to be kept open while others are received from: the kernel notes times only while there is one that asks for
/// them, and begins a moment after the first.
pub(crate) fn keep_stamping() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

fn pair(address: IpAddr) -> io::Result<(UdpSocket, UdpSocket, (u16, u16))> {
    let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let first = UdpSocket::bind(SocketAddr::new(address, 0))?;
        let number = first.local_addr()?.port();
        match UdpSocket::bind(SocketAddr::new(address, number ^ 1)) {
            Ok(second) if number % 2 == 0 => return Ok((first, second, (number, number ^ 1))),
            Ok(second) => return Ok((second, first, (number ^ 1, number))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_even_and_odd() {
        let all: Vec<Ports> = (0..50).map(|_| Ports::open(Ipv4Addr::LOCALHOST.into()).unwrap()).collect();
        for ports in &all {
            assert!(ports.numbers.0 % 2 == 0 && ports.numbers.1 == ports.numbers.0 + 1);
            assert_eq!(ports.rtp.local_addr().unwrap().port(), ports.numbers.0);
        }
    }
}
