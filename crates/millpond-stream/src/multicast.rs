//! Addresses of multicast groups: one for each channel, in a row.

use std::{fmt, net::Ipv4Addr, str::FromStr};

/// The groups that channels are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    first: Ipv4Addr,
    port: u16,
    ttl: u8,
}

/// The text is no address of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a group of IPv4, an even port and hops, such as 239.192.0.1:5004/16")]
pub struct NoGroups;

/// Hop limit where none is given: anywhere in a site (RFC 2365 limits by addresses, not by hops).
const TTL: u8 = 16;

impl Groups {
    /// The address of a channel by its index; `None` where that would be no multicast address.
    #[must_use]
    pub fn address(self, channel: usize) -> Option<Ipv4Addr> {
        let address = u32::from(self.first).checked_add(u32::try_from(channel).ok()?)?;
        Some(Ipv4Addr::from(address)).filter(Ipv4Addr::is_multicast)
    }

    /// The ports of RTP and RTCP of a channel's track by its index.
    pub(crate) fn ports(self, track: usize) -> Option<(u16, u16)> {
        let port = self.port.checked_add(u16::try_from(track).ok()?.checked_mul(2)?)?;
        Some((port, port.checked_add(1)?))
    }

    /// Hop limit of packets.
    pub(crate) fn ttl(self) -> u8 {
        self.ttl
    }
}

impl FromStr for Groups {
    type Err = NoGroups;

    fn from_str(text: &str) -> Result<Self, NoGroups> {
        let (address, ttl) = match text.split_once('/') {
            Some((address, ttl)) => (address, ttl.parse().ok().filter(|ttl| *ttl > 0).ok_or(NoGroups)?),
            None => (text, TTL),
        };
        let (first, port) = address.rsplit_once(':').ok_or(NoGroups)?;
        let first: Ipv4Addr = first.parse().map_err(|_| NoGroups)?;
        let port: u16 = port.parse().map_err(|_| NoGroups)?;
        // RTP's port is even (RFC 3550 11), and a channel has up to two tracks.
        let fits = first.is_multicast() && (2..=65_532).contains(&port) && port.is_multiple_of(2);
        fits.then_some(Self { first, port, ttl }).ok_or(NoGroups)
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.first, self.port, self.ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_have_addresses_and_tracks_ports_in_a_row() {
        let groups: Groups = "239.255.255.254:65532/4".parse().unwrap();
        assert_eq!(groups.to_string(), "239.255.255.254:65532/4");
        assert_eq!(groups.address(0), Some(Ipv4Addr::new(239, 255, 255, 254)));
        assert_eq!(groups.address(1), Some(Ipv4Addr::new(239, 255, 255, 255)));
        assert_eq!(groups.address(2), None);
        assert_eq!([0, 1, 2].map(|track| groups.ports(track)), [Some((65532, 65533)), Some((65534, 65535)), None]);
        assert_eq!("239.1.2.3:5004".parse::<Groups>().unwrap().ttl(), TTL);
        for text in [
            "",
            "239.1.2.3",
            "10.0.0.1:5004",
            "239.1.2.3:5005",
            "239.1.2.3:0",
            "239.1.2.3:65534",
            "239.1.2.3:5004/0",
            "[ff02::1]:4",
        ] {
            assert_eq!(text.parse::<Groups>(), Err(NoGroups), "{text}");
        }
    }
}
