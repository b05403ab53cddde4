//! The load of dispensers, with the streams that a manager has assigned since it was published.

use super::{Bitrate, Load, NodeName, ObjectKey, Role, View, hash, orders::Orders};
use std::{collections::VecDeque, ops::ControlFlow, sync::Arc, time::Duration};

/// Time for which an assigned stream counts beside the load that its dispenser publishes. Published loads are older than the
/// decisions that follow from them: without this, one node would get all streams of an interval. They are averages of some seconds,
/// in which a new stream shows fully after this time.
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
    /// Of these dispensers.
    orders: Orders,
}

/// A node that streams may be given to.
#[derive(Clone, Debug)]
pub(crate) struct Dispenser {
    pub(crate) name: NodeName,
    /// Hash of the name.
    pub(crate) hash: u64,
    pub(crate) load: Bitrate,
    pub(crate) capacity: Bitrate,
    /// Its load as it was published.
    published: Load,
}

#[derive(Clone, Debug)]
struct Assigned {
    at: Duration,
    name: NodeName,
    rate: Bitrate,
    /// The part of its rate that the published load does not show.
    unseen: Bitrate,
}

impl Dispenser {
    pub(crate) fn new(name: NodeName, hash: u64, capacity: Bitrate) -> Self {
        let (load, published) = Default::default();
        Self { name, hash, load, capacity, published }
    }

    /// Its score for an object, by the object's hash.
    pub(crate) fn score(&self, object: u64) -> f64 {
        hash::score(hash::pair(object, self.hash), self.capacity.bps() as f64)
    }

    /// Whether orders are the same with `other` in its place.
    fn is_alike(&self, other: &Self) -> bool {
        (self.hash, self.capacity) == (other.hash, other.capacity)
    }
}

impl Assigned {
    /// The part of its rate that a load published at `now` does not show.
    fn unseen_at(&self, now: Duration) -> Bitrate {
        let left = ASSIGNED.saturating_sub(now.saturating_sub(self.at));
        let unseen = u128::from(self.rate.bps()) * left.as_millis() / ASSIGNED.as_millis();
        Bitrate::from_bps(u64::try_from(unseen).unwrap_or(u64::MAX))
    }
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
            orders: Orders::default(),
        };
        loads.count(Duration::ZERO);
        loads
    }

    /// Replaces the view. Streams that were assigned within the last seconds still count, as far as their dispensers have not published
    /// a load that shows them.
    pub fn update(&mut self, view: Arc<View>, now: Duration) {
        self.view = view;
        while self.assigned.front().is_some_and(|first| now.saturating_sub(first.at) > ASSIGNED) {
            self.assigned.pop_front();
        }
        self.count(now);
    }

    /// Adds a stream that was assigned to a dispenser at `now`, a time since any moment.
    pub fn add(&mut self, name: &NodeName, rate: Bitrate, now: Duration) {
        if self.assigned.len() == MOST_ASSIGNED {
            self.assigned.pop_front();
        }
        self.assigned.push_back(Assigned { at: now, name: name.clone(), rate, unseen: rate });
        if let Some(place) = self.position(name) {
            self.raise(place, rate);
        }
    }

    /// Removes the stream of this rate that was assigned to a dispenser last, because the dispenser refused it.
    pub fn take_back(&mut self, name: &NodeName, rate: Bitrate) {
        let is_it = |assigned: &Assigned| assigned.name == *name && assigned.rate == rate;
        let Some(refused) = self.assigned.iter().rposition(is_it).and_then(|last| self.assigned.remove(last)) else {
            return;
        };
        if let Some(place) = self.position(name) {
            let dispenser = &mut self.dispensers[place];
            let lower = dispenser.load.minus(refused.unseen);
            self.load = self.load.minus(dispenser.load.minus(lower));
            dispenser.load = lower;
        }
    }

    /// Counts with at least `rate` for a dispenser, such as what is booked of it.
    pub fn at_least(&mut self, name: &NodeName, rate: Bitrate) {
        if let Some(place) = self.position(name) {
            self.raise(place, rate.minus(self.dispensers[place].load));
        }
    }

    /// The view.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Load that a dispenser is counted with.
    pub fn load(&self, name: &NodeName) -> Option<Bitrate> {
        self.position(name).map(|place| self.dispensers[place].load)
    }

    pub(crate) fn dispensers(&self) -> &[Dispenser] {
        &self.dispensers
    }

    /// The bandwidth that all dispensers send with `more`, and their capacity.
    pub(crate) fn totals(&self, more: Bitrate) -> (Bitrate, Bitrate) {
        (self.load.plus(more), self.capacity)
    }

    /// Calls `visit` with the dispensers of an object's order and their places, the best first, until it breaks. Returns whether that was
    /// done: not where the order is not known as far. At least its first eight always are.
    pub(crate) fn visit(
        &mut self,
        key: &ObjectKey,
        mut visit: impl FnMut(usize, &Dispenser) -> ControlFlow<()>,
    ) -> bool {
        let mut seen = 0;
        while seen < self.dispensers.len() {
            let Some(order) = self.orders.beyond(key.hash(), seen, &self.dispensers) else { return false };
            for place in order[seen..].iter().map(|place| usize::from(*place)) {
                if visit(place, &self.dispensers[place]).is_break() {
                    return true;
                }
            }
            seen = order.len();
        }
        true
    }

    fn position(&self, name: &NodeName) -> Option<usize> {
        self.dispensers.binary_search_by(|dispenser| dispenser.name.cmp(name)).ok()
    }

    fn raise(&mut self, place: usize, rate: Bitrate) {
        self.dispensers[place].load = self.dispensers[place].load.plus(rate);
        self.load = self.load.plus(rate);
    }

    fn count(&mut self, now: Duration) {
        let dispensers = self.view.hashed(Role::Dispenser).map(|(hash, node)| {
            let (load, published) = (node.load.rate, node.load);
            Dispenser { load, published, ..Dispenser::new(node.name.clone(), hash, node.capacity) }
        });
        let old = std::mem::replace(&mut self.dispensers, dispensers.collect());
        self.load = self.dispensers.iter().map(|dispenser| dispenser.load).sum();
        self.capacity = self.dispensers.iter().map(|dispenser| dispenser.capacity).sum();
        let is_same =
            old.len() == self.dispensers.len() && old.iter().zip(&self.dispensers).all(|(old, new)| old.is_alike(new));
        if !is_same {
            self.orders.clear();
        }
        for mut assigned in std::mem::take(&mut self.assigned) {
            if let Some(place) = self.position(&assigned.name) {
                // Both are sorted by name. Mostly the place is the same.
                let at = |dispenser: &Dispenser| dispenser.name.cmp(&assigned.name);
                let known = old.get(place).filter(|old| is_same && at(old).is_eq());
                let known = known.or_else(|| old.binary_search_by(at).ok().map(|place| &old[place]));
                // Streams that show in a load must not count twice: the mean would be too large, and the bound with it.
                if known.is_none_or(|old| old.published != self.dispensers[place].published) {
                    assigned.unseen = assigned.unseen.min(assigned.unseen_at(now));
                }
                self.raise(place, assigned.unseen);
            }
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
    fn refused_streams_count_no_longer() {
        let mut loads = Loads::new(view(&[("a", 10), ("b", 20)]));
        let (mbps, second) = (Bitrate::from_mbps, Duration::from_secs(1));
        loads.add(&name("a"), mbps(4), second);
        loads.add(&name("a"), mbps(2), second);
        loads.take_back(&name("a"), mbps(4));
        assert_eq!((loads.load(&name("a")), loads.totals(Bitrate::ZERO).0), (Some(mbps(12)), mbps(32)));
        // Nobody else is taken back in its place.
        loads.take_back(&name("a"), mbps(4));
        loads.take_back(&name("b"), mbps(2));
        loads.update(view(&[("a", 10), ("b", 20)]), 2 * second);
        assert_eq!((loads.load(&name("a")), loads.load(&name("b"))), (Some(mbps(12)), Some(mbps(20))));
    }

    #[test]
    fn assigned_streams_count_until_loads_show_them() {
        let mut loads = Loads::new(view(&[("a", 10), ("b", 20)]));
        loads.add(&name("a"), Bitrate::from_mbps(4), Duration::from_secs(1));
        loads.add(&name("gone"), Bitrate::from_mbps(4), Duration::from_secs(1));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(14)));
        assert_eq!(loads.totals(Bitrate::ZERO), (Bitrate::from_mbps(34), Bitrate::from_mbps(200)));
        // It does not show yet: nothing new was published.
        loads.update(view(&[("a", 10), ("c", 0)]), Duration::from_secs(4));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(14)));
        // Three of five seconds of it show.
        loads.update(view(&[("a", 12), ("c", 0)]), Duration::from_secs(4));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_bps(13_600_000)));
        loads.update(view(&[("a", 12), ("c", 0)]), Duration::from_secs(6));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_bps(13_600_000)));
        loads.update(view(&[("a", 14), ("c", 0)]), Duration::from_secs(6));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(14)));
        loads.update(view(&[("a", 15), ("c", 0)]), Duration::from_secs(7));
        assert_eq!(loads.load(&name("a")), Some(Bitrate::from_mbps(15)));
        loads.at_least(&name("a"), Bitrate::from_mbps(14));
        loads.at_least(&name("c"), Bitrate::from_mbps(3));
        assert_eq!(loads.totals(Bitrate::ZERO).0, Bitrate::from_mbps(18));
    }
}
