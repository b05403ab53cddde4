//! The `Transport` of a reply to SETUP (RFC 2326 12.39). Pure.

use super::options::Transport;
use millpond_rtp::setup::pair;
use std::net::IpAddr;

/// The part of a reply's `Transport` that matters to a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The server's ports of RTP and RTCP.
    pub(crate) server_ports: Option<(u16, u16)>,
    /// Where it sends from, if not from where it is asked.
    pub(crate) source: Option<IpAddr>,
    /// Channels of RTP and RTCP on the connection.
    pub(crate) channels: Option<(u8, u8)>,
}

/// Reads it; nothing where the server agreed to another transport than was asked for.
pub(crate) fn agreed(header: &str, asked: Transport) -> Option<Agreed> {
    let mut fields = header.split(',').next()?.split(';').map(str::trim);
    let is_tcp = fields.next()?.eq_ignore_ascii_case("RTP/AVP/TCP");
    let mut agreed = Agreed::default();
    for field in fields {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "server_port" => agreed.server_ports = pair(value),
            "interleaved" => agreed.channels = pair(value),
            "source" => agreed.source = value.trim().parse().ok(),
            "multicast" => return None,
            _ => {}
        }
    }
    (is_tcp == (asked == Transport::Tcp)).then_some(agreed)
}

/// The seconds after which a server forgets a session that is silent: 60 where it doesn't say (RFC 2326 12.37).
pub(crate) fn session(header: &str) -> (String, u64) {
    let mut fields = header.split(';').map(str::trim);
    let name = fields.next().unwrap_or_default().to_owned();
    let seconds = fields.find_map(|field| field.strip_prefix("timeout=")?.trim().parse().ok());
    (name, seconds.filter(|seconds| *seconds > 0).unwrap_or(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_servers_are_read() {
        let udp = "RTP/AVP;unicast;client_port=4588-4589;server_port=6256-6257;source=192.0.2.1;ssrc=0A";
        let expected = Agreed { server_ports: Some((6256, 6257)), source: "192.0.2.1".parse().ok(), channels: None };
        assert_eq!(agreed(udp, Transport::Udp), Some(expected));
        assert_eq!(agreed(udp, Transport::Tcp), None);
        let tcp = agreed("RTP/AVP/TCP;unicast;interleaved=2", Transport::Tcp).unwrap();
        assert_eq!(tcp.channels, Some((2, 3)));
        assert_eq!(agreed("RTP/AVP;multicast;destination=239.0.0.1", Transport::Udp), None);
        assert_eq!(agreed("RTP/AVP/UDP;unicast", Transport::Udp), Some(Agreed::default()));
    }

    #[test]
    fn sessions_have_a_timeout() {
        assert_eq!(session("ab12;timeout=30"), ("ab12".to_owned(), 30));
        assert_eq!(session("ab12"), ("ab12".to_owned(), 60));
        assert_eq!(session("ab12; timeout=0"), ("ab12".to_owned(), 60));
    }
}
