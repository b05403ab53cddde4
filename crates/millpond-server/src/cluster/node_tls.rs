//! TLS between nodes: the addresses by which this node asks others, the certificates that it trusts, and their faults.

use super::{Cluster, ClusterSettings, addresses::authority};
use millpond_cluster::{Node, View};
use millpond_connections::tls::{NodeHosts, NodeTls, TlsError, alert_fault, certificate_fault};
use millpond_outbound::{CertificateFault, Client, Options};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_rustls::rustls::{ClientConfig, ServerConfig};

/// Protocol of ALPN (RFC 7301) of relays: RTSP on the listener for nodes. No registry has a name for it.
pub(crate) const RELAY: &[u8] = b"millpond-rtsp";
/// Protocols of HTTP between nodes. By HTTP/2 the reason of a refused certificate would be lost.
const HTTP: [&[u8]; 1] = [b"http/1.1"];

/// TLS of this node towards other nodes.
#[derive(Debug)]
pub(super) struct TowardsNodes {
    tls: Arc<NodeTls>,
    http: Arc<ClientConfig>,
    relays: Arc<ClientConfig>,
}

impl TowardsNodes {
    /// Reads the certificates of the settings; `None` where nodes trust the system's authorities.
    ///
    /// # Errors
    /// A file can't be used, in words.
    pub(super) fn open(settings: &ClusterSettings) -> Result<Option<Self>, String> {
        let Some(tls) = open(settings)? else { return Ok(None) };
        let told = |error: TlsError| error.to_string();
        let http = tls.client_config(&HTTP).map_err(told)?;
        let relays = tls.client_config(&[RELAY]).map_err(told)?;
        Ok(Some(Self { tls, http, relays }))
    }

    pub(super) fn tls(&self) -> &Arc<NodeTls> {
        &self.tls
    }
}

/// Reads the certificates of the settings; `None` where nodes trust the system's authorities.
///
/// # Errors
/// A file can't be used, in words that name its setting.
pub(crate) fn open(settings: &ClusterSettings) -> Result<Option<Arc<NodeTls>>, String> {
    let Some(files) = settings.node_tls() else { return Ok(None) };
    let opened = NodeTls::open(&files).map_err(|error| {
        let identity =
            files.identity.iter().flat_map(|(cert, key)| [("cluster-node-cert", cert), ("cluster-node-key", key)]);
        let mut all = std::iter::once(("cluster-node-ca", &files.authorities)).chain(identity);
        let setting = all.find(|(_, path)| error.path() == Some(path.as_path()));
        setting.map_or_else(|| error.to_string(), |(name, _)| format!("{name}: {error}"))
    });
    opened.map(Some)
}

/// Creates a client of other nodes.
///
/// # Errors
/// It can't be set up, in words.
pub(super) fn client(towards: Option<&TowardsNodes>, options: Options) -> Result<Client, String> {
    Client::new(&Options { tls: towards.map(|towards| towards.http.clone()), ..options })
}

impl Cluster {
    /// The address by which this node sends HTTP to another one. A node with a listener for nodes uses no other addresses, so that
    /// nobody without a certificate can pose as a node.
    pub(super) fn base_of(&self, node: &Node) -> Option<Arc<str>> {
        match self.settings.node_listen {
            Some(_) => node.addresses.nodes.clone(),
            None => node.addresses.http.clone(),
        }
    }

    /// A pass for live streams of other nodes. On a listener for nodes the certificate is the pass.
    pub(crate) fn relay_pass(&self) -> Option<Arc<str>> {
        self.pass().filter(|_| self.settings.node_listen.is_none())
    }

    /// Creates a client of homes.
    pub(super) fn client_of_homes(&self, connect: Duration) -> Result<Client, String> {
        client(self.towards_nodes.as_ref(), Options { connect, ..Options::default() })
    }

    /// TLS for a relay from a server; `None` where that is no node of the view, or nodes trust the system's authorities.
    pub(crate) fn relay_tls(&self, host: &str, port: u16) -> Option<Arc<ClientConfig>> {
        let towards = self.towards_nodes.as_ref()?;
        let asked = (host.trim_matches(['[', ']']).to_ascii_lowercase(), port);
        let view = self.view();
        let mut bases = view.nodes().iter().flat_map(|node| node.addresses.nodes.iter().chain(&node.addresses.rtsp));
        bases.any(|base| authority(base).as_ref() == Some(&asked)).then(|| towards.relays.clone())
    }

    /// TLS of the listener for nodes.
    ///
    /// # Errors
    /// There are no certificates, or the TLS library refuses them, in words.
    pub(crate) fn listener_tls(self: &Arc<Self>) -> Result<Arc<ServerConfig>, String> {
        let towards = self.towards_nodes.as_ref().ok_or("there is no certificate of this node")?;
        let protocols = [HTTP[0], RELAY];
        towards.tls.server_config(&protocols, self.clone()).map_err(|error| error.to_string())
    }

    /// Tells of certificates that are refused between this node and others, of nodes that it can't ask, and of their return. `told` has
    /// what was told, by address or node.
    pub(super) fn tell_certificates(&self, view: &View, told: &mut BTreeMap<Arc<str>, String>) {
        let faults: BTreeMap<Arc<str>, CertificateFault> = self.reach.faults().into_iter().collect();
        let mut found = BTreeMap::new();
        if self.settings.node_listen.is_none() && view.nodes().iter().any(|node| node.addresses.nodes.is_some()) {
            let name: Arc<str> = self.name().as_str().into();
            if !told.contains_key(&name) {
                tracing::warn!(
                    cure = "set cluster-node-listen here too",
                    "other nodes have a listener for nodes, and this node has none: they neither read slices nor take streams from it"
                );
            }
            found.insert(name, String::new());
        }
        for node in view.nodes().iter().filter(|node| node.name != *self.name()) {
            let Some(address) = self.base_of(node) else {
                let name: Arc<str> = node.name.as_str().into();
                if self.settings.node_listen.is_some() && !told.contains_key(&name) {
                    tracing::warn!(node = %node.name, cure = "set cluster-node-listen there too",
                        "a node has no address for nodes: this node neither reads slices nor takes streams from it");
                }
                found.insert(name, String::new());
                continue;
            };
            let Some(fault) = faults.get(&address) else { continue };
            let words = words(fault);
            if told.get(&address) != Some(&words) {
                tracing::warn!(node = %node.name, %address, fault = words, cure = self.cure(fault), "TLS to a node fails");
            }
            found.insert(address, words);
        }
        for (address, _) in told.iter().filter(|(address, fault)| !fault.is_empty() && !found.contains_key(*address)) {
            tracing::info!(%address, "TLS to a node does not fail any more");
        }
        *told = found;
    }

    /// The cure of a fault.
    fn cure(&self, fault: &CertificateFault) -> &'static str {
        match fault {
            CertificateFault::OfServer(_) if self.towards_nodes.is_none() => {
                "set cluster-node-ca, the file with the authority of the nodes' certificates"
            }
            CertificateFault::OfServer(_) => {
                "compare that node's certificate with cluster-node-ca here, and its subjectAltName with the host of the address"
            }
            CertificateFault::OfClient(_) => {
                "the log of that node has the reason; compare cluster-node-cert here with cluster-node-ca there"
            }
        }
    }
}

/// A fault in words. They have no time, so that a fault that lasts is told once.
fn words(fault: &CertificateFault) -> String {
    match fault {
        CertificateFault::OfServer(fault) => certificate_fault(fault),
        CertificateFault::OfClient(alert) => {
            let why = alert_fault(*alert).unwrap_or("the log of that node has the reason");
            format!("that node refuses the certificate of this one: {why}")
        }
    }
}

impl NodeHosts for Cluster {
    fn hosts(&self) -> Vec<String> {
        let view = self.view();
        let bases = view.nodes().iter().chain([&self.own]).filter_map(|node| node.addresses.nodes.as_deref());
        // Nodes of a list ask each other before they are registered.
        let listed = self.settings.nodes.iter().map(|url| Arc::from(url.as_str())).chain(self.peer_urls());
        bases.map(Arc::from).chain(listed).filter_map(|base| Some(authority(&base)?.0)).collect()
    }
}
