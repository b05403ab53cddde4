//! The other nodes of a cluster without a service, and whether they answer.

use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use utoipa::ToSchema;

/// Time for which a failing peer is tried in a round: after a pause of this process, the first failure is of a connection that ended meanwhile.
const NEW_FAILURE: Duration = Duration::from_secs(1);
/// Time for which a peer fails before the log tells it: nodes that start together don't listen yet.
const TOLD: Duration = Duration::from_secs(2);

/// Least time between two messages of an answer that no node has made.
const FORGED: Duration = Duration::from_secs(60);
/// Least time between two askings that other nodes cause.
const AGAIN: Duration = Duration::from_secs(1);

/// A peer, as operators see it.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PeerStatus {
    /// Its URL.
    url: String,
    /// `new`, `answers`, `own` (it is this node) or `unreachable`.
    state: &'static str,
    /// Its name; null before it has answered.
    node: Option<String>,
    /// Whether it asks this node: otherwise this node is missing in its `cluster-nodes`. Null before that can be known.
    asks: Option<bool>,
    /// Time for which it has been unreachable.
    seconds: Option<u64>,
    /// The last error, while it is unreachable.
    error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PeerState {
    New,
    Answers,
    /// It is this node.
    Own,
    Failing {
        since: Duration,
        error: String,
        is_told: bool,
    },
}

#[derive(Debug)]
struct NodePeer {
    state: PeerState,
    /// The node that has answered.
    node: Option<AnsweringNode>,
    /// Time at which the last request that has ended was sent.
    asked: Option<Duration>,
    /// Time at which the log last told of an answer that no node has made.
    forged: Option<Duration>,
}

/// A node that has answered.
#[derive(Debug)]
struct AnsweringNode {
    name: String,
    run: u64,
    /// Time of the first answer of this run.
    since: Duration,
}

impl NodePeer {
    /// Whether a round that began at a time need not wait for it.
    fn is_heard(&self, began: Duration) -> bool {
        match &self.state {
            PeerState::Own => true,
            // Nobody knows of a node there: one failure suffices.
            PeerState::Failing { .. } if self.node.is_none() => true,
            PeerState::Failing { since, .. } if *since + NEW_FAILURE <= began => true,
            _ => self.asked >= Some(began),
        }
    }
}

/// The other nodes. Times are since the start of the registry.
#[derive(Debug)]
pub(super) struct Peers {
    /// By URL; `None` before they are known. A lock, held for a look or a change.
    all: Mutex<Option<BTreeMap<Arc<str>, NodePeer>>>,
    /// Time at which somebody last wanted to hear from all of them.
    wanted: watch::Sender<Duration>,
    /// Grows when a request has ended.
    ended: watch::Sender<u64>,
}

impl Peers {
    /// No peers yet. Without `has_some` there will be none.
    pub(super) fn new(has_some: bool) -> Self {
        let all = Mutex::new((!has_some).then(BTreeMap::new));
        Self { all, wanted: watch::Sender::default(), ended: watch::Sender::default() }
    }

    /// Wakes when somebody wants to hear from all peers.
    pub(super) fn wanted(&self) -> watch::Receiver<Duration> {
        self.wanted.subscribe()
    }

    /// Waits until each peer that answers has answered a request that was sent after `began`.
    pub(super) async fn round(&self, began: Duration) {
        if self.is_heard(began) {
            return;
        }
        let mut ended = self.ended.subscribe();
        self.wanted.send_modify(|wanted| *wanted = began.max(*wanted));
        while !self.is_heard(began) {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }

    /// Has all peers asked now, at most once a second.
    pub(super) fn want_again(&self, now: Duration) {
        self.wanted.send_if_modified(|wanted| {
            let is_due = now > *wanted + AGAIN;
            if is_due {
                *wanted = now;
            }
            is_due
        });
    }

    fn is_heard(&self, began: Duration) -> bool {
        self.all().as_ref().is_some_and(|all| all.values().all(|peer| peer.is_heard(began)))
    }

    /// The peers that a round which began at a time still waits for, in words.
    pub(super) fn silent(&self, began: Duration) -> String {
        let all = self.all();
        let Some(all) = all.as_ref() else { return "addresses of names".to_owned() };
        let silent = all.iter().filter(|(_, peer)| !peer.is_heard(began)).map(|(url, _)| &**url);
        silent.collect::<Vec<_>>().join(", ")
    }

    /// Replaces the peers; returns those that are new.
    pub(super) fn set(&self, urls: impl IntoIterator<Item = Arc<str>>) -> Vec<Arc<str>> {
        let mut known = self.all();
        let mut old = known.take().unwrap_or_default();
        let (mut all, mut new) = (BTreeMap::new(), Vec::new());
        for url in urls {
            let peer = old.remove(&url).unwrap_or_else(|| {
                new.push(url.clone());
                NodePeer { state: PeerState::New, node: None, asked: None, forged: None }
            });
            all.insert(url, peer);
        }
        *known = Some(all);
        drop(known);
        self.tell();
        new
    }

    /// Whether a URL is one of the peers.
    pub(super) fn has(&self, url: &str) -> bool {
        self.all().as_ref().is_some_and(|all| all.contains_key(url))
    }

    /// The URLs of all peers.
    pub(super) fn urls(&self) -> Vec<Arc<str>> {
        self.all().iter().flatten().map(|(url, _)| url.clone()).collect()
    }

    /// The peers that have answered their last request.
    pub(super) fn answering(&self) -> Vec<Arc<str>> {
        let all = self.all();
        let answering = all.iter().flatten().filter(|(_, peer)| peer.state == PeerState::Answers);
        answering.map(|(url, _)| url.clone()).collect()
    }

    /// Notes that a run of the node `name` has answered a request of a time.
    pub(super) fn answered(&self, url: &str, (name, run): (&str, u64), asked: Duration) {
        self.change(url, |peer| {
            let since = peer.node.as_ref().filter(|node| node.run == run).map_or(asked, |node| node.since);
            if let PeerState::Failing { is_told: true, .. } = peer.state {
                tracing::info!(peer = url, node = name, "a node of cluster-nodes answers");
            }
            let node = AnsweringNode { name: name.to_owned(), run, since };
            (peer.state, peer.node, peer.asked) = (PeerState::Answers, Some(node), Some(asked));
        });
    }

    /// Notes that a peer is this node.
    pub(super) fn is_own(&self, url: &str) {
        self.change(url, |peer| peer.state = PeerState::Own);
    }

    /// Notes that a request of a time has failed.
    pub(super) fn failed(&self, url: &str, error: String, asked: Duration, now: Duration) {
        self.change(url, |peer| {
            let (since, was_told) = match &peer.state {
                PeerState::Failing { since, is_told, .. } => (*since, *is_told),
                _ => (now, false),
            };
            let is_told = was_told || now >= since + TOLD;
            if is_told && !was_told {
                tracing::warn!(peer = url, error, "a node of cluster-nodes does not answer");
            }
            (peer.state, peer.asked) = (PeerState::Failing { since, error, is_told }, Some(asked));
        });
    }

    /// Notes an answer that no node has made; tells whether the log is due to have it.
    pub(super) fn forged(&self, url: &str, now: Duration) -> bool {
        let mut is_due = false;
        self.change(url, |peer| {
            is_due = peer.forged.is_none_or(|told| now >= told + FORGED);
            peer.forged = if is_due { Some(now) } else { peer.forged };
        });
        is_due
    }

    /// Whether nodes have answered since a time or longer.
    pub(super) fn have_answered_since(&self, since: Duration) -> bool {
        let all = self.all();
        let mut answering = all.iter().flatten().filter(|(_, peer)| peer.state == PeerState::Answers);
        answering.any(|(_, peer)| peer.node.as_ref().is_some_and(|node| node.since <= since))
    }

    /// The peers, as operators see them. `asks` tells whether a run that has answered since a time asks this node.
    pub(super) fn status(&self, now: Duration, asks: impl Fn(u64, Duration) -> Option<bool>) -> Vec<PeerStatus> {
        let shown = |(url, peer): (&Arc<str>, &NodePeer)| {
            let (state, seconds, error) = match &peer.state {
                PeerState::New => ("new", None, None),
                PeerState::Answers => ("answers", None, None),
                PeerState::Own => ("own", None, None),
                PeerState::Failing { since, error, .. } => {
                    ("unreachable", Some(now.saturating_sub(*since).as_secs()), Some(error.clone()))
                }
            };
            let answers = peer.node.as_ref().filter(|_| state == "answers");
            let asks = answers.and_then(|node| asks(node.run, node.since));
            let node = peer.node.as_ref().map(|node| node.name.clone());
            PeerStatus { url: url.to_string(), state, node, asks, seconds, error }
        };
        self.all().iter().flatten().map(shown).collect()
    }

    fn change(&self, url: &str, change: impl FnOnce(&mut NodePeer)) {
        if let Some(peer) = self.all().as_mut().and_then(|all| all.get_mut(url)) {
            change(peer);
        }
        self.tell();
    }

    fn tell(&self) {
        self.ended.send_modify(|ended| *ended += 1);
    }

    fn all(&self) -> MutexGuard<'_, Option<BTreeMap<Arc<str>, NodePeer>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_round_ends_when_all_that_answer_have_answered() {
        let peers = Peers::new(true);
        assert!(!peers.is_heard(at(0)), "they are not known yet");
        assert_eq!(peers.silent(at(0)), "addresses of names");
        assert_eq!(peers.set(["http://a".into(), "http://b".into(), "http://c".into()]).len(), 3);
        peers.is_own("http://c");
        peers.answered("http://a", ("a", 1), at(10));
        assert!(!peers.is_heard(at(0)));
        assert_eq!(peers.silent(at(0)), "http://b");
        peers.failed("http://b", "refused".into(), at(5), at(20));
        assert!(peers.is_heard(at(7)), "nobody knows of a node there");
        peers.answered("http://b", ("b", 2), at(30));
        peers.failed("http://b", "refused".into(), at(40), at(45));
        assert!(!peers.is_heard(at(42)), "its connection may only have ended");
        peers.failed("http://b", "refused".into(), at(900), at(901));
        assert!(!peers.is_heard(at(1100)), "a has not answered since");
        peers.answered("http://a", ("a", 1), at(1100));
        assert!(peers.is_heard(at(1100)), "b has failed for long");
        assert_eq!(peers.answering(), ["http://a".into()]);
        // A name now has other addresses.
        assert_eq!(peers.set(["http://a".into(), "http://d".into()]), ["http://d".into()]);
        assert!(!peers.has("http://b") && peers.has("http://d"));
        assert!(Peers::new(false).is_heard(at(7)));
    }

    #[test]
    fn operators_see_since_when_a_peer_fails() {
        let peers = Peers::new(true);
        peers.set(["http://a".into()]);
        peers.failed("http://a", "connection refused".into(), at(0), at(1000));
        peers.failed("http://a", "no route".into(), at(4000), at(4000));
        let [PeerStatus { state, seconds, error, node, .. }] = &peers.status(at(9000), |_, _| None)[..] else {
            panic!("one peer")
        };
        assert_eq!((*state, *seconds, error.as_deref(), node), ("unreachable", Some(8), Some("no route"), &None));
        peers.answered("http://a", ("a", 1), at(9000));
        assert_eq!(peers.status(at(9000), |_, _| None)[0].state, "answers");
        let asks = |run, since| Some((run, since) == (1, at(9000)));
        assert_eq!(peers.status(at(9000), asks)[0].asks, Some(true));
        assert!(peers.have_answered_since(at(9000)) && !peers.have_answered_since(at(8999)));
        peers.answered("http://a", ("a", 2), at(9500));
        assert_eq!(peers.status(at(9600), asks)[0].asks, Some(false), "another run");
        let due = [0, 1, 59_999, 60_000, 60_001].map(|millis| peers.forged("http://a", at(millis)));
        assert_eq!(due, [true, false, false, true, false]);
    }
}
