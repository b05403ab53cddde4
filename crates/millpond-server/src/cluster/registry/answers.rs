//! Answers of this node to the questions of others, in a cluster of a list of nodes.
//!
//! With a secret of the cluster, a question must have the proof of a node, name an address of this one, and be new. All answers to such questions
//! have a proof themselves, also refusals. Strangers get none.

use super::{
    super::{Cluster, secret::ClusterSecret},
    Registry, StaticRegistry,
    gossip::{GOSSIP, WAIT},
};
use http::{Method, StatusCode};
use millpond_cluster::{GossipLease, GossipPass, GossipProof, GossipRefusal, PASS_VALID};
use std::{net::IpAddr, time::Duration};
use tokio::{task::spawn_blocking, time::timeout};

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
    /// The run that asks.
    pub(crate) by: u64,
}

/// A question as it arrived.
#[derive(Debug)]
pub(crate) struct AskedQuestion<'a> {
    pub(crate) question: GossipQuestion,
    /// The query that has it.
    pub(crate) query: &'a str,
    /// Its pass, where it has one.
    pub(crate) pass: Option<&'a str>,
    /// Whether its connection has the certificate of a node.
    pub(crate) is_of_node: bool,
    /// Address of the client.
    pub(crate) client: IpAddr,
}

/// The answer to a node.
#[derive(Debug)]
pub(crate) struct ProvedAnswer {
    pub(crate) status: StatusCode,
    /// JSON.
    pub(crate) body: String,
    /// Its proof, where this node has a secret.
    pub(crate) proof: Option<GossipProof>,
}

impl Cluster {
    /// Answers another node; `None` for strangers, and where the nodes of this cluster do not ask each other.
    pub(crate) async fn answer_node(&self, asked: AskedQuestion<'_>) -> Option<ProvedAnswer> {
        let Registry::Static(registry) = &self.registry else { return None };
        // A node with a listener for nodes takes no question elsewhere.
        if self.settings.node_listen.is_some() && !asked.is_of_node {
            return None;
        }
        let Some(secret) = &self.secret else {
            if !asked.is_of_node {
                return None;
            }
            registry.askers().heard(asked.question.by, registry.elapsed());
            let body = self.told(registry, asked.question).await?;
            return Some(ProvedAnswer { status: StatusCode::OK, body, proof: None });
        };
        let target = format!("{GOSSIP}?{}", asked.query);
        let pass = proved(secret, asked.pass?, &target)?;
        let (status, body) = match self.refusal(registry, &pass) {
            Some(refusal) => {
                if registry.refusals().is_due() {
                    let words = refusal.words(&pass.asked, pass.time);
                    tracing::warn!(client = %asked.client, "a node that asks this one is refused, and sees: {words}");
                }
                (StatusCode::FORBIDDEN, refusal.to_json())
            }
            None if !registry.askers().is_new(asked.question.by, pass.number, registry.elapsed()) => return None,
            None => (StatusCode::OK, self.told(registry, of_its_run(asked.question)).await?),
        };
        let proof = Some(secret.proof(&pass.answer(&target, status.as_u16()), body.as_bytes()));
        Some(ProvedAnswer { status, body, proof })
    }

    /// Why this node does not answer a node with a pass.
    fn refusal(&self, registry: &StaticRegistry, pass: &GossipPass) -> Option<GossipRefusal> {
        let now = self.wall.system.now();
        if pass.time.abs_diff(now) > PASS_VALID {
            let time = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            return Some(GossipRefusal::Clock { time });
        }
        (!registry.own().has_asked(&pass.asked)).then_some(GossipRefusal::Address)
    }

    /// The answer to a question, when there is something new.
    async fn told(&self, registry: &StaticRegistry, question: GossipQuestion) -> Option<String> {
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
}

/// Reads a pass; `None` where no node with the secret has made it for this question.
fn proved(secret: &ClusterSecret, pass: &str, target: &str) -> Option<GossipPass> {
    let pass: GossipPass = pass.parse().ok()?;
    let words = pass.question(Method::GET.as_str(), target);
    secret.has_proved(&pass.proof, &words, &[]).then_some(pass)
}

/// The question without the end of a lease that is none of the run that asks.
fn of_its_run(question: GossipQuestion) -> GossipQuestion {
    let by = question.by;
    let ended = question.ended.filter(|lease| lease.incarnation == by);
    GossipQuestion { ended, ..question }
}
