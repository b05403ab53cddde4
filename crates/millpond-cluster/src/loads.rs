//! The load of dispensers, as a manager counts with it.

use super::{Bitrate, NodeName, Role, View};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// How long a stream counts that a manager has assigned, beside the load that its dispenser publishes. Published loads are older
/// than the decisions that follow from them; without this all streams of an interval would go to one node.
const ASSIGNED: Duration = Duration::from_secs(5);
/// Most streams that are remembered so. Beyond it the oldest are forgotten.
const MOST_ASSIGNED: usize = 100_000;

/// The loads of a view's dispensers, with the streams that the manager has assigned since they were published.
///
/// Two managers with the same view and the same additions give the same answers.
#[derive(Clone, Debug)]
pub struct Loads {
    view: Arc<View>,
    /// By name.
    dispensers: Vec<Dispenser>,
    load: Bitrate,
    capacity: Bitrate,
    assigned: VecDeque<Assigned>,
}

/// A node that streams may be given to.
#[derive(Clone, Debug)]
pub(crate) struct Dispenser {
    pub(crate) name: NodeName,
    /// Hash of the name.
    pub(crate) hash: u64,
    pub(crate) load: Bitrate,
    pub(crate) capacity: Bitrate,
}

#[derive(Clone, Debug)]
struct Assigned {
    at: Duration,
    name: NodeName,
    rate: Bitrate,
}

impl Loads {
    /// The loads that a view publishes.
    pub fn new(view: Arc<View>) -> Self {
        let mut loads = Self {
            view,
            dispensers: Vec::new(),
            load: Bitrate::ZERO,
            capacity: Bitrate::ZERO,
            assigned: VecDeque::new(),
        };
        loads.count();
        loads
    }

    /// Replaces the view. Streams that were assigned within the last seconds still count.
    pub fn update(&mut self, view: Arc<View>, now: Duration) {
        self.view = view;
        while self.assigned.front().is_some_and(|first| now.saturating_sub(first.at) > ASSIGNED) {
            self.assigned.pop_front();
        }
        self.count();
    }

    /// Adds a stream that was assigned to a dispenser at `now`, a time since any moment.
    pub fn add(&mut self, name: &NodeName, rate: Bitrate, now: Duration) {
        if self.assigned.len() == MOST_ASSIGNED {
            self.assigned.pop_front();
        }
        self.assigned.push_back(Assigned { at: now, name: name.clone(), rate });
        self.raise(name, rate);
    }

    /// Counts with at least `rate` for a dispenser, such as what is booked of it.
    pub fn at_least(&mut self, name: &NodeName, rate: Bitrate) {
        let Some(at) = self.position(name) else { return };
        self.raise(name, rate.minus(self.dispensers[at].load));
    }

    /// The view.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Load that a dispenser is counted with.
    pub fn load(&self, name: &NodeName) -> Option<Bitrate> {
        self.position(name).map(|at| self.dispensers[at].load)
    }

    pub(crate) fn dispensers(&self) -> &[Dispenser] {
        &self.dispensers
    }

    /// The bandwidth that all dispensers send with `more`, and their capacity.
    pub(crate) fn totals(&self, more: Bitrate) -> (Bitrate, Bitrate) {
        (self.load.plus(more), self.capacity)
    }

    fn position(&self, name: &NodeName) -> Option<usize> {
        self.dispensers.binary_search_by(|dispenser| dispenser.name.cmp(name)).ok()
    }

    fn raise(&mut self, name: &NodeName, rate: Bitrate) {
        if let Some(at) = self.position(name) {
            self.dispensers[at].load = self.dispensers[at].load.plus(rate);
            self.load = self.load.plus(rate);
        }
    }

    fn count(&mut self) {
        let dispensers = self.view.hashed(Role::Dispenser).map(|(hash, node)| {
            let (name, load, capacity) = (node.name.clone(), node.load.rate, node.capacity);
            Dispenser { name, hash, load, capacity }
        });
        self.dispensers = dispensers.collect();
        self.load = self.dispensers.iter().map(|dispenser| dispenser.load).sum();
        self.capacity = self.dispensers.iter().map(|dispenser| dispenser.capacity).sum();
        for assigned in std::mem::take(&mut self.assigned) {
            self.raise(&assigned.name, assigned.rate);
            self.assigned.push_back(assigned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Node};

    fn name(text: &str) -> NodeName {
        text.parse().unwrap()
    }

    fn view(loads: &[(&str, u64)]) -> Arc<View> {
        let node = |(text, mbps): &(&str, u64)| {
            let load = Load { rate: Bitrate::from_mbps(*mbps), sessions: 1 };
            Node { load, ..Node::new(name(text), Bitrate::from_mbps(100)) }
        };
        View::of(1, loads.iter().map(node)).into()
    }

    #[test]
    fn assigned_streams_count_until_loads_show_them() {
        let mut loads = Loads::new(view(&[("a", 10), ("b", 20)]));
        loads.add(&name("a"), Bitrate::from_mbps(4), Duration::from_secs(1));
        loads.add(&name("gone"), Bitrate::from_mbps(4), Duration::from_secs(1));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(14)));
        assert_eq!(loads.totals(Bitrate::ZERO), (Bitrate::from_mbps(34), Bitrate::from_mbps(200)));
        loads.update(view(&[("a", 11), ("c", 0)]), Duration::from_secs(6));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(15)));
        loads.update(view(&[("a", 15), ("c", 0)]), Duration::from_secs(7));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(15)));
        loads.at_least(&name("a"), Bitrate::from_mbps(14));
        loads.at_least(&name("c"), Bitrate::from_mbps(3));
        assert_eq!(loads.totals(Bitrate::ZERO).0, Bitrate::from_mbps(18));
    }
}
