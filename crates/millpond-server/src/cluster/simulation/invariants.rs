//! Invariants of a simulated cluster: those of each moment, and those of a cluster whose faults are over.

use super::{
    member::{Member, STORAGE_MBPS},
    world::{Broken, Done, Kind, LIVE, World, told},
};
use millpond_cluster::{Bitrate, ObjectKey, RangeGroup, Role, homes};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
    time::Duration,
};

/// Time after which a purge is applied by each node that is connected.
const APPLIED: Duration = Duration::from_secs(12);
/// Objects whose homes are compared.
const KEYS: usize = 100;

fn broken<T>(text: String) -> Result<T, Broken> {
    Err(Broken(text))
}

impl World {
    /// Checks the invariants of each moment.
    pub(super) fn check(&self) -> Result<(), Broken> {
        if let Some(text) = told(&self.told).broken.take() {
            return broken(text);
        }
        self.names_are_unique()?;
        if self.kind == Kind::Calm {
            self.storage_is_not_overbooked()?;
        }
        self.purges_are_applied()?;
        self.viewers_have_a_node()
    }

    /// A name has one registration.
    fn names_are_unique(&self) -> Result<(), Broken> {
        let keys = self.etcd.keys();
        let mut names = BTreeSet::new();
        for pair in keys.below(b"/m/nodes/") {
            let text = String::from_utf8(pair.key).unwrap();
            let name = text.trim_start_matches("/m/nodes/").split('/').next().unwrap().to_owned();
            if !names.insert(name) {
                return broken(format!("two nodes are registered under one name: {text}"));
            }
        }
        Ok(())
    }

    /// The streams of all nodes fit the storage.
    fn storage_is_not_overbooked(&self) -> Result<(), Broken> {
        let sent: u64 = self.members.iter().map(|member| member.sent().bps()).sum();
        match Bitrate::from_bps(sent) > Bitrate::from_mbps(STORAGE_MBPS) {
            true => broken(format!("streams of {} Mbit/s read a storage of {STORAGE_MBPS}", sent / 1_000_000)),
            false => Ok(()),
        }
    }

    /// Nodes that are connected have applied all purges.
    fn purges_are_applied(&self) -> Result<(), Broken> {
        if self.etcd.is_down() || !self.quiet() {
            return Ok(());
        }
        let told = told(&self.told);
        let old = told.purges.iter().filter(|done: &&Done| done.at.elapsed() > APPLIED).map(|done| done.epoch).max();
        let Some(epoch) = old else { return Ok(()) };
        for member in self.members.iter().filter(|member| member.is_settled(APPLIED * 2)) {
            let lossy = member.way.lock().unwrap_or_else(PoisonError::into_inner).loss > 0.0;
            if !lossy && !member.cluster.has_purged(epoch) {
                let applied = member.cluster.purges.applied();
                return broken(format!("{} has applied purge {applied}, and not {epoch}", member.name));
            }
        }
        Ok(())
    }

    /// A node that serves, and takes work, finds a node for each viewer.
    fn viewers_have_a_node(&self) -> Result<(), Broken> {
        for member in self.members.iter().filter(|member| member.serves() && !member.cluster.is_draining()) {
            let view = member.cluster.view();
            let takes = view.taking(Role::Dispenser).count();
            let key = ObjectKey::new("films", "film0.mp4");
            let answer = member.cluster.answer(&key, crate::cluster::Start::Stored, None, false);
            if takes > 0 && answer.candidates.is_empty() {
                return broken(format!("{} has a view of {takes} nodes, and none for a viewer", member.name));
            }
        }
        Ok(())
    }

    /// Checks the invariants of a cluster whose faults have been over for a while.
    pub(super) fn check_whole(&self) -> Result<(), Broken> {
        let alive: BTreeSet<_> = self.members.iter().map(|member| member.name.clone()).collect();
        let mut homes_of = BTreeMap::new();
        for member in &self.members {
            self.knows_the_cluster(member, &alive)?;
            for object in 0..KEYS {
                let key = ObjectKey::new("films", &format!("{object}.mp4"));
                let view = member.cluster.view();
                let named = homes(&view, &key, RangeGroup::of(0), 2);
                let named: Vec<_> = named.iter().map(|node| node.name.to_string()).collect();
                let first = homes_of.entry(object).or_insert_with(|| named.clone());
                if *first != named {
                    return broken(format!("{} has other homes of {key}: {named:?}, not {first:?}", member.name));
                }
            }
        }
        self.live_streams_have_one_node()?;
        let epoch = told(&self.told).purges.iter().map(|done| done.epoch).max().unwrap_or(0);
        match self.members.iter().find(|member| !member.cluster.has_purged(epoch)) {
            Some(member) => broken(format!("{} has not applied purge {epoch}", member.name)),
            None => Ok(()),
        }
    }

    fn knows_the_cluster(&self, member: &Member, alive: &BTreeSet<String>) -> Result<(), Broken> {
        let name = &member.name;
        if !member.cluster.is_member() || !member.serves() {
            let membership = member.cluster.state.membership().borrow().to_string();
            return broken(format!("{name} is no member, or does not serve: {membership}"));
        }
        let view = member.cluster.view();
        let known: BTreeSet<_> = view.nodes().iter().map(|node| node.name.to_string()).collect();
        if known != *alive {
            return broken(format!("{name} sees {known:?}, and alive are {alive:?}"));
        }
        // Bookings of etcd are those of nodes that live.
        for pair in self.etcd.keys().below(b"/m/book/nodes/") {
            let text = String::from_utf8_lossy(&pair.key).into_owned();
            if !alive.iter().any(|name| text.starts_with(&format!("/m/book/nodes/{name}/"))) {
                return broken(format!("bookings of a dead node: {text}"));
            }
        }
        let sent = member.sent();
        let needed = member.cluster.bookings.ledger().needed(Some("films"));
        // A node that takes over another time while it serves forgets bookings: open.
        if self.kind == Kind::Calm && needed != sent {
            return broken(format!("{name} sends {sent:?}, and has booked {needed:?}"));
        }
        Ok(())
    }

    /// A live stream that is watched has one node that asks its source. Two that asked while they were apart stay until their viewers leave, and then all
    /// name the same one.
    fn live_streams_have_one_node(&self) -> Result<(), Broken> {
        for stream in 0..LIVE {
            let key = ObjectKey::new("live", &stream.to_string());
            let mut named = BTreeSet::new();
            for member in &self.members {
                let holds = member.held.lock().unwrap_or_else(PoisonError::into_inner).contains(&key.to_string());
                let answer = member.cluster.answer(&key, crate::cluster::Start::Live, None, false);
                let Some(first) = answer.candidates.first() else { continue };
                // A node goes on with what it asks itself.
                if !holds {
                    named.insert(first.name.to_string());
                }
            }
            if named.len() > 1 {
                return broken(format!("{key} is at {named:?}"));
            }
        }
        Ok(())
    }
}
