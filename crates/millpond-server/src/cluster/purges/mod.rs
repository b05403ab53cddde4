//! Purges of the whole cluster.
//!
//! A purge is a key in etcd, whose revision is its epoch. Each node applies purges in their order, on a thread that serves nobody, and
//! publishes the last epoch in its registration. A node that begins applies what it missed before it serves.

mod counts;
mod epochs;
mod failure;
mod heartbeat;
mod record;
mod summary;

pub(crate) use failure::PurgeFailure;

use super::{Cluster, RegistryError, entries::Entries, state::Link};
use counts::PurgeCounts;
use epochs::PurgeEpochs;
use heartbeat::{BEAT, Heartbeat};
use millpond_cluster::{DuePurges, PurgeEntry, PurgeList, PurgedObjects, View};
use millpond_etcd::{Compare, KeyValue, Operation, Revision, Transaction};
use millpond_store::{Glob, Purge, PurgeTag, Selection, Store};
use record::PurgeRecord;
use serde::Serialize;
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use summary::summary;
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use utoipa::ToSchema;

/// Most keys of purges that are read.
const MOST_KEYS: usize = 10_000;
/// Time for which the one that purges waits for the nodes.
const CONFIRMED: Duration = Duration::from_secs(2);
/// Time for which viewers wait after a pause of this process, until it knows the purges of meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval between looks at what viewers wait for.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between looks for old entries. A purge is remembered on the disk after one to two of them: the disk has then forgotten the
/// slices even if the power fails.
const TIDY: Duration = Duration::from_secs(60);

/// The cache that is purged.
#[derive(Debug)]
pub(crate) struct PurgedCache {
    /// The store.
    pub(crate) store: Store,
    /// The file of the last purge.
    pub(crate) file: PathBuf,
}

/// The purges of this node.
#[derive(Debug, Default)]
pub(super) struct Purges {
    epochs: PurgeEpochs,
    counts: PurgeCounts,
    heartbeat: Heartbeat,
    cache: OnceLock<PurgedCache>,
    /// Number and last revision of the keys that were observed last: most views have no new purge. A lock, held for a look.
    observed: Mutex<Option<(usize, Revision)>>,
    /// The purges that were read last. A lock, held while purges are applied, so that they are applied in their order.
    list: Mutex<PurgeList>,
    /// Whether further purges must wait, as the list had it last.
    is_full: AtomicBool,
}

/// A purge of the cluster, and the nodes that have applied it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PurgeReport {
    /// Number of the purge.
    pub(crate) epoch: u64,
    /// Nodes that have applied it.
    confirmed: Vec<String>,
    /// Nodes that have not, within two seconds. A node applies it before it serves again.
    pub(crate) missing: Vec<String>,
    /// Slices that this node removed, with those of other purges that it applied at the same moment; null where it has not applied it.
    purged_slices: Option<u64>,
}

impl Purges {
    /// The epoch that homes must have applied; `None` where nothing was purged.
    pub(super) fn known(&self) -> Option<u64> {
        Some(self.epochs.known()).filter(|epoch| *epoch > 0)
    }

    /// The last epoch that this node has applied.
    pub(super) fn applied(&self) -> u64 {
        self.epochs.applied()
    }

    /// Sets the cache, before any purge is read.
    pub(super) fn set_cache(&self, cache: PurgedCache) {
        let _ = self.cache.set(cache);
    }

    /// Whether all purges that were there at the start have been applied.
    pub(super) fn is_current(&self) -> bool {
        self.epochs.is_current()
    }

    fn observed(&self) -> Option<(usize, Revision)> {
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the purges of a list that this node has not applied.
    fn apply(&self, list: PurgeList) {
        let Some(PurgedCache { store, .. }) = self.cache.get() else { return };
        // Two tasks read the list: an older one has nothing new.
        let mut last = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(DuePurges { epoch, purges }) = list.due(self.epochs.begin(list.floor())) {
            self.epochs.begins(epoch);
            let objects = purges.as_deref().map(summary).unwrap_or_default();
            let purges = purges.and_then(|entries| entries.iter().map(purge).collect::<Option<Vec<_>>>());
            let is_listed = purges.is_some();
            let purges = purges.unwrap_or_else(|| vec![Purge { selection: Selection::Everything, is_soft: false }]);
            let slices = store.purge(&purges);
            self.counts.note(epoch, slices);
            self.epochs.ends(epoch);
            match is_listed {
                true => tracing::info!(epoch, purges = purges.len(), objects, slices, "purged, as the cluster was"),
                false => {
                    tracing::info!(epoch, slices, "this node can't know all purges that it missed: its cache is empty")
                }
            }
        }
        self.is_full.store(list.is_full(), Ordering::Relaxed);
        *last = list;
        self.epochs.is_done();
    }
}

/// The purge of the store that an entry asks for; `None` where this version can't tell.
fn purge(entry: &PurgeEntry) -> Option<Purge> {
    let place = entry.place.clone();
    let selection = match &entry.objects {
        PurgedObjects::Path(path) => Selection::Below { place: place?, path: path.clone() },
        PurgedObjects::Pattern(pattern) => Selection::Matching { place: place?, glob: Glob::parse(pattern).ok()? },
        PurgedObjects::Tag(tag) => Selection::Tagged { place, tag: PurgeTag::parse(tag).ok()? },
    };
    Some(Purge { selection, is_soft: entry.is_soft })
}

/// Value of the key of the floor.
fn floor_json(floor: u64) -> String {
    serde_json::json!({ "floor": floor }).to_string()
}

fn read_floor(value: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(value).ok()?["floor"].as_u64()
}

fn epoch_of(revision: Revision) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// Whether all nodes of a view have applied a purge.
fn is_confirmed(view: &View, epoch: u64) -> bool {
    view.nodes().iter().all(|node| node.purged >= Some(epoch))
}

impl Cluster {
    fn purge_folder(&self) -> Vec<u8> {
        format!("{}purge/", self.settings.prefix).into_bytes()
    }

    /// The key of the last epoch whose entry was removed.
    fn floor_key(&self) -> Vec<u8> {
        [&self.purge_folder()[..], b"floor"].concat()
    }

    fn signed_value(&self, key: &[u8], json: String) -> Vec<u8> {
        let signed = self.secret.as_ref().and_then(|secret| secret.signed(key, &json));
        signed.unwrap_or(json).into_bytes()
    }

    /// Reads the keys of purges. With a secret, only those that it signed count.
    fn purge_list<'a>(&self, pairs: impl Iterator<Item = &'a KeyValue>) -> PurgeList {
        let (floor_key, mut floor, mut purges) = (self.floor_key(), 0, Vec::new());
        for pair in pairs {
            if self.secret.as_ref().is_some_and(|secret| !secret.has_signed(&pair.key, &pair.value)) {
                tracing::debug!(key = %String::from_utf8_lossy(&pair.key), "a purge that is not signed does not count");
                continue;
            }
            if pair.key == floor_key {
                // A floor of another etcd, or one that was written by hand, would hide all purges up to it.
                floor = read_floor(&pair.value).unwrap_or(0).min(epoch_of(pair.revision));
                continue;
            }
            let entry = PurgeEntry::from_json(&pair.value).inspect_err(|error| {
                tracing::debug!(key = %String::from_utf8_lossy(&pair.key), %error, "a purge can't be read");
            });
            purges.push((epoch_of(pair.created), entry.ok()));
        }
        PurgeList::new(floor, purges)
    }

    /// Notes a reading of etcd before its purges are observed. `has_lost` is whether etcd is known to have lost revisions.
    pub(super) fn purges_are_read(&self, etcd: &str, revision: Revision, has_lost: bool) {
        let is_first = self.purges.epochs.etcd().is_none();
        let record = self.purges.cache.get().filter(|_| is_first).and_then(|cache| PurgeRecord::read(&cache.file));
        let is_own =
            |record: &PurgeRecord| record.prefix == self.settings.prefix && record.node == self.name().as_str();
        let record = record.filter(is_own);
        match self.registry.has_one_order() {
            true => self.purges.epochs.reads(etcd, epoch_of(revision), has_lost, record.as_ref()),
            false => self.purges.epochs.reads_stamps(etcd, record.as_ref()),
        }
        *self.purges.observed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Applies the purges of keys. It blocks: slices on the disk are removed.
    pub(super) fn observe_purges(&self, entries: &Entries) {
        let folder = self.purge_folder();
        let count = |(count, last): (usize, Revision), pair: &KeyValue| (count + 1, last.max(pair.revision));
        let now = Some(entries.below(&folder).fold((0, 0), count));
        if self.purges.observed() != now {
            self.purges.apply(self.purge_list(entries.below(&folder)));
            *self.purges.observed.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
    }

    /// Whether this node has applied a purge: otherwise its bytes may be of before.
    pub(crate) fn has_purged(&self, epoch: u64) -> bool {
        self.purges.applied() >= epoch
    }

    /// Waits, at most three seconds, where this process has paused and may have missed purges. Without a pause it returns at once. While etcd does
    /// not answer, nothing is waited for.
    pub(crate) async fn caught_up(&self) {
        let end = Instant::now() + PATIENCE;
        while self.purges.heartbeat.has_paused(self.now()) && !self.is_cut_off() && Instant::now() < end {
            sleep(LOOK).await;
        }
    }

    /// Whether etcd has not answered for longer than this process would wait for it.
    fn is_cut_off(&self) -> bool {
        match self.state.link() {
            Link::New => true,
            Link::Following => false,
            Link::Away { since, .. } => since.elapsed() > PATIENCE,
        }
    }

    /// Notices pauses of this process, and reads the purges of meanwhile, until `stop` turns true.
    pub(super) async fn notice_pauses(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        self.purges.heartbeat.beat(self.now());
        loop {
            tokio::select! {
                () = sleep(BEAT) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            // The beat has this time: a pause behind it shows at the next look.
            let mut now = self.now();
            if self.purges.heartbeat.has_paused(now) && !self.is_cut_off() {
                let read = async {
                    self.read_purges().await?;
                    self.read_askers().await
                };
                match timeout(PATIENCE, read).await {
                    Ok(Ok(())) => tracing::info!("this process had paused: it knows all purges and streams again"),
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "this process had paused, and {} does not tell purges", self.registry.name());
                    }
                    Err(_) => {
                        tracing::warn!("this process had paused, and {} does not answer in time", self.registry.name());
                    }
                }
                // Where it took longer, the process has paused again.
                now = self.now().min(now + PATIENCE);
            }
            self.purges.heartbeat.beat(now);
        }
    }

    async fn read_purges(self: &Arc<Self>) -> Result<(), RegistryError> {
        let range = self.registry.range(&self.purge_folder(), MOST_KEYS).await?;
        let cluster = self.clone();
        self.apart(move || cluster.purges.apply(cluster.purge_list(range.pairs.iter()))).await;
        // The task that registers the node publishes the epoch.
        self.leaves.send_modify(|_| {});
        Ok(())
    }

    /// Purges objects of all nodes, and waits for a moment until they have done so.
    ///
    /// # Errors
    /// This node is no member, there are too many purges, or etcd refuses or does not answer. Without an answer, the purge may or may not be done.
    pub(crate) async fn purge(&self, entry: &PurgeEntry) -> Result<PurgeReport, PurgeFailure> {
        if let Some(failure) = PurgeFailure::of_node(&self.state.membership().borrow()) {
            return Err(failure);
        }
        if self.purges.is_full.load(Ordering::Relaxed) {
            return Err(PurgeFailure::Full);
        }
        let key = [&self.purge_folder()[..], format!("{:016x}", fastrand::u64(..)).as_bytes()].concat();
        let value = self.signed_value(&key, entry.to_json()?);
        let put = Operation::Put { key: key.clone(), value, lease: None };
        let put = Transaction { conditions: vec![Compare::Absent(key.clone())], changes: vec![put] };
        self.metrics.puts.inc();
        let failure = |error: RegistryError| PurgeFailure::of_write(&key, error);
        let epoch = epoch_of(match self.registry.commit_at(&put).await.map_err(failure)? {
            Some(revision) => revision,
            // Two purges never draw the same key: a member has written it and not answered, and another one was asked.
            None => self.registry.range(&key, 1).await.map_err(failure)?.pairs.first().map_or(0, |pair| pair.created),
        });
        let mut views = self.views.subscribe();
        let _ = timeout(CONFIRMED, views.wait_for(|view| is_confirmed(view, epoch))).await;
        let view = self.view();
        let named = |is_done: bool| {
            let nodes = view.nodes().iter().filter(|node| (node.purged >= Some(epoch)) == is_done);
            nodes.map(|node| node.name.to_string()).collect()
        };
        let purged_slices = self.purges.counts.of(epoch);
        Ok(PurgeReport { epoch, confirmed: named(true), missing: named(false), purged_slices })
    }

    /// Remembers applied purges on the disk, and removes old entries, until `stop` turns true.
    pub(super) async fn tidy_purges(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let (mut settled, mut written) = (0, 0);
        loop {
            tokio::select! {
                () = sleep(TIDY) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            if settled != written {
                self.remember(settled).await;
                written = settled;
            }
            settled = self.purges.applied();
            let is_first = self.view().nodes().first().is_some_and(|node| node.name == *self.name());
            if is_first && let Err(error) = self.remove_purges().await {
                tracing::debug!(%error, "old purges are not removed");
                self.metrics.failures.inc();
            }
        }
    }

    /// Writes an applied epoch beside the slices. Without slices on the disk there is nothing to remember.
    async fn remember(&self, epoch: u64) {
        let (Some(cache), Some(etcd)) = (self.purges.cache.get(), self.purges.epochs.etcd()) else { return };
        if !cache.store.has_disk() {
            return;
        }
        let (prefix, node) = (self.settings.prefix.clone(), self.name().to_string());
        let (record, file) = (PurgeRecord { etcd, prefix, node, epoch }, cache.file.clone());
        let written = spawn_blocking(move || record.write(&file).map_err(|error| (file, error))).await;
        if let Ok(Err((file, error))) = written {
            tracing::warn!(file = %file.display(), %error, "the last purge is not remembered: the next run applies it again");
        }
    }

    /// Removes old entries, and raises the floor with them.
    async fn remove_purges(&self) -> Result<(), RegistryError> {
        let range = self.registry.range(&self.purge_folder(), MOST_KEYS).await?;
        let list = self.purge_list(range.pairs.iter());
        let count = list.removable(self.wall.bookings.now());
        if count == 0 {
            return Ok(());
        }
        let (key, floor) = (self.floor_key(), list.floor_after(count));
        let known = range.pairs.iter().find(|pair| pair.key == key).map(|pair| pair.revision);
        let condition = match known {
            Some(revision) => Compare::Unchanged(key.clone(), revision),
            None => Compare::Absent(key.clone()),
        };
        let below = |pair: &&KeyValue| pair.key != key && epoch_of(pair.created) <= floor;
        let deletes = range.pairs.iter().filter(below).take(count).map(|pair| Operation::Delete(pair.key.clone()));
        let value = self.signed_value(&key, floor_json(floor));
        let changes = [Operation::Put { key: key.clone(), value, lease: None }].into_iter().chain(deletes).collect();
        self.metrics.puts.inc();
        self.registry.commit(&Transaction { conditions: vec![condition], changes }).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_cluster::{Bitrate, Node};

    #[test]
    fn entries_are_purges_of_the_store() {
        let entry = |objects| PurgeEntry { place: Some("p".into()), objects, is_soft: true, at: Duration::ZERO };
        let below = purge(&entry(PurgedObjects::Path("a".into()))).unwrap();
        assert_eq!(below.selection, Selection::Below { place: "p".into(), path: "a".into() });
        assert!(below.is_soft);
        let glob = Glob::parse("a*").unwrap();
        let matching = purge(&entry(PurgedObjects::Pattern("a*".into()))).unwrap();
        assert_eq!(matching.selection, Selection::Matching { place: "p".into(), glob });
        assert_eq!(purge(&entry(PurgedObjects::Pattern(String::new()))), None);
        let everywhere = PurgeEntry { place: None, ..entry(PurgedObjects::Tag("film-7".into())) };
        let tag = PurgeTag::parse("film-7").unwrap();
        assert_eq!(purge(&everywhere).unwrap().selection, Selection::Tagged { place: None, tag });
        assert_eq!(purge(&entry(PurgedObjects::Tag(String::new()))), None);
        assert_eq!(read_floor(floor_json(7).as_bytes()), Some(7));
        assert_eq!(read_floor(b"7"), None);
    }

    #[test]
    fn nodes_confirm_by_their_registrations() {
        let node = |name: &str, purged| Node { purged, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(1)) };
        let view = |purged| View::of(1, [node("a", Some(9)), node("b", purged)]);
        assert!(is_confirmed(&view(Some(9)), 9) && is_confirmed(&view(Some(10)), 9));
        assert!(!is_confirmed(&view(Some(8)), 9) && !is_confirmed(&view(None), 9));
    }

    #[tokio::test]
    async fn a_list_is_applied_once_and_in_order() {
        let purges = Purges::default();
        let store = Store::new(&millpond_store::StoreOptions::default()).unwrap();
        purges.set_cache(PurgedCache { store, file: PathBuf::new() });
        purges.epochs.reads("7", 5, false, None);
        assert_eq!((purges.known(), purges.applied(), purges.is_current()), (None, 0, false));
        let objects = PurgedObjects::Path("a".into());
        let entry = PurgeEntry { place: Some("p".into()), objects, is_soft: false, at: Duration::ZERO };
        let list =
            |epochs: &[u64]| PurgeList::new(0, epochs.iter().map(|epoch| (*epoch, Some(entry.clone()))).collect());
        purges.apply(list(&[3, 4]));
        assert_eq!((purges.known(), purges.applied(), purges.is_current()), (Some(4), 4, true));
        assert_eq!((purges.counts.of(4), purges.counts.of(5)), (Some(0), None));
        purges.apply(list(&[3]));
        assert_eq!(purges.applied(), 4);
    }
}
