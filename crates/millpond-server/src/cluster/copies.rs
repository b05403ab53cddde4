//! Copies of the windows of live streams: which node has one, and of whom.

use super::{Cluster, MARK, Start};
use http::Method;
use millpond_cluster::{NodeName, ObjectKey};
use millpond_outbound::chain;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// Time limit for the head of a reply.
const HEAD: Duration = Duration::from_secs(5);

impl Cluster {
    /// The live streams whose source another node asks, as texts of their keys.
    pub(crate) fn asked_elsewhere(&self) -> Vec<String> {
        let names: Vec<String> = self.asked.borrow().keys().cloned().collect();
        let is_elsewhere = |name: &String| {
            let asking = self.asking_of(name);
            !asking.is_empty() && !asking.contains(self.name())
        };
        names.into_iter().filter(is_elsewhere).collect()
    }

    /// Whether another node asks the source of a live stream.
    pub(crate) fn is_asked_elsewhere(&self, key: &ObjectKey) -> bool {
        self.asking(key).iter().any(|node| node != self.name())
    }

    /// Whether another node asks the source of a live stream, as far as this one knows, and this one does not.
    pub(crate) fn is_held_elsewhere(&self, key: &ObjectKey) -> bool {
        let (asking, view) = (self.asking(key), self.view());
        let lives = |node: &NodeName| {
            let base = view.node(node.as_str()).and_then(|node| self.base_of(node));
            base.is_some_and(|base| self.reach.is_down(&base) != Some(true))
        };
        !asking.contains(self.name()) && asking.iter().any(lives)
    }

    /// Whether a node asks the source of a live stream, by its address; also where no node is known that does.
    pub(crate) fn may_have(&self, base: &Arc<str>, key: &ObjectKey) -> bool {
        let (asking, view) = (self.asking(key), self.view());
        let is_there =
            |node: &NodeName| view.node(node.as_str()).and_then(|node| self.base_of(node)).as_ref() == Some(base);
        asking.is_empty() || asking.iter().any(is_there)
    }

    /// Whether this node asks the source of a live stream next, where the node dies that asks it now.
    pub(crate) fn stands_by(&self, key: &ObjectKey) -> bool {
        let asking = self.asking(key);
        if asking.is_empty() || asking.contains(self.name()) {
            return false;
        }
        let candidates = self.answer(key, Start::Live, None, false).candidates;
        candidates
            .iter()
            .find(|candidate| !asking.contains(&candidate.name))
            .is_some_and(|next| next.name == *self.name())
    }

    /// The node that has a live stream, as it is asked for a copy; `None` where that is this one.
    pub(crate) async fn copied_from(&self, key: &ObjectKey) -> Option<Arc<str>> {
        let view = self.view();
        for candidate in self.answer(key, Start::Live, None, false).candidates {
            if candidate.name == *self.name() {
                return None;
            }
            let Some(base) = view.node(candidate.name.as_str()).and_then(|node| self.base_of(node)) else { continue };
            if self.reach.is_up(&base).await && !self.reach.is_distrusted(&base) {
                return Some(base);
            }
        }
        None
    }

    /// Asks a node for a path of its HTTP server, as a node. `query` is without the mark of this one.
    ///
    /// # Errors
    /// There is no reply in time, or one with another status than 200 and 204, in words.
    pub(crate) async fn ask_node(&self, base: &str, path: &str, query: &str) -> Result<reqwest::Response, String> {
        let pass = self.relay_pass().map(|pass| format!("/~{pass}")).unwrap_or_default();
        let url = Url::parse(&format!("{base}{pass}/{path}?{MARK}={}&{query}", self.name()));
        let asked = self.nodes.request(Method::GET, url.map_err(|error| error.to_string())?).send();
        let reply = timeout(HEAD, asked).await.map_err(|_| format!("no reply within {} s", HEAD.as_secs()))?;
        let reply = reply.map_err(|error| chain(&error))?;
        if reply.status().is_success() { Ok(reply) } else { Err(format!("status {}", reply.status())) }
    }

    /// Whether a node is down, by probes that are sent now.
    pub(crate) async fn is_lost(&self, base: &Arc<str>) -> bool {
        self.reach.is_lost(base, self.reach.now()).await
    }

    /// Notes that a node broke a copy off, and finds out whether it lives.
    pub(crate) async fn broke_off(&self, base: &Arc<str>) {
        self.reach.failed(base);
        self.is_lost(base).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClusterMetrics, ClusterSettings, WallClocks, entries::Entries, settings::Steering};
    use super::*;
    use crate::events::{EventMetrics, Events};
    use millpond_cluster::{Addresses, Bitrate, Node, View};
    use millpond_etcd::KeyValue;
    use millpond_settings::{Host, Settings as _, machine::Machine};
    use prometheus_client::registry::Registry;
    use std::collections::HashMap;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn cluster(name: &str) -> Arc<Cluster> {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec!["http://127.0.0.1:1".parse().unwrap()];
        settings.node = Some(name.to_owned());
        settings.steering = Steering::None;
        let metrics = ClusterMetrics::register(&mut Registry::default());
        let events = Events::new(name, 10, &EventMetrics::register(&mut Registry::default()));
        Cluster::new(&settings, Addresses::default(), metrics, events, WallClocks::default()).unwrap()
    }

    /// Another node of a view, with an address at which nobody answers.
    fn addressed(name: &str) -> Node {
        let http = Some(Arc::from(format!("http://{name}.invalid:1")));
        let addresses = Addresses { http, ..Addresses::default() };
        Node { addresses, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(100)) }
    }

    #[tokio::test]
    async fn a_node_that_has_paused_gives_way_to_the_one_that_took_its_stream_over() {
        let nodes = NAMES.map(cluster);
        nodes.iter().for_each(|of| of.set_view(View::of(1, NAMES.map(addressed))));
        let key = ObjectKey::new("cams", "door");
        let first = |of: &Cluster| of.answer(&key, Start::Live, None, false).candidates[0].name.to_string();
        let owner = first(&nodes[0]);
        let of = |name: &str| nodes.iter().find(|of| of.name().as_str() == name).unwrap();
        let next = NAMES.into_iter().find(|name| *name != owner).unwrap();
        let key_of = |folder: &str, name: &str, value: String| KeyValue {
            key: format!("{}{folder}{name}/1", nodes[0].settings.prefix).into_bytes(),
            value: value.into_bytes(),
            revision: 1,
            created: 1,
        };
        let asks = r#"["cams/door"]"#.to_owned();
        let observe = |took: &[(&str, String)]| {
            let asked = [key_of("own/", &owner, asks.clone()), key_of("own/", next, asks.clone())];
            let took = took.iter().map(|(name, value)| key_of("took/", name, value.clone()));
            let mut entries = Entries::new(&nodes[0].settings.prefix);
            entries.replace(asked.into_iter().chain(took).collect(), 1);
            nodes.iter().for_each(|of| of.observe_streams(&entries));
        };
        [&*owner, next].iter().for_each(|name| drop(of(name).asks.send_replace([key.to_string()].into())));
        observe(&[]);
        assert!(nodes.iter().all(|of| first(of) == owner && !of.is_taken_over(&key) && !of.has_takeovers()));

        // The next node has taken the stream over. It counts that at once.
        of(next).takes_over(&key);
        assert_eq!(first(of(next)), next);
        let told = of(next).told_takeovers(&[key.to_string()]);
        observe(&[(next, told.clone())]);
        assert!(nodes.iter().all(|of| first(of) == next && of.has_takeovers()));
        for of in &nodes {
            let is_next = of.name().as_str() == next;
            assert_eq!((of.is_taken_over(&key), of.is_held_elsewhere(&key)), (!is_next, !is_next), "{}", of.name());
            assert_eq!(of.asked_elsewhere().len(), usize::from(!is_next));
            let base = |name: &str| Arc::from(format!("http://{name}.invalid:1"));
            assert!(of.may_have(&base(next), &key) && !of.may_have(&base(&owner), &key));
        }
        // Then that one pauses, and the owner of before takes it back. Its clock may be behind.
        of(&owner).taken().insert(key.to_string(), 1);
        of(&owner).takes_over(&key);
        let back = of(&owner).told_takeovers(&[key.to_string()]);
        observe(&[(next, told), (&owner, back)]);
        assert!(nodes.iter().all(|of| first(of) == owner) && of(next).is_taken_over(&key));
        assert_eq!(of(&owner).told_takeovers(&[]), "{}", "it has the stream no more");
    }

    #[tokio::test]
    async fn one_node_stands_by_and_it_is_the_next_owner() {
        let node = |name: &str| Node::new(name.parse().unwrap(), Bitrate::from_mbps(100));
        let nodes = NAMES.map(cluster);
        let see = |names: &[&str]| {
            nodes.iter().for_each(|of| of.set_view(View::of(1, names.iter().map(|name| node(name)))));
        };
        let key = ObjectKey::new("cams", "door");
        let held = |holder: Option<&str>| {
            let asked = holder.map(|holder| (key.to_string(), vec![holder.parse().unwrap()]));
            nodes.iter().for_each(|of| {
                drop(of.asked.send_replace(Arc::new(asked.clone().into_iter().collect::<HashMap<_, _>>())))
            });
            nodes.iter().filter(|of| of.stands_by(&key)).map(|of| of.name().to_string()).collect::<Vec<_>>()
        };
        see(&NAMES);
        assert!(held(None).is_empty(), "nobody asks the source");
        for holder in NAMES {
            let standing = held(Some(holder));
            assert!(standing.len() == 1 && standing[0] != holder, "{holder}: {standing:?}");
            let of = |name: &str| nodes.iter().find(|of| of.name().as_str() == name).unwrap();
            assert!(of(&standing[0]).is_asked_elsewhere(&key) && !of(holder).is_asked_elsewhere(&key));
            assert_eq!(of(holder).copied_from(&key).await, None, "the owner copies nothing");
            assert_eq!(
                (of(&standing[0]).asked_elsewhere(), of(holder).asked_elsewhere()),
                (vec![key.to_string()], vec![])
            );
            // When the holder is gone, the one that stood by is the owner.
            let rest: Vec<_> = NAMES.into_iter().filter(|name| *name != holder).collect();
            see(&rest);
            held(None);
            assert_eq!(
                of(&standing[0]).answer(&key, Start::Live, None, false).candidates[0].name.as_str(),
                standing[0]
            );
            see(&NAMES);
        }
    }
}
