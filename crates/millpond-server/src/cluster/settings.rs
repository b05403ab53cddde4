//! Settings of the cluster.

use super::addresses::authority;
use millpond_cluster::{AssignmentName, NodeName, Roles};
use millpond_connections::tls::NodeTlsFiles;
use millpond_etcd::{EtcdOptions, Tls};
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration},
};
use std::{borrow::Cow, collections::BTreeSet, fmt, net::SocketAddr, path::PathBuf, time::Duration};
use url::Url;

/// Bounds of `cluster-lease`.
const LEASE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Most addresses of `cluster-nodes`.
const MOST_NODES: usize = 10;
/// Rules of `cluster-steering`, as [`Steering`] has them.
const STEERING: [&str; 4] = ["redirect", "steer", "proxy", "none"];

/// How viewers come to the node of their asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// HTTP 307 and RTSP 302. Manifests list other nodes to fall back on.
    Redirect,
    /// Manifests list the nodes, and a steering manifest their order. RTSP and live streams are redirected.
    Steer,
    /// The node that is asked by HTTP passes on the replies of the asset's node. Each node serves all RTSP requests that it gets.
    Proxy,
    /// Each node serves all requests that it gets.
    None,
}

/// Settings of the cluster.
#[derive(Clone)]
pub struct ClusterSettings {
    /// Addresses of etcd's members.
    pub etcd: Vec<Url>,
    /// Addresses of the nodes of a cluster without etcd. Both empty: this server is no node of a cluster.
    pub nodes: Vec<Url>,
    /// Name of the node; `None` is the machine's.
    pub node: Option<String>,
    /// Beginning of all keys in etcd.
    pub prefix: String,
    /// Id of the cluster; `None` is not checked.
    pub id: Option<String>,
    /// Zone of the node; `None` is in none.
    pub zone: Option<String>,
    /// Address by which viewers and nodes reach HTTP here; `None` is that of the listener.
    pub http: Option<Url>,
    /// Address by which viewers reach RTSP here; `None` is that of the listener.
    pub rtsp: Option<Url>,
    /// Roles of the node.
    pub roles: Roles,
    /// Weight of the node, in Mbit/s; `None` is its bandwidth.
    pub weight: Option<u64>,
    /// Bandwidth of the node, in Mbit/s; `None` is not limited.
    pub mbps: Option<u64>,
    /// Bandwidth of each place's storage, in Mbit/s, which all nodes share; `None` is not limited.
    pub storage_mbps: Option<u64>,
    /// Bandwidth of each store of a striping group, in Mbit/s, which all nodes share; `None` is not limited.
    pub store_mbps: Option<u64>,
    /// Rule that assigns streams to nodes.
    pub assignment: AssignmentName,
    /// How viewers come to the node of their asset.
    pub steering: Steering,
    /// Time to live of the node's lease.
    pub lease: Duration,
    /// User of etcd.
    pub user: Option<String>,
    /// Password of that user, from the environment.
    password: Option<String>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
    /// PEM file with the authorities of etcd's certificates.
    pub ca: Option<PathBuf>,
    /// PEM file of the certificate that is shown to etcd.
    pub cert: Option<PathBuf>,
    /// PEM file of its key.
    pub key: Option<PathBuf>,
    /// File with the secret that the nodes share.
    pub secret: Option<PathBuf>,
    /// PEM file with the authorities of the nodes' certificates.
    pub node_ca: Option<PathBuf>,
    /// PEM file of the certificate that is shown to other nodes.
    pub node_cert: Option<PathBuf>,
    /// PEM file of its key.
    pub node_key: Option<PathBuf>,
    /// Address of the listener for nodes.
    pub node_listen: Option<SocketAddr>,
    /// Address by which other nodes reach that listener; `None` is the listener's own.
    pub node_url: Option<Url>,
}

impl fmt::Debug for ClusterSettings {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSettings")
            .field("node", &self.node)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Settings for ClusterSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(host: &Host<'_>) -> Self {
        Self {
            etcd: Vec::new(),
            nodes: Vec::new(),
            node: None,
            prefix: "/millpond/".to_owned(),
            id: None,
            zone: None,
            http: None,
            rtsp: None,
            roles: Roles::ALL,
            weight: None,
            mbps: None,
            storage_mbps: None,
            store_mbps: None,
            assignment: AssignmentName::default(),
            steering: Steering::Redirect,
            lease: Duration::from_secs(5),
            user: None,
            password: (host.variable)("MILLPOND_CLUSTER_PASSWORD"),
            password_file: None,
            ca: None,
            cert: None,
            key: None,
            secret: None,
            node_ca: None,
            node_cert: None,
            node_key: None,
            node_listen: None,
            node_url: None,
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let has_password = self.password.is_some() || self.password_file.is_some();
        let (name, reason) = match self {
            Self { user: Some(_), .. } if !has_password => {
                ("cluster-user", "cluster-user needs a password: cluster-password-file, or $MILLPOND_CLUSTER_PASSWORD")
            }
            Self { cert: Some(_), key: None, .. } => {
                ("cluster-cert", "cluster-cert needs cluster-key, the file with its private key")
            }
            Self { cert: None, key: Some(_), .. } => {
                ("cluster-key", "cluster-key needs cluster-cert, the file with its certificate")
            }
            Self { node_cert: Some(_), node_key: None, .. } => {
                ("cluster-node-cert", "cluster-node-cert needs cluster-node-key, the file with its private key")
            }
            Self { node_cert: None, node_key: Some(_), .. } => {
                ("cluster-node-key", "cluster-node-key needs cluster-node-cert, the file with its certificate")
            }
            Self { node_cert: Some(_), node_ca: None, .. } => {
                ("cluster-node-cert", "cluster-node-cert needs cluster-node-ca, the file with the nodes' authority")
            }
            Self { node_listen: Some(_), node_cert: None, .. } => (
                "cluster-node-listen",
                "cluster-node-listen needs cluster-node-ca, cluster-node-cert and cluster-node-key, the certificates of nodes",
            ),
            Self { node_url: Some(_), node_listen: None, .. } => (
                "cluster-node-url",
                "cluster-node-url needs cluster-node-listen, the address of the listener for nodes",
            ),
            Self { node: Some(_), etcd, nodes, .. } if etcd.is_empty() && nodes.is_empty() => (
                "node",
                "node names a node of a cluster: it needs cluster, the addresses of etcd, or cluster-nodes, those of the nodes",
            ),
            _ => {
                return self
                    .node_list_fault()
                    .map(|(name, reason)| sources.conflict(name, reason))
                    .into_iter()
                    .collect();
            }
        };
        vec![sources.conflict(name, reason)]
    }
}

impl ClusterSettings {
    /// Whether this server is a node of a cluster.
    pub fn is_on(&self) -> bool {
        !self.etcd.is_empty() || !self.nodes.is_empty()
    }

    /// The setting that does not fit `cluster-nodes`, with the reason.
    fn node_list_fault(&self) -> Option<(&'static str, Cow<'static, str>)> {
        let of_list = || Some(("cluster-nodes", list_fault(&self.nodes)?.into()));
        self.node_list_conflict().map(|(name, reason)| (name, reason.into())).or_else(of_list)
    }

    fn node_list_conflict(&self) -> Option<(&'static str, &'static str)> {
        let has_plain = self.nodes.iter().any(|node| node.scheme() != "https");
        match self {
            Self { nodes, .. } if nodes.is_empty() => None,
            Self { etcd, .. } if !etcd.is_empty() => Some((
                "cluster-nodes",
                "cluster-nodes and cluster exclude each other: the nodes find each other by themselves, or by etcd",
            )),
            Self { secret: None, node_listen: None, .. } => Some((
                "cluster-nodes",
                "cluster-nodes needs cluster-secret, the same on all nodes, or cluster-node-listen: without them, strangers could pose as nodes",
            )),
            Self { node_listen: Some(_), .. } if has_plain => Some((
                "cluster-nodes",
                "beside cluster-node-listen, cluster-nodes has the https addresses of the listeners for nodes",
            )),
            Self { mbps: Some(_), .. } => Some((
                "cluster-mbps",
                "cluster-mbps books bandwidth, which needs etcd: set cluster instead of cluster-nodes, or cluster-weight for a share without a limit",
            )),
            Self { storage_mbps: Some(_), .. } => Some((
                "cluster-storage-mbps",
                "cluster-storage-mbps books bandwidth, which needs etcd: set cluster instead of cluster-nodes",
            )),
            Self { store_mbps: Some(_), .. } => Some((
                "cluster-store-mbps",
                "cluster-store-mbps books bandwidth, which needs etcd: set cluster instead of cluster-nodes",
            )),
            _ => None,
        }
    }

    /// Addresses of etcd's members, or of the nodes: those that this node reaches other nodes by.
    pub(super) fn registry_urls(&self) -> impl Iterator<Item = &Url> {
        self.etcd.iter().chain(&self.nodes)
    }

    /// Name of this server: the setting, or the machine's.
    pub(crate) fn machine(&self) -> String {
        let of_machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        self.node.clone().unwrap_or_else(of_machine)
    }

    /// Name of the node: the setting, or the machine's.
    ///
    /// # Errors
    /// The machine's name is no name of a node.
    pub(super) fn name(&self) -> Result<NodeName, String> {
        self.machine().parse().map_err(|error| format!("{error}: set --node"))
    }

    /// Files of TLS between nodes; `None` where nodes trust the system's authorities.
    pub(crate) fn node_tls(&self) -> Option<NodeTlsFiles> {
        let authorities = self.node_ca.clone()?;
        Some(NodeTlsFiles { authorities, identity: self.node_cert.clone().zip(self.node_key.clone()) })
    }

    /// Options of the client of etcd.
    ///
    /// # Errors
    /// A file can't be read.
    pub(crate) fn client_options(&self) -> Result<EtcdOptions, String> {
        let read = |path: &PathBuf| {
            millpond_settings::files::read(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let user = match &self.user {
            Some(name) => Some((name.clone(), self.password()?)),
            None => None,
        };
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some([read(cert)?, read(key)?].concat()),
            _ => None,
        };
        let tls = Tls { authorities: self.ca.as_ref().map(read).transpose()?, identity };
        // Each member has its turn before the lease ends.
        let members = u32::try_from(self.etcd.len()).unwrap_or(u32::MAX).max(1);
        let timeout = (self.lease / (2 * members)).clamp(Duration::from_millis(500), Duration::from_secs(2));
        Ok(EtcdOptions { members: self.etcd.clone(), user, tls, timeout })
    }

    fn password(&self) -> Result<String, String> {
        match &self.password_file {
            Some(path) => {
                let text = millpond_settings::files::read_text(path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            None => Ok(self.password.clone().unwrap_or_default()),
        }
    }
}

const LIST: &[Setting<ClusterSettings>] = &[
    Setting {
        name: "cluster",
        form: Form::List,
        default: "off",
        help: "Addresses of etcd's members, such as \"http://10.0.0.1:2379\". They make this server a node of a \
               cluster",
        applied: At::Restart(|new, old| new.etcd.clone_from(&old.etcd)),
        apply: |cluster, text| members(text).map(|v| cluster.etcd = v),
        show: |cluster| {
            let members: Vec<_> = cluster.etcd.iter().map(shown).collect();
            (!members.is_empty()).then(|| members.join(","))
        },
    },
    Setting {
        name: "cluster-nodes",
        form: Form::List,
        default: "off",
        help: "URLs of all nodes of a cluster without etcd, 2 to 10, such as \"http://10.0.0.1:8080\". A name stands for all \
               of its addresses. Beside cluster-node-listen, they are those of cluster-node-url. It needs cluster-secret \
               or cluster-node-listen",
        applied: At::Restart(|new, old| new.nodes.clone_from(&old.nodes)),
        apply: |cluster, text| node_list(text).map(|v| cluster.nodes = v),
        show: |cluster| {
            let nodes: Vec<_> = cluster.nodes.iter().map(shown).collect();
            (!nodes.is_empty()).then(|| nodes.join(","))
        },
    },
    Setting {
        name: "node",
        form: Form::Text,
        default: "none: the machine's name",
        help: "Name of this node; no other node of the cluster may have it",
        applied: At::Restart(|new, old| new.node.clone_from(&old.node)),
        apply: |cluster, text| name(text).map(|v| cluster.node = Some(v)),
        show: |cluster| cluster.node.clone(),
    },
    Setting {
        name: "cluster-prefix",
        form: Form::Text,
        default: "/millpond/",
        help: "Prefix of the cluster's keys in etcd. Clusters with different prefixes are separate",
        applied: At::Restart(|new, old| new.prefix.clone_from(&old.prefix)),
        apply: |cluster, text| prefix(text).map(|v| cluster.prefix = v),
        show: |cluster| Some(cluster.prefix.clone()),
    },
    Setting {
        name: "cluster-id",
        form: Form::Text,
        default: "none: it is not checked",
        help: "Name of the cluster, the same on all nodes. A node does not join where cluster-prefix belongs to a cluster of \
               another name",
        applied: At::Restart(|new, old| new.id.clone_from(&old.id)),
        apply: |cluster, text| name(text).map(|v| cluster.id = Some(v)),
        show: |cluster| cluster.id.clone(),
    },
    Setting {
        name: "cluster-zone",
        form: Form::Text,
        default: "none",
        help: "Zone of this node, such as a site, \"eu-1a\": 1 to 63 letters, digits, \"-\", \"_\" and \".\". A zone reads each part of an asset once from other zones, \
               and keeps its viewers while it has room",
        applied: At::Restart(|new, old| new.zone.clone_from(&old.zone)),
        apply: |cluster, text| zone(text).map(|v| cluster.zone = Some(v)),
        show: |cluster| cluster.zone.clone(),
    },
    Setting {
        name: "cluster-http",
        form: Form::Text,
        default: "none: the address of http; if that is a wildcard, the local address towards etcd or the nodes",
        help: "URL by which viewers and other nodes reach this node by HTTP",
        applied: At::Restart(|new, old| new.http.clone_from(&old.http)),
        apply: |cluster, text| base(text, &["http", "https"]).map(|v| cluster.http = Some(v)),
        show: |cluster| cluster.http.as_ref().map(shown),
    },
    Setting {
        name: "cluster-rtsp",
        form: Form::Text,
        default: "none: the address of rtsp; if that is a wildcard, the local address towards etcd or the nodes",
        help: "URL by which viewers reach this node by RTSP",
        applied: At::Restart(|new, old| new.rtsp.clone_from(&old.rtsp)),
        apply: |cluster, text| base(text, &["rtsp", "rtsps"]).map(|v| cluster.rtsp = Some(v)),
        show: |cluster| cluster.rtsp.as_ref().map(shown),
    },
    Setting {
        name: "cluster-roles",
        form: Form::List,
        default: "manager,dispenser,storage",
        help: "Roles of this node: a manager sends viewers to nodes, a dispenser serves streams, a storage node reads \
               slices for other nodes",
        applied: At::Restart(|new, old| new.roles = old.roles),
        apply: |cluster, text| roles(text).map(|v| cluster.roles = v),
        show: |cluster| Some(cluster.roles.iter().map(|role| role.to_string()).collect::<Vec<_>>().join(",")),
    },
    Setting {
        name: "cluster-weight",
        form: Form::Count,
        default: "none: cluster-mbps, or else 1000",
        help: "Weight of this node, such as the Mbit/s of its network card. The node's share of the cluster's assets \
               and viewers is proportional to it. It is no limit",
        applied: At::Restart(|new, old| new.weight = old.weight),
        apply: |cluster, text| mbps(text).map(|v| cluster.weight = Some(v)),
        show: |cluster| cluster.weight.map(|weight| weight.to_string()),
    },
    Setting {
        name: "cluster-mbps",
        form: Form::Count,
        default: "none: no limit",
        help: "Bandwidth of this node in Mbit/s. A stream is refused if its whole playback does not fit into the \
               free bandwidth. It is the node's weight too, where cluster-weight is not set",
        applied: At::Restart(|new, old| new.mbps = old.mbps),
        apply: |cluster, text| mbps(text).map(|v| cluster.mbps = Some(v)),
        show: |cluster| cluster.mbps.map(|mbps| mbps.to_string()),
    },
    Setting {
        name: "cluster-storage-mbps",
        form: Form::Count,
        default: "none: no limit",
        help: "Bandwidth of each place's storage in Mbit/s, shared by all nodes. A stream is refused if its whole \
               playback does not fit into the free bandwidth",
        applied: At::Restart(|new, old| new.storage_mbps = old.storage_mbps),
        apply: |cluster, text| mbps(text).map(|v| cluster.storage_mbps = Some(v)),
        show: |cluster| cluster.storage_mbps.map(|mbps| mbps.to_string()),
    },
    Setting {
        name: "cluster-store-mbps",
        form: Form::Count,
        default: "none: no limit",
        help: "Bandwidth of each store of a striping group in Mbit/s, shared by all nodes. A stream of a striped file \
               is refused if its whole playback does not fit into the free bandwidth",
        applied: At::Restart(|new, old| new.store_mbps = old.store_mbps),
        apply: |cluster, text| mbps(text).map(|v| cluster.store_mbps = Some(v)),
        show: |cluster| cluster.store_mbps.map(|mbps| mbps.to_string()),
    },
    Setting {
        name: "cluster-assignment",
        form: Form::Choice(&["sosd", "rr"]),
        default: "sosd",
        help: "Rule that assigns streams to nodes: sosd keeps an asset at one node while the node has room, rr takes \
               the nodes in turn",
        applied: At::Restart(|new, old| new.assignment = old.assignment),
        apply: |cluster, text| {
            let name = text.parse().map_err(|_| BadValue::new("sosd or rr"))?;
            cluster.assignment = name;
            Ok(())
        },
        show: |cluster| Some(cluster.assignment.to_string()),
    },
    Setting {
        name: "cluster-steering",
        form: Form::Choice(&STEERING),
        default: "redirect",
        help: "How viewers reach the node of their asset. redirect sends them there. steer lists the nodes in \
               manifests, and tells players their order. proxy passes HTTP on from that node. With none, each node \
               serves all assets",
        applied: At::Restart(|new, old| new.steering = old.steering),
        apply: |cluster, text| {
            cluster.steering = match text {
                "redirect" => Steering::Redirect,
                "steer" => Steering::Steer,
                "proxy" => Steering::Proxy,
                "none" => Steering::None,
                _ => return Err(BadValue::new("redirect, steer, proxy or none")),
            };
            Ok(())
        },
        show: |cluster| Some(STEERING[cluster.steering as usize].to_owned()),
    },
    Setting {
        name: "cluster-lease",
        form: Form::Duration,
        default: "5s",
        help: "Time after which a silent node is removed from the cluster",
        applied: At::Restart(|new, old| new.lease = old.lease),
        apply: |cluster, text| value::duration_in(text, LEASE.0, LEASE.1).map(|v| cluster.lease = v),
        show: |cluster| Some(show_duration(cluster.lease)),
    },
    Setting {
        name: "cluster-user",
        form: Form::Text,
        default: "none",
        help: "User of etcd; the password is read from cluster-password-file or $MILLPOND_CLUSTER_PASSWORD",
        applied: At::Restart(|new, old| new.user.clone_from(&old.user)),
        apply: |cluster, text| value::path(text).map(|v| cluster.user = Some(v.display().to_string())),
        show: |cluster| cluster.user.clone(),
    },
    Setting {
        name: "cluster-password-file",
        form: Form::Path,
        default: "none",
        help: "File with the password of cluster-user",
        applied: At::Restart(|new, old| new.password_file.clone_from(&old.password_file)),
        apply: |cluster, text| value::path(text).map(|v| cluster.password_file = Some(v)),
        show: |cluster| cluster.password_file.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-ca",
        form: Form::Path,
        default: "none: the system's authorities",
        help: "PEM file with the certificate authorities of etcd's certificates",
        applied: At::Restart(|new, old| new.ca.clone_from(&old.ca)),
        apply: |cluster, text| value::path(text).map(|v| cluster.ca = Some(v)),
        show: |cluster| cluster.ca.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-cert",
        form: Form::Path,
        default: "none",
        help: "PEM file with the client certificate for etcd",
        applied: At::Restart(|new, old| new.cert.clone_from(&old.cert)),
        apply: |cluster, text| value::path(text).map(|v| cluster.cert = Some(v)),
        show: |cluster| cluster.cert.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-key",
        form: Form::Path,
        default: "none",
        help: "PEM file with the private key of cluster-cert",
        applied: At::Restart(|new, old| new.key.clone_from(&old.key)),
        apply: |cluster, text| value::path(text).map(|v| cluster.key = Some(v)),
        show: |cluster| cluster.key.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-secret",
        form: Form::Path,
        default: "none",
        help: "File with a secret of at least 32 bytes, the same on all nodes. Nodes sign their registrations with \
               it. It also lets nodes read slices and live streams of places with access rules from each other",
        applied: At::Restart(|new, old| new.secret.clone_from(&old.secret)),
        apply: |cluster, text| value::path(text).map(|v| cluster.secret = Some(v)),
        show: |cluster| cluster.secret.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-node-ca",
        form: Form::Path,
        default: "none: the system's authorities",
        help: "PEM file with the certificate authorities of the nodes' certificates. This node then trusts no other \
               authorities when it connects to nodes",
        applied: At::Restart(|new, old| new.node_ca.clone_from(&old.node_ca)),
        apply: |cluster, text| value::path(text).map(|v| cluster.node_ca = Some(v)),
        show: |cluster| cluster.node_ca.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-node-cert",
        form: Form::Path,
        default: "none",
        help: "PEM file with this node's certificate and its chain, for connections to other nodes and from them. \
               cluster-node-ca must have its authority",
        applied: At::Restart(|new, old| new.node_cert.clone_from(&old.node_cert)),
        apply: |cluster, text| value::path(text).map(|v| cluster.node_cert = Some(v)),
        show: |cluster| cluster.node_cert.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-node-key",
        form: Form::Path,
        default: "none",
        help: "PEM file with the private key of cluster-node-cert",
        applied: At::Restart(|new, old| new.node_key.clone_from(&old.node_key)),
        apply: |cluster, text| value::path(text).map(|v| cluster.node_key = Some(v)),
        show: |cluster| cluster.node_key.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "cluster-node-listen",
        form: Form::Address,
        default: "off",
        help: "Address for other nodes only, such as :8445, with TLS at both ends. This node then sends its requests \
               to nodes with such an address only. It needs cluster-node-ca, cluster-node-cert and cluster-node-key",
        applied: At::Restart(|new, old| new.node_listen = old.node_listen),
        apply: |cluster, text| value::address(text).map(|v| cluster.node_listen = Some(v)),
        show: |cluster| cluster.node_listen.map(|address| address.to_string()),
    },
    Setting {
        name: "cluster-node-url",
        form: Form::Text,
        default: "none: the address of cluster-node-listen; if that is a wildcard, the local address towards etcd or the nodes",
        help: "URL by which other nodes reach cluster-node-listen. The node's certificate must be valid for its host",
        applied: At::Restart(|new, old| new.node_url.clone_from(&old.node_url)),
        apply: |cluster, text| base(text, &["https"]).map(|v| cluster.node_url = Some(v)),
        show: |cluster| cluster.node_url.as_ref().map(shown),
    },
];

fn shown(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

fn members(text: &str) -> Result<Vec<Url>, BadValue> {
    let members: Result<Vec<_>, _> = value::list(text).iter().map(|text| base(text, &["http", "https"])).collect();
    members.ok().filter(|members| !members.is_empty()).ok_or_else(|| {
        BadValue::new(
            "addresses of etcd's members such as \"http://10.0.0.1:2379\", without names, passwords and paths",
        )
    })
}

fn node_list(text: &str) -> Result<Vec<Url>, BadValue> {
    let nodes: Result<Vec<_>, _> = value::list(text).iter().map(|text| base(text, &["http", "https"])).collect();
    nodes.ok().filter(|nodes| !nodes.is_empty()).ok_or_else(|| {
        BadValue::new("URLs of nodes such as \"http://10.0.0.1:8080\", without names, passwords and paths")
    })
}

/// Why a list is none of the nodes of a cluster, in words.
fn list_fault(nodes: &[Url]) -> Option<String> {
    let mut known = BTreeSet::new();
    let twice = nodes.iter().find(|url| !known.insert(authority(url.as_str())));
    if let Some(url) = twice {
        return Some(format!("cluster-nodes has the host and port of {} twice: name each node once", shown(url)));
    }
    match nodes {
        [] => None,
        // A name may have the addresses of all nodes.
        [url] if !matches!(url.host(), Some(url::Host::Domain(_))) => Some(format!(
            "cluster-nodes has one address, {}: name all nodes, this one too, or leave cluster-nodes out where there is one server",
            shown(url)
        )),
        nodes if nodes.len() > MOST_NODES => Some(format!(
            "cluster-nodes has {} addresses: expected at most {MOST_NODES}, because each node asks all others. Set cluster, the addresses of etcd, \
             for more nodes",
            nodes.len()
        )),
        _ => None,
    }
}

/// A URL of a scheme, a host and a port.
fn base(text: &str, schemes: &[&str]) -> Result<Url, BadValue> {
    let is_plain = |url: &Url| {
        schemes.contains(&url.scheme())
            && url.host_str().is_some_and(|host| !host.is_empty())
            && (url.username().is_empty() && url.password().is_none())
            && matches!(url.path(), "" | "/")
            && (url.query().is_none() && url.fragment().is_none())
    };
    Url::parse(text).ok().filter(is_plain).ok_or_else(|| {
        BadValue::new(format!("a URL such as \"{}://edge1.example.org:8080\" without a path", schemes[0]))
    })
}

fn name(text: &str) -> Result<String, BadValue> {
    let name: Result<NodeName, _> = text.parse();
    name.map(String::from)
        .map_err(|_| BadValue::new("a name of 1 to 63 letters, digits, \"-\", \"_\" and \".\", such as \"edge1\""))
}

/// The name of a zone. Words by which other settings are off are none.
fn zone(text: &str) -> Result<String, BadValue> {
    let is_reserved = ["none", "off"].iter().any(|word| text.eq_ignore_ascii_case(word));
    name(text).ok().filter(|_| !is_reserved).ok_or_else(|| {
        BadValue::new(
            "a name of 1 to 63 letters, digits, \"-\", \"_\" and \".\", such as \"eu-1a\"; for a node in no zone leave the setting out",
        )
    })
}

fn prefix(text: &str) -> Result<String, BadValue> {
    let is_plain = text.len() <= 128 && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_plain && text.ends_with('/') {
        true => Ok(text.to_owned()),
        false => {
            Err(BadValue::new("a prefix of at most 128 characters that ends with a slash, such as \"/millpond/\""))
        }
    }
}

fn roles(text: &str) -> Result<Roles, BadValue> {
    let roles: Result<Roles, _> = value::list(text).iter().map(|name| name.parse::<millpond_cluster::Role>()).collect();
    roles.map_err(|_| BadValue::new("some of manager, dispenser and storage"))
}

fn mbps(text: &str) -> Result<u64, BadValue> {
    let mbps = text.parse().ok().filter(|mbps| (1..=1_000_000_000).contains(mbps));
    mbps.ok_or_else(|| BadValue::new("a number of Mbit/s from 1 on, such as 10000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(members("http://10.0.0.1:2379, https://etcd2").unwrap().len(), 2);
        for bad in ["", "10.0.0.1:2379", "http://user@etcd", "http://etcd/v3", "ftp://etcd"] {
            assert!(members(bad).is_err(), "{bad}");
        }
        assert!(prefix("/a/").is_ok() && prefix("/a").is_err() && prefix("/ä/").is_err());
        assert_eq!(roles("manager,storage").unwrap().iter().count(), 2);
        for bad in ["none", "None", "off", "", "a b", "-a", "é", &"z".repeat(64)] {
            assert!(zone(bad).is_err_and(|bad| bad.expected.contains("leave the setting out")), "{bad}");
        }
        assert_eq!(["eu-1a", "nonesuch"].map(|name| zone(name).unwrap()), ["eu-1a", "nonesuch"]);
        assert!(roles("boss").is_err() && mbps("0").is_err() && name("a b").is_err());
    }

    #[test]
    fn a_list_of_nodes_needs_a_secret_and_goes_without_bookings() {
        let host = Host { machine: millpond_settings::machine::Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        assert!(node_list("10.0.0.1").is_err() && node_list("").is_err());
        assert_eq!(settings.node_list_fault(), None);
        settings.nodes = node_list("http://10.0.0.1:8080, http://10.0.0.2:8080").unwrap();
        assert!(settings.is_on() && settings.registry_urls().count() == 2);
        let fault = |settings: &ClusterSettings| {
            settings.node_list_fault().map(|(name, reason)| format!("{name}: {reason}")).unwrap_or_default()
        };
        assert!(fault(&settings).starts_with("cluster-nodes: cluster-nodes needs cluster-secret"));
        settings.node_listen = Some("127.0.0.1:8445".parse().unwrap());
        assert!(fault(&settings).contains("the https addresses of the listeners"));
        settings.nodes = node_list("https://10.0.0.1:8445, https://10.0.0.2:8445").unwrap();
        assert_eq!(fault(&settings), "");
        (settings.node_listen, settings.secret) = (None, Some("secret".into()));
        settings.weight = Some(1000);
        assert_eq!(fault(&settings), "");
        settings.mbps = Some(1000);
        assert!(fault(&settings).starts_with("cluster-mbps: cluster-mbps books bandwidth, which needs etcd"));
        (settings.mbps, settings.storage_mbps) = (None, Some(1000));
        assert!(fault(&settings).starts_with("cluster-storage-mbps: "));
        (settings.storage_mbps, settings.store_mbps) = (None, Some(1000));
        assert!(fault(&settings).starts_with("cluster-store-mbps: "));
        settings.store_mbps = None;
        settings.etcd = members("http://etcd:2379").unwrap();
        assert!(fault(&settings).contains("exclude each other"));
    }

    #[test]
    fn a_list_has_two_to_ten_nodes_and_each_once() {
        let fault = |text: &str| list_fault(&node_list(text).unwrap()).unwrap_or_default();
        assert_eq!(fault("http://10.0.0.1:8080,http://10.0.0.1:8081"), "");
        assert_eq!(fault("http://nodes:8080"), "", "a name may stand for several");
        assert!(fault("http://10.0.0.1:8080").starts_with("cluster-nodes has one address, http://10.0.0.1:8080: "));
        for twice in ["http://10.0.0.1,http://b,http://10.0.0.1:80/", "http://B:80,http://b", "http://b:443,https://b"]
        {
            assert!(fault(twice).ends_with(" twice: name each node once"), "{twice}: {}", fault(twice));
        }
        let many = |count: usize| (0..count).map(|at| format!("http://10.0.0.{at}:80")).collect::<Vec<_>>().join(",");
        assert_eq!(fault(&many(10)), "");
        assert!(fault(&many(11)).starts_with("cluster-nodes has 11 addresses: expected at most 10"));
    }

    #[test]
    fn passwords_are_not_shown() {
        let variable = |name: &str| (name == "MILLPOND_CLUSTER_PASSWORD").then(|| "secret".to_owned());
        let host = Host { machine: millpond_settings::machine::Machine::detect(), variable: &variable };
        let mut settings = ClusterSettings::defaults(&host);
        settings.user = Some("root".to_owned());
        settings.etcd = members("http://etcd:2379").unwrap();
        let options = settings.client_options().unwrap();
        assert_eq!(options.user, Some(("root".to_owned(), "secret".to_owned())));
        assert!(!format!("{settings:?} {options:?}").contains("secret"));
        assert!(LIST.iter().all(|setting| (setting.show)(&settings).is_none_or(|text| !text.contains("secret"))));
    }
}
