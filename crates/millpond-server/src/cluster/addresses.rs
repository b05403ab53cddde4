//! The addresses by which a node is reached.

use super::ClusterSettings;
use millpond_cluster::{Addresses, Node};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket},
    sync::Arc,
};
use url::Url;

/// The listeners of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeListeners {
    /// That of HTTP.
    pub(crate) http: SocketAddr,
    /// That of RTSP.
    pub(crate) rtsp: SocketAddr,
    /// That of HTTPS for viewers, as it is set.
    pub(crate) https: Option<SocketAddr>,
    /// That of other nodes.
    pub(crate) nodes: Option<SocketAddr>,
}

/// The addresses of a node with these listeners. Settings override them.
pub(crate) fn addresses(settings: &ClusterSettings, listeners: NodeListeners) -> Addresses {
    let of = |given: &Option<Url>, scheme: &str, listener: SocketAddr| -> Arc<str> {
        match given {
            Some(url) => url.as_str().trim_end_matches('/').into(),
            None => format!("{scheme}://{}", reachable(settings, listener)).into(),
        }
    };
    let NodeListeners { http, rtsp, nodes, .. } = listeners;
    Addresses {
        http: Some(of(&settings.http, "http", http)),
        rtsp: Some(of(&settings.rtsp, "rtsp", rtsp)),
        nodes: nodes.map(|nodes| of(&settings.node_url, "https", nodes)),
    }
}

/// The host by which other nodes reach the listener for nodes; `None` where there is none, and where names of etcd's members or of nodes must be
/// resolved to know it.
pub(crate) fn node_host(settings: &ClusterSettings) -> Option<String> {
    let listener = settings.node_listen?;
    match &settings.node_url {
        Some(url) => Some(url.host_str()?.trim_matches(['[', ']']).to_owned()),
        None if !listener.ip().is_unspecified() => Some(listener.ip().to_string()),
        None => {
            let is_number = |member: &&Url| matches!(member.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_)));
            let first = settings.registry_urls().next().filter(is_number)?;
            Some(towards(first).ok()?.to_string())
        }
    }
}

/// The host and the port of an address of a node.
pub(super) fn authority(base: &str) -> Option<(String, u16)> {
    let url = Url::parse(base).ok()?;
    let default = match url.scheme() {
        "rtsps" => 322,
        "rtsp" => 554,
        _ => url.port_or_known_default()?,
    };
    Some((url.host_str()?.trim_matches(['[', ']']).to_ascii_lowercase(), url.port().unwrap_or(default)))
}

/// The address of a listener; where that is any address, the one from which this machine reaches etcd, or the other nodes.
fn reachable(settings: &ClusterSettings, listener: SocketAddr) -> SocketAddr {
    if !listener.ip().is_unspecified() {
        return listener;
    }
    let found = settings.registry_urls().find_map(|member| towards(member).ok());
    SocketAddr::new(found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), listener.port())
}

/// The address from which this machine reaches etcd, and other nodes; `None` where etcd is on this machine, and where none of its members
/// has an address.
pub(super) fn source(settings: &ClusterSettings) -> Option<IpAddr> {
    let mut own = settings.registry_urls().filter_map(|member| towards(member).ok());
    own.find(|address| !address.is_loopback() && !address.is_unspecified())
}

/// The addresses from which a node sends requests, as far as its registration tells them.
pub(super) fn sources(node: &Node) -> impl Iterator<Item = IpAddr> {
    let Addresses { http, rtsp, nodes } = &node.addresses;
    let bases = http.iter().chain(rtsp).chain(nodes);
    bases.filter_map(|base| number(base)).chain(node.source)
}

/// The host of an address, where it is a number.
fn number(base: &str) -> Option<IpAddr> {
    let authority = base.split_once("://")?.1;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => authority.split(':').next()?,
    };
    host.parse().ok()
}

/// The own address of the way to a member. Nothing is sent.
fn towards(member: &Url) -> io::Result<IpAddr> {
    let host = member.host_str().unwrap_or("").trim_matches(['[', ']']).to_owned();
    let port = member.port_or_known_default().unwrap_or(2379);
    let to = (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::{Host, Settings as _, machine::Machine};

    #[test]
    fn a_listener_on_any_address_has_the_one_towards_etcd() {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec!["http://127.0.0.1:2379".parse().unwrap()];
        settings.rtsp = Some("rtsp://edge1.example.org".parse().unwrap());
        let of = |settings: &ClusterSettings, http: &str, rtsp: &str, nodes: Option<&str>| {
            let parse = |text: &str| text.parse().unwrap();
            let (http, rtsp, nodes) = (parse(http), parse(rtsp), nodes.map(parse));
            addresses(settings, NodeListeners { http, rtsp, https: None, nodes })
        };
        let found = of(&settings, "0.0.0.0:8080", "0.0.0.0:8554", Some("0.0.0.0:8445"));
        assert_eq!(found.nodes.as_deref(), Some("https://127.0.0.1:8445"));
        assert_eq!(found.http.as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(found.rtsp.as_deref(), Some("rtsp://edge1.example.org"));
        assert_eq!(source(&settings), None, "etcd is on this machine");
        settings.node_listen = Some("0.0.0.0:8445".parse().unwrap());
        assert_eq!(node_host(&settings).as_deref(), Some("127.0.0.1"), "as it is registered");
        settings.etcd = vec!["http://etcd.example:2379".parse().unwrap()];
        assert_eq!(node_host(&settings), None);
        settings.etcd = vec!["http://127.0.0.1:2379".parse().unwrap()];
        settings.node_listen = Some("[2001:db8::2]:8445".parse().unwrap());
        assert_eq!(node_host(&settings).as_deref(), Some("2001:db8::2"));
        settings.node_url = Some("https://edge1.example.org:8445/".parse().unwrap());
        assert_eq!(node_host(&settings).as_deref(), Some("edge1.example.org"));
        let found = of(&settings, "10.1.2.3:80", "[::1]:554", Some("0.0.0.0:8445"));
        assert_eq!(found.nodes.as_deref(), Some("https://edge1.example.org:8445"));
        let found = of(&settings, "10.1.2.3:80", "[::1]:554", None);
        assert_eq!(found.http.as_deref(), Some("http://10.1.2.3:80"));
        let node = Node::new("a".parse().unwrap(), millpond_cluster::Bitrate::from_mbps(1));
        let rtsp = Some("rtsp://[2001:db8::1]:554".into());
        let node = Node {
            addresses: Addresses { http: found.http, rtsp, nodes: None },
            source: Some([10, 9, 9, 9].into()),
            ..node
        };
        let told: Vec<_> = sources(&node).map(|address| address.to_string()).collect();
        assert_eq!(told, ["10.1.2.3", "2001:db8::1", "10.9.9.9"]);
        let named = Addresses { http: Some("https://edge1.example.org".into()), ..Addresses::default() };
        assert_eq!(sources(&Node { addresses: named, source: None, ..node }).count(), 0);
    }

    #[test]
    fn authorities_have_the_ports_of_their_schemes() {
        for (base, host, port) in [
            ("https://a.example", "a.example", 443),
            ("https://a.example:8445", "a.example", 8445),
            ("rtsps://[2001:db8::1]", "2001:db8::1", 322),
            ("rtsp://10.0.0.1", "10.0.0.1", 554),
        ] {
            assert_eq!(authority(base), Some((host.to_owned(), port)));
        }
        assert_eq!(authority("a.example"), None);
    }
}
