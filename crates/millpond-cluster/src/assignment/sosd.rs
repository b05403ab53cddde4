//! Same object, same dispenser (Srinilta and Choudhary 3.1, SOSD), with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018).

use super::{Answer, Assignment, AssignmentName, Best, Candidate, Request, Standing};
use crate::{Bitrate, Loads, ObjectKey, hash, loads::Dispenser};
use std::ops::ControlFlow;

/// Most candidates of an answer.
pub(super) const CANDIDATES: usize = 8;

/// Streams of an object go to the same dispenser, while that has at most its bound; those beyond it go to the next one of the
/// object's order. So popular objects come to have several dispensers, and keep them.
///
/// The order of an object is by rendezvous hashing: a node's share of all objects is in proportion to its capacity, and when a
/// node comes or goes, only its own share moves.
#[derive(Clone, Copy, Debug)]
pub struct Sosd {
    /// The bound of a dispenser: this share of the mean load, in thousandths. The mean is in proportion to capacity.
    pub spread: u64,
    /// The share of the mean load up to which a dispenser gets streams, in thousandths. It is less than the bound: loads are late, and the
    /// mean falls when nodes join.
    pub room: u64,
    /// Share of its capacity, in thousandths, up to which a dispenser has no bound: a cluster with little to do need not spread it.
    pub idle: u64,
}

impl Default for Sosd {
    fn default() -> Self {
        Self { spread: 1125, room: 1080, idle: 125 }
    }
}

impl Sosd {
    /// The dispensers of an object whatever their load, the best first: of an object that one node should have, such as a live stream.
    pub fn owners(loads: &mut Loads, key: &ObjectKey) -> Answer {
        let mut candidates = Vec::with_capacity(CANDIDATES);
        // An order begins with more dispensers than are wanted, so that it is always known as far.
        loads.visit(key, |_, dispenser| {
            candidates.push(Candidate::new(dispenser, dispenser.score(key.hash()), Standing::Room, dispenser.capacity));
            if candidates.len() < CANDIDATES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        Answer { candidates, compared: loads.dispensers().len() }
    }

    /// Share of its capacity up to which a dispenser gets streams, where all dispensers have `total` of load and capacity.
    fn bound(self, total: (Bitrate, Bitrate)) -> f64 {
        let mean = total.0.bps() as f64 / total.1.bps().max(1) as f64;
        let [room, idle] = [self.room, self.idle].map(|thousandths| thousandths as f64 / 1000.0);
        (mean * room).max(idle).min(1.0)
    }
}

impl Assignment for Sosd {
    fn name(&self) -> AssignmentName {
        AssignmentName::Sosd
    }

    fn assign(&self, loads: &mut Loads, request: &Request<'_>) -> Answer {
        let share = self.bound(loads.totals(request.rate));
        let ranks = walk(loads, request, share).unwrap_or_else(|| scan(loads, request, share));
        let dispensers = loads.dispensers();
        let named = ranks.into_iter().zip(STANDINGS).flat_map(|(places, standing)| {
            places.into_iter().map(move |place| {
                let dispenser = &dispensers[place];
                Candidate::new(dispenser, dispenser.score(request.key.hash()), standing, bound(dispenser, share))
            })
        });
        Answer { candidates: named.take(CANDIDATES).collect(), compared: dispensers.len() }
    }
}

/// The standings, in the order of preference.
const STANDINGS: [Standing; 3] = [Standing::Room, Standing::AboveBound, Standing::Full];

/// Places of dispensers by standing, the best first.
type Ranks = [Vec<usize>; 3];

/// The best dispensers of each standing by the order of the object. `None` where the order is not known so far.
fn walk(loads: &mut Loads, request: &Request<'_>, share: f64) -> Option<Ranks> {
    let mut ranks = Ranks::default();
    let is_known = loads.visit(request.key, |place, dispenser| {
        let rank = &mut ranks[standing(dispenser, request, share) as usize];
        if rank.len() < CANDIDATES {
            rank.push(place);
        }
        if ranks[0].len() < CANDIDATES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    is_known.then_some(ranks)
}

/// The best dispensers of each standing by comparing all of them.
fn scan(loads: &Loads, request: &Request<'_>, share: f64) -> Ranks {
    let mut ranks = [const { Best::new(CANDIDATES) }; 3];
    for (place, dispenser) in loads.dispensers().iter().enumerate() {
        let mixed = hash::pair(request.key.hash(), dispenser.hash);
        let rank = standing(dispenser, request, share) as usize;
        ranks[rank].offer(mixed, dispenser.capacity.bps() as f64, place);
    }
    ranks.map(|best| best.into_iter().map(|(_, place)| place).collect())
}

/// Load up to which a dispenser gets streams, where `share` is that of its capacity.
fn bound(dispenser: &Dispenser, share: f64) -> Bitrate {
    Bitrate::from_bps((dispenser.capacity.bps() as f64 * share) as u64)
}

fn standing(dispenser: &Dispenser, request: &Request<'_>, share: f64) -> Standing {
    if request.is_too_much(dispenser) {
        Standing::Full
    } else if dispenser.load.plus(request.rate) <= bound(dispenser, share) {
        Standing::Room
    } else {
        Standing::AboveBound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Node, ObjectKey, View};
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Orders are only remembered: decisions are those of comparing all dispensers, also as loads rise until all are full.
        #[test]
        fn walking_an_order_is_comparing_all(
            nodes in proptest::collection::vec((1_u64..20, 0_u64..100), 1..300),
            objects in proptest::collection::vec(0_u32..4, 400),
        ) {
            let node = |(number, (hundreds, load)): (usize, &(u64, u64))| {
                let rate = Bitrate::from_mbps(load * hundreds / 2);
                let load = Load { rate, sessions: 1 };
                Node { load, ..Node::new(format!("n{number}").parse().unwrap(), Bitrate::from_mbps(hundreds * 100)) }
            };
            let mut loads = Loads::new(View::of(1, nodes.iter().enumerate().map(node)).into());
            let keys: Vec<_> = (0..4).map(|object| ObjectKey::new("films", &object.to_string())).collect();
            let rate = Bitrate::from_mbps(40);
            for object in objects {
                let request = Request { key: &keys[object as usize], rate, turn: 0, rooms: None };
                let share = Sosd::default().bound(loads.totals(rate));
                let scanned = scan(&loads, &request, share);
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
