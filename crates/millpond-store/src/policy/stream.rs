//! The default: our own policy for streams ([`Forecast`]), and general ones for other objects.
//!
//! No single order of eviction is best for viewers of films, for small files, for scans and for news. So several orders
//! of all entries are kept, and the best recent one chooses the entry to evict. Each order runs a [`Shadow`], a cache
//! without bytes, which measures its misses on a sample of the slices.

use super::forecast::Forecast;
use super::shadow::Shadow;
use super::{Item, Lru, Policy, S3Fifo, Slot, Time, WTinyLfu};

/// Share of the leader's misses below which another order takes the lead.
const BETTER: f64 = 0.99;

/// The best of several orders.
#[derive(Debug)]
pub(crate) struct StreamPolicy {
    orders: Vec<Order>,
    leader: usize,
    /// By slot.
    items: Vec<Item>,
}

/// An order of the entries, with its shadow.
#[derive(Debug)]
struct Order {
    policy: Box<dyn Policy>,
    shadow: Shadow,
}

impl Default for StreamPolicy {
    fn default() -> Self {
        fn order<P: Policy + Default + 'static>() -> Order {
            Order { policy: Box::new(P::default()), shadow: Shadow::new(Box::new(P::default())) }
        }
        let orders = vec![order::<WTinyLfu>(), order::<Forecast>(), order::<S3Fifo>(), order::<Lru>()];
        Self { orders, leader: 0, items: Vec::new() }
    }
}

impl StreamPolicy {
    /// Looks a slice up in the shadows, which tells the orders that would have held it.
    fn ask(&mut self, item: &Item, now: Time) {
        self.orders.iter_mut().for_each(|order| order.shadow.ask(item, now));
        let missed = |order: &Order| order.shadow.missed();
        let least = (0..self.orders.len()).min_by(|a, b| missed(&self.orders[*a]).total_cmp(&missed(&self.orders[*b])));
        if let Some(best) =
            least.filter(|best| missed(&self.orders[*best]) < BETTER * missed(&self.orders[self.leader]))
        {
            self.leader = best;
        }
    }
}

impl Policy for StreamPolicy {
    fn resize(&mut self, capacity: u64) {
        for order in &mut self.orders {
            order.policy.resize(capacity);
            order.shadow.resize(capacity);
        }
    }

    fn insert(&mut self, slot: Slot, item: &Item, now: Time) {
        let index = slot as usize;
        if index >= self.items.len() {
            self.items.resize(index + 1, Item::default());
        }
        self.items[index] = *item;
        self.orders.iter_mut().for_each(|order| order.policy.insert(slot, item, now));
    }

    fn hit(&mut self, slot: Slot, item: &Item, now: Time) {
        self.ask(item, now);
        self.orders.iter_mut().for_each(|order| order.policy.hit(slot, item, now));
    }

    fn miss(&mut self, item: &Item, now: Time) {
        self.ask(item, now);
        self.orders.iter_mut().for_each(|order| order.policy.miss(item, now));
    }

    fn read(&mut self, item: &Item, enters: bool, now: Time) {
        for order in &mut self.orders {
            order.policy.read(item, enters, now);
            order.shadow.read(item, enters, now);
        }
    }

    fn remove(&mut self, slot: Slot, item: &Item) {
        self.orders.iter_mut().for_each(|order| order.policy.remove(slot, item));
    }

    fn victim(&mut self, kept: &dyn Fn(Slot) -> bool, now: Time) -> Option<Slot> {
        let slot = self.orders[self.leader].policy.victim(kept, now)?;
        let item = self.items[slot as usize];
        for (place, order) in self.orders.iter_mut().enumerate() {
            if place != self.leader {
                order.policy.remove(slot, &item);
            }
        }
        Some(slot)
    }
}
