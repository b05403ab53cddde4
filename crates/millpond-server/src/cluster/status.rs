//! The cluster as operators see it.

use super::{
    Cluster, Start,
    state::{Link, Membership},
};
use millpond_cluster::{Node, ObjectKey, RangeGroup, homes};
use serde_json::{Value, json};

impl Cluster {
    /// The state of this node, and the nodes of the last view.
    pub(crate) fn status(&self) -> Value {
        let view = self.view();
        let membership = self.state.membership().borrow().clone();
        let membership = match membership {
            Membership::Joining => json!("joining"),
            Membership::Member => json!("member"),
            Membership::Lost => json!("lost"),
            Membership::Taken { by } => json!(format!("name taken by {by}")),
        };
        let etcd = match self.state.link() {
            Link::New => json!({ "state": "new" }),
            Link::Following => json!({ "state": "following" }),
            Link::Away { since, error } => {
                json!({ "state": "away", "seconds": since.elapsed().as_secs(), "error": error })
            }
        };
        json!({
            "node": self.name().to_string(),
            "incarnation": format!("{:x}", self.incarnation),
            "membership": membership,
            "draining": self.is_draining(),
            "etcd": etcd,
            "revision": view.revision(),
            "assignment": self.settings.assignment.to_string(),
            "nodes": view.nodes().iter().map(|node| self.shown(node)).collect::<Vec<_>>(),
            "booked": self.all_booked().into_iter().map(|(name, rate)| (name, json!(rate.bps()))).collect::<serde_json::Map<_, _>>(),
            "problems": view.problems().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "problem_count": view.problem_count(),
        })
    }

    fn shown(&self, node: &Node) -> Value {
        json!({
            "name": node.name.to_string(),
            "self": node.name == *self.name(),
            "http": node.addresses.http.as_deref(),
            "rtsp": node.addresses.rtsp.as_deref(),
            "roles": node.roles.iter().map(|role| role.to_string()).collect::<Vec<_>>(),
            "capacity_bps": node.capacity.bps(),
            "load_bps": node.load.rate.bps(),
            "sessions": node.load.sessions,
            "draining": node.draining,
        })
    }

    /// Explains which nodes serve an object, and which are the homes of its first bytes.
    pub(crate) fn explain(&self, key: &ObjectKey, start: Start) -> Value {
        let answer = self.answer(key, start, false);
        let view = self.view();
        let homes = homes(&view, key, RangeGroup::of(0), 2);
        let candidate = |candidate: &millpond_cluster::Candidate| {
            json!({
                "name": candidate.name.to_string(),
                "standing": candidate.standing.to_string(),
                "load_bps": candidate.load.bps(),
                "bound_bps": candidate.bound.bps(),
                "score": candidate.score,
            })
        };
        let candidates: Vec<_> = answer.candidates.iter().map(candidate).collect();
        json!({
            "object": key.to_string(),
            "kind": match start {
                Start::Live => "live",
                Start::Pushed => "pushed",
                Start::Stored | Start::Follows => "stored",
            },
            "assignment": if start == Start::Live { "sosd".to_owned() } else { self.settings.assignment.to_string() },
            "revision": view.revision(),
            "dispensers": answer.compared,
            "candidates": candidates,
            "homes": homes.iter().map(|node| node.name.to_string()).collect::<Vec<_>>(),
            "text": answer.to_string(),
        })
    }
}
