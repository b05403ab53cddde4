//! Addresses of the server (RFC 8839 5.1).

use std::net::SocketAddr;

/// Type preference of addresses of the host (RFC 8445 5.1.2.2).
const HOST: u32 = 126;
/// Type preference of TCP: below all others, as a lost packet delays those behind it (RFC 6544 4.2).
const HOST_TCP: u32 = 90;
/// Direction preference of TCP that waits for connections (RFC 6544 4.2).
const PASSIVE: u32 = 4;
/// Component of RTP, which RTCP shares.
const COMPONENT: u32 = 1;

/// Protocol of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateProtocol {
    /// UDP.
    Udp,
    /// TCP. The server waits for connections (RFC 6544).
    TcpPassive,
}

/// An address at which the server waits for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IceCandidate {
    /// IP address, or a name that peers look up.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Protocol.
    pub protocol: CandidateProtocol,
}

impl IceCandidate {
    /// A candidate of UDP.
    #[must_use]
    pub fn udp(address: SocketAddr) -> Self {
        Self::new(address, CandidateProtocol::Udp)
    }

    /// A candidate of TCP.
    #[must_use]
    pub fn tcp(address: SocketAddr) -> Self {
        Self::new(address, CandidateProtocol::TcpPassive)
    }

    fn new(address: SocketAddr, protocol: CandidateProtocol) -> Self {
        Self { host: address.ip().to_canonical().to_string(), port: address.port(), protocol }
    }

    /// Returns the values of the attributes, in order of preference.
    pub(super) fn values(candidates: &[Self]) -> Vec<String> {
        let value = |(at, candidate): (usize, &Self)| {
            let Self { host, port, protocol } = candidate;
            let is_alike = |other: &&Self| other.host == *host && other.protocol == *protocol;
            // Those of one address and protocol have the same foundation (RFC 8445 5.1.1.3).
            let first = candidates.iter().take_while(|other| !is_alike(other)).count();
            let (foundation, priority) = (first + 1, protocol.priority(at));
            let (name, end) = match protocol {
                CandidateProtocol::Udp => ("udp", ""),
                CandidateProtocol::TcpPassive => ("tcp", " tcptype passive"),
            };
            format!("{foundation} {COMPONENT} {name} {priority} {host} {port} typ host{end}")
        };
        candidates.iter().enumerate().map(value).collect()
    }
}

impl CandidateProtocol {
    /// Returns the priority of the candidate at an index (RFC 8445 5.1.2.1, RFC 6544 4.2). All differ.
    fn priority(self, at: usize) -> u32 {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        let (kind, local) = match self {
            Self::Udp => (HOST, 0xffff_u32.saturating_sub(at)),
            Self::TcpPassive => (HOST_TCP, (PASSIVE << 13) + 0x1fff_u32.saturating_sub(at)),
        };
        (kind << 24) + (local << 8) + (256 - COMPONENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_ranked_in_order() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let [v4, v6, mapped] = ["192.0.2.1:8555", "[2001:db8::1]:8555", "[::ffff:192.0.2.1]:8556"].map(address);
        let named = IceCandidate { host: "media.example.com".to_owned(), port: 8555, protocol: CandidateProtocol::Udp };
        let all =
            [IceCandidate::udp(v4), IceCandidate::udp(v6), IceCandidate::udp(mapped), IceCandidate::tcp(v4), named];
        // The first value is the one of RFC 8445 5.1.2.1 for the only address of a host.
        assert_eq!(
            IceCandidate::values(&all),
            [
                "1 1 udp 2130706431 192.0.2.1 8555 typ host",
                "2 1 udp 2130706175 2001:db8::1 8555 typ host",
                "1 1 udp 2130705919 192.0.2.1 8556 typ host",
                "4 1 tcp 1520434431 192.0.2.1 8555 typ host tcptype passive",
                "5 1 udp 2130705407 media.example.com 8555 typ host",
            ]
        );
    }
}
