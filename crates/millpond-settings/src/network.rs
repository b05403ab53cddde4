//! Networks, each an address and the length of its prefix (RFC 4632 3.1, RFC 4291 2.3).

use crate::value::{self, BadValue};
use std::{fmt, net::IpAddr};

/// A network of IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// First address, with no bit set behind the prefix.
    address: IpAddr,
    /// Length of the prefix in bits.
    prefix: u8,
}

impl Network {
    /// Parses `10.2.0.0/16`, `2001:db8::/32`, or the address of one host. Returns `None` for other text and for addresses with
    /// bits behind the prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most)?,
            None => most,
        };
        let network = Self { address, prefix };
        (bits(address) & !network.mask() == 0).then_some(network)
    }

    /// Parses a list of networks with commas between them; `none` is an empty one.
    ///
    /// # Errors
    /// A part is no network.
    pub fn list(text: &str) -> Result<Vec<Self>, BadValue> {
        if text == "none" {
            return Ok(Vec::new());
        }
        let parsed = value::list(text).iter().map(|text| Self::parse(text)).collect::<Option<Vec<_>>>();
        parsed.ok_or_else(|| BadValue::new("networks such as \"10.0.0.0/8\" and \"2001:db8::/32\", or \"none\""))
    }

    /// Returns the text of a list; `None` for an empty one.
    pub fn show(list: &[Self]) -> Option<String> {
        let shown: Vec<_> = list.iter().map(Self::to_string).collect();
        (!shown.is_empty()).then(|| shown.join(","))
    }

    /// Tells whether an address lies in the network. An IPv4 address inside IPv6 (`::ffff:10.2.0.1`) is one of IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && bits(address) & self.mask() == bits(self.address)
    }

    /// Bits of the prefix, those of IPv4 in the upper 32.
    fn mask(&self) -> u128 {
        match self.prefix {
            0 => 0,
            prefix => u128::MAX << (128 - u32::from(prefix)),
        }
    }
}

/// Returns the bits of an address, those of IPv4 in the upper 32.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_inside_by_their_prefix() {
        for (network, inside, outside) in [
            ("10.2.0.0/16", "10.2.255.1", "10.3.0.0"),
            ("10.2.0.0/16", "::ffff:10.2.0.9", "::10.2.0.9"),
            ("10.2.0.7", "10.2.0.7", "10.2.0.8"),
            ("0.0.0.0/0", "192.0.2.1", "2001:db8::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(Network::parse(&network.to_string()), Some(network));
        }
        for text in ["", "10.2.0.1/16", "10.2.0.0/33", "10.2.0.0/", "2001:db8::/129", "2001:db8::1/64", "cams/8"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}
