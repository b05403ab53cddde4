//! Questions of nodes to their peers, in a cluster of a list of nodes.
//!
//! A node asks each other one for the changes of its copy. The other one answers when there are some, and after a second at the latest. With a
//! secret of the cluster, a question has a pass of its own, and only an answer with a proof is heard.

use super::{
    super::{
        Cluster,
        addresses::{NodeListeners, authority},
    },
    PeerStatus, Registry, StaticRegistry,
    own_addresses::OwnAddresses,
};
use crate::interfaces;
use http::{HeaderName, Method, StatusCode};
use millpond_cluster::{GossipLease, GossipPass, GossipProof, GossipRefusal, GossipReply};
use millpond_etcd::LeaseId;
use millpond_outbound::chain;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{sleep, timeout},
};
use url::{Position, Url};

/// Path by which nodes ask.
pub(crate) const GOSSIP: &str = "/.millpond/registry";
/// Field of a question with its pass.
pub(crate) const PASS_HEADER: HeaderName = HeaderName::from_static("millpond-pass");
/// Field of an answer with its proof.
pub(crate) const PROOF_HEADER: HeaderName = HeaderName::from_static("millpond-proof");
/// Time for which a node waits for changes before it answers.
pub(super) const WAIT: Duration = Duration::from_secs(1);
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
/// Interval between looks whether this node is in a list.
const LOOK: Duration = Duration::from_secs(5);
/// Time in which each node asks those of its list, and the same where names of the list must be resolved first.
const LISTED: Duration = Duration::from_secs(15);
const LISTED_BY_NAME: Duration = Duration::from_secs(90);
/// Time limit of telling a peer that this node leaves.
const FAREWELL: Duration = Duration::from_millis(500);

impl Cluster {
    /// The other nodes of a cluster without a service.
    pub(in crate::cluster) fn peers(&self) -> Vec<PeerStatus> {
        match &self.registry {
            Registry::Static(registry) => {
                let (now, patience) = (registry.elapsed(), self.listing_patience());
                let since = now.saturating_sub(patience);
                let asks = |run, answers: Duration| {
                    let is_known = answers <= since;
                    Some(registry.askers().has_asked(run, since)).filter(|asks| *asks || is_known)
                };
                registry.peers().status(now, asks)
            }
            _ => Vec::new(),
        }
    }

    /// Whether no other node asks this one, although some answer: it is in nobody's list.
    pub(in crate::cluster) fn is_unlisted(&self) -> bool {
        let Registry::Static(registry) = &self.registry else { return false };
        let since = registry.elapsed().checked_sub(self.listing_patience());
        let is_unlisted = |since| {
            registry.peers().have_answered_since(since) && !registry.askers().has_any_but(self.incarnation, since)
        };
        since.is_some_and(is_unlisted)
    }

    /// Time in which each node that has this one in its list asks it.
    fn listing_patience(&self) -> Duration {
        let has_names = self.settings.nodes.iter().any(|url| matches!(url.host(), Some(url::Host::Domain(_))));
        if has_names { LISTED_BY_NAME } else { LISTED }
    }

    /// Takes over the listeners of this node, and checks the list of nodes by them.
    ///
    /// # Errors
    /// The list lacks this node, or names it by another scheme, in words with the cure.
    pub(crate) fn knows_its_addresses(&self, listeners: NodeListeners) -> Result<(), String> {
        let Registry::Static(registry) = &self.registry else { return Ok(()) };
        let own = OwnAddresses::new(&self.own.addresses, listeners, interfaces::addresses().collect());
        let fault = own.fault(&self.settings.nodes);
        *registry.own() = own;
        fault.map_or(Ok(()), Err)
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
        let told = answering.iter().map(|peer| timeout(FAREWELL, self.ask_peer(registry, peer, &query)));
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
            registry.own().set_machine(interfaces::addresses().collect());
            for url in &self.settings.nodes {
                let found = resolve(url).await;
                registry.own().resolved(url, &found);
                urls.extend(addresses(url, &found));
            }
            urls.retain(|url| !registry.own().has_url(url));
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

    /// Tells in the log where this node is in nobody's list, and where that has ended, until `stop` turns true.
    pub(in crate::cluster) async fn watch_listing(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut was_unlisted = false;
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let is_unlisted = self.is_unlisted();
            let own = self.own.addresses.nodes.as_ref().or(self.own.addresses.http.as_ref());
            match (was_unlisted, is_unlisted) {
                (false, true) => tracing::warn!(
                    own = own.map(|own| &**own),
                    cure = "add the address of this node to cluster-nodes on all nodes, and restart them",
                    "no other node has this one in its cluster-nodes: they don't hear of it, nor of its drains and purges"
                ),
                (true, false) => tracing::info!("another node has this one in its cluster-nodes"),
                _ => {}
            }
            was_unlisted = is_unlisted;
        }
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
                answer = timeout(wait + LATE, self.ask_peer(registry, url, &query)) => answer,
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
                    peers.answered(url, (&node, incarnation), asked);
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
    pub(super) async fn ask_peer(&self, registry: &StaticRegistry, url: &str, query: &str) -> Result<Vec<u8>, String> {
        let url_asked = format!("{url}{GOSSIP}?{query}&by={:x}", self.incarnation);
        let url_asked = Url::parse(&url_asked).map_err(|error| error.to_string())?;
        let target = url_asked[Position::BeforePath..Position::AfterQuery].to_owned();
        let (host, port) = authority(url).ok_or("its URL has no host")?;
        let pass = self.secret.as_ref().map(|secret| {
            let (number, time) = (registry.next_question(), self.wall.system.now());
            let pass = GossipPass { number, time, asked: format!("{host}:{port}"), proof: GossipProof::default() };
            let proof = secret.proof(&pass.question(Method::GET.as_str(), &target), &[]);
            (secret, GossipPass { proof, ..pass })
        });
        let mut request = self.nodes.request(Method::GET, url_asked);
        if let Some((_, pass)) = &pass {
            request = request.header(PASS_HEADER, pass.to_string());
        }
        let mut response = request.send().await.map_err(|error| chain(&error))?;
        let (status, proof) = (response.status(), response.headers().get(PROOF_HEADER).cloned());
        if status != StatusCode::OK && proof.is_none() {
            return Err(match status {
                StatusCode::NOT_FOUND => {
                    "it answers 404: it has no cluster-nodes, or another cluster-secret than this node".into()
                }
                status => format!("it answers {status}"),
            });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
            if bytes.len() + chunk.len() > GossipReply::LONGEST {
                return Err(format!("its answer has more than {} bytes", GossipReply::LONGEST));
            }
            bytes.extend_from_slice(&chunk);
        }
        // On a listener for nodes the certificate is the proof, where there is no secret.
        if let Some((secret, pass)) = &pass {
            let proof = proof.as_ref().and_then(|proof| proof.to_str().ok()?.parse().ok());
            let words = pass.answer(&target, status.as_u16());
            if !proof.is_some_and(|proof| secret.has_proved(&proof, &words, &bytes)) {
                return Err(self.is_forged(registry, url));
            }
        }
        match (status, GossipRefusal::from_json(&bytes)) {
            (StatusCode::OK, _) => Ok(bytes),
            (_, Some(refusal)) => Err(refusal.words(&format!("{host}:{port}"), self.wall.system.now())),
            (status, None) => Err(format!("it answers {status}")),
        }
    }

    /// Counts an answer without the proof that a node makes, and tells it once a minute; returns the error.
    fn is_forged(&self, registry: &StaticRegistry, url: &str) -> String {
        self.metrics.forged.inc();
        if registry.peers().forged(url, registry.elapsed()) {
            tracing::warn!(
                peer = url,
                cure = "remove the address from cluster-nodes if none of your nodes has it, or set the same cluster-secret there",
                "an answer is ignored: no node with cluster-secret has made it"
            );
        }
        "its answer has no proof of cluster-secret: no node of this cluster has made it".into()
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

/// The addresses of the host of a URL: none where it has none now.
async fn resolve(url: &Url) -> Vec<IpAddr> {
    let (Some(url::Host::Domain(name)), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Vec::new();
    };
    let Ok(found) = tokio::net::lookup_host((name, port)).await else { return Vec::new() };
    let mut found: Vec<_> = found.map(|address| address.ip()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The URLs of a listed one whose host has some addresses: a name may have those of all nodes. A name with one address keeps its name, which its
/// certificate has, and so does one that has none now.
fn addresses(url: &Url, found: &[IpAddr]) -> Vec<Arc<str>> {
    let shown = |url: &Url| -> Arc<str> { url.as_str().trim_end_matches('/').into() };
    let of = |ip: &IpAddr| {
        let mut url = url.clone();
        url.set_ip_host(*ip).is_ok().then(|| shown(&url))
    };
    match (found.len(), url.scheme()) {
        (0, _) | (1, "https") => vec![shown(url)],
        _ => found.iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_stands_for_its_addresses() {
        let of = async |url: &str| {
            let url = url.parse().unwrap();
            addresses(&url, &resolve(&url).await)
        };
        assert_eq!(of("http://10.0.0.1:8080").await, ["http://10.0.0.1:8080".into()]);
        assert_eq!(of("https://[::1]:8445").await, ["https://[::1]:8445".into()]);
        let local = of("http://localhost:8080").await;
        assert!(local.iter().all(|url| ["http://127.0.0.1:8080", "http://[::1]:8080"].contains(&&**url)), "{local:?}");
    }
}
