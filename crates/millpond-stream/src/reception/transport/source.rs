//! A transport stream source: its address, and the programme that is wanted of it.

use super::inlet::Inlet;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// An MPEG transport stream that arrives by UDP or RTP. Clones, and the sources of its programmes, share one socket.
#[derive(Clone)]
pub struct TransportSource {
    inlet: Arc<Inlet>,
    programme: Option<u16>,
    /// Time limit of the first frame. Default: 10 s.
    pub timeout: Duration,
}

/// Address that packets arrive at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TransportAddress {
    /// Whether only packets of RTP are taken.
    pub(super) is_rtp: bool,
    /// A local address, or a multicast group.
    pub(super) at: SocketAddr,
    /// Name or IPv4 address of the interface on which the group is joined; `None` leaves it to the system.
    pub(super) interface: Option<String>,
    /// Address of the sender; `None` accepts all.
    pub(super) sender: Option<IpAddr>,
}

/// Why a URL is no transport stream source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportUrlError {
    /// The scheme is neither `udp` nor `rtp`.
    #[error("expected udp:// or rtp://")]
    Scheme,
    /// Host and port are no IP address and port.
    #[error("expected an IP address and a port, such as 239.1.1.1:5000, 0.0.0.0:5000 or [ff15::1]:5000; found {0:?}")]
    Address(String),
    /// There is a path.
    #[error("expected nothing after the port but a query")]
    Path,
    /// The query has another parameter.
    #[error("parameter {0:?}: known are interface= and source=")]
    Parameter(String),
    /// The value of `source` is no IP address of the kind of the group's.
    #[error("source={0:?}: expected an IP address of the kind of the group's")]
    Sender(String),
    /// There is an interface, and no multicast group.
    #[error("interface= needs a multicast group; elsewhere the address before the port chooses the interface")]
    Interface,
    /// Several addresses, of which one is not of `rtp`.
    #[error("several addresses are merged by the sequence numbers of RTP: expected rtp:// for each, found udp://{0}")]
    Merged(SocketAddr),
    /// Two addresses are the same.
    #[error("the address {0} is there twice: the same packets are expected at two addresses")]
    Twice(SocketAddr),
}

impl TransportSource {
    /// Creates the source of a URL: `udp://ADDRESS:PORT` or `rtp://ADDRESS:PORT`. `udp` accepts RTP too. The address is a
    /// multicast group or a local address. Query: `interface=NAME_OR_ADDRESS` of the group, `source=ADDRESS` of the sender.
    ///
    /// # Errors
    /// Any other form.
    pub fn new(url: &str) -> Result<Self, TransportUrlError> {
        Self::merged(&[url])
    }

    /// Creates the source of a stream whose packets arrive at several addresses, of `rtp` each (SMPTE ST 2022-7). What is lost
    /// on the way to one of them is taken from another.
    ///
    /// # Errors
    /// A URL of another form, or of `udp`; two equal addresses.
    pub fn merged(urls: &[&str]) -> Result<Self, TransportUrlError> {
        let addresses = urls.iter().map(|url| TransportAddress::parse(url)).collect::<Result<Vec<_>, _>>()?;
        if addresses.len() > 1 {
            if let Some(plain) = addresses.iter().find(|address| !address.is_rtp) {
                return Err(TransportUrlError::Merged(plain.at));
            }
            let is_twice = |place: usize| addresses[..place].iter().any(|other| other.at == addresses[place].at);
            if let Some(place) = (1..addresses.len()).find(|place| is_twice(*place)) {
                return Err(TransportUrlError::Twice(addresses[place].at));
            }
        }
        let inlet = Arc::new(Inlet::new(addresses));
        Ok(Self { inlet, programme: None, timeout: Duration::from_secs(10) })
    }

    /// Returns the source of one programme. Without a number it is the only programme of the stream.
    #[must_use]
    pub fn programme(&self, number: u16) -> Self {
        Self { programme: Some(number), ..self.clone() }
    }

    pub(super) fn inlet(&self) -> &Arc<Inlet> {
        &self.inlet
    }

    pub(super) fn wanted(&self) -> Option<u16> {
        self.programme
    }
}

impl PartialEq for TransportSource {
    fn eq(&self, other: &Self) -> bool {
        let known = |of: &Self| (of.programme, of.timeout);
        known(self) == known(other) && self.inlet.addresses() == other.inlet.addresses()
    }
}

impl Eq for TransportSource {}

impl fmt::Display for TransportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.inlet.addresses().iter().enumerate() {
            write!(f, "{}{address}", if place == 0 { "" } else { " and " })?;
        }
        self.programme.map_or(Ok(()), |number| write!(f, ", programme {number}"))
    }
}

impl fmt::Debug for TransportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (addresses, programme) = (self.inlet.addresses(), self.programme);
        f.debug_struct("TransportSource")
            .field("addresses", &addresses)
            .field("programme", &programme)
            .field("timeout", &self.timeout)
            .finish()
    }
}

impl TransportAddress {
    fn parse(url: &str) -> Result<Self, TransportUrlError> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(TransportUrlError::Scheme)?;
        let is_rtp = match scheme.to_ascii_lowercase().as_str() {
            "udp" => false,
            "rtp" => true,
            _ => return Err(TransportUrlError::Scheme),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        if !path.is_empty() {
            return Err(TransportUrlError::Path);
        }
        // Some players write the sign of a user without a user.
        let place = place.strip_prefix('@').unwrap_or(place);
        let at = place.parse::<SocketAddr>().ok().filter(|at| at.port() != 0);
        let at = at.ok_or_else(|| TransportUrlError::Address(place.to_owned()))?;
        let mut address = Self { is_rtp, at, interface: None, sender: None };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("interface", value)) if !value.is_empty() => address.interface = Some(value.to_owned()),
                Some(("source", value)) => {
                    let sender = value.parse().ok().filter(|sender: &IpAddr| sender.is_ipv4() == at.is_ipv4());
                    address.sender = Some(sender.ok_or_else(|| TransportUrlError::Sender(value.to_owned()))?);
                }
                _ => return Err(TransportUrlError::Parameter(parameter.to_owned())),
            }
        }
        if address.interface.is_some() && !at.ip().is_multicast() {
            return Err(TransportUrlError::Interface);
        }
        Ok(address)
    }
}

impl fmt::Display for TransportAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_rtp { "rtp" } else { "udp" }, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_groups_and_ports() {
        let source = TransportSource::new("udp://@239.1.1.1:5000?interface=eth0&source=10.0.0.7").unwrap();
        let expected = TransportAddress {
            is_rtp: false,
            at: "239.1.1.1:5000".parse().unwrap(),
            interface: Some("eth0".into()),
            sender: Some("10.0.0.7".parse().unwrap()),
        };
        assert_eq!(*source.inlet.addresses(), [expected]);
        assert_eq!(source.to_string(), "udp://239.1.1.1:5000");
        assert_eq!(source.programme(7).to_string(), "udp://239.1.1.1:5000, programme 7");
        assert_eq!(source.programme(7), source.programme(7));
        assert_ne!(source, source.programme(7));
        assert_eq!(TransportSource::new("RTP://[ff15::1]:5000/").unwrap().to_string(), "rtp://[ff15::1]:5000");
    }

    #[test]
    fn several_addresses_are_of_rtp() {
        let both = TransportSource::merged(&["rtp://239.1.1.1:5000", "rtp://239.2.1.1:5000"]).unwrap();
        assert_eq!(both.to_string(), "rtp://239.1.1.1:5000 and rtp://239.2.1.1:5000");
        let plain = TransportSource::merged(&["rtp://239.1.1.1:5000", "udp://239.2.1.1:5000"]).unwrap_err();
        assert_eq!(plain, TransportUrlError::Merged("239.2.1.1:5000".parse().unwrap()));
        let twice =
            TransportSource::merged(&["rtp://239.1.1.1:5000", "rtp://239.1.1.1:5000?interface=lo"]).unwrap_err();
        assert_eq!(twice, TransportUrlError::Twice("239.1.1.1:5000".parse().unwrap()));
    }

    #[test]
    fn other_urls_are_refused() {
        use TransportUrlError::{Address, Interface, Parameter, Path, Scheme, Sender};
        for (url, expected) in [
            ("239.1.1.1:5000", Scheme),
            ("srt://0.0.0.0:1", Scheme),
            ("udp://host:5000", Address("host:5000".into())),
            ("udp://0.0.0.0", Address("0.0.0.0".into())),
            ("udp://0.0.0.0:0", Address("0.0.0.0:0".into())),
            ("udp://0.0.0.0:5000/tv", Path),
            ("udp://0.0.0.0:5000?pkt_size=1316", Parameter("pkt_size=1316".into())),
            ("udp://239.1.1.1:5000?interface=", Parameter("interface=".into())),
            ("udp://239.1.1.1:5000?source=::1", Sender("::1".into())),
            ("udp://0.0.0.0:5000?interface=eth0", Interface),
        ] {
            assert_eq!(TransportSource::new(url).unwrap_err(), expected, "{url}");
        }
    }
}
