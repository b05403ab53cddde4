//! Questions of nodes to their peers, in a cluster of a list of nodes.
//!
//! A node asks each other one for the changes of its copy. The other one answers when there are some, and after a second at the latest.

use super::{
    super::{Cluster, addresses::authority},
    PeerStatus, Registry, StaticRegistry,
};
use http::{Method, StatusCode};
use millpond_cluster::{GossipLease, GossipReply};
use millpond_etcd::LeaseId;
use millpond_outbound::chain;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use url::Url;

/// Path by which nodes ask.
pub(crate) const GOSSIP: &str = "/.millpond/registry";
/// Time for which a node waits for changes before it answers.
const WAIT: Duration = Duration::from_secs(1);
/// Time limit of an answer beyond that.
const LATE: Duration = Duration::from_secs(2);
/// First pause behind a failure, and the longest one. Half of each is random.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Pause behind an answer, so that changes that are made together are told together.
const GATHER: Duration = Duration::from_millis(20);
/// Interval between readings of names.
const NAMES: Duration = Duration::from_secs(30);
/// Most peers: each node asks all others.
const MOST_PEERS: usize = 32;
/// Time limit of telling a peer that this node leaves.
const FAREWELL: Duration = Duration::from_millis(500);

/// A question to another node.
#[derive(Debug, Default)]
pub(crate) struct GossipQuestion {
    /// Number of the last change that the asker has heard.
    pub(crate) since: u64,
    /// The run of which that is.
    pub(crate) run: u64,
    /// Time for which the asker waits for changes.
    pub(crate) wait: Duration,
    /// A lease that its node has ended.
    pub(crate) ended: Option<GossipLease>,
}

impl Cluster {
    /// Answers another node; `None` where the nodes of this cluster do not ask each other.
    pub(crate) async fn gossip(&self, question: GossipQuestion) -> Option<String> {
        let Registry::Static(registry) = &self.registry else { return None };
        let registry = registry.clone();
        if let Some(lease) = question.ended {
            registry.ended(lease);
            return Some(String::new());
        }
        if question.run == 0 {
            // A node that has just begun: this one asks it at once, too.
            registry.peers().want_again(registry.elapsed());
        }
        let is_known = question.run == self.incarnation;
        let since = if is_known { question.since } else { 0 };
        let mut changed = registry.changed();
        if is_known && since >= registry.sequence() {
            let _ = timeout(question.wait.min(WAIT), changed.changed()).await;
        }
        // A page of entries is work.
        spawn_blocking(move || registry.reply(since).to_json()).await.ok()
    }

    /// The other nodes of a cluster without a service.
    pub(in crate::cluster) fn peers(&self) -> Vec<PeerStatus> {
        match &self.registry {
            Registry::Static(registry) => registry.peers().status(registry.elapsed()),
            _ => Vec::new(),
        }
    }

    /// The URLs of those nodes.
    pub(in crate::cluster) fn peer_urls(&self) -> Vec<Arc<str>> {
        match &self.registry {
            Registry::Static(registry) => registry.peers().urls(),
            _ => Vec::new(),
        }
    }

    /// Tells the peers that a lease of this node has ended: it answers no questions any more.
    pub(in crate::cluster) async fn say_farewell(&self, LeaseId(number): LeaseId) {
        let Registry::Static(registry) = &self.registry else { return };
        let (node, incarnation, number) = (self.name().clone(), self.incarnation, number.unsigned_abs());
        let lease = GossipLease { node, incarnation, number };
        let query = format!("ended={lease}");
        let answering = registry.peers().answering();
        let told = answering.iter().map(|peer| timeout(FAREWELL, self.ask_peer(peer, &query)));
        futures_util::future::join_all(told).await;
    }

    /// Asks the peers until `stop` turns true.
    pub(in crate::cluster) async fn follow_peers(
        self: Arc<Self>,
        registry: StaticRegistry,
        mut stop: watch::Receiver<bool>,
    ) {
        loop {
            let mut urls = Vec::new();
            for url in &self.settings.nodes {
                urls.extend(addresses(url).await);
            }
            urls.retain(|url| !self.has_address(url));
            urls.truncate(MOST_PEERS);
            for url in registry.peers().set(urls) {
                let (cluster, registry, mut stop) = (self.clone(), registry.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = cluster.follow_peer(&registry, &url) => {}
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                });
            }
            tokio::select! {
                () = sleep(NAMES) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Whether a URL is an address by which this node registers.
    fn has_address(&self, url: &str) -> bool {
        let own = [&self.own.addresses.http, &self.own.addresses.nodes];
        let asked = authority(url);
        asked.is_some() && own.into_iter().flatten().any(|own| authority(own) == asked)
    }

    /// Asks a peer while it is one, unless it is this node.
    async fn follow_peer(&self, registry: &StaticRegistry, url: &Arc<str>) {
        let (peers, mut wanted) = (registry.peers(), registry.peers().wanted());
        let (mut since, mut run, mut restarts, mut has_more) = (0, 0, 0, false);
        let (mut last, mut pause) = (None, PAUSE.0);
        while peers.has(url) {
            let is_wanted = last.is_none_or(|last| last < *wanted.borrow_and_update());
            let wait = if is_wanted || has_more { Duration::ZERO } else { WAIT };
            if restarts != registry.restarts() {
                (since, restarts) = (0, registry.restarts());
            }
            let asked = registry.elapsed();
            let query = format!("since={since}&run={run:x}&wait={}", wait.as_millis());
            let answer = tokio::select! {
                answer = timeout(wait + LATE, self.ask_peer(url, &query)) => answer,
                Ok(()) = wanted.changed(), if !wait.is_zero() => continue,
            };
            last = Some(asked);
            let heard = match answer {
                Ok(Ok(bytes)) => self.hear_peer(registry, bytes).await,
                Ok(Err(error)) => Err(error),
                Err(_) => Err(format!("no answer within {:?}", wait + LATE)),
            };
            match heard {
                Ok(Heard { node, .. }) if node.is_empty() => return peers.is_own(url),
                Ok(Heard { node, incarnation, sequence, has_more: more }) => {
                    peers.answered(url, &node, asked);
                    has_more = more && (run != incarnation || sequence > since);
                    (since, run, pause) = (sequence, incarnation, PAUSE.0);
                    if !has_more {
                        sleep(GATHER).await;
                    }
                }
                Err(error) => {
                    peers.failed(url, error, asked, registry.elapsed());
                    tokio::select! {
                        () = sleep(pause / 2 + pause.mul_f64(fastrand::f64() / 2.0)) => {}
                        // Somebody waits for it, or this process had paused.
                        Ok(()) = wanted.changed() => {}
                    }
                    pause = (pause * 2).min(PAUSE.1);
                }
            }
        }
    }

    /// Asks a peer; returns the bytes of its answer.
    async fn ask_peer(&self, url: &str, query: &str) -> Result<Vec<u8>, String> {
        // On a listener for nodes the certificate is the pass.
        let pass = self.relay_pass().map(|pass| format!("/~{pass}")).unwrap_or_default();
        let url = Url::parse(&format!("{url}{pass}{GOSSIP}?{query}")).map_err(|error| error.to_string())?;
        let mut response = self.nodes.request(Method::GET, url).send().await.map_err(|error| chain(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => {
                return Err("it answers 404: it has no cluster-nodes, or another cluster-secret than this node".into());
            }
            status => return Err(format!("it answers {status}")),
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
            if bytes.len() + chunk.len() > GossipReply::LONGEST {
                return Err(format!("its answer has more than {} bytes", GossipReply::LONGEST));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Takes over the answer of a peer.
    async fn hear_peer(&self, registry: &StaticRegistry, bytes: Vec<u8>) -> Result<Heard, String> {
        let (registry, prefix) = (registry.clone(), self.settings.prefix.clone());
        let own = (self.name().clone(), self.incarnation);
        let heard = move || {
            let reply = GossipReply::from_json(&bytes).map_err(|error| format!("its answer can't be read: {error}"))?;
            if (&reply.node, reply.incarnation) == (&own.0, own.1) {
                return Ok(Heard::default());
            }
            if reply.prefix != prefix {
                return Err(format!("it is a node of another cluster-prefix, {:?}", reply.prefix));
            }
            let GossipReply { incarnation, sequence, has_more, .. } = reply;
            let node = reply.node.to_string();
            registry.merge(reply);
            Ok(Heard { node, incarnation, sequence, has_more })
        };
        spawn_blocking(heard).await.map_err(|_| "this node ends".to_owned())?
    }
}

/// The reply of a peer. Its name is empty where it is this node.
#[derive(Debug, Default)]
struct Heard {
    node: String,
    incarnation: u64,
    sequence: u64,
    has_more: bool,
}

/// The addresses of a URL: a name may have those of all nodes. A name with one address keeps its name, which its certificate has, and so does one
/// that has none now.
async fn addresses(url: &Url) -> Vec<Arc<str>> {
    let shown = |url: &Url| -> Arc<str> { url.as_str().trim_end_matches('/').into() };
    let (Some(url::Host::Domain(name)), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return vec![shown(url)];
    };
    let Ok(found) = tokio::net::lookup_host((name, port)).await else { return vec![shown(url)] };
    let mut found: Vec<_> = found.map(|address| address.ip()).collect();
    found.sort_unstable();
    found.dedup();
    let of = |ip| {
        let mut url = url.clone();
        url.set_ip_host(ip).is_ok().then(|| shown(&url))
    };
    match (found.len(), url.scheme()) {
        (0, _) | (1, "https") => vec![shown(url)],
        _ => found.into_iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_stands_for_its_addresses() {
        let of = async |url: &str| addresses(&url.parse().unwrap()).await;
        assert_eq!(of("http://10.0.0.1:8080").await, ["http://10.0.0.1:8080".into()]);
        assert_eq!(of("https://[::1]:8445").await, ["https://[::1]:8445".into()]);
        let local = of("http://localhost:8080").await;
        assert!(local.iter().all(|url| ["http://127.0.0.1:8080", "http://[::1]:8080"].contains(&&**url)), "{local:?}");
    }
}
