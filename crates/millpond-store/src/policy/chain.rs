//! A doubly linked list of slots without allocation per entry: the links lie in a table by slot.

use super::Slot;

const NONE: Slot = Slot::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    before: Slot,
    after: Slot,
}

/// Slots in an order, each at most once.
#[derive(Debug)]
pub(crate) struct Chain {
    links: Vec<Links>,
    front: Slot,
    back: Slot,
    len: usize,
}

impl Default for Chain {
    fn default() -> Self {
        Self { links: Vec::new(), front: NONE, back: NONE, len: 0 }
    }
}

impl Chain {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn front(&self) -> Option<Slot> {
        (self.front != NONE).then_some(self.front)
    }

    /// Returns the slot behind another one, towards the back.
    pub(crate) fn after(&self, slot: Slot) -> Option<Slot> {
        let after = self.links.get(slot as usize)?.after;
        (after != NONE).then_some(after)
    }

    /// Returns the slots from the front to the back.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.front(), |slot| self.after(*slot))
    }

    pub(crate) fn push_back(&mut self, slot: Slot) {
        let index = slot as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, Links { before: NONE, after: NONE });
        }
        self.links[index] = Links { before: self.back, after: NONE };
        match self.links.get_mut(self.back as usize) {
            Some(back) => back.after = slot,
            None => self.front = slot,
        }
        self.back = slot;
        self.len += 1;
    }

    /// Removes a slot that is in the chain.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let Some(Links { before, after }) = self.links.get(slot as usize).copied() else { return };
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => self.front = after,
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => self.back = before,
        }
        self.len -= 1;
    }

    pub(crate) fn pop_front(&mut self) -> Option<Slot> {
        let front = self.front()?;
        self.remove(front);
        Some(front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_can_be_taken_out() {
        for out in 0..3 {
            let mut chain = Chain::default();
            (0..3).for_each(|slot| chain.push_back(slot));
            chain.remove(out);
            let expected: Vec<Slot> = (0..3).filter(|slot| *slot != out).collect();
            assert_eq!(chain.iter().collect::<Vec<_>>(), expected);
            chain.push_back(out);
            assert_eq!((chain.len(), chain.iter().last()), (3, Some(out)));
            assert_eq!(chain.pop_front(), Some(expected[0]));
        }
    }
}
