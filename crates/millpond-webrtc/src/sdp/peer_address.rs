//! Addresses of a peer, which its candidates tell (RFC 8839 5.1).

use super::lines::Lines;
use std::net::{IpAddr, SocketAddr};

/// Most addresses of a peer that are checked.
const MOST: usize = 16;
/// Most candidates that are read.
const MOST_READ: usize = 256;

/// Returns the addresses of UDP candidates, those of the highest priority first, each once. Candidates of TCP, of names, and those that
/// no packet can be sent to are left out.
pub(super) fn addresses<'a>(lines: impl Iterator<Item = &'a Lines<'a>>) -> Vec<SocketAddr> {
    let values = lines.flat_map(|lines| lines.all("candidate")).map(|attribute| attribute.value);
    let mut read: Vec<(u32, SocketAddr)> = values.take(MOST_READ).filter_map(candidate).collect();
    // The sort is stable.
    read.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    let mut all = Vec::new();
    for (_, address) in read {
        if all.len() < MOST && !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

/// Reads the priority and the address of `FOUNDATION COMPONENT TRANSPORT PRIORITY ADDRESS PORT typ TYPE`.
fn candidate(value: &str) -> Option<(u32, SocketAddr)> {
    let mut words = value.split_ascii_whitespace().skip(1);
    // RTP, which RTCP shares.
    let is_first = words.next()? == "1";
    let is_udp = words.next()?.eq_ignore_ascii_case("udp");
    let priority = words.next()?.parse().ok()?;
    let address: IpAddr = words.next()?.parse().ok()?;
    let port = words.next()?.parse().ok().filter(|port| *port != 0)?;
    let address = SocketAddr::new(address.to_canonical(), port);
    (is_first && is_udp && is_sendable(address.ip())).then_some((priority, address))
}

fn is_sendable(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_broadcast(),
        // It needs the name of an interface, which candidates do not tell.
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_link_local && !address.is_unspecified() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdp::lines;

    fn read(text: &str) -> Vec<String> {
        let (session, media) = lines::split(text).unwrap();
        addresses([&session].into_iter().chain(&media)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn candidates_of_udp_with_addresses_are_read() {
        let text = "v=0\nm=video 9 RTP/SAVPF 96\na=candidate:1 1 udp 100 192.0.2.1 4000 typ host\n\
            a=candidate:2 1 UDP 300 2001:db8::1 4001 typ srflx raddr 10.0.0.1 rport 5\n\
            a=candidate:3 1 udp 200 ::ffff:192.0.2.2 4002 typ host generation 0\n\
            a=candidate:4 1 udp 900 4d2b.local 4003 typ host\na=candidate:5 1 tcp 900 192.0.2.5 9 typ host tcptype active\n\
            a=candidate:6 2 udp 900 192.0.2.6 4006 typ host\na=candidate:7 1 udp 900 0.0.0.0 4007 typ host\n\
            a=candidate:8 1 udp 900 239.1.1.1 4008 typ host\na=candidate:9 1 udp 900 fe80::1 4009 typ host\n\
            a=candidate:10 1 udp 900 192.0.2.7 0 typ host\na=candidate:11 1 udp 900\na=candidate:\n\
            a=candidate:1 1 udp 100 192.0.2.1 4000 typ host\n";
        assert_eq!(read(text), ["[2001:db8::1]:4001", "192.0.2.2:4002", "192.0.2.1:4000"]);
    }

    #[test]
    fn addresses_are_bounded() {
        let line = |port: u16| format!("a=candidate:1 1 udp {port} 192.0.2.1 {port} typ host\n");
        let text: String = ["v=0\n".to_owned()].into_iter().chain((1000..1500).map(line)).collect();
        let all = read(&text);
        assert_eq!((all.len(), &*all[0]), (MOST, "192.0.2.1:1255"));
    }
}
