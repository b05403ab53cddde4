//! Numbers of things that clients have open.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Number of open things of each client. Clients without any are forgotten, so the memory is bounded by the number of things.
#[derive(Debug)]
pub struct ClientTally<K: Copy + Eq + Hash> {
    /// A lock: taken when a thing begins and ends.
    open: Mutex<HashMap<K, usize>>,
}

/// One thing of a client, counted until it is dropped.
#[derive(Debug)]
pub struct Tallied<K: Copy + Eq + Hash> {
    tally: Arc<ClientTally<K>>,
    client: K,
}

impl<K: Copy + Eq + Hash> Default for ClientTally<K> {
    fn default() -> Self {
        Self { open: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash> ClientTally<K> {
    /// Counts a thing of a client; `None` where it has `most` already.
    pub fn count(self: &Arc<Self>, client: K, most: usize) -> Option<Tallied<K>> {
        let mut open = self.lock();
        let number = open.get(&client).copied().unwrap_or_default();
        if number >= most {
            return None;
        }
        open.insert(client, number + 1);
        Some(Tallied { tally: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Drop for Tallied<K> {
    fn drop(&mut self) {
        let mut open = self.tally.lock();
        if let Some(number) = open.get_mut(&self.client) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_limit() {
        let tally = Arc::new(ClientTally::default());
        let (first, _second) = (tally.count(1, 2).unwrap(), tally.count(1, 2).unwrap());
        assert!(tally.count(1, 2).is_none() && tally.count(2, 2).is_some() && tally.count(3, 0).is_none());
        drop(first);
        let third = tally.count(1, 2);
        assert!(third.is_some() && tally.count(1, 2).is_none());
        drop((third, _second));
        assert!(tally.lock().is_empty(), "clients without things are forgotten");
    }
}
