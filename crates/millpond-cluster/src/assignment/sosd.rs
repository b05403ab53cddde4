//! Same object, same dispenser (Srinilta and Choudhary 3.1, SOSD), with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018).

use super::{Answer, Assignment, AssignmentName, Best, Candidate, Request, Standing};
use crate::{Bitrate, Loads, NodeName, ObjectKey, class::Agreement, hash, loads::Dispenser, orders::Within};
use std::ops::ControlFlow;

/// Most candidates of an answer.
pub(super) const CANDIDATES: usize = 8;

/// Streams of an object go to the same dispenser, while that has at most its bound; those beyond it go to the next one of the
/// object's order. So popular objects come to have several dispensers, and keep them.
///
/// The order of an object is by rendezvous hashing: a node's share of all objects is in proportion to its capacity, and when a
/// node comes or goes, only its own share moves.
///
/// Where the node that decides is in a zone, the dispensers of its zone come first while they have room. Their bound is by the mean of the
/// zone: viewers do not leave a zone because others have less to do, but because its dispensers are full.
#[derive(Clone, Copy, Debug)]
pub struct Sosd {
    /// The bound of a dispenser: this share of the mean load, in thousandths. The mean is in proportion to capacity.
    pub spread: u64,
    /// The share of the mean load up to which a dispenser gets streams, in thousandths. It is less than the bound: loads are late, and the
    /// mean falls when nodes join.
    pub room: u64,
    /// Share of its capacity, in thousandths, up to which a dispenser has no bound: a cluster with little to do need not spread it. A
    /// dispenser with less load has room for a stream of any rate.
    pub idle: u64,
}

impl Default for Sosd {
    fn default() -> Self {
        Self { spread: 1125, room: 1080, idle: 125 }
    }
}

impl Sosd {
    /// The dispensers of an object whatever their load, the best first: of an object that one node should have, such as a live stream. Those
    /// of `holders`, which have it now, come first: a dispenser that returns takes nothing from them.
    pub fn owners(loads: &mut Loads, key: &ObjectKey, holders: &[NodeName]) -> Answer {
        let agreement = loads.agreement(key);
        let mut held = loads.positions(&agreement, holders);
        let mut places = Vec::with_capacity(CANDIDATES);
        // An order begins with more dispensers than are wanted. It may not be known as far where many of them may not serve the object.
        let is_known = loads.visit(key, Within::Cluster, |place, _| {
            places.push(place);
            if places.len() < CANDIDATES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if !is_known {
            places = best(loads, &agreement, key);
        }
        places.retain(|place| !held.contains(place));
        let score = |place: usize| loads.dispensers()[place].score(key.hash());
        // Dispensers lie by name, so equal scores keep the order of names.
        held.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        let places = held.into_iter().chain(places).take(CANDIDATES);
        let candidate = |place: usize| {
            let dispenser = &loads.dispensers()[place];
            Candidate::new(dispenser, dispenser.score(key.hash()), Standing::Room, dispenser.capacity)
        };
        Answer { candidates: places.map(candidate).collect(), compared: loads.count_of(&agreement) }
    }

    /// The shares of dispensers for a stream of a rate.
    fn bounds(self, loads: &Loads, rate: Bitrate) -> Bounds {
        let [all, near] = [Within::Cluster, Within::Zone].map(|within| self.shares(loads, within, rate));
        Bounds { all, near }
    }

    fn shares(self, loads: &Loads, within: Within, rate: Bitrate) -> Shares {
        let totals = loads.totals(within);
        let part = |of: Bitrate| totals.load.plus(rate).bps() as f64 / of.bps().max(1) as f64;
        let (mean, whole) = (part(totals.capacity), part(totals.whole));
        let [room, idle] = [self.room, self.idle].map(|thousandths| thousandths as f64 / 1000.0);
        Shares { room: (mean * room).max(idle), idle, are_idle: whole * room <= idle }
    }
}

/// Shares by the means of all dispensers, and by those of the own zone.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    all: Shares,
    near: Shares,
}

/// Shares of a dispenser's capacity. A dispenser that is new gets a part of both, unless all have little to do.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// Share up to which a dispenser gets streams.
    room: f64,
    /// Share below which a dispenser has so little load that any stream may be added to it.
    idle: f64,
    /// Whether all dispensers together have so little load.
    are_idle: bool,
}

impl Assignment for Sosd {
    fn name(&self) -> AssignmentName {
        AssignmentName::Sosd
    }

    fn assign(&self, loads: &mut Loads, request: &Request<'_>) -> Answer {
        let bounds = self.bounds(loads, request.rate);
        let ranks = walk(loads, request, bounds).unwrap_or_else(|| scan(loads, request, bounds));
        let dispensers = loads.dispensers();
        let named = ranks.into_iter().zip(STANDINGS).flat_map(|(places, standing)| {
            places.into_iter().map(move |place| {
                let dispenser = &dispensers[place];
                Candidate::new(dispenser, dispenser.score(request.key.hash()), standing, bounds.room(dispenser))
            })
        });
        let compared = loads.count_of(&loads.agreement(request.key));
        Answer { candidates: named.take(CANDIDATES).collect(), compared }
    }
}

/// The place of a dispenser among others, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    /// In the own zone, with room.
    Near,
    /// Elsewhere, with room.
    Room,
    AboveBound,
    Full,
}

/// The standings of the ranks.
const STANDINGS: [Standing; 4] = [Standing::Room, Standing::Room, Standing::AboveBound, Standing::Full];

/// Places of dispensers by rank, the best first.
type Ranks = [Vec<usize>; 4];

/// The best dispensers of each rank by the orders of the object. `None` where an order is not known so far.
fn walk(loads: &mut Loads, request: &Request<'_>, bounds: Bounds) -> Option<Ranks> {
    let mut ranks = Ranks::default();
    let until = |is_enough: bool| if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    // The zone has an order of its own: in that of a large cluster its dispensers lie far apart.
    let near = &mut ranks[Rank::Near as usize];
    let is_known = loads.visit(request.key, Within::Zone, |place, dispenser| {
        if rank(dispenser, request, bounds) == Rank::Near {
            near.push(place);
        }
        until(near.len() == CANDIDATES)
    });
    if !is_known {
        return None;
    }
    if near.len() == CANDIDATES {
        return Some(ranks);
    }
    let is_known = loads.visit(request.key, Within::Cluster, |place, dispenser| {
        let rank = rank(dispenser, request, bounds);
        if rank != Rank::Near && ranks[rank as usize].len() < CANDIDATES {
            ranks[rank as usize].push(place);
        }
        until(ranks[Rank::Near as usize].len() + ranks[Rank::Room as usize].len() >= CANDIDATES)
    });
    is_known.then_some(ranks)
}

/// The best dispensers of an object, whatever their load, by comparing all of them.
fn best(loads: &Loads, agreement: &Agreement, key: &ObjectKey) -> Vec<usize> {
    let mut best = Best::new(CANDIDATES);
    for (place, dispenser) in loads.dispensers().iter().enumerate() {
        if agreement.has(dispenser.class) {
            best.offer(hash::pair(key.hash(), dispenser.hash), dispenser.capacity.bps() as f64, place);
        }
    }
    best.into_iter().map(|(_, place)| place).collect()
}

/// The best dispensers of each rank by comparing all of them.
fn scan(loads: &Loads, request: &Request<'_>, bounds: Bounds) -> Ranks {
    let agreement = loads.agreement(request.key);
    let mut ranks = [const { Best::new(CANDIDATES) }; 4];
    for (place, dispenser) in loads.dispensers().iter().enumerate() {
        if !agreement.has(dispenser.class) {
            continue;
        }
        let mixed = hash::pair(request.key.hash(), dispenser.hash);
        let rank = rank(dispenser, request, bounds) as usize;
        ranks[rank].offer(mixed, dispenser.capacity.bps() as f64, place);
    }
    ranks.map(|best| best.into_iter().map(|(_, place)| place).collect())
}

impl Shares {
    /// A share of a dispenser's capacity.
    fn of(self, dispenser: &Dispenser, share: f64) -> Bitrate {
        let part = if self.are_idle { 1.0 } else { dispenser.part };
        Bitrate::from_bps((dispenser.capacity.bps() as f64 * share * part) as u64)
    }

    /// Whether a dispenser has room for a stream of a rate.
    fn fit(self, dispenser: &Dispenser, rate: Bitrate) -> bool {
        let is_within = dispenser.load.plus(rate) <= self.of(dispenser, self.room);
        is_within || dispenser.load < self.of(dispenser, self.idle)
    }
}

impl Bounds {
    /// Load up to which a dispenser gets streams.
    fn room(self, dispenser: &Dispenser) -> Bitrate {
        let of_all = self.all.of(dispenser, self.all.room);
        if dispenser.is_near { of_all.max(self.near.of(dispenser, self.near.room)) } else { of_all }
    }
}

fn rank(dispenser: &Dispenser, request: &Request<'_>, bounds: Bounds) -> Rank {
    if request.is_too_much(dispenser) {
        Rank::Full
    } else if dispenser.is_near && (bounds.near.fit(dispenser, request.rate) || bounds.all.fit(dispenser, request.rate))
    {
        Rank::Near
    } else if bounds.all.fit(dispenser, request.rate) {
        Rank::Room
    } else {
        Rank::AboveBound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Node, ObjectKey, View};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn an_idle_dispenser_has_room_for_a_title_above_its_idle_share() {
        let node = |name: &str, load| {
            let load = Load { rate: Bitrate::from_mbps(load), sessions: 1 };
            Node { load, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(100)) }
        };
        let key = ObjectKey::new("films", "large.mp4");
        let request = |mbps| Request { key: &key, rate: Bitrate::from_mbps(mbps), turn: 0, rooms: None };
        let standings = |loads: &mut Loads, mbps| {
            let answer = Sosd::default().assign(loads, &request(mbps));
            answer.candidates.into_iter().map(|found| (found.name.to_string(), found.standing)).collect::<Vec<_>>()
        };
        // A title of 40 Mbit/s is more than an eighth of the capacity, and both nodes have little to do.
        let mut idle = Loads::new(View::of(1, [node("a", 0), node("b", 3)]).into());
        assert!(standings(&mut idle, 40).iter().all(|(_, standing)| *standing == Standing::Room));
        // More than a node can send is full; a node with load keeps its bound.
        assert!(standings(&mut idle, 99).iter().any(|(name, standing)| name == "b" && *standing == Standing::Full));
        let mut busy = Loads::new(View::of(1, [node("a", 0), node("b", 30)]).into());
        assert_eq!(standings(&mut busy, 40)[..], [("a".into(), Standing::Room), ("b".into(), Standing::AboveBound)]);
    }

    #[test]
    fn a_node_that_joins_busy_ones_does_not_take_all_starts() {
        let node = |name: &str, load| {
            let load = Load { rate: Bitrate::from_mbps(load), sessions: 1 };
            Node { load, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(1000)) }
        };
        let mut loads = Loads::new(View::of(1, [node("a", 600), node("b", 600)]).into());
        let rate = Bitrate::from_mbps(4);
        // Within a minute the new node comes to its share of the 1,200 Mbit/s, and of what is new, and not before.
        let mut taken = Vec::new();
        loads.update(View::of(2, [node("a", 600), node("b", 600), node("c", 0)]).into(), Duration::ZERO);
        for second in 0..60_u64 {
            loads.advance(Duration::from_secs(second));
            for start in 0..4 {
                let key = ObjectKey::new("films", &format!("{second}-{start}.mp4"));
                let answer = Sosd::default().assign(&mut loads, &Request { key: &key, rate, turn: 0, rooms: None });
                let name = answer.candidates[0].name.clone();
                loads.add(&name, rate, Duration::from_secs(second));
            }
            taken.push(loads.load(&"c".parse().unwrap()).unwrap().bps() / 1_000_000);
        }
        assert!(taken[5] <= 80 && taken[29] <= 400 && taken[59] >= 300, "{taken:?}");
    }

    /// Six nodes of 100 Mbit/s in the east with a load, and six in the west with another one.
    fn two_zones(east: u64, west: u64) -> Vec<Node> {
        let node = |number: u64| {
            let (zone, load) = if number < 6 { ("east", east) } else { ("west", west) };
            let load = Load { rate: Bitrate::from_mbps(load), sessions: 1 };
            Node {
                load,
                zone: Some(zone.into()),
                ..Node::new(format!("n{number}").parse().unwrap(), Bitrate::from_mbps(100))
            }
        };
        (0..12).map(node).collect()
    }

    #[test]
    fn viewers_stay_in_a_zone_while_it_has_room() {
        let key = ObjectKey::new("films", "a.mp4");
        let request = Request { key: &key, rate: Bitrate::from_mbps(4), turn: 0, rooms: None };
        for (east, west, in_the_zone) in [(0, 0, 6), (70, 0, 6), (70, 70, 6), (84, 10, 6), (92, 10, 6), (99, 10, 0)] {
            let nodes = two_zones(east, west);
            let zone_of = |found: &Candidate| nodes.iter().find(|node| node.name == found.name).unwrap().zone.clone();
            let mut loads = Loads::new(View::of(1, nodes.clone()).seen_by(&nodes[0]).into());
            let answer = Sosd::default().assign(&mut loads, &request);
            let near = answer.candidates.iter().take_while(|found| zone_of(found).as_deref() == Some("east"));
            assert_eq!(near.count(), in_the_zone, "{east} {west}: {answer}");
            assert_eq!((answer.candidates.len(), answer.compared), (8, 12));
            assert_eq!(answer.candidates[0].standing, Standing::Room, "{east} {west}");
            // A live stream has one owner for all zones.
            let owner = |own: usize| {
                let mut loads = Loads::new(View::of(1, nodes.clone()).seen_by(&nodes[own]).into());
                Sosd::owners(&mut loads, &key, &[]).candidates[0].name.clone()
            };
            assert_eq!(owner(0), owner(11));
        }
    }

    #[test]
    fn a_zone_keeps_a_title_at_its_first_dispenser() {
        let nodes = two_zones(10, 10);
        let rate = Bitrate::from_mbps(4);
        let mut by_zone = [0, 11].map(|own: usize| Loads::new(View::of(1, nodes.clone()).seen_by(&nodes[own]).into()));
        let plain = nodes.iter().map(|node| Node { zone: None, ..node.clone() });
        let mut without = Loads::new(View::of(1, plain).into());
        for number in 0..500 {
            let key = ObjectKey::new("films", &format!("{number}.mp4"));
            let request = Request { key: &key, rate, turn: 0, rooms: None };
            let first = |loads: &mut Loads| Sosd::default().assign(loads, &request).candidates[0].name.clone();
            let [east, west] = by_zone.each_mut().map(&first);
            assert_ne!(east, west);
            // The best of all is the best of its zone.
            let whole = first(&mut without);
            assert!(whole == east || whole == west);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Orders are only remembered: decisions are those of comparing all dispensers, also as loads rise until all are full.
        #[test]
        fn walking_an_order_is_comparing_all(
            nodes in proptest::collection::vec((1_u64..20, 0_u64..100, 0_u32..5), 1..300),
            objects in proptest::collection::vec(0_u32..4, 400),
            own in proptest::option::of(0_u32..4),
        ) {
            let zone = |number: u32| Some(format!("z{number}").into());
            let node = |(number, (hundreds, load, of)): (usize, &(u64, u64, u32))| {
                let rate = Bitrate::from_mbps(load * hundreds / 2);
                let load = Load { rate, sessions: 1 };
                // Some nodes are in no zone.
                let zone = zone(*of).filter(|_| *of < 4);
                Node { load, zone, ..Node::new(format!("n{number}").parse().unwrap(), Bitrate::from_mbps(hundreds * 100)) }
            };
            let own = Node { zone: own.and_then(zone), ..Node::new("n0".parse().unwrap(), Bitrate::from_mbps(100)) };
            let view = View::of(1, nodes.iter().enumerate().map(node)).seen_by(&own);
            let mut loads = Loads::new(view.into());
            let keys: Vec<_> = (0..4).map(|object| ObjectKey::new("films", &object.to_string())).collect();
            let rate = Bitrate::from_mbps(40);
            for object in objects {
                let request = Request { key: &keys[object as usize], rate, turn: 0, rooms: None };
                let bounds = Sosd::default().bounds(&loads, rate);
                let scanned = scan(&loads, &request, bounds);
                let answer = Sosd::default().assign(&mut loads, &request);
                let expected: Vec<_> = scanned.iter().flatten().take(CANDIDATES).collect();
                let names: Vec<_> = expected.iter().map(|place| loads.dispensers()[**place].name.clone()).collect();
                let found: Vec<_> = answer.candidates.iter().map(|found| found.name.clone()).collect();
                prop_assert_eq!(&found, &names);
                loads.add(&found[0], rate, Duration::ZERO);
            }
        }
    }
}
