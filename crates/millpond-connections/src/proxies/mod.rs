//! Proxies in front of the server, and the addresses of the clients behind them.
//!
//! A trusted proxy tells the address of its client: in a header field of HTTP ([`forwarded`]), or by the PROXY protocol at
//! the beginning of a connection (`protocol`). Addresses that others tell are ignored. `Proxies` gives the address that access rules,
//! limits and logs use.

pub mod forwarded;
mod protocol;
mod settings;

pub use settings::{ForwardedBy, ProxySettings};

use forwarded::Hop;
use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};

/// Address of a client that a trusted proxy could not or did not name. No network of private addresses has it.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Most header fields of the head of an RTSP tunnel.
const HEADERS: usize = 32;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The client of a request, as a trusted proxy names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// Address of the client; 0.0.0.0 where the proxy does not know it.
    pub address: IpAddr,
    /// Whether the client is connected by TLS.
    pub is_secure: bool,
}

impl Forwarded {
    /// Reads the [`fields`](Self::fields) of another node. `None` where it asks for itself.
    pub fn by_node(headers: &HeaderMap) -> Option<Self> {
        let text = |name: HeaderName| headers.get(name)?.to_str().ok();
        let address = text(X_FORWARDED_FOR)?.parse().ok()?;
        Some(Self { address, is_secure: text(X_FORWARDED_PROTO) == Some("https") })
    }

    /// The fields by which this server tells another one of a client.
    pub fn fields(&self) -> HeaderMap {
        let scheme = HeaderValue::from_static(if self.is_secure { "https" } else { "http" });
        let address = HeaderValue::try_from(self.address.to_string());
        let address = address.ok().map(|address| (X_FORWARDED_FOR, address));
        address.into_iter().chain([(X_FORWARDED_PROTO, scheme)]).collect()
    }
}

/// The client of a connection: the peer, or the one that a trusted proxy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionClient {
    /// Its address; the port is the proxy's own where only a header field names the client.
    pub address: SocketAddr,
    /// Kind of its connection.
    pub kind: ConnectionKind,
}

/// The kind of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// Of a client, without TLS.
    Plain,
    /// Of a client, over TLS to this server or to a trusted proxy.
    Tls,
    /// Of another node of the cluster, over TLS: its certificate was checked.
    Node,
}

impl ConnectionKind {
    /// The kind of a client's connection.
    pub fn of_client(is_secure: bool) -> Self {
        if is_secure { Self::Tls } else { Self::Plain }
    }

    /// Whether the client is connected by TLS.
    #[must_use]
    pub fn is_secure(self) -> bool {
        self != Self::Plain
    }
}

impl ConnectionClient {
    /// A client without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, kind: ConnectionKind::Plain }
    }
}

/// The trusted proxies.
#[derive(Clone, Debug, Default)]
pub struct Proxies(ProxySettings);

impl Proxies {
    /// Trusts the proxies of the settings.
    pub fn new(settings: &ProxySettings) -> Self {
        Self(settings.clone())
    }

    /// Whether an address is that of a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.networks.iter().any(|network| network.contains(address))
    }

    /// Returns the client that a request by HTTP is forwarded for. `None`: the peer is the client.
    pub fn forwarded(&self, peer: IpAddr, headers: &HeaderMap) -> Option<Forwarded> {
        // Most servers have no proxies, and need nothing below.
        if self.0.networks.is_empty() || !self.trusts(peer) {
            return None;
        }
        let lines = |name: HeaderName| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let hops = match self.0.by {
            ForwardedBy::XForwardedFor => forwarded::x_forwarded_for(lines(X_FORWARDED_FOR)),
            ForwardedBy::Forwarded => forwarded::forwarded(lines(FORWARDED)),
            // The connection's address is the client's already.
            ForwardedBy::ProxyProtocol => return None,
        };
        let Hop { address, is_secure } = forwarded::client(&hops, |address| self.trusts(address))?;
        let nearest = || headers.get_all(X_FORWARDED_PROTO).iter().next_back().map(HeaderValue::as_bytes);
        let is_secure = match self.0.by {
            ForwardedBy::XForwardedFor => nearest().is_some_and(forwarded::ends_with_https),
            _ => is_secure,
        };
        Some(Forwarded { address: address.unwrap_or(UNKNOWN), is_secure })
    }

    /// Returns the client of an RTSP tunnel, by the `head` of one of its HTTP requests; `peer` is the client of its connection.
    pub fn of_tunnel(&self, peer: ConnectionClient, head: &[u8]) -> ConnectionClient {
        if self.0.networks.is_empty() {
            return peer;
        }
        let mut fields = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut fields);
        let mut headers = HeaderMap::new();
        if request.parse(head).is_ok() {
            for field in request.headers.iter() {
                let name = HeaderName::from_bytes(field.name.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
                    headers.append(name, value);
                }
            }
        }
        // The port is that of the proxy: nothing is sent to it.
        let named = self.forwarded(peer.address.ip(), &headers);
        named.map_or(peer, |Forwarded { address, is_secure }| ConnectionClient {
            address: SocketAddr::new(address, peer.address.port()),
            kind: ConnectionKind::of_client(is_secure),
        })
    }

    /// Whether connections of a peer begin with a header of the PROXY protocol.
    pub fn begins_with_header(&self, peer: SocketAddr) -> bool {
        self.0.by == ForwardedBy::ProxyProtocol && self.trusts(peer.ip())
    }

    /// Returns a connection's client. Where the peer is a proxy with the PROXY protocol, its header is read first,
    /// for at most `patience`.
    ///
    /// # Errors
    /// The header is missing, malformed or late: the connection must be closed. The log has the reason.
    pub async fn arrive(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
        patience: Duration,
    ) -> io::Result<ConnectionClient> {
        if !self.begins_with_header(peer) {
            return Ok(ConnectionClient::plain(peer));
        }
        // The box keeps the task of a connection small.
        let read = Box::pin(timeout(patience, protocol::read(stream))).await;
        let read = read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let client = read.inspect_err(|error| {
            tracing::warn!(proxy = %peer, %error, "a trusted proxy began a connection without a header of the PROXY protocol");
        })?;
        Ok(client.unwrap_or(ConnectionClient::plain(peer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::Network;

    const NGINX: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn proxies(by: ForwardedBy) -> Proxies {
        let networks = ["10.0.0.0/24", "127.0.0.1"].map(|text| Network::parse(text).unwrap()).to_vec();
        Proxies::new(&ProxySettings { networks, by })
    }

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_only_in_their_header() {
        let both = headers(&[("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=192.0.2.8;proto=https")]);
        let of = |by, peer: IpAddr| proxies(by).forwarded(peer, &both).map(|of| (of.address.to_string(), of.is_secure));
        assert_eq!(of(ForwardedBy::XForwardedFor, NGINX), Some(("192.0.2.7".into(), false)));
        assert_eq!(of(ForwardedBy::Forwarded, NGINX), Some(("192.0.2.8".into(), true)));
        assert_eq!(of(ForwardedBy::ProxyProtocol, NGINX), None);
        for by in [ForwardedBy::XForwardedFor, ForwardedBy::Forwarded] {
            assert_eq!(of(by, "10.0.1.1".parse().unwrap()), None, "a stranger");
        }
        assert_eq!(proxies(ForwardedBy::Forwarded).forwarded(NGINX, &HeaderMap::new()), None, "the proxy itself");
    }

    #[test]
    fn nodes_tell_each_other_of_clients() {
        for is_secure in [true, false] {
            let client = Forwarded { address: "2001:db8::7".parse().unwrap(), is_secure };
            assert_eq!(Forwarded::by_node(&client.fields()), Some(client));
        }
        assert_eq!(Forwarded::by_node(&HeaderMap::new()), None);
        assert_eq!(Forwarded::by_node(&headers(&[("x-forwarded-for", "a, b")])), None);
    }

    #[test]
    fn a_client_without_a_name_is_not_the_proxy() {
        let of = |value| proxies(ForwardedBy::Forwarded).forwarded(NGINX, &headers(&[("forwarded", value)])).unwrap();
        for value in ["for=unknown", "for=_hidden", "for=\"", "proto=https", "for=127.0.0.1;for=127.0.0.1", "for=a b"] {
            assert_eq!(of(value).address, UNKNOWN, "{value}");
        }
    }

    #[test]
    fn the_scheme_is_that_of_the_nearest_proxy() {
        let of = |proto| {
            let fields = headers(&[("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", proto)]);
            proxies(ForwardedBy::XForwardedFor).forwarded(NGINX, &fields).unwrap().is_secure
        };
        assert!(of("https") && of("http, HTTPS") && !of("https, http") && !of("") && !of("httpsx"));
    }

    #[test]
    fn tunnels_have_the_address_of_their_heads() {
        let head = b"GET /a HTTP/1.1\r\nX-Forwarded-For: 203.0.113.5, 192.0.2.7\r\nX-Forwarded-Proto: https\r\nx-sessioncookie: a\r\n\r\n";
        let of = |peer: &str| {
            let peer = ConnectionClient::plain(peer.parse().unwrap());
            let client = proxies(ForwardedBy::XForwardedFor).of_tunnel(peer, head);
            (client.address.to_string(), client.kind.is_secure())
        };
        assert_eq!(of("10.0.0.1:9"), ("192.0.2.7:9".into(), true));
        assert_eq!(of("192.0.2.9:9"), ("192.0.2.9:9".into(), false));
    }
}
