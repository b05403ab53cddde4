//! Homes of slices: the store asks them before it asks the origin.

use super::Cluster;
use millpond_cluster::{Node, ObjectKey, RangeGroup, Role, homes};
use millpond_library::uri::encode;
use millpond_store::{Homes, ObjectPath};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
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
}

impl Homes for PlaceHomes {
    fn home(&self, path: &ObjectPath, offset: u64) -> Option<Arc<str>> {
        let cluster = self.cluster.get()?;
        let view = cluster.view();
        let key = ObjectKey::new(&self.place, path.as_str());
        let home = *homes(&view, &key, RangeGroup::of(offset), 1).first()?;
        if home.name == *cluster.name() {
            return None;
        }
        let base = home.addresses.http.as_deref()?;
        let pass = cluster.pass().map(|pass| format!("/~{pass}")).unwrap_or_default();
        let place = if self.place.is_empty() { String::new() } else { format!("/{}", encode(&self.place)) };
        Some(format!("{base}{pass}{place}").into())
    }

    fn group(&self, offset: u64) -> Range<u64> {
        RangeGroup::of(offset).bytes()
    }
}

impl Cluster {
    /// Whether this node is home of a byte of an object. A node that leaves answers those who don't know it yet.
    pub(crate) fn is_home(&self, place: &str, path: &str, offset: u64) -> bool {
        let key = ObjectKey::new(place, path);
        let view = self.view();
        let is_own = |node: &&Node| node.name == *self.name();
        self.own.roles.contains(Role::Storage)
            && (self.is_draining() || homes(&view, &key, RangeGroup::of(offset), 1).first().is_some_and(is_own))
    }
}
