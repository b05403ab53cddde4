//! Addresses of this machine: connections to them and from them are loops.

use crate::interfaces;
use std::{
    collections::HashSet,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Time after which the addresses of the interfaces are read again.
const FRESH: Duration = Duration::from_secs(2);

/// The addresses of this machine's interfaces.
#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    /// The addresses, and when they were read. A lock: taken for a look-up.
    known: Mutex<Option<(Instant, HashSet<IpAddr>)>>,
}

impl OwnAddresses {
    /// Tells whether an address is one of this machine. Addresses that are no single host's count as such too.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            return true;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(read, _)| read.elapsed() >= FRESH) {
            *known = Some((Instant::now(), interfaces::addresses().collect()));
        }
        known.as_ref().is_some_and(|(_, addresses)| addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_this_machine_and_documentation_is_not() {
        let own = OwnAddresses::default();
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "224.0.0.1"] {
            assert!(own.contains(address.parse().unwrap()), "{address}");
        }
        assert!(!own.contains("192.0.2.1".parse().unwrap()) && !own.contains("2001:db8::1".parse().unwrap()));
    }
}
