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
    node: Option<String>,
    /// Time at which the last request that has ended was sent.
    asked: Option<Duration>,
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
        let is_heard = |peer: &NodePeer| match &peer.state {
            PeerState::Own => true,
            PeerState::Failing { since, .. } if *since + NEW_FAILURE <= began => true,
            _ => peer.asked >= Some(began),
        };
        self.all().as_ref().is_some_and(|all| all.values().all(is_heard))
    }

    /// Replaces the peers; returns those that are new.
    pub(super) fn set(&self, urls: impl IntoIterator<Item = Arc<str>>) -> Vec<Arc<str>> {
        let mut known = self.all();
        let mut old = known.take().unwrap_or_default();
        let (mut all, mut new) = (BTreeMap::new(), Vec::new());
        for url in urls {
            let peer = old.remove(&url).unwrap_or_else(|| {
                new.push(url.clone());
                NodePeer { state: PeerState::New, node: None, asked: None }
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

    /// Notes that a peer has answered a request of a time. `node` is its name.
    pub(super) fn answered(&self, url: &str, node: &str, asked: Duration) {
        self.change(url, |peer| {
            if let PeerState::Failing { is_told: true, .. } = peer.state {
                tracing::info!(peer = url, node, "a node of cluster-nodes answers");
            }
            (peer.state, peer.node, peer.asked) = (PeerState::Answers, Some(node.to_owned()), Some(asked));
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

    /// The peers, as operators see them.
    pub(super) fn status(&self, now: Duration) -> Vec<PeerStatus> {
        let shown = |(url, peer): (&Arc<str>, &NodePeer)| {
            let (state, seconds, error) = match &peer.state {
                PeerState::New => ("new", None, None),
                PeerState::Answers => ("answers", None, None),
                PeerState::Own => ("own", None, None),
                PeerState::Failing { since, error, .. } => {
                    ("unreachable", Some(now.saturating_sub(*since).as_secs()), Some(error.clone()))
                }
            };
            PeerStatus { url: url.to_string(), state, node: peer.node.clone(), seconds, error }
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
        assert_eq!(peers.set(["http://a".into(), "http://b".into(), "http://c".into()]).len(), 3);
        peers.is_own("http://c");
        peers.answered("http://a", "a", at(10));
        assert!(!peers.is_heard(at(0)));
        peers.failed("http://b", "refused".into(), at(5), at(20));
        assert!(peers.is_heard(at(0)) && !peers.is_heard(at(7)), "b failed a request of before");
        peers.failed("http://b", "refused".into(), at(900), at(901));
        assert!(!peers.is_heard(at(1100)), "a has not answered since");
        peers.answered("http://a", "a", at(1100));
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
        let [PeerStatus { state, seconds, error, node, .. }] = &peers.status(at(9000))[..] else { panic!("one peer") };
        assert_eq!((*state, *seconds, error.as_deref(), node), ("unreachable", Some(8), Some("no route"), &None));
        peers.answered("http://a", "a", at(9000));
        assert_eq!(peers.status(at(9000))[0].state, "answers");
    }
}
