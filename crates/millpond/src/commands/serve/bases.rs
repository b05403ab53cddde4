//! Beginnings of the URLs of a listener.

use millpond_server::interfaces::reachable;
use std::net::{IpAddr, SocketAddr};

/// Beginnings of the URLs of a listener, such as `http://192.0.2.10:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bases {
    /// For programs of this machine.
    pub(super) here: String,
    /// Whether programs of this machine reach it by the loopback.
    pub(super) is_on_loopback: bool,
    /// For other devices, the likeliest first.
    pub(super) others: Vec<String>,
}

impl Bases {
    pub(super) fn of(scheme: &str, listener: SocketAddr) -> Self {
        Self::new(scheme, listener, &reachable(listener))
    }

    /// Those of a listener that other devices reach by some addresses of this machine.
    fn new(scheme: &str, listener: SocketAddr, others: &[IpAddr]) -> Self {
        // An address of IPv6 has its brackets (RFC 3986 3.2.2).
        let base = |address: SocketAddr| format!("{scheme}://{address}");
        let is_everywhere = listener.ip().is_unspecified();
        let here = if is_everywhere { format!("{scheme}://localhost:{}", listener.port()) } else { base(listener) };
        let is_on_loopback = is_everywhere || listener.ip().to_canonical().is_loopback();
        let others = others.iter().map(|ip| base(SocketAddr::new(*ip, listener.port()))).collect();
        Self { here, is_on_loopback, others }
    }

    /// The one that most devices can use: that of the network, where there is one.
    pub(super) fn shared(&self) -> &str {
        self.others.first().unwrap_or(&self.here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_listeners_can_be_opened() {
        let network: IpAddr = "192.0.2.10".parse().unwrap();
        for (address, others, here, shared) in [
            ("0.0.0.0:8080", &[network][..], "http://localhost:8080", "http://192.0.2.10:8080"),
            ("[::]:8080", &[], "http://localhost:8080", "http://localhost:8080"),
            ("[::1]:8080", &[], "http://[::1]:8080", "http://[::1]:8080"),
            ("192.0.2.10:80", &[network], "http://192.0.2.10:80", "http://192.0.2.10:80"),
        ] {
            let bases = Bases::new("http", address.parse().unwrap(), others);
            assert_eq!((bases.here.as_str(), bases.shared()), (here, shared));
            assert_eq!(bases.is_on_loopback, address != "192.0.2.10:80");
        }
        let six = Bases::new("rtsp", "[::]:8554".parse().unwrap(), &["2001:db8::1".parse().unwrap()]);
        assert_eq!(six.others, ["rtsp://[2001:db8::1]:8554"]);
    }
}
