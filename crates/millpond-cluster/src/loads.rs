//! The load of dispensers, with the streams that a manager has assigned since it was published.

use super::{
    Bitrate, Load, NodeName, ObjectKey, Role, View,
    class::Agreement,
    hash,
    orders::{Orders, Within},
    view::Member,
};
use std::{
    collections::{HashMap, VecDeque},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

/// Time for which an assigned stream counts beside the load that its dispenser publishes. Published loads are older than the
/// decisions that follow from them: without this, one node would get all streams of an interval. They are averages of some seconds,
/// in which a new stream shows fully after this time.
const ASSIGNED: Duration = Duration::from_secs(5);
/// Most streams that are remembered so. Beyond it the oldest are forgotten.
const MOST_ASSIGNED: usize = 100_000;
/// Time in which a dispenser that is new comes to its whole share. Until then its cache is empty, and each of its streams reads the origin.
const SLOW_START: Duration = Duration::from_secs(60);
/// Its part of the share at the beginning.
const FIRST_PART: f64 = 0.1;
/// Least time between two looks at the age of new dispensers.
const STEP: Duration = Duration::from_secs(1);
/// Time for which dispensers that have left are remembered: a node whose registration was lost for a while is not new.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The loads of a view's dispensers, with the streams that the manager has assigned since they were published.
///
/// Two managers with the same view and the same additions give the same answers.
#[derive(Clone, Debug)]
pub struct Loads {
    view: Arc<View>,
    /// By name.
    dispensers: Vec<Dispenser>,
    /// Of all dispensers.
    totals: Totals,
    /// Of those in the zone of the node that sees the view.
    near: Totals,
    assigned: VecDeque<Assigned>,
    /// Of these dispensers.
    orders: Orders,
    /// Runs of dispensers, also of those that have left a short time ago.
    runs: HashMap<NodeName, Run>,
    /// Whether a dispenser is new, and the time of the last look at that.
    starting: (bool, Duration),
}

/// Sums over dispensers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of them.
    pub(crate) count: usize,
    /// Bandwidth that they send.
    pub(crate) load: Bitrate,
    /// Their capacity, of new ones their part of it.
    pub(crate) capacity: Bitrate,
    /// Their capacity, of new ones all of it.
    pub(crate) whole: Bitrate,
}

impl Totals {
    fn of<'a>(dispensers: impl Iterator<Item = &'a Dispenser>) -> Self {
        let mut totals = Self::default();
        for dispenser in dispensers {
            let weight = match dispenser.part < 1.0 {
                true => Bitrate::from_bps((dispenser.capacity.bps() as f64 * dispenser.part) as u64),
                false => dispenser.capacity,
            };
            totals.count += 1;
            totals.load = totals.load.plus(dispenser.load);
            totals.capacity = totals.capacity.plus(weight);
            totals.whole = totals.whole.plus(dispenser.capacity);
        }
        totals
    }
}

/// The last run of a dispenser.
#[derive(Clone, Copy, Debug)]
struct Run {
    incarnation: u64,
    /// Time at which it was new; `None` where it was there before this node looked.
    began: Option<Duration>,
    /// Time at which it was seen last.
    seen: Duration,
}

/// A node that streams may be given to.
#[derive(Clone, Debug)]
pub(crate) struct Dispenser {
    pub(crate) name: NodeName,
    /// Hash of the name.
    pub(crate) hash: u64,
    pub(crate) load: Bitrate,
    pub(crate) capacity: Bitrate,
    /// Number of its class in the view.
    pub(crate) class: usize,
    /// Whether it is in the zone of the node that sees the view.
    pub(crate) is_near: bool,
    /// Part of its share that it gets so far: 1 after its [slow start](SLOW_START).
    pub(crate) part: f64,
    began: Option<Duration>,
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
        Self { name, hash, load, capacity, class: 0, is_near: false, part: 1.0, began: None, published }
    }

    /// Its score for an object, by the object's hash.
    pub(crate) fn score(&self, object: u64) -> f64 {
        hash::score(hash::pair(object, self.hash), self.capacity.bps() as f64)
    }

    /// Whether orders are the same with `other` in its place.
    fn is_alike(&self, other: &Self) -> bool {
        (self.hash, self.capacity, self.is_near) == (other.hash, other.capacity, other.is_near)
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
            totals: Totals::default(),
            near: Totals::default(),
            assigned: VecDeque::new(),
            orders: Orders::default(),
            runs: HashMap::new(),
            starting: (false, Duration::ZERO),
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

    /// Lets new dispensers come nearer to their whole share. It is to be called before streams are assigned.
    pub fn advance(&mut self, now: Duration) {
        let (is_starting, looked) = self.starting;
        if is_starting && now.saturating_sub(looked) >= STEP {
            self.weigh(now);
        }
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
            let taken = dispenser.load.minus(lower);
            dispenser.load = lower;
            self.totals.load = self.totals.load.minus(taken);
            if dispenser.is_near {
                self.near.load = self.near.load.minus(taken);
            }
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

    /// Places of some dispensers that may be given the work of an agreement, in the order of their names.
    pub(crate) fn positions(&self, agreement: &Agreement, names: &[NodeName]) -> Vec<usize> {
        let mut places: Vec<_> = names.iter().filter_map(|name| self.position(name)).collect();
        places.retain(|place| agreement.has(self.dispensers[*place].class));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The dispensers, by name.
    pub(crate) fn dispensers(&self) -> &[Dispenser] {
        &self.dispensers
    }

    /// The dispensers that may serve an object.
    pub(crate) fn agreement(&self, key: &ObjectKey) -> Agreement {
        self.view.agreement(key.place())
    }

    /// Number of the dispensers of an agreement.
    pub(crate) fn count_of(&self, agreement: &Agreement) -> usize {
        match agreement.is_of_all() {
            true => self.dispensers.len(),
            false => self.dispensers.iter().filter(|dispenser| agreement.has(dispenser.class)).count(),
        }
    }

    /// The sums over some dispensers.
    pub(crate) fn totals(&self, within: Within) -> Totals {
        match within {
            Within::Cluster => self.totals,
            Within::Zone => self.near,
        }
    }

    /// Calls `visit` with the dispensers of an object's order that may serve it, of all or of the own zone, and their places, the best first, until it breaks. Returns whether that was
    /// done: not where the order is not known as far. At least the first eight of the whole order always are.
    pub(crate) fn visit(
        &mut self,
        key: &ObjectKey,
        within: Within,
        mut visit: impl FnMut(usize, &Dispenser) -> ControlFlow<()>,
    ) -> bool {
        let agreement = self.view.agreement(key.place());
        let (mut seen, count) = (0, self.totals(within).count);
        while seen < count {
            let Some(order) = self.orders.beyond((within, key.hash()), seen, &self.dispensers) else { return false };
            for place in order[seen..].iter().map(|place| usize::from(*place)) {
                let dispenser = &self.dispensers[place];
                if agreement.has(dispenser.class) && visit(place, dispenser).is_break() {
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
        let dispenser = &mut self.dispensers[place];
        dispenser.load = dispenser.load.plus(rate);
        self.totals.load = self.totals.load.plus(rate);
        if dispenser.is_near {
            self.near.load = self.near.load.plus(rate);
        }
    }

    /// Computes the parts of new dispensers.
    fn weigh(&mut self, now: Duration) {
        let age = |began: Duration| now.saturating_sub(began).as_secs_f64() / SLOW_START.as_secs_f64();
        for dispenser in &mut self.dispensers {
            dispenser.part = dispenser.began.map_or(1.0, |began| age(began).clamp(FIRST_PART, 1.0));
        }
        self.starting = (self.dispensers.iter().any(|dispenser| dispenser.part < 1.0), now);
        self.totals = Totals::of(self.dispensers.iter());
        self.near = Totals::of(self.dispensers.iter().filter(|dispenser| dispenser.is_near));
    }

    fn count(&mut self, now: Duration) {
        // All that are there at the first look have been there before.
        let is_first = self.runs.is_empty();
        let mut dispensers = Vec::new();
        let own_zone = self.view.own_zone();
        for (Member { hash, incarnation, class, zone, .. }, node) in self.view.members_taking(Role::Dispenser) {
            let known = self.runs.get(&node.name).filter(|run| run.incarnation == *incarnation);
            let began = known.map_or((!is_first).then_some(now), |run| run.began);
            self.runs.insert(node.name.clone(), Run { incarnation: *incarnation, began, seen: now });
            let (load, published) = (node.load.rate, node.load);
            dispensers.push(Dispenser {
                load,
                class: *class,
                is_near: zone.is_some() && *zone == own_zone,
                began,
                published,
                ..Dispenser::new(node.name.clone(), *hash, node.capacity)
            });
        }
        if self.runs.len() > dispensers.len() {
            self.runs.retain(|_, run| now.saturating_sub(run.seen) < REMEMBERED);
        }
        let old = std::mem::replace(&mut self.dispensers, dispensers);
        self.weigh(now);
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
    use crate::{Entry, Load, Node, node_key};

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

    /// A view of runs of nodes that each send half of 100 Mbit/s.
    fn runs(all: &[(&str, u64)]) -> Arc<View> {
        let node = |text: &str| {
            let load = Load { rate: Bitrate::from_mbps(50), sessions: 1 };
            Node { load, ..Node::new(name(text), Bitrate::from_mbps(100)) }
        };
        let written: Vec<_> =
            all.iter().map(|(text, run)| (node_key("/", &name(text), *run), node(text).to_json())).collect();
        View::read("/", 1, written.iter().map(|(key, value)| Entry { key, value: value.as_bytes(), created: 1 })).into()
    }

    #[test]
    fn a_new_dispenser_comes_to_its_share_in_a_minute() {
        let second = Duration::from_secs;
        let parts = |loads: &Loads| loads.dispensers.iter().map(|dispenser| dispenser.part).collect::<Vec<_>>();
        let mut loads = Loads::new(Arc::default());
        loads.update(runs(&[("a", 1), ("b", 1)]), second(10));
        assert_eq!(parts(&loads), [1.0, 1.0], "they were there before");
        loads.update(runs(&[("a", 1), ("b", 1), ("c", 1)]), second(100));
        let capacity = |loads: &Loads| loads.totals(Within::Cluster).capacity;
        assert_eq!((parts(&loads), capacity(&loads)), (vec![1.0, 1.0, 0.1], Bitrate::from_mbps(210)));
        loads.advance(second(130));
        assert_eq!((parts(&loads), capacity(&loads)), (vec![1.0, 1.0, 0.5], Bitrate::from_mbps(250)));
        // A registration that was lost for a while makes no node new; another run does.
        loads.update(runs(&[("a", 1)]), second(140));
        loads.update(runs(&[("a", 1), ("b", 2), ("c", 1)]), second(145));
        assert_eq!(parts(&loads), [1.0, 0.1, 0.75]);
        loads.advance(second(205));
        assert_eq!((parts(&loads), loads.starting.0), (vec![1.0; 3], false));
        loads.update(runs(&[("a", 1), ("b", 2)]), second(206));
        loads.update(runs(&[("a", 1), ("b", 2)]), second(900));
        assert_eq!(loads.runs.len(), 2, "it is forgotten");
    }

    #[test]
    fn refused_streams_count_no_longer() {
        let mut loads = Loads::new(view(&[("a", 10), ("b", 20)]));
        let (mbps, second) = (Bitrate::from_mbps, Duration::from_secs(1));
        loads.add(&name("a"), mbps(4), second);
        loads.add(&name("a"), mbps(2), second);
        loads.take_back(&name("a"), mbps(4));
        assert_eq!((loads.load(&name("a")), loads.totals(Within::Cluster).load), (Some(mbps(12)), mbps(32)));
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
        let totals = loads.totals(Within::Cluster);
        assert_eq!((totals.load, totals.capacity), (Bitrate::from_mbps(34), Bitrate::from_mbps(200)));
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
        assert_eq!(loads.totals(Within::Cluster).load, Bitrate::from_mbps(18));
    }

    #[test]
    fn the_own_zone_has_sums_of_its_own() {
        let mbps = Bitrate::from_mbps;
        let node = |(text, zone): (&str, Option<&str>)| {
            let load = Load { rate: mbps(10), sessions: 1 };
            Node { load, zone: zone.map(Into::into), ..Node::new(name(text), mbps(100)) }
        };
        let nodes = [("a", Some("east")), ("b", Some("west")), ("c", Some("east")), ("d", None)].map(node);
        let seen_by = |own: &Node| Loads::new(View::of(1, nodes.clone()).seen_by(own).into());
        let mut loads = seen_by(&nodes[0]);
        loads.add(&name("c"), mbps(4), Duration::ZERO);
        loads.add(&name("b"), mbps(4), Duration::ZERO);
        let near = Totals { count: 2, load: mbps(24), capacity: mbps(200), whole: mbps(200) };
        assert_eq!((loads.totals(Within::Zone), loads.totals(Within::Cluster).load), (near, mbps(48)));
        loads.take_back(&name("c"), mbps(4));
        loads.take_back(&name("b"), mbps(4));
        assert_eq!((loads.totals(Within::Zone).load, loads.totals(Within::Cluster).load), (mbps(20), mbps(40)));
        // A node without a zone is near to nobody.
        assert_eq!(seen_by(&nodes[3]).totals(Within::Zone), Totals::default());
        assert_eq!(Loads::new(View::of(1, nodes.clone()).into()).totals(Within::Zone), Totals::default());
    }
}
