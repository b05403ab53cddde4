//! Settings of the cluster.

use millpond_cluster::{AssignmentName, NodeName, Roles};
use millpond_etcd::{EtcdOptions, Tls};
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration},
};
use std::{fmt, path::PathBuf, time::Duration};
use url::Url;

/// Bounds of `cluster-lease`.
const LEASE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
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
    /// Addresses of etcd's members. Empty: this server is no node of a cluster.
    pub etcd: Vec<Url>,
    /// Name of the node; `None` is the machine's.
    pub node: Option<String>,
    /// Beginning of all keys in etcd.
    pub prefix: String,
    /// Address by which viewers and nodes reach HTTP here; `None` is that of the listener.
    pub http: Option<Url>,
    /// Address by which viewers reach RTSP here; `None` is that of the listener.
    pub rtsp: Option<Url>,
    /// Roles of the node.
    pub roles: Roles,
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
            node: None,
            prefix: "/millpond/".to_owned(),
            http: None,
            rtsp: None,
            roles: Roles::ALL,
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
            Self { node: Some(_), etcd, .. } if etcd.is_empty() => {
                ("node", "node names a node of a cluster: it needs cluster, the addresses of etcd")
            }
            _ => return Vec::new(),
        };
        vec![sources.conflict(name, reason)]
    }
}

impl ClusterSettings {
    /// Whether this server is a node of a cluster.
    pub fn is_on(&self) -> bool {
        !self.etcd.is_empty()
    }

    /// Name of the node: the setting, or the machine's.
    ///
    /// # Errors
    /// The machine's name is no name of a node.
    pub(super) fn name(&self) -> Result<NodeName, String> {
        let name = match &self.node {
            Some(name) => name.clone(),
            None => std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        };
        name.parse().map_err(|error| format!("{error}: set --node"))
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
        name: "cluster-http",
        form: Form::Text,
        default: "none: the address of http; if that is a wildcard, the local address of the connection to etcd",
        help: "URL by which viewers and other nodes reach this node by HTTP",
        applied: At::Restart(|new, old| new.http.clone_from(&old.http)),
        apply: |cluster, text| base(text, &["http", "https"]).map(|v| cluster.http = Some(v)),
        show: |cluster| cluster.http.as_ref().map(shown),
    },
    Setting {
        name: "cluster-rtsp",
        form: Form::Text,
        default: "none: the address of rtsp; if that is a wildcard, the local address of the connection to etcd",
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
        name: "cluster-mbps",
        form: Form::Count,
        default: "none: no limit; the node's share of the assets is that of 1000 Mbit/s",
        help: "Bandwidth of this node in Mbit/s. The node's share of the cluster's assets is proportional to it. A \
               stream is refused if its whole playback does not fit into the free bandwidth",
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
        .map_err(|_| BadValue::new("a name of letters, digits, \"-\", \"_\" and \".\", such as \"edge1\""))
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
        assert!(roles("boss").is_err() && mbps("0").is_err() && name("a b").is_err());
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
