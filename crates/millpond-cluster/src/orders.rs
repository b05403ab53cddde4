//! The orders of objects: dispensers by score, remembered as far as they were needed.
//!
//! An order depends on names and capacities alone. So it stays while loads change, and a decision walks to the first dispensers with
//! room instead of hashing every name.

use super::{assignment::Best, hash, loads::Dispenser};
use std::collections::HashMap;

/// Places of an order that are found at first.
const FIRST: usize = 64;
/// Growth of an order whose dispensers are often full.
const GROWTH: usize = 4;
/// Decisions for which an order was too short before it grows. Until then they compare all dispensers.
const TOO_SHORT: u8 = 4;
/// Weight of a generation: two bytes a place, so 2 MiB.
const MOST: usize = 1 << 20;
/// Weight of an entry beside its places.
const OVERHEAD: usize = 32;

/// The dispensers of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Within {
    /// All of them.
    Cluster,
    /// Those in the zone of the node that decides.
    Zone,
}

/// The orders of objects by the objects' hashes. Orders that were not asked for while [`MOST`] came in are forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    young: Generation,
    old: Generation,
}

/// The dispensers of an order, and the hash of its object.
type OrderKey = (Within, u64);

#[derive(Clone, Debug, Default)]
struct Generation {
    orders: HashMap<OrderKey, Order>,
    weight: usize,
}

/// The best dispensers of an object, by their places, the best first.
#[derive(Clone, Debug)]
struct Order {
    places: Box<[u16]>,
    /// Decisions for which it was too short.
    too_short: u8,
}

impl Orders {
    /// Forgets all orders: the dispensers are others.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The order of an object, with more than `known` places. `None` where it is not known so far. `dispensers` are the same in all calls
    /// between two of [`clear`](Self::clear), and more than `known` are within.
    pub(crate) fn beyond(&mut self, key: OrderKey, known: usize, dispensers: &[Dispenser]) -> Option<&[u16]> {
        if !self.young.orders.contains_key(&key) {
            let order = self.old.remove(key);
            self.insert(key, order.unwrap_or_else(|| Order::of(key, FIRST, dispensers)));
        }
        let order = self.young.orders.get_mut(&key)?;
        if order.places.len() <= known {
            order.too_short = order.too_short.saturating_add(1);
            if order.too_short <= TOO_SHORT {
                return None;
            }
            let longer = Order { too_short: TOO_SHORT, ..Order::of(key, known.saturating_mul(GROWTH), dispensers) };
            self.young.remove(key);
            self.insert(key, longer);
        }
        self.young.orders.get(&key).map(|order| &*order.places)
    }

    fn insert(&mut self, key: OrderKey, order: Order) {
        if self.young.weight + order.weight() > MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.weight += order.weight();
        self.young.orders.insert(key, order);
    }
}

impl Generation {
    fn remove(&mut self, key: OrderKey) -> Option<Order> {
        let order = self.orders.remove(&key)?;
        self.weight -= order.weight();
        Some(order)
    }
}

impl Order {
    fn weight(&self) -> usize {
        self.places.len() + OVERHEAD
    }

    /// The best dispensers of an object, `length` of them or all.
    fn of((within, object): OrderKey, length: usize, dispensers: &[Dispenser]) -> Self {
        let is_within = |(dispenser, _): &(&Dispenser, u16)| within == Within::Cluster || dispenser.is_near;
        let among = dispensers.iter().zip(0_u16..).filter(is_within);
        let places = if length <= FIRST { best(object, length, among) } else { sorted(object, length, among) };
        Self { places, too_short: 0 }
    }
}

/// A few places of the largest scores. Scores of most dispensers are not worked out.
fn best<'a>(object: u64, length: usize, dispensers: impl Iterator<Item = (&'a Dispenser, u16)>) -> Box<[u16]> {
    let mut best = Best::new(length);
    for (dispenser, place) in dispensers {
        best.offer(hash::pair(object, dispenser.hash), dispenser.capacity.bps() as f64, place);
    }
    best.into_iter().map(|(_, place)| place).collect()
}

/// Many places of the largest scores.
fn sorted<'a>(object: u64, length: usize, dispensers: impl Iterator<Item = (&'a Dispenser, u16)>) -> Box<[u16]> {
    let mut scored: Vec<(f64, u16)> = dispensers.map(|(dispenser, place)| (dispenser.score(object), place)).collect();
    let by_score = |one: &(f64, u16), two: &(f64, u16)| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1));
    if length < scored.len() {
        scored.select_nth_unstable_by(length, by_score);
        scored.truncate(length);
    }
    scored.sort_unstable_by(by_score);
    scored.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitrate;

    fn dispensers(count: u64) -> Vec<Dispenser> {
        let dispenser = |number: u64| {
            let capacity = Bitrate::from_mbps(100 + 50 * (number % 3));
            Dispenser::new(format!("n{number}").parse().unwrap(), number.wrapping_mul(77), capacity)
        };
        (0..count).map(dispenser).collect()
    }

    fn of(object: u64) -> OrderKey {
        (Within::Cluster, object)
    }

    #[test]
    fn an_order_of_a_zone_has_its_dispensers_alone() {
        let mut all = dispensers(300);
        all.iter_mut().step_by(5).for_each(|dispenser| dispenser.is_near = true);
        let mut orders = Orders::default();
        let near = orders.beyond((Within::Zone, 9), 0, &all).unwrap().to_vec();
        assert_eq!(near.len(), 60);
        let whole = sorted(9, 300, all.iter().zip(0..));
        let expected: Vec<_> = whole.iter().copied().filter(|place| all[usize::from(*place)].is_near).collect();
        assert_eq!(near, expected);
        assert_eq!(orders.beyond(of(9), 0, &all).unwrap(), &whole[..FIRST]);
    }

    #[test]
    fn orders_grow_where_they_are_often_too_short() {
        let all = dispensers(1000);
        let mut orders = Orders::default();
        let mut known = 0;
        for (length, refusals) in [(64, 0), (256, 4), (1000, 0)] {
            let refused = (0..10).take_while(|_| orders.beyond(of(9), known, &all).is_none()).count();
            assert_eq!(refused, refusals, "{length}");
            let order = orders.beyond(of(9), known, &all).unwrap();
            assert_eq!(order.len(), length);
            let score = |place: &u16| all[usize::from(*place)].score(9);
            assert!(order.is_sorted_by(|one, two| score(one) > score(two)), "{length}");
            let least = score(order.last().unwrap());
            assert_eq!(all.iter().filter(|dispenser| dispenser.score(9) >= least).count(), length);
            known = length;
        }
    }

    #[test]
    fn orders_are_bounded_and_those_in_use_stay() {
        let all = dispensers(100);
        let mut orders = Orders::default();
        let mut found = 0;
        for object in 0..100_000 {
            orders.beyond(of(object), 0, &all);
            found += usize::from(orders.young.orders.contains_key(&of(7)) || orders.old.orders.contains_key(&of(7)));
            if object % 1000 == 0 {
                orders.beyond(of(7), 0, &all);
            }
            let weights = [&orders.young, &orders.old].map(|generation| generation.weight);
            assert!(weights.iter().all(|weight| *weight <= MOST));
            let counted = orders.young.orders.values().map(Order::weight).sum::<usize>();
            assert!(object % 1000 != 0 || counted == weights[0]);
        }
        assert!(found >= 99_990, "{found}");
        assert!(orders.young.orders.len() + orders.old.orders.len() < 25_000);
        orders.clear();
        assert_eq!(orders.young.weight, 0);
    }
}
