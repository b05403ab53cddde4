//! The socket that a transport stream arrives at.

use super::{super::udp, source::TransportAddress};
use nix::{ifaddrs::getifaddrs, net::if_::if_nametoindex};
use rustix::net::sockopt;
use std::{
    io,
    net::{IpAddr, Ipv4Addr},
};
use tokio::net::UdpSocket;

/// A network interface. Zeros leave it to the system.
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) address: Ipv4Addr,
}

impl Interface {
    /// Returns the interface of a name or of an IPv4 address.
    ///
    /// # Errors
    /// No interface has the name.
    pub(crate) fn of(name: &str) -> io::Result<Self> {
        if let Ok(address) = name.parse() {
            return Ok(Self { index: 0, address });
        }
        let index = if_nametoindex(name)?;
        let of_name = getifaddrs()?.filter(|interface| interface.interface_name == name);
        let address = of_name.filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip())).next();
        Ok(Self { index, address: address.unwrap_or(Ipv4Addr::UNSPECIFIED) })
    }
}

/// Opens the socket of an address, and joins its group.
pub(super) fn open(address: &TransportAddress) -> io::Result<UdpSocket> {
    let group = address.at.ip();
    // Other receivers of the machine may have joined the group too. A port has one receiver.
    let socket = udp::bound(address.at, group.is_multicast())?;
    udp::enlarge(&socket)?;
    if group.is_multicast() {
        join(&socket, group, address)?;
    }
    Ok(socket)
}

fn join(socket: &UdpSocket, group: IpAddr, address: &TransportAddress) -> io::Result<()> {
    let Interface { index, address: own } = match &address.interface {
        Some(name) => Interface::of(name)?,
        None => Interface { index: 0, address: Ipv4Addr::UNSPECIFIED },
    };
    match (group, address.sender) {
        (IpAddr::V4(group), Some(IpAddr::V4(sender))) => {
            sockopt::set_ip_add_source_membership(socket, &group, &own, &sender)?;
        }
        (IpAddr::V4(group), _) => sockopt::set_ip_add_membership_with_ifindex(socket, &group, &own, index)?,
        // Packets of other senders are dropped on arrival.
        (IpAddr::V6(group), _) => sockopt::set_ipv6_add_membership(socket, &group, index)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_names_and_addresses() {
        let loopback = Interface::of("lo").unwrap();
        assert!(loopback.index > 0 && loopback.address == Ipv4Addr::LOCALHOST);
        assert_eq!(Interface::of("192.0.2.1").unwrap().address, Ipv4Addr::new(192, 0, 2, 1));
        assert!(Interface::of("no such one").is_err());
    }
}
