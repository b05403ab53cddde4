//! The nodes of a cluster, as the status of one of them shows them.

use serde_json::Value;
use std::time::Duration;

/// Lease of a node that does not state it.
const LEASE: Duration = Duration::from_secs(5);

/// The cluster, as one node sees it.
#[derive(Clone, Debug)]
pub(super) struct SeenCluster {
    /// Name of the asked node.
    pub(super) own: String,
    /// Whether the asked node is registered.
    pub(super) is_member: bool,
    /// Time after which a silent node is removed.
    pub(super) lease: Duration,
    /// The nodes, by their names.
    pub(super) nodes: Vec<SeenNode>,
}

/// A node, as another one sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenNode {
    pub(super) name: String,
    /// Number of its run; empty where the asked node is of a version that does not tell it.
    pub(super) run: String,
    pub(super) version: String,
    pub(super) sessions: u64,
    pub(super) drains: bool,
    /// Whether the asked node found it silent.
    pub(super) is_silent: bool,
    /// Host of its addresses.
    pub(super) host: Option<String>,
}

impl SeenCluster {
    /// Reads a status.
    ///
    /// # Errors
    /// The asked server is no node, in words.
    pub(super) fn read(status: &Value) -> Result<Self, String> {
        let Some(own) = status["node"].as_str() else {
            return Err("this server is no node of a cluster: set cluster, the addresses of etcd, or cluster-nodes, those of the nodes".to_owned());
        };
        let mut nodes: Vec<_> = status["nodes"].as_array().into_iter().flatten().map(SeenNode::read).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        let lease = status["lease-seconds"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let is_member = status["membership"] == "member";
        Ok(Self { own: own.to_owned(), is_member, lease: lease.unwrap_or(LEASE), nodes })
    }

    /// The node of a name.
    ///
    /// # Errors
    /// There is none, in words.
    pub(super) fn node(&self, name: &str) -> Result<&SeenNode, String> {
        let found = self.nodes.iter().find(|node| node.name == name);
        found.ok_or_else(|| format!("the cluster has no node {name}: there are {}", self.names().join(", ")))
    }

    /// Whether another node than `name` takes viewers.
    pub(super) fn has_other(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name != name && !node.drains && !node.is_silent)
    }

    /// The names of the nodes, in order.
    pub(super) fn names(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }
}

impl SeenNode {
    /// Whether it has sessions, or takes new ones.
    pub(super) fn is_busy(&self) -> bool {
        !self.drains || self.sessions > 0
    }

    fn read(node: &Value) -> Self {
        let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
        let host = ["http", "node-url", "rtsp"].into_iter().find_map(|name| host(node[name].as_str()?));
        Self {
            name: text("name"),
            run: text("incarnation"),
            version: text("version"),
            sessions: node["sessions"].as_u64().unwrap_or(0),
            drains: node["draining"] == true,
            is_silent: node["reachable"] == false,
            host,
        }
    }
}

/// The host of a URL. An address of IPv6 has no brackets, as ssh takes it.
fn host(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_is_read() {
        let seen = SeenCluster::read(&json!({
            "node": "b", "membership": "member", "lease-seconds": 2.0,
            "nodes": [
                { "name": "b", "incarnation": "7f", "version": "0.1.0", "sessions": 3, "draining": false, "reachable": null, "http": "http://[::1]:8080" },
                { "name": "a", "incarnation": "1", "draining": true, "reachable": false, "http": null, "rtsp": "rtsp://edge1.example:554" },
            ],
        }))
        .unwrap();
        assert_eq!((seen.own.as_str(), seen.is_member, seen.lease), ("b", true, Duration::from_secs(2)));
        let [a, b] = ["a", "b"].map(|name| seen.node(name).unwrap().clone());
        assert_eq!((a.host.as_deref(), a.drains, a.is_silent), (Some("edge1.example"), true, true));
        assert_eq!((b.host.as_deref(), b.run.as_str(), b.sessions), (Some("::1"), "7f", 3));
        assert_eq!((seen.has_other("a"), seen.has_other("b")), (true, false));
        assert_eq!(seen.node("c").unwrap_err(), "the cluster has no node c: there are a, b");
        assert!(SeenCluster::read(&json!({ "node": null })).unwrap_err().contains("no node of a cluster"));
    }
}
