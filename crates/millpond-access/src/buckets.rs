//! Rates of many clients in fixed memory.
//!
//! Each client has a bucket: the generic cell rate algorithm (ITU-T I.371 annex A), which stores one time. The table is a cache of
//! sets. A client without a bucket gets the fullest bucket of its set: forgetting a full one changes no decision.
//! Under an attack from more addresses than the table has room for, buckets are forgotten too early. Nobody is refused for it.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Buckets of a set.
const WAYS: usize = 16;

/// A rate, and the number of requests that may arrive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Time between requests.
    pub interval: Duration,
    /// Requests at once, at least 1.
    pub(crate) burst: u32,
}

impl Rate {
    /// A rate in requests a second, at least 1.
    pub(crate) fn per_second(requests: u32, burst: u32) -> Self {
        Self { interval: Duration::from_secs(1) / requests.max(1), burst }
    }
}

/// The buckets of all clients.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// Locks, each taken for a moment by the clients of one set.
    sets: Box<[Mutex<[Bucket; WAYS]>]>,
    /// Its key is random, so that nobody can choose addresses of one set.
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Hash of the client.
    client: u64,
    /// Time at which it is full again, in nanoseconds.
    full_at: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Buckets {
    /// Creates the table. It has 16 buckets a set, each of 16 bytes.
    pub(crate) fn new(sets: usize) -> Self {
        let sets = (0..sets.max(1)).map(|_| Mutex::default()).collect();
        Self { sets, hasher: RandomState::new() }
    }

    /// Takes a request of a client out of its bucket.
    ///
    /// # Errors
    /// The time after which there is one again.
    pub(crate) fn take(&self, client: &impl Hash, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.visit(client, rate, now, true)
    }

    /// Tells whether a request of a client could be taken.
    ///
    /// # Errors
    /// The time after which it could.
    pub(crate) fn look(&self, client: &impl Hash, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.visit(client, rate, now, false)
    }

    /// Fills the bucket of a client.
    pub(crate) fn fill(&self, client: &impl Hash) {
        let client = self.hasher.hash_one(client);
        let set = &self.sets[client as usize % self.sets.len()];
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.iter_mut().filter(|bucket| bucket.client == client).for_each(|bucket| *bucket = Bucket::default());
    }

    fn visit(&self, client: &impl Hash, rate: Rate, now: Duration, takes: bool) -> Result<(), Duration> {
        let (client, now) = (self.hasher.hash_one(client), nanos(now));
        let set = &self.sets[client as usize % self.sets.len()];
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        let found = set.iter().position(|bucket| bucket.client == client);
        let at = found.or_else(|| (0..WAYS).min_by_key(|at| set[*at].full_at)).unwrap_or_default();
        let full_at = found.map_or(now, |at| set[at].full_at.max(now));
        let interval = nanos(rate.interval);
        let next = full_at.saturating_add(interval);
        let latest = now.saturating_add(interval.saturating_mul(u64::from(rate.burst.max(1))));
        if next > latest {
            return Err(Duration::from_nanos(next - latest));
        }
        if takes {
            set[at] = Bucket { client, full_at: next };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { interval: Duration::from_millis(100), burst: 5 };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_burst_is_admitted_and_then_the_rate() {
        let buckets = Buckets::new(4096);
        let take = |client: u32, ms| buckets.take(&client, RATE, at(ms));
        assert!((0..5).all(|_| take(1, 1000).is_ok()));
        assert_eq!(take(1, 1000), Err(at(100)));
        assert_eq!(take(1, 1040), Err(at(60)), "a refused request costs nothing");
        assert!(take(2, 1000).is_ok(), "another client");
        let look = |client: u32, ms| buckets.look(&client, RATE, at(ms));
        assert_eq!(((0..9).map(|_| look(3, 1000)).collect(), look(1, 1040)), (vec![Ok(()); 9], Err(at(60))));
        assert!(take(1, 1100).is_ok() && take(1, 1100).is_err());
        // Over ten seconds: 100, and one more for what was left.
        let admitted = (0..10_000).filter(|ms| take(1, 1100 + ms).is_ok()).count();
        assert!((99..=100).contains(&admitted), "{admitted}");
        assert!((0..5).all(|_| take(1, 60_000).is_ok()), "full again after silence");
        assert!(take(1, 60_000).is_err());
        buckets.fill(&1_u32);
        assert!((0..5).all(|_| take(1, 60_000).is_ok()) && take(1, 60_000).is_err());
    }

    #[test]
    fn a_crowd_of_strangers_refuses_nobody() {
        let buckets = Buckets::new(4096);
        for client in 0..200_000_u32 {
            assert!(buckets.take(&client, RATE, at(1)).is_ok());
        }
        // A client that comes again and again is limited in a crowd of others, though not to the dot.
        let admitted = (0..1000_u32).filter(|_| buckets.take(&"flood", RATE, at(2)).is_ok()).count();
        assert_eq!(admitted, 5);
    }
}
