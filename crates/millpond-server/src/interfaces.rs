//! Addresses of this machine's network interfaces, and those by which other devices reach a listener.

use nix::{
    ifaddrs::{InterfaceAddress, getifaddrs},
    net::if_::InterfaceFlags,
};
use std::net::{IpAddr, SocketAddr};

/// Most addresses of a listener that are told.
const MOST: usize = 4;

/// Beginnings of the names that container engines and virtual machines give to their bridges and pairs. Other devices can't
/// reach these networks.
const INNER: &[&str] = &[
    "docker", "br-", "veth", "virbr", "vnet", "vmnet", "vboxnet", "lxc", "lxdbr", "incusbr", "podman", "cni", "cali",
    "flannel", "cilium", "kube-", "nerdctl", "ifb", "dummy",
];

/// An address of an interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    interface: String,
    address: IpAddr,
    /// Whether the interface leads to one other end, as those of VPNs do.
    is_tunnel: bool,
}

/// Returns the addresses of all interfaces.
pub(crate) fn addresses() -> impl Iterator<Item = IpAddr> {
    interfaces().filter_map(|interface| address(&interface))
}

/// Whether an interface that leads to other devices is up, has a carrier, and carries multicast.
pub(crate) fn has_multicast() -> bool {
    let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING | InterfaceFlags::IFF_MULTICAST;
    let others = InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT;
    interfaces().any(|interface| {
        address(&interface).is_some() && interface.flags.contains(wanted) && !interface.flags.intersects(others)
    })
}

/// Returns the addresses by which other devices reach a listener, the likeliest first: none where it listens on the
/// loopback, its own where it listens on one, and a few of this machine where it listens on all.
#[must_use]
pub fn reachable(listener: SocketAddr) -> Vec<IpAddr> {
    let ip = listener.ip().to_canonical();
    if ip.is_loopback() {
        return Vec::new();
    }
    if !ip.is_unspecified() {
        return vec![ip];
    }
    let named = |interface: InterfaceAddress| {
        let is_tunnel = interface.flags.contains(InterfaceFlags::IFF_POINTOPOINT);
        let address = address(&interface)?;
        let is_up = interface.flags.contains(InterfaceFlags::IFF_UP);
        is_up.then_some(Named { interface: interface.interface_name, address, is_tunnel })
    };
    choose(listener.is_ipv4(), interfaces().filter_map(named).collect())
}

/// Chooses addresses of this machine for a listener on all addresses, which may be those of IPv4 only: IPv4 first, then IPv6,
/// then tunnels, then networks inside of this machine.
fn choose(is_ipv4_only: bool, mut all: Vec<Named>) -> Vec<IpAddr> {
    all.retain(|named| is_host(named.address) && (named.address.is_ipv4() || !is_ipv4_only));
    // The sort is stable: the order of the system stays.
    all.sort_by_key(|named| {
        let is_inner = INNER.iter().any(|name| named.interface.starts_with(name));
        (is_inner, named.is_tunnel, named.address.is_ipv6())
    });
    let mut chosen = Vec::new();
    for named in all {
        if !chosen.contains(&named.address) {
            chosen.push(named.address);
        }
    }
    chosen.truncate(MOST);
    chosen
}

/// Whether an address is that of a host for devices of other links too.
fn is_host(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

fn interfaces() -> impl Iterator<Item = InterfaceAddress> {
    let found = getifaddrs().inspect_err(|error| tracing::warn!(%error, "the addresses of this machine can't be read"));
    found.into_iter().flatten()
}

fn address(interface: &InterfaceAddress) -> Option<IpAddr> {
    let address = interface.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(interface: &str, address: &str) -> Named {
        let is_tunnel = interface.starts_with("wg") || interface.starts_with("tun");
        Named { interface: interface.to_owned(), address: address.parse().unwrap(), is_tunnel }
    }

    fn chosen(is_ipv4_only: bool, all: &[(&str, &str)]) -> Vec<String> {
        let all = all.iter().map(|(interface, address)| named(interface, address)).collect();
        choose(is_ipv4_only, all).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_of_other_devices_networks_are_first_and_inner_ones_last() {
        let all = [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("docker0", "172.17.0.1"),
            ("wg0", "10.8.0.2"),
            ("eth0", "192.0.2.10"),
            ("eth0", "fe80::1"),
            ("eth0", "2001:db8::10"),
            ("eth1", "169.254.7.7"),
            ("wlan0", "198.51.100.7"),
            ("wlan0", "198.51.100.7"),
        ];
        assert_eq!(chosen(false, &all), ["192.0.2.10", "198.51.100.7", "2001:db8::10", "10.8.0.2"]);
        assert_eq!(chosen(true, &all), ["192.0.2.10", "198.51.100.7", "10.8.0.2", "172.17.0.1"]);
        assert_eq!(chosen(false, &all[..3]), ["172.17.0.1"]);
        assert!(chosen(false, &all[..2]).is_empty());
    }

    #[test]
    fn a_bridge_of_the_owner_counts_as_a_network() {
        assert_eq!(
            chosen(true, &[("br-0a1b2c3d4e5f", "172.18.0.1"), ("br0", "192.0.2.10")]),
            ["192.0.2.10", "172.18.0.1"]
        );
    }

    #[test]
    fn a_listener_on_one_address_is_reached_there_and_one_on_the_loopback_nowhere() {
        let of = |listener: &str| reachable(listener.parse().unwrap());
        assert_eq!(of("192.0.2.1:80"), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert!(of("127.0.0.1:80").is_empty() && of("[::1]:80").is_empty() && of("[::ffff:127.0.0.1]:80").is_empty());
        assert!(of("0.0.0.0:80").iter().all(|address| address.is_ipv4() && is_host(*address)));
    }
}
