//! Homes of slices: the store asks them before it asks the origin.

use super::Cluster;
use millpond_cluster::{HomeRoute, Node, ObjectKey, RangeGroup, Role, homes, zone_home};
use millpond_library::uri::encode;
use millpond_outbound::Client;
use millpond_store::{HomeAddress, HomeStep, Homes, ObjectPath};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The cluster of a server that is being put together: its places are opened before it has addresses.
pub(crate) type LaterCluster = Arc<OnceLock<Arc<Cluster>>>;

/// The homes of the objects of a place.
#[derive(Debug)]
pub(crate) struct PlaceHomes {
    cluster: LaterCluster,
    place: String,
}

impl PlaceHomes {
    /// The homes of the objects of `place`.
    pub(crate) fn new(cluster: LaterCluster, place: &str) -> Self {
        Self { cluster, place: place.to_owned() }
    }

    /// A home as it is asked; `None` where this node can't reach it.
    fn address(&self, cluster: &Cluster, home: &Node, step: HomeStep) -> Option<HomeAddress> {
        let base = cluster.base_of(home)?;
        // On the listener for nodes the certificate is the pass.
        let pass = cluster
            .pass()
            .filter(|_| Some(&base) != home.addresses.nodes.as_ref())
            .map(|pass| format!("/~{pass}"))
            .unwrap_or_default();
        let place = if self.place.is_empty() { String::new() } else { format!("/{}", encode(&self.place)) };
        let crosses = cluster.own.zone.is_some() && step == HomeStep::Cluster;
        Some(HomeAddress { url: format!("{base}{pass}{place}").into(), step, crosses })
    }
}

impl Homes for PlaceHomes {
    fn homes(&self, path: &ObjectPath, offset: u64) -> Vec<HomeAddress> {
        let Some(cluster) = self.cluster.get() else { return Vec::new() };
        let view = cluster.view();
        let key = ObjectKey::new(&self.place, path.as_str());
        let own = (cluster.name(), cluster.own.zone.as_deref());
        let HomeRoute { zone, cluster: whole } = HomeRoute::of(&view, own, &key, RangeGroup::of(offset));
        let asked = [(zone, HomeStep::Zone), (whole, HomeStep::Cluster)];
        asked.into_iter().filter_map(|(home, step)| self.address(cluster, home?, step)).collect()
    }

    fn group(&self, offset: u64) -> Range<u64> {
        RangeGroup::of(offset).bytes()
    }

    fn purged(&self) -> Option<u64> {
        self.cluster.get()?.purges.known()
    }

    fn client(&self, connect: Duration) -> Result<Client, String> {
        let cluster = self.cluster.get().ok_or("the cluster is not there yet")?;
        cluster.client_of_homes(connect)
    }

    fn begins(&self, path: &ObjectPath, range: &Range<u64>, step: HomeStep) -> Box<dyn Send + Sync> {
        match self.cluster.get() {
            Some(cluster) => Box::new(cluster.home_waits.begin((&self.place, path.as_str()), range, step)),
            None => Box::new(()),
        }
    }

    fn ended(&self, home: &str, failure: Option<&str>) {
        let Some(cluster) = self.cluster.get() else { return };
        // Behind the address there may be a pass.
        let end = home.match_indices('/').nth(2).map_or(home.len(), |(at, _)| at);
        let address = &home[..end];
        cluster.homes.note(&self.place, address, failure, &cluster.metrics);
        if failure.is_some() {
            cluster.reach.failed(&address.into());
        }
    }
}

impl Cluster {
    /// Whether this node must refuse a range as whose home it is asked, because it may itself wait for the node that asks.
    pub(crate) fn awaits(&self, object: (&str, &str), range: &Range<u64>, step: HomeStep) -> bool {
        self.home_waits.would_circle(object, range, step)
    }

    /// Whether this node is the home of a byte of an object, as which it is asked. A node that leaves answers those who don't know it yet.
    pub(crate) fn is_home(&self, (place, path): (&str, &str), offset: u64, step: HomeStep) -> bool {
        let (key, group) = (ObjectKey::new(place, path), RangeGroup::of(offset));
        let view = self.view();
        let home = match (step, self.own.zone.as_deref()) {
            (HomeStep::Zone, Some(zone)) => zone_home(&view, &key, group, zone),
            (HomeStep::Zone, None) => None,
            (HomeStep::Cluster, _) => homes(&view, &key, group, 1).first().copied(),
        };
        let is_own = |node: &Node| node.name == *self.name();
        self.own.roles.contains(Role::Storage) && (self.is_draining() || home.is_some_and(is_own))
    }
}
