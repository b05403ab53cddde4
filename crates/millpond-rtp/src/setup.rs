//! Transports that a SETUP offers, and the accepted one (RFC 2326 12.39).

use std::{fmt, net::IpAddr};

/// A transport that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// On the RTSP connection (RFC 2326 10.12), with the channels of RTP and RTCP, if stated.
    Interleaved(Option<(u8, u8)>),
    /// By UDP to the client.
    Unicast {
        /// Ports of RTP and RTCP.
        ports: (u16, u16),
        /// Destination address, if stated.
        destination: Option<IpAddr>,
    },
    /// To a multicast group of the server.
    Multicast,
}

impl Offer {
    /// Returns the `Transport` header of a client with the given profiles, the preferred one first.
    #[must_use]
    pub fn header(&self, profiles: &[RtpProfile]) -> String {
        let offer = self.to_string();
        let each = profiles.iter().map(|profile| offer.replacen(RtpProfile::Avp.name(), profile.name(), 1));
        each.collect::<Vec<_>>().join(",")
    }
}

/// Writes the offer of a client, with [`RtpProfile::Avp`].
impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interleaved(None) => f.write_str("RTP/AVP/TCP;unicast"),
            Self::Interleaved(Some((rtp, rtcp))) => write!(f, "RTP/AVP/TCP;unicast;interleaved={rtp}-{rtcp}"),
            Self::Unicast { ports: (rtp, rtcp), destination } => {
                f.write_str("RTP/AVP;unicast")?;
                if let Some(destination) = destination {
                    write!(f, ";destination={destination}")?;
                }
                write!(f, ";client_port={rtp}-{rtcp}")
            }
            Self::Multicast => f.write_str("RTP/AVP;multicast"),
        }
    }
}

/// Direction of the media of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// From the server to the client.
    Play,
    /// From the client to the server.
    Record,
}

impl Mode {
    /// Reads the value of a `mode` field. `receive` is that of publishers from before the standard. `None` for other modes, and
    /// for both at a time.
    fn read(value: &str) -> Option<Self> {
        match value.trim().trim_matches('"').to_ascii_lowercase().as_str() {
            "play" => Some(Self::Play),
            "record" | "receive" => Some(Self::Record),
            _ => None,
        }
    }
}

/// RTP profile: plain or [SRTP](crate::srtp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtpProfile {
    /// Plain RTP (RFC 3551).
    Avp,
    /// Plain RTP with early feedback (RFC 4585).
    Avpf,
    /// SRTP (RFC 3711).
    Savp,
}

impl RtpProfile {
    /// Name in headers and descriptions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avp => "RTP/AVP",
            Self::Avpf => "RTP/AVPF",
            Self::Savp => "RTP/SAVP",
        }
    }
}

/// Reads a `Transport` header; returns the supported offers of a mode in order. Offers with unknown profiles or other modes
/// are left out.
#[must_use]
pub fn offers(transport: &str, mode: Mode) -> Vec<(RtpProfile, Offer)> {
    let all = transport.split(',').filter_map(offer);
    all.filter(|(_, offered)| *offered == mode).map(|(offer, _)| offer).collect()
}

/// Returns the mode of the first supported offer of a `Transport` header; [`Mode::Play`] where there is none.
#[must_use]
pub fn mode(transport: &str) -> Mode {
    transport.split(',').find_map(offer).map_or(Mode::Play, |(_, mode)| mode)
}

fn offer(text: &str) -> Option<((RtpProfile, Offer), Mode)> {
    let mut fields = text.split(';').map(str::trim);
    let (profile, lower) = match fields.next()?.to_ascii_uppercase().as_str() {
        "RTP/AVP" | "RTP/AVP/UDP" => (RtpProfile::Avp, "UDP"),
        "RTP/AVP/TCP" => (RtpProfile::Avp, "TCP"),
        "RTP/AVPF" | "RTP/AVPF/UDP" => (RtpProfile::Avpf, "UDP"),
        "RTP/AVPF/TCP" => (RtpProfile::Avpf, "TCP"),
        "RTP/SAVP" | "RTP/SAVP/UDP" => (RtpProfile::Savp, "UDP"),
        "RTP/SAVP/TCP" => (RtpProfile::Savp, "TCP"),
        _ => return None,
    };
    let (mut channels, mut ports, mut destination, mut multicast) = (None, None, None, false);
    let mut mode = Mode::Play;
    for field in fields {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "interleaved" => channels = Some(pair(value)?),
            "client_port" => ports = Some(pair(value)?),
            "destination" => destination = Some(value.trim().parse().ok()?),
            "multicast" => multicast = true,
            "mode" => mode = Mode::read(value)?,
            _ => {}
        }
    }
    let offer = match (lower, multicast, ports) {
        ("TCP", ..) => Offer::Interleaved(channels),
        (_, true, _) => Offer::Multicast,
        (_, false, Some(ports)) => Offer::Unicast { ports, destination },
        (_, false, None) => return None,
    };
    Some(((profile, offer), mode))
}

/// Reads two numbers of a `Transport` header, such as `4588-4589`. The second defaults to the first plus one. `None`
/// where they are no numbers of type `N`.
#[must_use]
pub fn pair<N: Copy + std::str::FromStr + TryFrom<u32> + Into<u32>>(text: &str) -> Option<(N, N)> {
    let (first, second) = text.split_once('-').unwrap_or((text, ""));
    let first: N = first.trim().parse().ok()?;
    let second = match second.trim() {
        "" => N::try_from(first.into() + 1).ok()?,
        second => second.parse().ok()?,
    };
    Some((first, second))
}

/// Transport of a track: the `Transport` header of the reply, for [`RtpProfile::Avp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportHeader {
    /// On the RTSP connection.
    Interleaved {
        /// Channels of RTP and RTCP.
        channels: (u8, u8),
        /// SSRC of its packets.
        ssrc: u32,
    },
    /// By UDP to the client.
    Unicast {
        /// Ports of RTP and RTCP at the client.
        client: (u16, u16),
        /// Ports of RTP and RTCP at the server.
        server: (u16, u16),
        /// SSRC of its packets.
        ssrc: u32,
    },
    /// By UDP to a multicast group.
    Multicast {
        /// Address of the group.
        group: IpAddr,
        /// Ports of RTP and RTCP.
        ports: (u16, u16),
        /// Hop limit.
        ttl: u8,
        /// SSRC of its packets.
        ssrc: u32,
    },
}

impl TransportHeader {
    /// Returns the header with the given profile.
    #[must_use]
    pub fn header(&self, profile: RtpProfile) -> String {
        self.to_string().replacen(RtpProfile::Avp.name(), profile.name(), 1)
    }
}

impl fmt::Display for TransportHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interleaved { channels: (rtp, rtcp), ssrc } => {
                write!(f, "RTP/AVP/TCP;unicast;interleaved={rtp}-{rtcp};ssrc={ssrc:08X}")
            }
            Self::Unicast { client, server, ssrc } => write!(
                f,
                "RTP/AVP;unicast;client_port={}-{};server_port={}-{};ssrc={ssrc:08X}",
                client.0, client.1, server.0, server.1
            ),
            Self::Multicast { group, ports: (rtp, rtcp), ttl, ssrc } => {
                write!(f, "RTP/AVP;multicast;destination={group};port={rtp}-{rtcp};ttl={ttl};ssrc={ssrc:08X}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_read_in_their_order() {
        let unicast = |ports| Offer::Unicast { ports, destination: None };
        for (text, expected) in [
            ("RTP/AVP;unicast;client_port=4588-4589", vec![unicast((4588, 4589))]),
            ("RTP/AVP/UDP;unicast;client_port=5000;mode=\"PLAY\"", vec![unicast((5000, 5001))]),
            ("RTP/AVP/TCP;unicast;interleaved=2-3", vec![Offer::Interleaved(Some((2, 3)))]),
            ("RTP/AVP/TCP", vec![Offer::Interleaved(None)]),
            ("RTP/AVP;multicast, RTP/AVP;unicast;client_port=1-2", vec![Offer::Multicast, unicast((1, 2))]),
            ("RTP/SAVPF;unicast;client_port=1-2", vec![]),
            ("RTP/AVP;unicast;client_port=1-2;mode=record", vec![]),
            ("RTP/AVP;unicast;client_port=99999", vec![]),
            ("RTP/AVP/TCP;interleaved=255", vec![]),
            ("RTP/AVP;unicast", vec![]),
            ("", vec![]),
        ] {
            for profile in [RtpProfile::Avp, RtpProfile::Avpf, RtpProfile::Savp] {
                let text = text.replace("RTP/AVP", profile.name());
                let expected: Vec<_> = expected.iter().map(|offer| (profile, *offer)).collect();
                assert_eq!(offers(&text, Mode::Play), expected, "{text}");
            }
        }
        let elsewhere = offers("RTP/AVP;unicast;destination=192.0.2.9;client_port=1-2", Mode::Play);
        let expected = Offer::Unicast { ports: (1, 2), destination: "192.0.2.9".parse().ok() };
        assert_eq!(elsewhere, [(RtpProfile::Avp, expected)]);
        for offer in [expected, unicast((1, 2)), Offer::Multicast, Offer::Interleaved(None)] {
            assert_eq!(offers(&offer.to_string(), Mode::Play), [(RtpProfile::Avp, offer)]);
            let both = [RtpProfile::Avpf, RtpProfile::Avp];
            assert_eq!(offers(&offer.header(&both), Mode::Play), both.map(|profile| (profile, offer)));
        }
        let both = offers("rtp/savp/tcp;interleaved=0-1,RTP/AVP/TCP;interleaved=0-1", Mode::Play);
        let expected = Offer::Interleaved(Some((0, 1)));
        assert_eq!(both, [(RtpProfile::Savp, expected), (RtpProfile::Avp, expected)]);
    }

    #[test]
    fn publishers_offer_to_record() {
        let ports = Offer::Unicast { ports: (1, 2), destination: None };
        for (text, expected) in [
            ("RTP/AVP;unicast;client_port=1-2;mode=record", vec![ports]),
            ("RTP/AVP/UDP;unicast;client_port=1-2;mode=\"RECORD\"", vec![ports]),
            ("RTP/AVP/TCP;interleaved=0-1;mode=receive", vec![Offer::Interleaved(Some((0, 1)))]),
            ("RTP/AVP/TCP;interleaved=0-1", vec![]),
            ("RTP/AVP/TCP;interleaved=0-1;mode=\"PLAY,RECORD\"", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|offer| (RtpProfile::Avp, offer)).collect();
            assert_eq!(mode(text), if expected.is_empty() { Mode::Play } else { Mode::Record }, "{text}");
            assert_eq!(offers(text, Mode::Record), expected, "{text}");
        }
    }

    #[test]
    fn replies_have_what_clients_look_for() {
        let text = TransportHeader::Unicast { client: (4588, 4589), server: (6256, 6257), ssrc: 0xa }.to_string();
        assert_eq!(text, "RTP/AVP;unicast;client_port=4588-4589;server_port=6256-6257;ssrc=0000000A");
        let group = IpAddr::from([239, 1, 2, 3]);
        let text = TransportHeader::Multicast { group, ports: (5004, 5005), ttl: 16, ssrc: 1 }.to_string();
        assert_eq!(text, "RTP/AVP;multicast;destination=239.1.2.3;port=5004-5005;ttl=16;ssrc=00000001");
        let transport = TransportHeader::Interleaved { channels: (0, 1), ssrc: 1 };
        assert_eq!(transport.to_string(), "RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=00000001");
        assert_eq!(transport.header(RtpProfile::Avp), transport.to_string());
        assert_eq!(transport.header(RtpProfile::Savp), "RTP/SAVP/TCP;unicast;interleaved=0-1;ssrc=00000001");
    }
}
