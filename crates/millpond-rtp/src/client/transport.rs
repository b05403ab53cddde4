//! The transport that a server chose for a track (RFC 2326 12.39).

use crate::setup::{Offer, RtpProfile, pair};
use std::net::IpAddr;

/// Transport on which a server sends a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackTransport {
    /// On the RTSP connection.
    Interleaved {
        /// Channels of RTP and RTCP.
        channels: (u8, u8),
    },
    /// By UDP to the offered ports.
    Unicast {
        /// Ports of RTP and RTCP at the server, if stated.
        server: Option<(u16, u16)>,
        /// Address of the sender, if stated and not the server's own.
        source: Option<IpAddr>,
    },
    /// By UDP to a multicast group.
    Multicast {
        /// Address of the group.
        group: IpAddr,
        /// Ports of RTP and RTCP.
        ports: (u16, u16),
        /// Address of the sender, if stated.
        source: Option<IpAddr>,
    },
}

/// Transport that the reply to an offer states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) transport: TrackTransport,
    pub(super) ssrc: Option<u32>,
    pub(super) profile: RtpProfile,
}

/// Fields of a `Transport` header.
#[derive(Default)]
struct Fields {
    is_tcp: bool,
    is_avpf: bool,
    is_multicast: bool,
    interleaved: Option<(u8, u8)>,
    server: Option<(u16, u16)>,
    port: Option<(u16, u16)>,
    destination: Option<IpAddr>,
    source: Option<IpAddr>,
    ssrc: Option<u32>,
}

/// Returns the transport that the reply to an offer states. The error is the expected content of the header.
///
/// A server that omits the header, or its channels, accepts the offer as it is. A server may choose the connection where
/// UDP was offered.
pub(super) fn chosen(header: &str, offer: &Offer) -> Result<Chosen, &'static str> {
    let offered = match offer {
        Offer::Interleaved(channels) => *channels,
        Offer::Unicast { .. } | Offer::Multicast => None,
    };
    if header.trim().is_empty() {
        let channels = offered.ok_or("a transport")?;
        let transport = TrackTransport::Interleaved { channels };
        return Ok(Chosen { transport, ssrc: None, profile: RtpProfile::Avp });
    }
    let fields = fields(header);
    let transport = if fields.is_tcp {
        TrackTransport::Interleaved { channels: fields.interleaved.or(offered).ok_or("channels")? }
    } else {
        match offer {
            Offer::Interleaved(_) => return Err("RTP/AVP/TCP"),
            Offer::Unicast { .. } if fields.is_multicast => return Err("unicast"),
            Offer::Unicast { .. } => TrackTransport::Unicast { server: fields.server, source: fields.source },
            Offer::Multicast => TrackTransport::Multicast {
                group: fields.destination.filter(IpAddr::is_multicast).ok_or("the address of a multicast group")?,
                ports: fields.port.ok_or("the ports of a multicast group")?,
                source: fields.source,
            },
        }
    };
    let profile = if fields.is_avpf { RtpProfile::Avpf } else { RtpProfile::Avp };
    Ok(Chosen { transport, ssrc: fields.ssrc, profile })
}

fn fields(header: &str) -> Fields {
    let mut parts = header.split(',').next().unwrap_or_default().split(';').map(str::trim);
    let protocol = parts.next().unwrap_or_default().to_ascii_uppercase();
    let is_avpf = protocol.split('/').nth(1) == Some("AVPF");
    let mut fields = Fields { is_tcp: protocol.ends_with("/TCP"), is_avpf, ..Fields::default() };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "interleaved" => fields.interleaved = pair(value),
            "server_port" => fields.server = pair(value),
            "port" => fields.port = pair(value),
            "destination" => fields.destination = value.parse().ok(),
            "source" => fields.source = value.parse().ok(),
            "multicast" => fields.is_multicast = true,
            // Eight hexadecimal digits; some servers pad with spaces.
            "ssrc" => fields.ssrc = u32::from_str_radix(value, 16).ok(),
            _ => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: Offer = Offer::Unicast { ports: (4588, 4589), destination: None };
    const TCP: Offer = Offer::Interleaved(Some((2, 3)));

    #[test]
    fn replies_of_servers_are_read() {
        let unicast = |server, source: &str| TrackTransport::Unicast { server, source: source.parse().ok() };
        let tcp = |channels| TrackTransport::Interleaved { channels };
        for (header, offer, transport, ssrc) in [
            (
                "RTP/AVP;unicast;client_port=4588-4589;server_port=6256-6257;source=192.0.2.1;ssrc=0000000A",
                UDP,
                unicast(Some((6256, 6257)), "192.0.2.1"),
                Some(10),
            ),
            ("RTP/AVP/UDP;unicast", UDP, unicast(None, ""), None),
            ("RTP/AVP/TCP;interleaved=4-5", UDP, tcp((4, 5)), None),
            ("RTP/AVP/TCP;unicast;interleaved=8", TCP, tcp((8, 9)), None),
            ("rtp/avp/tcp;unicast;mode=\"PLAY\"", TCP, tcp((2, 3)), None),
            ("", TCP, tcp((2, 3)), None),
            (
                "RTP/AVP;multicast;destination=239.1.2.3;port=5004;ttl=16",
                Offer::Multicast,
                TrackTransport::Multicast { group: [239, 1, 2, 3].into(), ports: (5004, 5005), source: None },
                None,
            ),
        ] {
            let profile = RtpProfile::Avp;
            assert_eq!(chosen(header, &offer), Ok(Chosen { transport, ssrc, profile }), "{header}");
            let header = header.replace("RTP/AVP", "RTP/AVPF");
            let profile = if header.starts_with("RTP") { RtpProfile::Avpf } else { profile };
            assert_eq!(chosen(&header, &offer), Ok(Chosen { transport, ssrc, profile }), "{header}");
        }
        for (header, offer) in [
            ("", UDP),
            ("RTP/AVP;unicast;server_port=1-2", TCP),
            ("RTP/AVP/TCP", UDP),
            ("RTP/AVP;multicast;destination=239.1.2.3;port=5004", UDP),
            ("RTP/AVP;multicast;destination=10.0.0.1;port=5004", Offer::Multicast),
            ("RTP/AVP;multicast;destination=239.0.0.1", Offer::Multicast),
        ] {
            assert!(chosen(header, &offer).is_err(), "{header}");
        }
    }
}
