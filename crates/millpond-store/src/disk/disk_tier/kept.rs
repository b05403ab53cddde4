//! Slices that an operator has pinned.

use super::{DiskTier, Inner};
use crate::policy::{Item, Slot};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

/// Slices that an operator has pinned, by the hashes of their objects.
#[derive(Debug, Default)]
pub(super) struct KeptSlices {
    objects: HashMap<u64, KeptObject>,
    /// Number of slots of all objects.
    slots: usize,
}

/// The pinned slices of one object.
#[derive(Debug, Default)]
struct KeptObject {
    /// Numbers of slices, on the disk or not: in order, apart from each other.
    indexes: Vec<Range<u64>>,
    /// Slots that are pinned for it.
    slots: HashSet<Slot>,
}

impl KeptObject {
    /// Adds slices.
    fn add(&mut self, indexes: impl Iterator<Item = Range<u64>>) {
        self.indexes.extend(indexes.filter(|range| !range.is_empty()));
        self.indexes.sort_unstable_by_key(|range| range.start);
        self.indexes.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
    }

    fn wants(&self, index: u64) -> bool {
        let place = self.indexes.partition_point(|range| range.end <= index);
        self.indexes.get(place).is_some_and(|range| range.start <= index)
    }
}

impl KeptSlices {
    /// Whether a slice is pinned.
    fn wants(&self, item: &Item) -> bool {
        self.objects.get(&item.object).is_some_and(|object| object.wants(item.index.into()))
    }

    /// All slots that are pinned.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.objects.values().flat_map(|object| &object.slots).copied()
    }

    /// Forgets a slot that is removed. Returns whether it was pinned.
    pub(super) fn forget(&mut self, slot: Slot) -> bool {
        let was_kept = self.objects.values_mut().any(|object| object.slots.remove(&slot));
        self.slots -= usize::from(was_kept);
        was_kept
    }
}

impl Inner {
    /// Pins a slot where its slice is pinned, up to half of the disk in all.
    pub(super) fn keep(&mut self, slot: Slot) {
        let Some(item) = self.ledger.item(slot).copied().filter(|item| self.kept.wants(item)) else { return };
        if (self.kept.slots as u64 + 1) * u64::from(item.size) > self.ledger.capacity() / 2 {
            return;
        }
        if self.kept.objects.get_mut(&item.object).is_some_and(|object| object.slots.insert(slot)) {
            self.kept.slots += 1;
            self.ledger.pin(slot);
        }
    }
}

impl DiskTier {
    /// Returns whether an operator has pinned slices of an object.
    pub(crate) fn is_kept(&self, object: u64) -> bool {
        self.lock().kept.objects.contains_key(&object)
    }

    /// Pins slices of an object by their numbers, present and future ones. Returns the number of pinned bytes of all objects.
    pub(crate) fn keep(&self, object: u64, indexes: impl Iterator<Item = Range<u64>>) -> u64 {
        let mut inner = self.lock();
        inner.kept.objects.entry(object).or_default().add(indexes);
        let of_object = inner.ledger.items().filter(|(_, item)| item.object == object);
        let slots: Vec<Slot> = of_object.map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| inner.keep(slot));
        inner.kept.slots as u64 * u64::from(self.place)
    }

    /// Unpins all slices of an object. Returns the number of pinned bytes of all objects.
    pub(crate) fn release(&self, object: u64) -> u64 {
        let mut inner = self.lock();
        let slots = inner.kept.objects.remove(&object).unwrap_or_default().slots;
        inner.kept.slots -= slots.len();
        let freed: Vec<_> = slots.into_iter().filter_map(|slot| Some((slot, inner.ledger.unpin(slot)?))).collect();
        let kept = inner.kept.slots;
        drop(inner);
        freed.into_iter().for_each(|(slot, key)| self.free(slot, key));
        kept as u64 * u64::from(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_found() {
        let mut object = KeptObject::default();
        object.add([4..6, 0..1, 9..9].into_iter());
        assert_eq!(object.indexes, [0..1, 4..6]);
        object.add([5..8, 1..2].into_iter());
        assert_eq!(object.indexes, [0..2, 4..8]);
        let wanted: Vec<u64> = (0..10).filter(|index| object.wants(*index)).collect();
        assert_eq!(wanted, [0, 1, 4, 5, 6, 7]);
        object.add(std::iter::once(0..u64::MAX));
        assert!(object.wants(1 << 40));
    }
}
