//! The leases of all nodes, by their heartbeats.
//!
//! A lease ends when no heartbeat with a greater count has come for its time to live, from whichever node. So a node that only one other
//! node reaches keeps its lease at all of them.

use super::GossipLease;
use std::{collections::BTreeMap, time::Duration};

/// Most leases that are remembered.
pub(super) const MOST_LEASES: usize = 1024;
/// Bounds of a time to live.
const TTL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(120));
/// Count of a lease that its node has ended.
const ENDED: u64 = u64::MAX;
/// Time for which a lease that is over is remembered, with its keys: it may only have been out of reach.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Time between two looks after which the process has paused. Leases do not end by its own pause.
const PAUSE: Duration = Duration::from_secs(1);

/// The heartbeat of a lease, as one node tells it to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipHeartbeat {
    /// The lease.
    pub lease: GossipLease,
    /// Count of its renewals. The greatest of all tells that the node has ended it.
    pub counter: u64,
    /// Time to live.
    pub ttl: Duration,
}

impl GossipHeartbeat {
    /// The heartbeat of a lease that its node has ended.
    pub(super) fn last(lease: GossipLease) -> Self {
        Self { lease, counter: ENDED, ttl: Duration::ZERO }
    }
}

#[derive(Debug)]
struct Known {
    counter: u64,
    ttl: Duration,
    /// Time at which the count grew.
    heard: Duration,
    is_alive: bool,
}

/// The leases of all nodes.
#[derive(Debug, Default)]
pub(super) struct Leases {
    all: BTreeMap<GossipLease, Known>,
    looked: Duration,
}

/// Leases that are forgotten.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    pub(super) leases: Vec<GossipLease>,
    /// Whether one of them was not ended by its node, which may be alive.
    pub(super) is_unsure: bool,
}

impl Leases {
    /// Begins a lease of this node; returns its time to live. `None` where there are too many.
    pub(super) fn begin(&mut self, lease: GossipLease, ttl: Duration, now: Duration) -> Option<Duration> {
        let ttl = ttl.clamp(TTL.0, TTL.1);
        if self.all.len() >= MOST_LEASES {
            return None;
        }
        self.all.insert(lease, Known { counter: 1, ttl, heard: now, is_alive: true });
        Some(ttl)
    }

    /// Renews a lease of this node; returns its time to live, or `None` where it is over.
    pub(super) fn renew(&mut self, lease: &GossipLease, now: Duration) -> Option<Duration> {
        let known = self.all.get_mut(lease).filter(|known| known.is_alive && now < known.heard + known.ttl)?;
        known.counter += 1;
        known.heard = now;
        Some(known.ttl)
    }

    /// Ends a lease of this node; tells whether it was alive.
    pub(super) fn end(&mut self, lease: &GossipLease, now: Duration) -> bool {
        let Some(known) = self.all.get_mut(lease).filter(|known| known.counter != ENDED) else { return false };
        (known.counter, known.heard) = (ENDED, now);
        std::mem::take(&mut known.is_alive)
    }

    /// Takes over a heartbeat of another node's lease; tells whether the lease is now alive or over, and was not before.
    pub(super) fn hear(&mut self, heartbeat: GossipHeartbeat, now: Duration) -> bool {
        let GossipHeartbeat { lease, counter, ttl } = heartbeat;
        let is_full = self.all.len() >= MOST_LEASES;
        let Some(known) = self.all.get_mut(&lease) else {
            if !is_full {
                let ttl = ttl.clamp(TTL.0, TTL.1);
                self.all.insert(lease, Known { counter, ttl, heard: now, is_alive: counter != ENDED });
            }
            return !is_full;
        };
        if counter <= known.counter {
            return false;
        }
        (known.counter, known.heard) = (counter, now);
        let is_alive = counter != ENDED;
        std::mem::replace(&mut known.is_alive, is_alive) != is_alive
    }

    /// Takes over what another node tells of a lease of this one: that it has ended, or a count that
    /// renewals of this node must exceed. Tells whether the lease is over now, and was not before.
    pub(super) fn hear_own(&mut self, heartbeat: &GossipHeartbeat, now: Duration) -> bool {
        let Some(known) = self.all.get_mut(&heartbeat.lease).filter(|known| known.is_alive) else { return false };
        if heartbeat.counter <= known.counter {
            return false;
        }
        // The greatest count of all can't be exceeded.
        let is_over = heartbeat.counter >= ENDED - 1;
        known.counter = if is_over { ENDED } else { heartbeat.counter + 1 };
        (known.heard, known.is_alive) = (if is_over { now } else { known.heard }, !is_over);
        is_over
    }

    /// Ends leases whose time is over; returns them. After a pause of this process the others have their time again.
    pub(super) fn expire(&mut self, is_own: impl Fn(&GossipLease) -> bool, now: Duration) -> Vec<GossipLease> {
        let gap = now.saturating_sub(self.looked);
        let paused = if gap > PAUSE { gap } else { Duration::ZERO };
        self.looked = now;
        let mut over = Vec::new();
        for (lease, known) in self.all.iter_mut().filter(|(_, known)| known.is_alive) {
            let is_own = is_own(lease);
            if !is_own {
                known.heard = (known.heard + paused).min(now);
            }
            if now >= known.heard + known.ttl {
                known.is_alive = false;
                if is_own {
                    (known.counter, known.heard) = (ENDED, now);
                }
                over.push(lease.clone());
            }
        }
        over
    }

    /// Forgets leases that have been over for long.
    pub(super) fn forget(&mut self, now: Duration) -> Forgotten {
        let mut forgotten = Forgotten::default();
        self.all.retain(|lease, known| {
            let is_kept = known.is_alive || now < known.heard + REMEMBERED;
            if !is_kept {
                forgotten.is_unsure |= known.counter != ENDED;
                forgotten.leases.push(lease.clone());
            }
            is_kept
        });
        forgotten
    }

    pub(super) fn is_alive(&self, lease: &GossipLease) -> bool {
        self.all.get(lease).is_some_and(|known| known.is_alive)
    }

    /// The heartbeats that other nodes are told. Leases that are silent are not among them: others would count them anew.
    pub(super) fn heartbeats(&self) -> Vec<GossipHeartbeat> {
        let told = self.all.iter().filter(|(_, known)| known.is_alive || known.counter == ENDED);
        let heartbeat = |(lease, known): (&GossipLease, &Known)| GossipHeartbeat {
            lease: lease.clone(),
            counter: known.counter,
            ttl: known.ttl,
        };
        told.map(heartbeat).collect()
    }
}
