//! The port of multicast DNS, tried before the responder starts.

use super::AnnounceError;
use socket2::{Domain, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Port of multicast DNS (RFC 6762).
const PORT: u16 = 5353;

/// Binds the port as the responder does, for the address of a listener, and leaves it again.
///
/// # Errors
/// The responder could not bind the port.
pub(super) fn check(listener: IpAddr) -> Result<(), AnnounceError> {
    let all: IpAddr = match listener {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    try_bind(SocketAddr::new(all, PORT))?;
    if listener == Ipv6Addr::UNSPECIFIED {
        // Its devices come by IPv4 too.
        try_bind((Ipv4Addr::UNSPECIFIED, PORT).into())?;
    }
    Ok(())
}

fn try_bind(address: SocketAddr) -> Result<(), AnnounceError> {
    bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => AnnounceError::PortTaken,
        _ => AnnounceError::Socket(error),
    })
}

fn bind(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Avahi and other responders share the port so.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_port_that_another_program_keeps_is_known() {
        let kept = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = kept.local_addr().unwrap();
        assert!(matches!(try_bind(address), Err(AnnounceError::PortTaken)));
        drop(kept);
        try_bind(address).unwrap();
    }

    #[test]
    fn a_port_that_is_shared_can_be_bound() {
        let shared = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        shared.set_reuse_address(true).unwrap();
        shared.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        try_bind(shared.local_addr().unwrap().as_socket().unwrap()).unwrap();
    }
}
