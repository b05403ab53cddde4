//! The addresses at which other nodes may ask this one, and the check of `cluster-nodes` by them.
//!
//! A question names the address at which it was asked. So a stranger at an old address of a node can't pass it on to another node.

use super::super::addresses::{NodeListeners, authority};
use millpond_cluster::Addresses;
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};
use url::{Host, Url};

/// The addresses of this node.
#[derive(Debug, Default)]
pub(in super::super) struct OwnAddresses {
    /// Host and port of those by which it registers, and of names of the list that stand for it.
    names: BTreeSet<(String, u16)>,
    /// Listeners with their schemes.
    listeners: Vec<(&'static str, SocketAddr)>,
    /// Addresses of the machine's interfaces.
    machine: Vec<IpAddr>,
}

impl OwnAddresses {
    /// Those of a node that registers by some addresses, on a machine with some interfaces.
    pub(in super::super) fn new(registered: &Addresses, listeners: NodeListeners, machine: Vec<IpAddr>) -> Self {
        let Addresses { http, nodes, .. } = registered;
        let names = http.iter().chain(nodes).filter_map(|base| authority(base)).collect();
        let tls = listeners.https.into_iter().chain(listeners.nodes).map(|listener| ("https", listener));
        Self { names, listeners: std::iter::once(("http", listeners.http)).chain(tls).collect(), machine }
    }

    /// Replaces the addresses of the machine.
    pub(super) fn set_machine(&mut self, machine: Vec<IpAddr>) {
        self.machine = machine;
    }

    /// Notes that a name of the list has some addresses.
    pub(super) fn resolved(&mut self, url: &Url, found: &[IpAddr]) {
        let named = authority(url.as_str());
        if let Some(named) = named.filter(|(_, port)| found.iter().any(|ip| self.scheme_at(*ip, *port).is_some())) {
            self.names.insert(named);
        }
    }

    /// Whether a URL leads to this node.
    pub(super) fn has_url(&self, url: &str) -> bool {
        authority(url).is_some_and(|(host, port)| self.has(&host, port))
    }

    /// Whether a host and port, as a pass names them, are of this node.
    pub(super) fn has_asked(&self, asked: &str) -> bool {
        let parts = asked.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        parts.is_some_and(|(host, port)| self.has(host, port))
    }

    /// The fault of a list of nodes, in words.
    pub(in super::super) fn fault(&self, list: &[Url]) -> Option<String> {
        for url in list {
            let (host, port) = authority(url.as_str())?;
            let scheme = host.parse().ok().and_then(|ip| self.scheme_at(ip, port));
            if let Some(scheme) = scheme.filter(|scheme| *scheme != url.scheme()) {
                let shown = url.as_str().trim_end_matches('/');
                let right = shown.replacen(url.scheme(), scheme, 1);
                return Some(format!(
                    "cluster-nodes has {shown}: this node listens there by {scheme}, so write {right}"
                ));
            }
        }
        // The addresses of names may not be known before the node runs.
        let is_number = |url: &Url| matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_)));
        if !list.iter().all(is_number) || list.iter().any(|url| self.has_url(url.as_str())) {
            return None;
        }
        let shown: Vec<_> = list.iter().map(|url| url.as_str().trim_end_matches('/')).collect();
        let own: Vec<_> = self.names.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        Some(format!(
            "cluster-nodes has {}, and none of them is this node, which is at {}: add its address to the list on all nodes, or set cluster-http \
             (cluster-node-url beside cluster-node-listen) to its address in the list",
            shown.join(", "),
            own.join(", "),
        ))
    }

    fn has(&self, host: &str, port: u16) -> bool {
        let is_listened = || host.parse().is_ok_and(|ip| self.scheme_at(ip, port).is_some());
        self.names.iter().any(|(name, at)| (name.as_str(), *at) == (host, port)) || is_listened()
    }

    /// The scheme of the listener at an address of this machine.
    fn scheme_at(&self, ip: IpAddr, port: u16) -> Option<&'static str> {
        let ip = ip.to_canonical();
        let is_here = ip.is_loopback() || self.machine.contains(&ip);
        let listens = |listener: &SocketAddr| {
            let at = listener.ip().to_canonical();
            listener.port() == port && (at == ip || (at.is_unspecified() && is_here))
        };
        self.listeners.iter().find(|(_, listener)| listens(listener)).map(|(scheme, _)| *scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(http: &str) -> OwnAddresses {
        let parse = |text: &str| text.parse().unwrap();
        let listeners = NodeListeners {
            http: parse(http),
            rtsp: parse("0.0.0.0:8554"),
            https: Some(parse("0.0.0.0:8443")),
            nodes: Some(parse("10.0.0.1:8445")),
        };
        let registered = Addresses { http: Some("https://Edge1.example.org".into()), ..Addresses::default() };
        OwnAddresses::new(&registered, listeners, vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()])
    }

    fn list(text: &[&str]) -> Vec<Url> {
        text.iter().map(|url| url.parse().unwrap()).collect()
    }

    #[test]
    fn a_node_knows_its_addresses() {
        let mut own = own("0.0.0.0:8080");
        for asked in ["10.0.0.1:8080", "127.0.0.1:8080", "edge1.example.org:443", "10.0.0.1:8445", "10.0.0.1:8443"] {
            assert!(own.has_asked(asked), "{asked}");
        }
        for asked in ["10.0.0.2:8080", "10.0.0.1:8081", "127.0.0.1:8445", "edge2.example.org:443", "", ":", "a:b"] {
            assert!(!own.has_asked(asked), "{asked}");
        }
        assert!(own.has_url("https://EDGE1.example.org") && !own.has_url("https://edge1.example.org:8080"));
        let named: Url = "https://node-a:8445".parse().unwrap();
        own.resolved(&named, &["10.0.0.2".parse().unwrap()]);
        assert!(!own.has_asked("node-a:8445"));
        own.resolved(&named, &["10.0.0.1".parse().unwrap()]);
        assert!(own.has_asked("node-a:8445"));
        own.set_machine(Vec::new());
        assert!(!own.has_asked("10.0.0.1:8080") && own.has_asked("10.0.0.1:8445"), "one listener has that address");
    }

    #[test]
    fn faults_of_the_list_are_told_with_the_cure() {
        let own = own("10.0.0.1:8080");
        let fault = |urls: &[&str]| own.fault(&list(urls)).unwrap_or_default();
        assert_eq!(fault(&["http://10.0.0.1:8080", "http://10.0.0.2:8080"]), "");
        assert_eq!(fault(&["http://10.0.0.2:8080", "http://nodes:8080"]), "", "a name may stand for this node");
        let told = fault(&["https://10.0.0.1:8080", "https://10.0.0.2:8080"]);
        assert_eq!(
            told,
            "cluster-nodes has https://10.0.0.1:8080: this node listens there by http, so write http://10.0.0.1:8080"
        );
        assert!(fault(&["http://10.0.0.1:8443"]).contains("so write https://10.0.0.1:8443"));
        let told = fault(&["http://10.0.0.3:8080", "http://10.0.0.2:8080"]);
        assert!(
            told.starts_with(
                "cluster-nodes has http://10.0.0.3:8080, http://10.0.0.2:8080, and none of them is this node"
            ),
            "{told}"
        );
        assert!(told.contains("edge1.example.org:443") && told.contains("set cluster-http"), "{told}");
    }
}
