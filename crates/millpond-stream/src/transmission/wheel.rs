//! A timer wheel.

/// Rounds that it reaches. Entries for later rounds come out at its end, to be put in again.
const SLOTS: usize = 256;

/// Entries by the round in which they are due.
#[derive(Debug)]
pub(super) struct Wheel<T> {
    slots: Vec<Vec<T>>,
    /// The next round to take.
    round: u64,
}

impl<T> Wheel<T> {
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Vec::new()).collect(), round: 0 }
    }

    /// Adds an entry for a round. The round is moved into those that the wheel reaches.
    pub(super) fn put(&mut self, round: u64, entry: T) {
        let round = round.clamp(self.round, self.round + SLOTS as u64 - 1);
        if let Some(slot) = self.slots.get_mut(round as usize % SLOTS) {
            slot.push(entry);
        }
    }

    /// The first round that has entries.
    pub(super) fn next(&self) -> Option<u64> {
        (self.round..self.round + SLOTS as u64).find(|round| !self.slots[*round as usize % SLOTS].is_empty())
    }

    /// Takes the entries of the first round up to `until`, in exchange for an empty list. Returns whether there were any.
    pub(super) fn take(&mut self, until: u64, empty: &mut Vec<T>) -> bool {
        let Some(next) = self.next().filter(|next| *next <= until) else {
            self.round = self.round.max(until.saturating_add(1));
            return false;
        };
        std::mem::swap(&mut self.slots[next as usize % SLOTS], empty);
        self.round = next + 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(wheel: &mut Wheel<u32>, until: u64) -> Vec<u32> {
        let mut all = Vec::new();
        let mut some = Vec::new();
        while wheel.take(until, &mut some) {
            all.append(&mut some);
        }
        all
    }

    #[test]
    fn entries_come_in_their_rounds() {
        let mut wheel = Wheel::new();
        wheel.put(3, 1);
        wheel.put(1, 2);
        wheel.put(3, 3);
        assert_eq!(wheel.next(), Some(1));
        assert!(taken(&mut wheel, 0).is_empty());
        assert_eq!(taken(&mut wheel, 2), [2]);
        assert_eq!(taken(&mut wheel, 10), [1, 3]);
        assert_eq!(wheel.next(), None);
        wheel.put(4, 4);
        assert_eq!(wheel.next(), Some(11), "what is past is next");
        assert_eq!(taken(&mut wheel, 11), [4]);
    }

    #[test]
    fn what_is_out_of_reach_is_looked_at_on_the_way() {
        let mut wheel = Wheel::new();
        taken(&mut wheel, 1_000_000);
        wheel.put(5_000_000, 1);
        assert_eq!(wheel.next(), Some(1_000_001 + SLOTS as u64 - 1));
        assert_eq!(taken(&mut wheel, 2_000_000), [1]);
    }
}
