//! Limits the wrong passwords of each client, by all protocols.

use crate::buckets::{Buckets, Rate};
use millpond_stream::ClientAddress;
use std::{net::IpAddr, time::Duration};

/// Wrong passwords for one user at once, and the time after which there may be another one.
const RATE: Rate = Rate { interval: Duration::from_secs(6), burst: 10 };
/// Sets of buckets: 4,096 pairs of a client and a user, in 64 KiB.
const SETS: usize = 256;

/// The wrong passwords that each client (IPv6: each /64) has stated for each user.
///
/// Users are told apart so that a player with an old password behind a shared address locks out that user alone.
#[derive(Debug)]
pub(super) struct Guesses(Buckets);

impl Guesses {
    pub(super) fn new() -> Self {
        Self(Buckets::new(SETS))
    }

    /// Tells whether a client may state a password for a user. `now` is a time of the server's clock.
    ///
    /// # Errors
    /// The time after which it may.
    pub(super) fn may(&self, client: IpAddr, user: &str, now: Duration) -> Result<(), Duration> {
        self.0.look(&(ClientAddress::from(client), user), RATE, now)
    }

    /// Counts a wrong password.
    pub(super) fn count(&self, client: IpAddr, user: &str, now: Duration) {
        // Requests at the same moment may be more than one too many. They find the bucket empty afterwards.
        let _ = self.0.take(&(ClientAddress::from(client), user), RATE, now);
    }

    /// Forgets the wrong passwords before a right one. Some players answer a challenge with that of another request first.
    pub(super) fn forget(&self, client: IpAddr, user: &str) {
        self.0.fill(&(ClientAddress::from(client), user));
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
        assert_eq!((guesses.may(one, "bob", at(100)), guesses.may(other, "ann", at(100))), (Ok(()), Ok(())));
        guesses.forget(one, "ann");
        assert_eq!(guesses.may(one, "ann", at(100)), Ok(()));
        let network = |host: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, host]);
        (0..10).for_each(|host| guesses.count(network(host), "ann", at(100)));
        assert!(guesses.may(network(77), "ann", at(100)).is_err(), "a network of IPv6 is one client");
    }
}
