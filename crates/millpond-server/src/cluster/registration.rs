//! The schedule of a node's lease renewals and publications of load. Pure: times are arguments.

use millpond_cluster::{Bitrate, Node};
use millpond_etcd::LeaseId;
use std::time::Duration;

/// Least time between two publications of load.
const PUBLISH: Duration = Duration::from_secs(3);
/// A load that differs by less than this share of the capacity is not published.
const WORTH: u64 = 50;
/// Time after a publication in which the view may not show it yet.
const UNSEEN: Duration = Duration::from_secs(3);

/// The next step of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A lease is asked for.
    Grant,
    /// The node is registered, under a new lease.
    Register(LeaseId),
    /// The changed registration is published.
    Publish(LeaseId),
    /// The lease is renewed.
    Renew(LeaseId),
    /// Nothing, for a time.
    Wait(Duration),
}

/// The registration of a node.
#[derive(Debug, Default)]
pub(super) struct Registration {
    lease: Option<Lease>,
    written: Option<(Node, Duration)>,
    /// Whether it was in the registry at any time.
    has_been: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: LeaseId,
    ttl: Duration,
    /// Time at which the last successful renewal was asked for.
    renewed: Duration,
}

impl Registration {
    /// The next step for a node. `is_seen` is whether the view has it.
    pub(super) fn next(&self, now: Duration, node: &Node, is_seen: bool) -> Step {
        // A lease is over by this clock too: the answer may never come.
        let Some(lease) = self.lease.filter(|lease| now < lease.renewed + lease.ttl) else { return Step::Grant };
        let Some((written, at)) = &self.written else { return Step::Register(lease.id) };
        let since = now.saturating_sub(*at);
        if !is_seen && since >= UNSEEN {
            return Step::Register(lease.id);
        }
        let renewal = lease.renewed + lease.ttl / 3;
        if now >= renewal {
            return Step::Renew(lease.id);
        }
        let is_urgent =
            (written.draining, written.purged, &written.prints) != (node.draining, node.purged, &node.prints);
        if is_urgent || (since >= PUBLISH && is_worth(written, node)) {
            return Step::Publish(lease.id);
        }
        Step::Wait((renewal - now).min(PUBLISH))
    }

    /// Notes a lease that was asked for at a time.
    pub(super) fn granted(&mut self, id: LeaseId, ttl: Duration, asked: Duration) {
        self.lease = Some(Lease { id, ttl, renewed: asked });
        self.written = None;
    }

    /// Notes the reply to a renewal that was asked for at a time. `None`: the lease is over.
    pub(super) fn renewed(&mut self, ttl: Option<Duration>, asked: Duration) {
        match (&mut self.lease, ttl) {
            (Some(lease), Some(ttl)) => (lease.ttl, lease.renewed) = (ttl, asked),
            _ => self.lost(),
        }
    }

    /// Notes that the node is in the registry as it was at a time.
    pub(super) fn written(&mut self, node: Node, now: Duration) {
        (self.written, self.has_been) = (Some((node, now)), true);
    }

    /// Whether this run of the node was registered before. Another key of its name is then none of an earlier run.
    pub(super) fn has_been(&self) -> bool {
        self.has_been
    }

    /// Notes that the lease is over.
    pub(super) fn lost(&mut self) {
        *self = Self { has_been: self.has_been, ..Self::default() };
    }

    /// The lease, if it has not ended.
    pub(super) fn lease(&self) -> Option<LeaseId> {
        self.lease.map(|lease| lease.id)
    }
}

fn is_worth(written: &Node, node: &Node) -> bool {
    let (old, new) = (written.load, node.load);
    let least = Bitrate::from_bps((node.capacity.bps() / WORTH).max(1));
    let differs = new.rate.minus(old.rate).plus(old.rate.minus(new.rate)) >= least;
    // A node without work says so.
    differs || old.sessions.abs_diff(new.sessions) > old.sessions / 10 || (new.sessions == 0) != (old.sessions == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_cluster::{Load, Print, Prints};

    const LEASE: LeaseId = LeaseId(7);

    fn node(mbps: u64) -> Node {
        let load = Load { rate: Bitrate::from_mbps(mbps), sessions: 100 };
        Node { load, ..Node::new("a".parse().unwrap(), Bitrate::from_mbps(1000)) }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_renewed_in_time_and_begun_anew_when_it_is_over() {
        let mut registration = Registration::default();
        assert_eq!(registration.next(at(0), &node(0), false), Step::Grant);
        registration.granted(LEASE, at(6), at(0));
        assert_eq!(registration.next(at(0), &node(0), false), Step::Register(LEASE));
        registration.written(node(0), at(0));
        assert_eq!(registration.next(at(1), &node(0), true), Step::Wait(at(1)));
        assert_eq!(registration.next(at(2), &node(0), true), Step::Renew(LEASE));
        registration.renewed(Some(at(6)), at(2));
        assert_eq!(registration.next(at(3), &node(0), true), Step::Wait(at(1)));
        // Renewals fail: the lease ends by the own clock.
        assert_eq!(registration.next(at(7), &node(0), true), Step::Renew(LEASE));
        assert_eq!(registration.next(at(8), &node(0), true), Step::Grant);
        registration.granted(LeaseId(8), at(6), at(8));
        assert_eq!(registration.next(at(8), &node(0), true), Step::Register(LeaseId(8)));
        registration.renewed(None, at(9));
        assert_eq!((registration.next(at(9), &node(0), true), registration.lease()), (Step::Grant, None));
        assert!(registration.has_been() && !Registration::default().has_been());
    }

    #[test]
    fn loads_are_published_in_batches_and_drains_and_purges_at_once() {
        let mut registration = Registration::default();
        registration.granted(LEASE, at(60), at(0));
        registration.written(node(0), at(0));
        assert_eq!(registration.next(at(1), &node(100), true), Step::Wait(at(3)));
        assert_eq!(registration.next(at(3), &node(100), true), Step::Publish(LEASE));
        assert_eq!(registration.next(at(3), &node(10), true), Step::Wait(at(3)));
        let drains = Node { draining: true, ..node(0) };
        assert_eq!(registration.next(at(1), &drains, true), Step::Publish(LEASE));
        let purged = Node { purged: Some(7), ..node(0) };
        assert_eq!(registration.next(at(1), &purged, true), Step::Publish(LEASE));
        // In a minute of changes, a node writes once in three seconds at most.
        let mut puts = 0;
        for tenth in 0..600_u64 {
            let now = Duration::from_millis(tenth * 100);
            let busy = node(tenth * 37 % 1000);
            match registration.next(now, &busy, true) {
                Step::Publish(_) => {
                    registration.written(busy, now);
                    puts += 1;
                }
                Step::Renew(_) => registration.renewed(Some(at(60)), now),
                step => assert!(matches!(step, Step::Wait(_)), "{step:?}"),
            }
        }
        assert!((15..=20).contains(&puts), "{puts}");
    }

    #[test]
    fn other_settings_are_published_at_once() {
        let mut registration = Registration::default();
        registration.granted(LEASE, at(60), at(0));
        registration.written(node(0), at(0));
        let prints = Some(Prints::new(Print::of(["4s"]), [].into()).into());
        let reloaded = Node { prints, ..node(0) };
        assert_eq!(registration.next(at(1), &reloaded, true), Step::Publish(LEASE));
        registration.written(reloaded.clone(), at(1));
        assert_eq!(registration.next(at(2), &reloaded, true), Step::Wait(at(3)));
    }

    #[test]
    fn a_node_whose_key_is_gone_registers_again() {
        let mut registration = Registration::default();
        registration.granted(LEASE, at(60), at(0));
        registration.written(node(0), at(0));
        assert_eq!(registration.next(at(1), &node(0), false), Step::Wait(at(3)));
        assert_eq!(registration.next(at(3), &node(0), false), Step::Register(LEASE));
    }
}
