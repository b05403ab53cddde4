//! Limits the wrong passwords of each client, by all protocols.

use crate::buckets::{Buckets, Rate};
use millpond_stream::ClientAddress;
use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    time::Duration,
};

/// Wrong passwords for one user at once, and the time after which there may be another one.
const RATE: Rate = Rate { interval: Duration::from_secs(6), burst: 10 };
/// Sets of buckets: 16,384 pairs of a client and a group of users, in 256 KiB.
const SETS: usize = 1024;
/// Groups of users of each client. A client that invents users fills them, and evicts the buckets of no other client.
const GROUPS: u64 = 256;

/// The wrong passwords that each client (IPv6: each /64) has stated for each user.
///
/// Users are told apart, in [`GROUPS`], so that a player with an old password behind a shared address hardly locks out other
/// users.
#[derive(Debug)]
pub(super) struct Guesses {
    buckets: Buckets,
    /// Its key is random, so that nobody can choose users of one group.
    hasher: RandomState,
}

impl Guesses {
    pub(super) fn new() -> Self {
        Self { buckets: Buckets::new(SETS), hasher: RandomState::new() }
    }

    fn pair(&self, client: IpAddr, user: &str) -> (ClientAddress, u64) {
        (ClientAddress::from(client), self.hasher.hash_one(user) % GROUPS)
    }

    /// Tells whether a client may state a password for a user. `now` is a time of the server's clock.
    ///
    /// # Errors
    /// The time after which it may.
    pub(super) fn may(&self, client: IpAddr, user: &str, now: Duration) -> Result<(), Duration> {
        self.buckets.look(&self.pair(client, user), RATE, now)
    }

    /// Counts a wrong password.
    pub(super) fn count(&self, client: IpAddr, user: &str, now: Duration) {
        // Requests at the same moment may be more than one too many. They find the bucket empty afterwards.
        let _ = self.buckets.take(&self.pair(client, user), RATE, now);
    }

    /// Forgets the wrong passwords before a right one. Some players answer a challenge with that of another request first.
    pub(super) fn forget(&self, client: IpAddr, user: &str) {
        self.buckets.fill(&self.pair(client, user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_guesses_ten_times_and_then_every_six_seconds() {
        let guesses = Guesses::new();
        let at = Duration::from_secs;
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        for _ in 0..10 {
            assert_eq!(guesses.may(one, "ann", at(100)), Ok(()));
            guesses.count(one, "ann", at(100));
        }
        assert_eq!(guesses.may(one, "ann", at(100)), Err(at(6)));
        assert_eq!(guesses.may(one, "ann", at(104)), Err(at(2)));
        assert_eq!(guesses.may(one, "ann", at(106)), Ok(()));
        assert_eq!(guesses.may(other, "ann", at(100)), Ok(()));
        let free = (0..100).filter(|user| guesses.may(one, &user.to_string(), at(100)).is_ok()).count();
        assert!(free > 90, "other users of the address");
        guesses.forget(one, "ann");
        assert_eq!(guesses.may(one, "ann", at(100)), Ok(()));
        let network = |host: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]);
        (0..10).for_each(|host| guesses.count(network(host), "ann", at(100)));
        assert!(guesses.may(network(77), "ann", at(100)).is_err(), "a network of IPv6 is one client");
    }

    #[test]
    fn invented_users_do_not_free_a_client() {
        let guesses = Guesses::new();
        let at = Duration::from_secs(100);
        let one: IpAddr = "192.0.2.1".parse().unwrap();
        (0..10).for_each(|_| guesses.count(one, "ann", at));
        assert!(guesses.may(one, "ann", at).is_err());
        for number in 0..100_000 {
            guesses.count(one, &format!("user{number}"), at);
            assert!(guesses.may(one, "ann", at).is_err(), "after {number} invented users");
        }
    }
}
