//! The copy of all keys that one node has. Pure: times are arguments.

use super::{
    GossipEntry, GossipError, GossipEvent, GossipHeartbeat, GossipLease, GossipPair, GossipReply, GossipStamp,
    entry::{LONGEST_KEY, LONGEST_VALUE},
    leases::Leases,
    log::ChangeLog,
    reply::{MOST_ENTRIES, PAGE},
    stamp::StampClock,
};
use crate::NodeName;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Most keys, with deleted ones that are remembered.
const MOST_KEYS: usize = 60_000;
/// Most bytes of keys and values.
const MOST_BYTES: usize = 32 << 20;
/// Time for which deleted keys are remembered. A node that was out of reach for longer may bring them back.
const DELETED: Duration = Duration::from_secs(24 * 3600);
/// Most deleted keys that are remembered: of more, the oldest are forgotten.
const MOST_DELETED: usize = 16_384;

/// The time of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct GossipMoment {
    /// Since 1970.
    pub wall: Duration,
    /// Since a start of the caller's choice, by a clock that is never set.
    pub elapsed: Duration,
}

/// A run of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipRun {
    /// The node.
    pub node: NodeName,
    /// Tells the run from others of the node.
    pub incarnation: u64,
}

/// Keys whose readers go on from the greatest stamp that they have seen: all of a folder but one. A key that comes late from another node is
/// made anew here, so that its stamp is above what readers have seen.
#[derive(Clone, Debug)]
pub struct GossipOrder {
    /// The folder.
    pub folder: String,
    /// The key that is none of them.
    pub except: String,
}

/// A condition of a change.
#[derive(Clone, Debug)]
pub enum GossipCondition {
    /// A key is not there.
    Absent(String),
    /// No key has a prefix.
    NoneBelow(String),
    /// A key was last changed at a stamp.
    Unchanged(String, GossipStamp),
}

/// A change of a key.
#[derive(Clone, Debug)]
pub enum GossipChange {
    /// Gives a key a value.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Arc<str>,
        /// Number of the lease of this run with which the key ends.
        lease: Option<u64>,
    },
    /// Deletes a key.
    Delete(String),
}

#[derive(Debug)]
struct Held {
    entry: GossipEntry,
    sequence: u64,
    /// Whether readers see it: it has a value, and its lease is alive.
    is_visible: bool,
}

/// The copy of all keys that one node has.
///
/// `range`, `changes` and `commit` are for the tasks of the node. `reply` and `merge` are for other nodes, and `tick` is called some times a
/// second.
#[derive(Debug)]
pub struct GossipMap {
    run: GossipRun,
    prefix: String,
    order: GossipOrder,
    clock: StampClock,
    all: BTreeMap<String, Held>,
    /// Keys by the sequence numbers of their last changes.
    changed: BTreeMap<u64, String>,
    bytes: usize,
    leases: Leases,
    last_lease: u64,
    log: ChangeLog,
    /// Greatest stamp in the ordered folder, and the one at its last reading.
    greatest: GossipStamp,
    read: GossipStamp,
    restarts: u64,
}

impl GossipMap {
    /// An empty copy. Keys without the prefix are refused.
    #[must_use]
    pub fn new(run: GossipRun, prefix: &str, order: GossipOrder) -> Self {
        let (clock, all, changed, bytes, leases, last_lease, log) = Default::default();
        let (greatest, read, restarts, prefix) = (GossipStamp::default(), GossipStamp::default(), 0, prefix.to_owned());
        Self { run, prefix, order, clock, all, changed, bytes, leases, last_lease, log, greatest, read, restarts }
    }

    /// Number of the last change.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.log.sequence()
    }

    /// Number of times that keys were forgotten whose lease may revive: replies of other nodes are read from the beginning then.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The keys with a prefix, at most `most`, and whether there are more.
    pub fn range(&mut self, prefix: &str, most: usize) -> (Vec<GossipPair>, bool) {
        self.note_read(prefix);
        let mut found = self.below(prefix).filter(|held| held.is_visible);
        let pairs = found.by_ref().take(most).filter_map(|held| pair(&held.entry)).collect();
        let is_cut = found.next().is_some();
        (pairs, is_cut)
    }

    /// The changes of keys with a prefix, from a number on.
    ///
    /// # Errors
    /// They are forgotten: the keys must be read anew.
    pub fn changes(&mut self, prefix: &str, from: u64) -> Result<Vec<GossipEvent>, GossipError> {
        let events = self.log.from(from)?.filter(|event| event.key().starts_with(prefix)).cloned().collect();
        self.note_read(prefix);
        Ok(events)
    }

    /// Makes changes if all conditions hold here; returns their stamp, or `None` where a condition does not hold.
    ///
    /// # Errors
    /// A lease is over, a key or value is too long, or there is no room.
    pub fn commit(
        &mut self,
        conditions: &[GossipCondition],
        changes: Vec<GossipChange>,
        now: GossipMoment,
    ) -> Result<Option<GossipStamp>, GossipError> {
        self.end_leases(now);
        if !conditions.iter().all(|condition| self.holds(condition)) {
            return Ok(None);
        }
        changes.iter().try_for_each(|change| self.check(change))?;
        let above = changes.iter().map(|change| self.stamp_below(change.key())).max().unwrap_or_default();
        let stamp = self.clock.tick(now.wall, above);
        for change in changes {
            let (by, known) = (self.run.node.clone(), self.all.get(change.key()).filter(|held| held.is_visible));
            let created = known.map(|held| held.entry.created);
            let entry = match change {
                GossipChange::Put { key, value, lease } => {
                    let lease = lease.map(|number| self.lease(number));
                    let created = created.unwrap_or(stamp);
                    GossipEntry { key, stamp, by, created, lease, value: Some(value) }
                }
                GossipChange::Delete(_) if created.is_none() => continue,
                GossipChange::Delete(key) => GossipEntry { key, stamp, by, created: stamp, lease: None, value: None },
            };
            self.set(entry);
        }
        Ok(Some(stamp))
    }

    /// Begins a lease of this run; returns its number and its time to live.
    ///
    /// # Errors
    /// There are too many leases.
    pub fn grant(&mut self, ttl: Duration, now: GossipMoment) -> Result<(u64, Duration), GossipError> {
        self.last_lease += 1;
        let lease = self.lease(self.last_lease);
        let full = GossipError::Full { keys: self.all.len(), bytes: self.bytes };
        let ttl = self.leases.begin(lease, ttl, now.elapsed).ok_or(full)?;
        self.log.silent();
        Ok((self.last_lease, ttl))
    }

    /// Renews a lease of this run; returns its time to live, or `None` where it is over.
    pub fn keep_alive(&mut self, number: u64, now: GossipMoment) -> Option<Duration> {
        self.leases.renew(&self.lease(number), now.elapsed)
    }

    /// Ends a lease of this run, and with it its keys, at all nodes.
    ///
    /// # Errors
    /// The lease is over.
    pub fn revoke(&mut self, number: u64, now: GossipMoment) -> Result<(), GossipError> {
        let lease = self.lease(number);
        if !self.leases.end(&lease, now.elapsed) {
            return Err(GossipError::NoLease);
        }
        self.show(&lease);
        self.log.silent();
        Ok(())
    }

    /// Ends leases whose time is over, and forgets deleted keys; tells whether a reader sees a change.
    pub fn tick(&mut self, now: GossipMoment) -> bool {
        let before = self.sequence();
        self.end_leases(now);
        let forgotten = self.leases.forget(now.elapsed);
        for lease in &forgotten.leases {
            self.remove(|entry| entry.lease.as_ref() == Some(lease));
        }
        self.restarts += u64::from(forgotten.is_unsure);
        self.remove(|entry| entry.value.is_none() && entry.stamp.wall() + DELETED < now.wall);
        let mut deleted: Vec<_> = self.all.values().filter(|held| held.entry.value.is_none()).collect();
        if let Some(excess) = deleted.len().checked_sub(MOST_DELETED).filter(|excess| *excess > 0) {
            deleted.sort_by_key(|held| held.entry.stamp);
            let last = deleted[excess - 1].entry.stamp;
            self.remove(|entry| entry.value.is_none() && entry.stamp <= last);
        }
        self.sequence() != before
    }

    /// The reply to a node that has heard the changes up to a number: a page of later entries, and all heartbeats.
    #[must_use]
    pub fn reply(&self, since: u64) -> GossipReply {
        let since = if since > self.sequence() { 0 } else { since };
        let (mut entries, mut bytes, mut last) = (Vec::new(), 0, None);
        for (sequence, key) in self.changed.range(since + 1..) {
            if bytes >= PAGE || entries.len() == MOST_ENTRIES {
                last = entries_end(&self.all, entries.last());
                break;
            }
            if let Some(held) = self.all.get(key) {
                debug_assert_eq!(held.sequence, *sequence, "one number a key");
                bytes += held.entry.size();
                entries.push(held.entry.clone());
            }
        }
        GossipReply {
            node: self.run.node.clone(),
            incarnation: self.run.incarnation,
            prefix: self.prefix.clone(),
            sequence: last.unwrap_or(self.sequence()),
            has_more: last.is_some(),
            heartbeats: self.leases.heartbeats(),
            entries,
        }
    }

    /// Takes over what another node tells.
    pub fn merge(&mut self, reply: GossipReply, now: GossipMoment) {
        for heartbeat in reply.heartbeats {
            self.hear(heartbeat, now);
        }
        for entry in reply.entries {
            self.merge_entry(entry, now);
        }
    }

    /// Notes that a lease was ended.
    pub fn ended(&mut self, lease: GossipLease, now: GossipMoment) {
        self.hear(GossipHeartbeat::last(lease), now);
    }

    fn hear(&mut self, heartbeat: GossipHeartbeat, now: GossipMoment) {
        let lease = heartbeat.lease.clone();
        let is_changed = match self.is_own(&lease) {
            // All others have ended it: the node must notice, and register again.
            true => self.leases.hear_own(&heartbeat, now.elapsed),
            false => self.leases.hear(heartbeat, now.elapsed),
        };
        if is_changed {
            self.show(&lease);
            self.log.silent();
        }
    }

    fn merge_entry(&mut self, mut entry: GossipEntry, now: GossipMoment) {
        let is_valid = entry.key.starts_with(&self.prefix) && entry.created <= entry.stamp;
        let known = self.all.get(&entry.key);
        if !is_valid || known.is_some_and(|held| held.entry >= entry) {
            return;
        }
        if known.is_none() && !self.has_room(entry.size()) {
            return;
        }
        self.clock.observe(entry.stamp, now.wall);
        let is_new = known.is_none_or(|held| held.entry.value.is_none());
        // Readers of these keys would never see it.
        if is_new && entry.value.is_some() && self.is_ordered(&entry.key) && entry.created <= self.read {
            let stamp = self.clock.tick(now.wall, self.greatest.max(entry.stamp));
            (entry.stamp, entry.created, entry.by) = (stamp, stamp, self.run.node.clone());
        }
        self.set(entry);
    }

    fn set(&mut self, entry: GossipEntry) {
        if entry.key.starts_with(&self.order.folder) {
            self.greatest = self.greatest.max(entry.stamp);
        }
        let is_visible = entry.value.is_some() && entry.lease.as_ref().is_none_or(|lease| self.leases.is_alive(lease));
        let old = self.all.remove(&entry.key);
        if let Some(old) = &old {
            self.changed.remove(&old.sequence);
            self.bytes -= old.entry.size();
        }
        let sequence = match (pair(&entry).filter(|_| is_visible), old.is_some_and(|old| old.is_visible)) {
            (Some(pair), _) => self.log.push(GossipEvent::Put(pair)),
            (None, true) => self.log.push(GossipEvent::Delete(entry.key.clone())),
            (None, false) => self.log.silent(),
        };
        self.bytes += entry.size();
        self.changed.insert(sequence, entry.key.clone());
        self.all.insert(entry.key.clone(), Held { entry, sequence, is_visible });
    }

    /// Shows or hides the keys of a lease that has begun, or is over.
    fn show(&mut self, lease: &GossipLease) {
        let is_alive = self.leases.is_alive(lease);
        for held in self.all.values_mut().filter(|held| held.entry.lease.as_ref() == Some(lease)) {
            let is_visible = is_alive && held.entry.value.is_some();
            if held.is_visible != is_visible {
                held.is_visible = is_visible;
                let shown = pair(&held.entry).filter(|_| is_visible).map(GossipEvent::Put);
                self.log.push(shown.unwrap_or_else(|| GossipEvent::Delete(held.entry.key.clone())));
            }
        }
    }

    fn end_leases(&mut self, now: GossipMoment) {
        let run = &self.run;
        let is_own = |lease: &GossipLease| is_of(run, lease);
        for lease in self.leases.expire(is_own, now.elapsed) {
            self.show(&lease);
            self.log.silent();
        }
    }

    fn remove(&mut self, is_over: impl Fn(&GossipEntry) -> bool) {
        let (changed, bytes) = (&mut self.changed, &mut self.bytes);
        self.all.retain(|_, held| {
            // A key that readers see is deleted first.
            let is_kept = held.is_visible || !is_over(&held.entry);
            if !is_kept {
                changed.remove(&held.sequence);
                *bytes -= held.entry.size();
            }
            is_kept
        });
    }

    fn holds(&self, condition: &GossipCondition) -> bool {
        let seen = |key: &str| self.all.get(key).filter(|held| held.is_visible);
        match condition {
            GossipCondition::Absent(key) => seen(key).is_none(),
            GossipCondition::NoneBelow(prefix) => !self.below(prefix).any(|held| held.is_visible),
            GossipCondition::Unchanged(key, stamp) => {
                seen(key).map(|held| held.entry.stamp).unwrap_or_default() == *stamp
            }
        }
    }

    fn check(&self, change: &GossipChange) -> Result<(), GossipError> {
        let GossipChange::Put { key, value, lease } = change else { return Ok(()) };
        for (field, found, most) in [("key", key.len(), LONGEST_KEY), ("value", value.len(), LONGEST_VALUE)] {
            if found > most {
                return Err(GossipError::TooLong { field, found, most });
            }
        }
        if lease.is_some_and(|number| !self.leases.is_alive(&self.lease(number))) {
            return Err(GossipError::NoLease);
        }
        if !self.all.contains_key(key) && !self.has_room(key.len() + value.len()) {
            return Err(GossipError::Full { keys: self.all.len(), bytes: self.bytes });
        }
        Ok(())
    }

    fn has_room(&self, size: usize) -> bool {
        self.all.len() < MOST_KEYS && self.bytes + size <= MOST_BYTES
    }

    /// The stamp that a change of a key must be above.
    fn stamp_below(&self, key: &str) -> GossipStamp {
        let known = self.all.get(key).map(|held| held.entry.stamp).unwrap_or_default();
        if key.starts_with(&self.order.folder) { known.max(self.greatest) } else { known }
    }

    fn note_read(&mut self, prefix: &str) {
        if self.order.folder.starts_with(prefix) {
            self.read = self.greatest;
        }
    }

    fn is_ordered(&self, key: &str) -> bool {
        key.starts_with(&self.order.folder) && key != self.order.except
    }

    fn lease(&self, number: u64) -> GossipLease {
        let GossipRun { node, incarnation } = self.run.clone();
        GossipLease { node, incarnation, number }
    }

    fn is_own(&self, lease: &GossipLease) -> bool {
        is_of(&self.run, lease)
    }

    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Held> {
        let all = self.all.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        all.map(|(_, held)| held).take_while(move |held| held.entry.key.starts_with(prefix))
    }
}

impl GossipChange {
    fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete(key) => key,
        }
    }
}

fn is_of(run: &GossipRun, lease: &GossipLease) -> bool {
    lease.node == run.node && lease.incarnation == run.incarnation
}

fn pair(entry: &GossipEntry) -> Option<GossipPair> {
    let GossipEntry { key, stamp, created, value, .. } = entry;
    Some(GossipPair { key: key.clone(), value: value.clone()?, revision: *stamp, created: *created })
}

/// The sequence number of the last entry of a page.
fn entries_end(all: &BTreeMap<String, Held>, last: Option<&GossipEntry>) -> Option<u64> {
    last.and_then(|entry| all.get(&entry.key)).map(|held| held.sequence)
}
