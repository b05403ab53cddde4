//! The number of sessions of each client, and the number of its sessions that have not played.

use super::{Bounds, Full};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Most sessions of one connection that have not played yet: a player sets one up, plays it, and may set up the next.
const WAITING_PER_CONNECTION: usize = 16;

/// Numbers of sessions: in all, and of each client.
#[derive(Debug, Default)]
pub(super) struct Clients {
    sessions: usize,
    each: HashMap<ClientAddress, Sessions>,
}

/// Sessions of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Sessions {
    all: usize,
    /// Those of them that have not played.
    waiting: usize,
}

/// The address that identifies a client. With IPv6 it is a whole network (/64), as one host can use all of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl Clients {
    /// Checks whether a client may set up another session.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(super) fn check(&self, client: ClientAddress, bounds: &Bounds) -> Result<(), Full> {
        let Sessions { all, waiting } = self.each.get(&client).copied().unwrap_or_default();
        if self.sessions >= bounds.sessions {
            Err(Full::Sessions)
        } else if all >= bounds.sessions_per_client {
            Err(Full::Client)
        } else if waiting >= bounds.waiting_per_client {
            Err(Full::Waiting)
        } else {
            Ok(())
        }
    }

    /// Adds a session that has not played. `waiting` counts such sessions of its connection.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(super) fn add(&mut self, client: ClientAddress, waiting: &AtomicUsize, bounds: &Bounds) -> Result<(), Full> {
        self.check(client, bounds)?;
        if waiting.load(Ordering::Relaxed) >= WAITING_PER_CONNECTION {
            return Err(Full::Waiting);
        }
        waiting.fetch_add(1, Ordering::Relaxed);
        self.sessions += 1;
        let sessions = self.each.entry(client).or_default();
        sessions.all += 1;
        sessions.waiting += 1;
        Ok(())
    }

    /// Counts a session among those that have played.
    pub(super) fn play(&mut self, client: ClientAddress, waiting: &AtomicUsize) {
        waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(sessions) = self.each.get_mut(&client) {
            sessions.waiting -= 1;
        }
    }

    /// Removes a session that has played.
    pub(super) fn remove(&mut self, client: ClientAddress) {
        self.sessions -= 1;
        if let Some(sessions) = self.each.get_mut(&client) {
            sessions.all -= 1;
            if sessions.all == 0 {
                self.each.remove(&client);
            }
        }
    }

    /// Returns the number of clients with sessions, and the number of all sessions.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> (usize, usize) {
        (self.each.len(), self.sessions)
    }
}
